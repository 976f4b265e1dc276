#include "tools/latile/Npy.h"
#include "tools/latile/File.h"
#include "tools/latile/UserError.h"
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace latile {
namespace {

constexpr char magic[] = "\x93NUMPY";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("{}: {}", path, why));
}

/// The header is a Python dictionary with exactly three keys; nothing else is taken.
class Header {
public:
  Header(const std::string& file, std::string text) : path(file), s(std::move(text)) {
    expect('{');
    bool order = false, dims = false;
    while (peek() != '}') {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        descr = quoted();
      else if (key == "fortran_order")
        fortran = boolean(), order = true;
      else if (key == "shape")
        tuple(), dims = true;
      else
        refuse(path, fmt::format("header has the unknown key '{}'; it is no plain .npy array", key));
      if (peek() == ',')
        ++at;
      else if (peek() != '}')
        bad();
    }
    ++at;
    if (peek() != '\0' || descr.empty() || !order || !dims) bad();
  }
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;

private:
  [[noreturn]] void bad() const { refuse(path, "has a damaged .npy header"); }
  char peek() {
    while (at < s.size() && (s[at] == ' ' || s[at] == '\n')) ++at;
    return at < s.size() ? s[at] : '\0';
  }
  void expect(char c) {
    if (peek() != c) bad();
    ++at;
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') {
      if (quote == '[') refuse(path, "holds a structured array; save one plain array per file");
      bad();
    }
    const std::size_t end = s.find(quote, at + 1);
    if (end == std::string::npos) bad();
    std::string word = s.substr(at + 1, end - at - 1);
    at = end + 1;
    return word;
  }
  bool boolean() {
    peek();
    const bool yes = s.compare(at, 4, "True") == 0;
    if (!yes && s.compare(at, 5, "False") != 0) bad();
    at += yes ? 4 : 5;
    return yes;
  }
  void tuple() {
    expect('(');
    while (peek() != ')') {
      if (peek() < '0' || peek() > '9') bad();
      std::int64_t value = 0;
      for (; at < s.size() && s[at] >= '0' && s[at] <= '9'; ++at) {
        if (value > std::numeric_limits<std::int64_t>::max() / 16) bad();
        value = value * 10 + (s[at] - '0');
      }
      shape.push_back(value);
      if (peek() == ',')
        ++at;
      else if (peek() != ')')
        bad();
    }
    ++at;
  }
  const std::string& path;
  std::string s;
  std::size_t at = 0;
};

ElementType element_type(const std::string& path, const std::string& descr, bool bfloat_words) {
  if (descr == "<f4") return ElementType::f32;
  if (descr == "<f2") return ElementType::f16;
  if (descr == "<i4") return ElementType::i32;
  if (descr == "<i8") return ElementType::i64;
  if (descr == "<V2" || descr == "|V2") return ElementType::bf16;
  if (descr == "<u2") {
    if (bfloat_words) return ElementType::bf16;
    refuse(path, "holds uint16; add --dtype bf16 if these are the bits of bfloat16 numbers");
  }
  if (!descr.empty() && descr[0] == '>')
    refuse(path, fmt::format("is big-endian ('{}'); save it in little-endian order", descr));
  refuse(path,
         fmt::format("has element type '{}'; float32, float16, bfloat16 ('<V2'), int32 and int64 are read", descr));
}

const char* descriptor(ElementType type, bool bfloat_words) {
  switch (type) {
  case ElementType::f32: return "<f4";
  case ElementType::f16: return "<f2";
  case ElementType::bf16: return bfloat_words ? "<u2" : "<V2";
  case ElementType::i32: return "<i4";
  case ElementType::i64: return "<i8";
  case ElementType::f64: return "<f8";
  }
  return "";
}

}  // namespace

HostTensor read_npy(const std::string& path, bool bfloat_words) {
  const std::string text = read_file(path);
  if (text.size() < 10 || text.compare(0, 6, magic, 6) != 0) {
    if (text.compare(0, 2, "PK") == 0) refuse(path, "is a .npz archive; save each array to a .npy file of its own");
    refuse(path, "is not a .npy file");
  }
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
  const int version = static_cast<int>(byte(6));
  if (version < 1 || version > 3) refuse(path, fmt::format("has .npy format {}; 1, 2 and 3 are read", version));
  const std::size_t start = version == 1 ? 10 : 12;
  if (text.size() < start) refuse(path, "is truncated inside its header");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > text.size() - start) refuse(path, "is truncated inside its header");
  const Header header(path, text.substr(start, length));

  HostTensor t;
  t.name = path;
  t.type = element_type(path, header.descr, bfloat_words);
  t.shape = header.shape;
  std::size_t bytes = size(t.type);
  for (std::int64_t d : t.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(d), &bytes)) refuse(path, "has an impossible shape");
  const std::size_t have = text.size() - start - length;
  if (have < bytes) refuse(path, fmt::format("is truncated: its shape needs {} bytes, {} are there", bytes, have));
  if (have > bytes) refuse(path, fmt::format("has {} bytes after its data; it is damaged", have - bytes));
  if (header.fortran) {
    const std::vector<std::int64_t> reversed(t.shape.rbegin(), t.shape.rend());
    const std::vector<std::int64_t> strides = dense_strides(reversed);
    t.strides.assign(strides.rbegin(), strides.rend());
  } else {
    t.strides = dense_strides(t.shape);
  }
  t.bytes.resize(bytes);
  if (bytes) std::memcpy(t.bytes.data(), text.data() + start + length, bytes);
  return t;
}

std::string npy_content(const HostTensor& t, bool bfloat_words) {
  std::string shape;
  for (std::int64_t d : t.shape) shape += fmt::format("{}, ", d);
  if (t.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   descriptor(t.type, bfloat_words), shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');  // data starts at a multiple of 64 bytes
  header += '\n';
  std::string out(magic, 6);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  t.append_dense(out);
  return out;
}

void write_npy(const std::string& path, const HostTensor& t, bool bfloat_words) {
  write_file(path, npy_content(t, bfloat_words));
}

}  // namespace latile
