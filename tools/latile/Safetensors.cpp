#include "tools/latile/Safetensors.h"
#include "tools/latile/File.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace latile {
namespace {

using nlohmann::json;

/// As other readers limit it, so that no file is written or read here that they refuse.
constexpr std::uint64_t most_header_bytes = 100'000'000;
constexpr const char* metadata = "__metadata__";

struct StoredType {
  const char* name;
  int bits;
  std::optional<ElementType> element;  ///< none: known to the format, not read here
};
constexpr StoredType stored_types[] = {{"F32", 32, ElementType::f32},
                                       {"F16", 16, ElementType::f16},
                                       {"BF16", 16, ElementType::bf16},
                                       {"I32", 32, ElementType::i32},
                                       {"I64", 64, ElementType::i64},
                                       {"F64", 64, {}},
                                       {"I16", 16, {}},
                                       {"I8", 8, {}},
                                       {"U64", 64, {}},
                                       {"U32", 32, {}},
                                       {"U16", 16, {}},
                                       {"U8", 8, {}},
                                       {"BOOL", 8, {}},
                                       {"C64", 64, {}},
                                       {"F8_E4M3", 8, {}},
                                       {"F8_E5M2", 8, {}},
                                       {"F8_E8M0", 8, {}},
                                       {"F8_E4M3FNUZ", 8, {}},
                                       {"F8_E5M2FNUZ", 8, {}},
                                       {"F6_E2M3", 6, {}},
                                       {"F6_E3M2", 6, {}},
                                       {"F4", 4, {}}};

struct Place {
  const StoredType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< in the data behind the header
};

/// The header, checked in full against the size of the file.
class Header {
public:
  explicit Header(const InputFile& file) : file(file) {
    unsigned char length[8];
    if (file.size() < sizeof length) file.refuse("is not a .safetensors file: it has fewer than 8 bytes");
    file.read(0, length, sizeof length);
    std::uint64_t size = 0;
    for (int i = 7; i >= 0; --i) size = size << 8 | length[i];
    if (size > most_header_bytes)
      file.refuse(fmt::format("is not a .safetensors file, or its header is too large: it begins with the length {}, "
                              "the most is {} bytes",
                              size, most_header_bytes));
    if (size > file.size() - sizeof length)
      file.refuse(fmt::format("is truncated inside its header: it needs {} bytes, {} are there", size,
                              file.size() - sizeof length));
    std::string text(size, '\0');
    file.read(sizeof length, text.data(), text.size());
    if (text.empty() || text[0] != '{') file.refuse("is not a .safetensors file: its header does not begin with '{'");
    data = sizeof length + size;
    const json parsed = parse(text);
    for (const auto& [name, entry] : parsed.items())
      if (name == metadata)
        check_metadata(entry);
      else
        places.emplace(name, place(name, entry));
    check_cover();
  }

  std::map<std::string, Place> places;
  std::uint64_t data = 0;  ///< where the data begins in the file

private:
  [[noreturn]] void damaged(const std::string& why) const { file.refuse("has a damaged header: " + why); }

  json parse(const std::string& text) const {
    std::vector<std::set<std::string>> keys;
    std::optional<std::string> twice;
    bool deep = false;
    const auto watch = [&](int depth, json::parse_event_t event, json& value) {
      // The format has three levels; a file of brackets alone must not exhaust anything.
      if (depth > 3) deep = true;
      if (event == json::parse_event_t::object_start) keys.emplace_back();
      if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
      if (event == json::parse_event_t::key && !keys.empty() && !keys.back().insert(value.get<std::string>()).second)
        twice = value.get<std::string>();
      return !deep;
    };
    const json parsed = json::parse(text, watch, /*allow_exceptions=*/false);
    if (twice) damaged(fmt::format("it has the key '{}' twice", *twice));
    if (deep) damaged("it is nested deeper than the format allows");
    if (!parsed.is_object()) damaged("it is not a JSON object");
    return parsed;
  }

  void check_metadata(const json& entry) const {
    bool good = entry.is_object();
    if (good)
      for (const auto& item : entry) good &= item.is_string();
    if (!good) damaged("__metadata__ is no map of texts");
  }

