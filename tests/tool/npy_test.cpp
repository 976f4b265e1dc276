#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "tests/tool/Command.h"
#include "tools/latile/Npy.h"
#include "tools/latile/UserError.h"
#include <doctest/doctest.h>

using namespace latile;
namespace fs = std::filesystem;

namespace {

/// A file as numpy writes it, with any header.
std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

std::string refusal(const std::string& path, bool words = false) {
  try {
    (void)read_npy(path, words);
  } catch (const UserError& e) {
    CHECK(e.code == exit_bad_use);
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each type goes out and comes back") {
  const Folder folder;
  for (ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32, ElementType::i64}) {
    HostTensor t("t", type, {2, 3, 5});
    for (std::int64_t i = 0; i < t.count(); ++i) t.set(i, static_cast<double>(i - 7));
    for (bool words : {false, true}) {
      write_npy(folder.file("t.npy"), t, words);
      const HostTensor back = read_npy(folder.file("t.npy"), words);
      CHECK(back.type == type);
      CHECK(back.shape == t.shape);
      CHECK(back.bytes == t.bytes);
      CHECK(content(folder.file("t.npy")).find('\n') % 64 == 63);
    }
  }
}

TEST_CASE("scalars, vectors and empty tensors") {
  const Folder folder;
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {4}, {0, 3}}) {
    HostTensor t("t", ElementType::f32, shape);
    write_npy(folder.file("t.npy"), t, false);
    CHECK(read_npy(folder.file("t.npy"), false).shape == shape);
  }
}

TEST_CASE("strided memory is written in order; Fortran files are read by strides") {
  const Folder folder;
  HostTensor t("t", ElementType::f32, {2, 3}, {1, 2});
  for (std::int64_t i = 0; i < 6; ++i) t.set(i, static_cast<double>(i));
  write_npy(folder.file("t.npy"), t, false);
  const HostTensor c = read_npy(folder.file("t.npy"), false);
  for (std::int64_t i = 0; i < 6; ++i) CHECK(c.get(i) == i);

  std::string data(24, '\0');
  for (int i = 0; i < 6; ++i) store_element(data.data() + 4 * i, ElementType::f32, i);
  put(folder.file("f.npy"), npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", data));
  const HostTensor f = read_npy(folder.file("f.npy"), false);
  CHECK(f.get(1) == 2);
  CHECK(f.get(3) == 1);
}

TEST_CASE("formats 2 and 3 and other spellings") {
  const Folder folder;
  const std::string data(8, '\0');
  for (int version : {2, 3}) {
    put(folder.file("t.npy"), npy("{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}", data, version));
    CHECK(read_npy(folder.file("t.npy"), false).shape == std::vector<std::int64_t>{2});
  }
}

TEST_CASE("what is not understood is refused by name") {
  const Folder folder;
  const std::string file = folder.file("t.npy"), plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  const std::string data(8, '\0');
  CHECK(has(refusal(folder.file("none.npy")), "cannot be opened"));
  CHECK(has(refusal(folder.path.string()), "not a regular file"));
  const auto refused = [&](const std::string& text, const std::string& part) {
    put(file, text);
    const std::string said = refusal(file);
    CHECK_MESSAGE(has(said, part), said);
    CHECK(said.starts_with(file));
  };
  refused("", "not a .npy file");
  refused("hello, this is text", "not a .npy file");
  refused("PK\x03\x04 an archive", ".npz archive");
  refused(npy(plain, data).substr(0, 30), "truncated inside its header");
  refused(npy(plain, data).substr(0, 9), "not a .npy file");
  refused(npy(plain, data, 2).substr(0, 11), "truncated inside its header");
  refused(npy(plain, data, 4), "format 4");
  refused(npy(plain, data.substr(1)), "needs 8 bytes, 7 are there");
  refused(npy(plain, data + "x"), "1 bytes after its data");
  refused(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", data), "big-endian");
  refused(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", data), "element type '<f8'");
  refused(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }", data), "--dtype bf16");
  refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", data), "structured array");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 'y'}", data), "unknown key 'x'");
  refused(npy("{'descr': '<f4', 'shape': (2,), }", data), "damaged");
  refused(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", data), "damaged");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", data), "damaged");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", data), "damaged");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (500000000000000000, 500000000000000000), }", data),
          "impossible shape");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } more", data), "damaged");
}

TEST_CASE("a failed write leaves what was there") {
  const Folder folder;
  const HostTensor t("t", ElementType::f32, {2});
  CHECK_THROWS_AS(write_npy(folder.file("no/such/folder.npy"), t, false), UserError);
  fs::create_directory(folder.file("taken"));
  put(folder.file("taken/old"), "old");
  CHECK_THROWS_AS(write_npy(folder.file("taken"), t, false), UserError);
  CHECK(content(folder.file("taken/old")) == "old");
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path)) ++left;
  CHECK(left == 1);
}
