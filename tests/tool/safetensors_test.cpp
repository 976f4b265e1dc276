#include "tests/tool/Command.h"
#include "tools/latile/File.h"
#include "tools/latile/Safetensors.h"
#include "tools/latile/TensorFile.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace latile;
namespace fs = std::filesystem;

namespace {

/// A file with any header; `length` in place of the header's own.
std::string file_of(const std::string& header, const std::string& data, std::int64_t length = -1) {
  const auto size = length < 0 ? header.size() : static_cast<std::uint64_t>(length);
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(size >> 8 * i & 255);
  return text + header + data;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape, int begin, int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, type, shape, begin, end);
}

std::string refusal(const std::string& path, const std::string& name) {
  try {
    (void)read_safetensors(path, name);
  } catch (const UserError& e) {
    CHECK(e.code == exit_bad_use);
    return e.what();
  }
  return "";
}

HostTensor counted(ElementType type, std::vector<std::int64_t> shape) {
  HostTensor t("t", type, std::move(shape));
  for (std::int64_t i = 0; i < t.count(); ++i) t.set(i, static_cast<double>(i - 7));
  return t;
}

}  // namespace

TEST_CASE("each type goes out and comes back, all in one file") {
  const Folder folder;
  const std::string file = folder.file("t.safetensors");
  std::vector<HostTensor> all;
  for (ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::i32, ElementType::i64})
    all.push_back(counted(type, {2, 3, 5}));
  all.push_back(counted(ElementType::f32, {}));
  all.push_back(counted(ElementType::bf16, {0, 3}));
  HostTensor turned("t", ElementType::f16, {2, 3}, {1, 2});
  for (std::int64_t i = 0; i < 6; ++i) turned.set(i, static_cast<double>(i));
  all.push_back(turned);
  std::vector<std::pair<std::string, const HostTensor*>> named;
  for (std::size_t i = 0; i < all.size(); ++i) named.emplace_back(fmt::format("layer.{}.\"q\"", i), &all[i]);
  const std::string bytes = safetensors_content(named);
  std::reverse(named.begin(), named.end());
  CHECK(safetensors_content(named) == bytes);
  put(file, bytes);
  CHECK(safetensors_names(file).size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const HostTensor back = read_safetensors(file, fmt::format("layer.{}.\"q\"", i));
    CHECK(back.type == all[i].type);
    CHECK(back.shape == all[i].shape);
    for (std::int64_t e = 0; e < back.count(); ++e) CHECK(back.get(e) == all[i].get(e));
  }
}

TEST_CASE("the bytes of the format") {
  // Written out by hand from its definition: length, header, data, little-endian.
  const HostTensor t = counted(ElementType::i32, {2});
  const std::string header = R"({"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((header.size() + 7) / 8 * 8 - header.size(), ' ');
  CHECK(safetensors_content({{"a", &t}}) == file_of(padded, std::string("\xf9\xff\xff\xff\xfa\xff\xff\xff", 8)));

  const Folder folder;
  const std::string file = folder.file("t.safetensors");
  // Other order of keys, metadata, tensors out of order, a type that is not read, no padding, an empty tensor.
  put(file, file_of(R"({"__metadata__":{"format":"pt"},"b":{"data_offsets":[8,12],"shape":[1],"dtype":"F32"},)" +
                        entry("c", "F64", "[1]", 0, 8) + "," + entry("e", "I64", "[0]", 8, 8) + "}",
                    std::string(8, '\x55') + std::string("\0\0\x80\x3f", 4)));
  CHECK(read_safetensors(file, "b").get(0) == 1.0);
  CHECK(read_safetensors(file, "e").count() == 0);
  CHECK(has(refusal(file, "c"), "tensor 'c' has dtype F64"));
  CHECK(has(refusal(file, "d"), "has no tensor 'd'; it has b, c, e"));
}

