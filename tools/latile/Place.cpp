#include "tools/latile/Place.h"
#include "runtime/EmulatedDevice.h"
#include "runtime/Failure.h"
#include "tools/latile/UserError.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace latile {
namespace {

/// A failure of the device as the command reports its own.
template <class Call> auto on_device(Call&& call) {
  try {
    return call();
  } catch (const runtime::Failure& failure) { throw UserError(failure.text, exit_internal); }
}

}  // namespace

Place Place::named(const std::string& text) {
  Place place;
  place.text = text;
  if (text == "host") return place;
  if (text == "cuda" || text.starts_with("cuda:")) {
    place.id.type = LATILE_CUDA;
    if (const std::string number = text.size() > 5 ? text.substr(5) : "0"; true) {
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place.id.id);
      if (error != std::errc() || end != number.data() + number.size() || text == "cuda:")
        throw UserError(fmt::format("--device {}: '{}' is no number of a device", text, text.substr(5)));
      place.text = "cuda:" + number;
    }
  } else if (text.starts_with("emulated:")) {
    place.id.type = LATILE_EMULATED;
    if (!runtime::emulated_chip(text.substr(9), place.id.id))
      throw UserError(fmt::format("--device {}: there is no emulated chip '{}'; {} are known", text, text.substr(9),
                                  fmt::join(runtime::emulated_chips(), ", ")));
  } else {
    throw UserError(fmt::format("there is no device '{}'; host, cuda, cuda:N and emulated:sm_80 are offered", text));
  }
  try {
    place.device = runtime::find_device(place.id);
  } catch (const runtime::Failure& failure) { throw UserError(failure.text); }
  return place;
}

void Place::wait() const {
  on_device([&] { device->synchronise(nullptr); });
}

std::string Place::description() const { return host() ? text : device->description(); }

DeviceMemory::DeviceMemory(std::shared_ptr<runtime::Device> on, std::size_t bytes)
    : device(std::move(on)), bytes(bytes) {
  memory = static_cast<char*>(on_device([&] { return device->allocate(bytes + 2 * fence); }));
  poison();
}

DeviceMemory::~DeviceMemory() { device->release(memory); }

void DeviceMemory::poison() {
  on_device([&] { device->fill(memory, 0xff, bytes + 2 * fence); });
}

bool DeviceMemory::overran() const {
  unsigned char around[2 * fence];
  on_device([&] {
    device->copy_out(around, memory, fence, nullptr);
    device->copy_out(around + fence, memory + fence + bytes, fence, nullptr);
  });
  return std::any_of(std::begin(around), std::end(around), [](unsigned char byte) { return byte != 0xff; });
}

PlacedTensors::PlacedTensors(const Place& place, std::vector<HostTensor>& all, const std::vector<std::size_t>& memory,
                             bool shift)
    : tensors(all), pointers(all.size(), nullptr) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HostTensor& tensor = tensors[i];
    if (memory[i] != i) continue;
    if (place.host()) {
      pointers[i] = tensor.bytes.data();
      continue;
    }
    const std::size_t moved = shift ? size(tensor.type) : 0;
    auto copy = std::make_unique<DeviceMemory>(place.device, tensor.bytes.size() + moved);
    pointers[i] = static_cast<char*>(copy->data()) + moved;
    on_device([&] { place.device->copy_in(pointers[i], tensor.bytes.data(), tensor.bytes.size()); });
    copies.push_back({std::move(copy), i, moved});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) pointers[i] = pointers[memory[i]];
}

void PlacedTensors::fetch() {
  std::vector<std::byte> bytes;
  for (const Copy& copy : copies) {
    HostTensor& tensor = tensors[copy.tensor];
    bytes.resize(copy.memory->size());
    on_device([&] { copy.memory->read(bytes.data()); });
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(copy.shift), bytes.end(), tensor.bytes.begin());
  }
}

bool PlacedTensors::overran() const {
  return std::any_of(copies.begin(), copies.end(), [](const Copy& copy) { return copy.memory->overran(); });
}

}  // namespace latile