  Place place(const std::string& name, const json& entry) const {
    const auto wrong = [&](const std::string& why) { damaged(fmt::format("tensor '{}' {}", name, why)); };
    if (!entry.is_object()) wrong("is not described by an object");
    for (const auto& [key, value] : entry.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        wrong(fmt::format("has the unknown key '{}'", key));
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) wrong(fmt::format("has no {}", key));
    Place found;
    const json &type = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
    if (!type.is_string()) wrong("has a dtype that is no text");
    const auto known = std::find_if(std::begin(stored_types), std::end(stored_types),
                                    [&](const StoredType& t) { return type == t.name; });
    if (known == std::end(stored_types)) wrong(fmt::format("has the unknown dtype '{}'", type.get<std::string>()));
    found.type = known;
    if (!shape.is_array()) wrong("has a shape that is no list");
    auto bits = static_cast<std::uint64_t>(known->bits);
    for (const json& extent : shape) {
      if (!extent.is_number_unsigned()) wrong("has a shape with something that is no number from 0 up");
      const auto value = extent.get<std::uint64_t>();
      if (__builtin_mul_overflow(bits, value, &bits) || bits > std::uint64_t{1} << 62 || value > INT64_MAX)
        wrong("has an impossible shape");
      found.shape.push_back(static_cast<std::int64_t>(value));
    }
    if (bits % 8) wrong("does not fill its last byte");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      wrong("has data_offsets that are no two numbers from 0 up");
    found.begin = offsets[0].get<std::uint64_t>(), found.end = offsets[1].get<std::uint64_t>();
    if (found.begin > found.end) wrong(fmt::format("ends at {}, before it begins at {}", found.end, found.begin));
    if (found.end - found.begin != bits / 8)
      wrong(fmt::format("needs {} bytes for its shape and dtype; its data_offsets have {}", bits / 8,
                        found.end - found.begin));
    return found;
  }

  /// The tensors follow one another and fill the data exactly.
  void check_cover() const {
    std::vector<std::pair<const Place*, const std::string*>> order;
    for (const auto& [name, place] : places) order.emplace_back(&place, &name);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
    });
    std::uint64_t at = 0;
    const std::string* before = nullptr;
    for (const auto& [place, name] : order) {
      if (place->begin < at) damaged(fmt::format("tensors '{}' and '{}' overlap", *before, *name));
      if (place->begin > at)
        damaged(fmt::format("{} bytes before tensor '{}' belong to no tensor", place->begin - at, *name));
      at = place->end, before = name;
    }
    const std::uint64_t have = file.size() - data;
    if (have < at) file.refuse(fmt::format("is truncated: its tensors need {} bytes, {} are there", at, have));
    if (have > at) file.refuse(fmt::format("has {} bytes behind its last tensor; it is damaged", have - at));
  }

  const InputFile& file;
};

const char* stored_name(ElementType type) {
  for (const StoredType& t : stored_types)
    if (t.element == type) return t.name;
  return "F64";
}

}  // namespace

std::vector<std::string> safetensors_names(const std::string& path) {
  const InputFile file(path);
  const Header header(file);
  std::vector<std::string> names;
  for (const auto& [name, place] : header.places) names.push_back(name);
  return names;
}

HostTensor read_safetensors(const std::string& path, const std::string& name) {
  const InputFile file(path);
  const Header header(file);
  const auto found = header.places.find(name);
  if (found == header.places.end()) {
    std::vector<std::string> some;
    for (const auto& [known, place] : header.places)
      if (some.size() < 8) some.push_back(known);
    const std::size_t more = header.places.size() - some.size();
    file.refuse(fmt::format("has no tensor '{}'; it has {}{}; name one as {}:NAME", name,
                            some.empty() ? "none" : fmt::format("{}", fmt::join(some, ", ")),
                            more ? fmt::format(" and {} more", more) : "", path));
  }
  const Place& place = found->second;
  if (!place.type->element)
    file.refuse(fmt::format("tensor '{}' has dtype {}; F32, F16, BF16, I32 and I64 are read", name, place.type->name));
  HostTensor t(name, *place.type->element, place.shape);
  if (!t.bytes.empty()) file.read(header.data + place.begin, t.bytes.data(), t.bytes.size());
  return t;
}

std::string safetensors_content(std::vector<std::pair<std::string, const HostTensor*>> tensors) {
  // Large elements first: then every tensor is aligned to its element when the data is.
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const std::size_t of_a = size(a.second->type), of_b = size(b.second->type);
    return of_a != of_b ? of_a > of_b : a.first < b.first;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t bytes = static_cast<std::size_t>(tensor->count()) * size(tensor->type);
    header[name] = {{"dtype", stored_name(tensor->type)},
                    {"shape", tensor->shape},
                    {"data_offsets", std::vector<std::size_t>{at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string content(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) content[i] = static_cast<char>(text.size() >> 8 * i & 255);
  content += text;
  content.reserve(content.size() + at);
  for (const auto& [name, tensor] : tensors) tensor->append_dense(content);
  return content;
}

}  // namespace latile
