// SPDX-License-Identifier: BSD-3-Clause
// Waves: sums of a few counters over a set of ranks, by active messages, that nobody waits for. A
// wave is also a barrier: it ends on no rank before all have joined it. Used by whatever finds out
// that something has ended on all ranks: pools of work, spaces of futures.
//
// The ranks of a wave are a binomial tree, by their places in the list: sums go up, the result
// comes down, so each rank sends as many messages as it has children, and one. A rank may join
// later than the messages of others arrive: what they bring is added up until then.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/carrier/carrier.hpp"

namespace imbrex::distributed {

using WaveSums = std::array<std::int64_t, 4>;

// Names a wave on all its ranks: `group` is whoever's, and the same everywhere; `epoch` counts the
// waves of that group. A name may be used again when its wave has ended on the rank that does.
struct WaveName {
  std::uint64_t group = 0;
  std::uint64_t epoch = 0;
  friend auto operator<=>(const WaveName&, const WaveName&) = default;
};

// Called once, by whoever finds that the wave has ended: a handler of messages, or join() itself.
// No lock is held; it must not wait, and may join another wave.
using WaveEnded = void (*)(void* context, const WaveSums& sums) noexcept;

// Thread safety: join(), any thread; receive() as handlers of messages are called.
// Invariants:
//   (1) a rank sends its sum to its parent, or ends the wave if it has none, once: when it has
//       joined and all its children have sent theirs.
//   (2) a result comes down only to ranks that have sent their sum, so `members` is known there.
class Waves {
 public:
  explicit Waves(Carrier& carrier) noexcept : carrier_(carrier) {}

  // Adds `mine` to the wave. `members`: the ranks of MPI_COMM_WORLD that take part, this one among
  // them, the same list on all. Outside of handlers it may suspend for room to send. Throws Error
  // if a rank is not among them, or has joined this wave already.
  void join(const WaveName& name, std::span<const int> members, const WaveSums& mine,
            WaveEnded ended, void* context);

  void receive(int from, Bytes message);  // of Carrier::send()

  // Waves that are known here and have not ended.
  [[nodiscard]] std::size_t open() const;

 private:
  struct Wave {
    std::vector<int> members;  // empty until this rank has joined
    std::size_t place = 0;     // of this rank among them
    std::size_t reports = 0;   // of children
    bool sent = false;         // to the parent
    WaveSums sums{};
    WaveEnded ended = nullptr;
    void* context = nullptr;
  };
  struct Message;

  [[nodiscard]] static std::size_t children(const Wave& wave) noexcept;
  void advance(const WaveName& name);  // does what (1) says, if it is time for it
  void end(const WaveName& name, const WaveSums& sums);
  void send(int to, const Message& message);

  Carrier& carrier_;
  mutable std::mutex mutex_;  // held for a look into the map; never over a send or a callback
  std::map<WaveName, Wave> waves_ IMBREX_GUARDED_BY(mutex_);
};

// Those of this process, by active messages. REQUIRES: they are open.
[[nodiscard]] Waves& waves();

}  // namespace imbrex::distributed
