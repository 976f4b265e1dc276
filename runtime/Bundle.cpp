#include "runtime/Bundle.h"
#include "latile/latile.h"
#include "runtime/Cache.h"
#include "runtime/Failure.h"
#include "runtime/InfoJson.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace latile::runtime {

using nlohmann::json;

namespace {

constexpr char kMagic[8] = {'l', 'a', 't', 'i', 'l', 'e', 'B', '\n'};
constexpr std::uint64_t kMaxIndex = std::uint64_t{1} << 28, kAlignment = 64;

struct Header {
  char magic[8];
  std::uint32_t format;
  std::uint32_t convention;   ///< kCacheFormat: how kernels are called
  char writer[32];            ///< "latile 0.1.0"
  std::uint64_t index, file;  ///< lengths in bytes
  std::uint64_t low, high;    ///< checksum of the index, and of the fields above
};
static_assert(sizeof(Header) == 80);

XXH128_hash_t checksum(const Header& header, const std::string& index) {
  return XXH3_128bits_withSeed(index.data(), index.size(), XXH3_64bits(&header, offsetof(Header, low)));
}

bool read_at(int file, std::uint64_t offset, char* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = pread(file, bytes + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::uint64_t aligned(std::uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Bundle::Bundle(std::string name) : path(std::move(name)) {
  handle = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) refuse(fmt::format("cannot be opened: {}", std::strerror(errno)));
  try {
    struct stat facts;
    if (fstat(handle, &facts) != 0 || !S_ISREG(facts.st_mode)) refuse("is no regular file");
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    Header header;
    if (size < offsetof(Header, index) ||
        !read_at(handle, 0, reinterpret_cast<char*>(&header), offsetof(Header, index)) ||
        std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
      refuse("is no bundle of latile's");
    writer.assign(header.writer, strnlen(header.writer, sizeof header.writer));
    // Told from damage by name: what another version wrote may be whole.
    if (header.format != kBundleFormat)
      refuse(
          fmt::format("is a bundle of format {}, written by {}; this runtime reads format {}; use the runtime of that "
                      "version, or write it again",
                      header.format, writer, kBundleFormat));
    if (header.convention != kCacheFormat)
      refuse(fmt::format("was written by {}, whose kernels are called in another way (convention {}, this runtime has "
                         "{}); use the runtime of that version, or write it again",
                         writer, header.convention, kCacheFormat));
    if (size < sizeof header || !read_at(handle, 0, reinterpret_cast<char*>(&header), sizeof header))
      refuse("is truncated inside its header");
    if (header.index > kMaxIndex || header.index > size - sizeof header) refuse("is truncated inside its index");
    if (header.file > size) refuse(fmt::format("is truncated: it had {} bytes, {} are there", header.file, size));
    if (header.file < size) refuse(fmt::format("has {} bytes behind its end; it is damaged", size - header.file));
    std::string index(header.index, '\0');
    if (!read_at(handle, sizeof header, index.data(), index.size())) refuse("cannot be read");
    const XXH128_hash_t sum = checksum(header, index);
    if (sum.low64 != header.low || sum.high64 != header.high) refuse("is damaged: the checksum of its index is wrong");
    read_index(index, sizeof header + header.index, size);
  } catch (...) {
    close(handle);
    throw;
  }
}

Bundle::~Bundle() { close(handle); }

void Bundle::refuse(const std::string& why) const { fail(LATILE_BAD_FILE, "{} {}", path, why); }

void Bundle::read_index(const std::string& text, std::uint64_t data, std::uint64_t size) {
  const json index = json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    for (const json& j : index.at("infos"))
      infos.push_back({j.at("options"), j.at("bound"), info_from_json(j.at("info"))});
    for (const json& j : index.at("plans")) {
      BundlePlan plan;
      plan.specialisation = j.at("specialisation").dump();
      j.at("info").get_to(plan.info);
      j.at("offset").get_to(plan.offset), j.at("bytes").get_to(plan.bytes), j.at("checksum").get_to(plan.checksum);
      const bool outside = plan.offset < data || plan.offset > size || plan.bytes > size - plan.offset;
      if (outside || plan.info >= infos.size() || !j.at("specialisation").is_object() ||
          !Artifact::from_json(j.at("facts").dump(), plan.artifact))
        refuse(fmt::format("is damaged: plan {} of its index does not fit it", plans.size()));
      plans.push_back(std::move(plan));
    }
  } catch (const json::exception& e) { refuse(fmt::format("is damaged: its index cannot be read ({})", e.what())); }
}

std::string Bundle::binary(const BundlePlan& plan) const {
  std::string bytes(plan.bytes, '\0');
  if (!read_at(handle, plan.offset, bytes.data(), bytes.size())) refuse("cannot be read to its end");
  if (Cache::digest(bytes) != plan.checksum)
    refuse(fmt::format("is damaged: the checksum of the code for {} is wrong", plan.specialisation));
  return bytes;
}

std::unique_ptr<Artifact> Bundle::find(const std::string& specialisation) const {
  for (const BundlePlan& plan : plans) {
    if (plan.specialisation != specialisation) continue;
    auto found = std::make_unique<Artifact>(plan.artifact);
    found->binary = binary(plan);
    return found;
  }
  return nullptr;
}

void Bundle::verify() const {
  for (const BundlePlan& plan : plans) (void)binary(plan);
}

std::string Bundle::text() const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BundlePlan& plan : plans) {
    const auto s = nlohmann::json::parse(plan.specialisation);
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const auto& t : s.value("tensors", nlohmann::json::array()))
      tensors.push_back({{"name", t.value("name", "")}, {"type", t.value("type", "")}});
    list.push_back({{"op", s.value("op", "")},
                    {"mode", s.value("mode", "")},
                    {"target", plan.artifact.target},
                    {"options", s.value("options", nlohmann::json::array())},
                    {"dims", s.value("extents", nlohmann::json::object())},
                    {"head_ratio", s.value("head_ratio", 1)},
                    {"io", s.value("io", "")},
                    {"tensors", tensors},
                    {"kernels", plan.artifact.kernels.size()},
                    {"bytes", plan.bytes}});
  }
  return nlohmann::ordered_json({{"file", path}, {"format", kBundleFormat}, {"writer", writer}, {"plans", list}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string bundle_content(const std::vector<BundleInfo>& infos, const std::vector<BundlePlan>& plans) {
  json index = {{"infos", json::array()}, {"plans", json::array()}};
  for (const BundleInfo& each : infos)
    index["infos"].push_back({{"options", each.options}, {"bound", each.bound}, {"info", info_to_json(each.info)}});
  // Offsets are part of the index and follow from its length: written with a fixed number of digits, they do not
  // change it.
  const auto text_at = [&](std::uint64_t start) {
    index["plans"] = json::array();
    std::uint64_t at = start;
    for (const BundlePlan& plan : plans) {
      at = aligned(at);
      index["plans"].push_back({{"specialisation", json::parse(plan.specialisation)},
                                {"info", plan.info},
                                {"facts", json::parse(plan.artifact.facts_json())},
                                {"offset", at},
                                {"bytes", plan.artifact.binary.size()},
                                {"checksum", Cache::digest(plan.artifact.binary)}});
      at += plan.artifact.binary.size();
    }
    return std::pair(index.dump(), at);
  };
  // The room for the index: as long as it is with the largest offsets there can be, filled up with blanks.
  const std::size_t room = aligned(sizeof(Header) + text_at(std::uint64_t{1} << 60).first.size()) - sizeof(Header);
  auto [text, end] = text_at(sizeof(Header) + room);
  text.resize(room, ' ');

  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format = kBundleFormat, header.convention = kCacheFormat;
  std::strncpy(header.writer, "latile " LATILE_VERSION, sizeof header.writer - 1);
  header.index = text.size(), header.file = end;
  const XXH128_hash_t sum = checksum(header, text);
  header.low = sum.low64, header.high = sum.high64;
  std::string content(reinterpret_cast<const char*>(&header), sizeof header);
  content += text;
  for (const BundlePlan& plan : plans) {
    content.resize(aligned(content.size()));
    content += plan.artifact.binary;
  }
  return content;
}

}  // namespace latile::runtime
