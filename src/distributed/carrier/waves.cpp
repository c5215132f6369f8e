// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/carrier/waves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "imbrex/error.hpp"

namespace imbrex::distributed {

struct Waves::Message {
  WaveName name;
  std::uint64_t is_result;
  WaveSums sums;
};

// The tree: the parent of a place has its lowest bit cleared; its children have one further bit set
// below that bit.
namespace {
[[nodiscard]] std::size_t parent_of(const std::size_t place) noexcept {
  return place & (place - 1);
}
[[nodiscard]] std::size_t first_step_beyond(const std::size_t place,
                                            const std::size_t size) noexcept {
  return place == 0 ? std::bit_ceil(size) : place & (~place + 1);
}
void add(WaveSums& sums, const WaveSums& more) noexcept {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
}
}  // namespace

std::size_t Waves::children(const Wave& wave) noexcept {
  const std::size_t end = first_step_beyond(wave.place, wave.members.size());
  std::size_t count = 0;
  for (std::size_t step = 1; step < end && wave.place + step < wave.members.size(); step *= 2) {
    ++count;
  }
  return count;
}

void Waves::join(const WaveName& name, const std::span<const int> members, const WaveSums& mine,
                 const WaveEnded ended, void* const context) {
  const auto found = std::ranges::find(members, carrier_.rank());
  if (found == members.end()) {
    throw Error(fmt::format("imbrex: rank {} joins wave {} of group {:#x}, and is not among its {} "
                            "ranks", carrier_.rank(), name.epoch, name.group, members.size()));
  }
  if (const std::lock_guard guard(mutex_); true) {
    Wave& wave = waves_[name];
    if (!wave.members.empty()) {
      throw Error(fmt::format("imbrex: rank {} joins wave {} of group {:#x} twice",
                              carrier_.rank(), name.epoch, name.group));
    }
    wave.members.assign(members.begin(), members.end());
    wave.place = static_cast<std::size_t>(found - members.begin());
    wave.ended = ended;
    wave.context = context;
    add(wave.sums, mine);
  }
  advance(name);
}

void Waves::receive(int, const Bytes bytes) {
  Message message;
  std::memcpy(&message, bytes.data(), sizeof message);
  if (message.is_result != 0) {
    end(message.name, message.sums);
    return;
  }
  if (const std::lock_guard guard(mutex_); true) {
    Wave& wave = waves_[message.name];
    ++wave.reports;
    add(wave.sums, message.sums);
  }
  advance(message.name);
}

void Waves::advance(const WaveName& name) {
  int parent = 0;
  WaveSums sums;
  if (const std::lock_guard guard(mutex_); true) {
    const auto found = waves_.find(name);
    if (found == waves_.end()) return;  // a handler was quicker than the thread that has joined
    Wave& wave = found->second;
    if (wave.members.empty() || wave.sent || wave.reports != children(wave)) return;
    wave.sent = true;
    sums = wave.sums;
    parent = wave.place == 0 ? -1 : wave.members[parent_of(wave.place)];
  }
  if (parent < 0) return end(name, sums);
  send(parent, {name, 0, sums});
}

void Waves::end(const WaveName& name, const WaveSums& sums) {
  Wave wave;
  if (const std::lock_guard guard(mutex_); true) {
    wave = std::move(waves_.extract(name).mapped());
  }
  const std::size_t size = wave.members.size();
  const std::size_t beyond = first_step_beyond(wave.place, size);
  for (std::size_t step = 1; step < beyond && wave.place + step < size; step *= 2) {
    send(wave.members[wave.place + step], {name, 1, sums});
  }
  wave.ended(wave.context, sums);
}

void Waves::send(const int to, const Message& message) {
  carrier_.send(to, bytes_of(message), {});
  carrier_.flush();
}

std::size_t Waves::open() const {
  const std::lock_guard guard(mutex_);
  return waves_.size();
}

}  // namespace imbrex::distributed