TEST_CASE("what breaks the format is refused by name") {
  const Folder folder;
  const std::string file = folder.file("t.safetensors"), data(8, '\0');
  CHECK(has(refusal(folder.file("none.safetensors"), "a"), "cannot be opened"));
  CHECK(has(refusal(folder.path.string(), "a"), "not a regular file"));
  const auto refused = [&](const std::string& text, const std::string& part) {
    put(file, text);
    const std::string said = refusal(file, "a");
    CHECK_MESSAGE(has(said, part), said);
    CHECK(said.starts_with(file));
  };
  const auto header = [&](const std::string& text, const std::string& part) { refused(file_of(text, data), part); };
  const std::string good = entry("a", "F32", "[2]", 0, 8);
  put(file, file_of("{" + good + "}", data));
  CHECK(refusal(file, "a").empty());

  refused("", "fewer than 8 bytes");
  refused("1234567", "fewer than 8 bytes");
  refused("hello, this is text", "its header is too large");
  refused(file_of("{}", "", 100'000'001), "the most is 100000000 bytes");
  refused(file_of("{" + good + "}", data, 1000), "truncated inside its header");
  refused(file_of("", ""), "does not begin with '{'");
  header(" {}", "does not begin with '{'");
  header("[1]", "does not begin with '{'");
  header("{" + good, "not a JSON object");
  header("{" + good + "} {}", "not a JSON object");
  header("{\"a\xff\":1}", "not a JSON object");
  header("{" + good + "," + good + "}", "the key 'a' twice");
  header(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "the key 'dtype' twice");
  header("{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", "nested deeper");
  header(R"({"__metadata__":{"a":1},)" + good + "}", "__metadata__");
  header(R"({"__metadata__":"x",)" + good + "}", "__metadata__");
  header(R"({"a":[1]})", "tensor 'a' is not described");
  header(R"({"a":{"dtype":"F32","shape":[2]}})", "has no data_offsets");
  header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"device":"cpu"}})", "unknown key 'device'");
  header("{" + entry("a", "F31", "[2]", 0, 8) + "}", "unknown dtype 'F31'");
  header(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", "dtype that is no text");
  header("{" + entry("a", "F32", "2", 0, 8) + "}", "shape that is no list");
  header("{" + entry("a", "F32", "[-2]", 0, 8) + "}", "no number from 0 up");
  header("{" + entry("a", "F32", "[2.0]", 0, 8) + "}", "no number from 0 up");
  header("{" + entry("a", "F32", "[99999999999999999999]", 0, 8) + "}", "no number from 0 up");
  header("{" + entry("a", "F32", "[4611686018427387904,4]", 0, 8) + "}", "impossible shape");
  header("{" + entry("a", "F32", "[0,9223372036854775809]", 0, 0) + "}", "impossible shape");
  header("{" + entry("a", "F4", "[3]", 0, 1) + "}", "does not fill its last byte");
  header("{" + entry("a", "F32", "[3]", 0, 8) + "}", "needs 12 bytes for its shape and dtype; its data_offsets have 8");
  header("{" + entry("a", "F32", "[2]", 8, 0) + "}", "before it begins");
  header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "no two numbers");
  header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "no two numbers");
  header("{" + good + "," + entry("b", "F16", "[2]", 4, 8) + "}", "'a' and 'b' overlap");
  header("{" + good + "," + entry("b", "F32", "[2]", 0, 8) + "}", "'a' and 'b' overlap");
  header("{" + entry("b", "F16", "[1]", 0, 2) + "," + entry("a", "F32", "[1]", 4, 8) + "}",
         "2 bytes before tensor 'a' belong to no tensor");
  refused(file_of("{" + good + "}", data.substr(1)), "truncated: its tensors need 8 bytes, 7 are there");
  refused(file_of("{" + good + "}", data + "xy"), "2 bytes behind its last tensor");
  refused(file_of("{" + entry("a", "F32", "[4611686018427387]", 0, 8) + "}", data), "needs 18446744073709548 bytes");
}

TEST_CASE("every truncation and no flipped bit of the header is an accident") {
  const Folder folder;
  const std::string file = folder.file("t.safetensors");
  const HostTensor a = counted(ElementType::f32, {2, 2}), b = counted(ElementType::i64, {3});
  const std::string whole = safetensors_content({{"a", &a}, {"b", &b}});
  for (std::size_t n = 0; n < whole.size(); ++n) {
    put(file, whole.substr(0, n));
    CHECK_MESSAGE(!refusal(file, "a").empty(), n);
  }
  // A flipped bit gives a refusal or some other file of the format, and never a tensor beyond the data.
  for (std::size_t bit = 0; bit < 8 * (whole.size() - 40); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    put(file, changed);
    try {
      const HostTensor t = read_safetensors(file, "a");
      CHECK(t.bytes.size() <= 40);
    } catch (const UserError&) {}
  }
}

TEST_CASE("places on the command line") {
  CHECK(tensor_file("a/q.npy", "q").name.empty());
  CHECK(tensor_file("x.safetensors", "S.initial").name == "S.initial");
  const TensorFile named = tensor_file("C:x.safetensors:y.safetensors:k:1", "q");
  CHECK(named.path == "C:x.safetensors:y.safetensors");
  CHECK(named.name == "k:1");
  CHECK_THROWS_AS((void)tensor_file("x.safetensors:", "q"), UserError);
  CHECK_THROWS_AS((void)tensor_file("x.safetensors:__metadata__", "q"), UserError);
  CHECK_NOTHROW(check_distinct({{"a.safetensors", "x"}, {"a.safetensors", "y"}, {"a.npy", ""}}));
  CHECK_THROWS_AS(check_distinct({{"a.safetensors", "x"}, {"./a.safetensors", "x"}}), UserError);
  CHECK_THROWS_AS(check_distinct({{"a.npy", ""}, {"b/../a.npy", ""}}), UserError);
}

TEST_CASE("several files are replaced together or not at all") {
  const Folder folder;
  const HostTensor t = counted(ElementType::f32, {2});
  put(folder.file("a.npy"), "old");
  put(folder.file("s.safetensors"), "old too");
  fs::create_directory(folder.file("taken"));
  for (const std::string& last : {folder.file("taken"), folder.file("no/such/folder.npy")}) {
    CHECK_THROWS_AS(
        write_tensors({{{folder.file("a.npy"), ""}, t}, {{folder.file("s.safetensors"), "x"}, t}, {{last, ""}, t}},
                      false),
        UserError);
    CHECK(content(folder.file("a.npy")) == "old");
    CHECK(content(folder.file("s.safetensors")) == "old too");
  }
  write_tensors({{{folder.file("s.safetensors"), "x"}, t}, {{folder.file("./s.safetensors"), "y"}, t}}, false);
  CHECK(safetensors_names(folder.file("s.safetensors")) == std::vector<std::string>{"x", "y"});
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& each : fs::directory_iterator(folder.path)) ++left;
  CHECK(left == 3);
}

TEST_CASE("Python's safetensors reads what is written here, and the other way round") {
  if (std::system("python3 -c 'import safetensors.numpy' 2>/dev/null") != 0) {
    MESSAGE("skipped: python3 has no safetensors");
    return;
  }
  const Folder folder;
  const HostTensor a = counted(ElementType::f32, {2, 3}), b = counted(ElementType::i64, {4}),
                   c = counted(ElementType::f16, {0, 2});
  put(folder.file("here.safetensors"), safetensors_content({{"a", &a}, {"b", &b}, {"c", &c}}));
  put(folder.file("copy.py"), "import sys\nfrom safetensors.numpy import load_file, save_file\n"
                              "x = load_file(sys.argv[1])\nassert x['a'][1][2] == -2 and x['b'][0] == -7\n"
                              "save_file(x, sys.argv[2], metadata={'format': 'np'})\n");
  REQUIRE(std::system(fmt::format("python3 {} {} {}", folder.file("copy.py"), folder.file("here.safetensors"),
                                  folder.file("there.safetensors"))
                          .c_str()) == 0);
  CHECK(read_safetensors(folder.file("there.safetensors"), "a").bytes == a.bytes);
  CHECK(read_safetensors(folder.file("there.safetensors"), "b").bytes == b.bytes);
  CHECK(read_safetensors(folder.file("there.safetensors"), "c").shape == c.shape);
}
