// SPDX-License-Identifier: BSD-3-Clause
// Waves: sums of a few counters over a set of ranks, by active messages, without a waiting thread.
// A wave is also a barrier: it ends on no rank before all have joined it. Used to detect that
// something has ended on all ranks: pools of work, spaces of futures.
//
// The ranks of a wave form a binomial tree, by their places in the list: sums go up, the result
// comes down, so each rank sends one message more than it has children. A rank may join after the
// messages of others have arrived: their sums are kept until then.
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

// Names a wave on all its ranks: `group` identifies the user of the waves, the same everywhere;
// `epoch` counts the waves of that group. A name may be reused on a rank once its wave has ended
// there.
struct WaveName {
  std::uint64_t group = 0;
  std::uint64_t epoch = 0;
  friend auto operator<=>(const WaveName&, const WaveName&) = default;
};

// Called once, by the thread that detects the end of the wave: a handler of messages, or join()
// itself. No lock is held; it must not wait, and may join another wave.
using WaveEnded = void (*)(void* context, const WaveSums& sums) noexcept;

// Thread safety: join(), any thread; receive() as handlers of messages are called.
// Invariants:
//   (1) a rank sends its sum to its parent, or ends the wave if it has none, once: when it has
//       joined and all its children have sent theirs.
//   (2) a result comes down only to ranks that have sent their sum, so `members` is known there.
class Waves {
 public:
  explicit Waves(Carrier& carrier) noexcept : carrier_(carrier) {}

  // Adds `mine` to the wave. `members`: the participating ranks of MPI_COMM_WORLD, with this one,
  // the same list on all. Outside of handlers it may suspend for room to send. Throws Error if this
  // rank is no member, or has joined this wave already.
  void join(const WaveName& name, std::span<const int> members, const WaveSums& mine,
            WaveEnded ended, void* context);

  void receive(int from, Bytes message);  // of Carrier::send()

  // The number of waves that are known here and have not ended.
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
  void advance(const WaveName& name);  // does the step (1), if it is due
  void end(const WaveName& name, const WaveSums& sums);
  void send(int to, const Message& message);

  Carrier& carrier_;
  mutable std::mutex mutex_;  // held over accesses to the map; never over a send or a callback
  std::map<WaveName, Wave> waves_ IMBREX_GUARDED_BY(mutex_);
};

// The waves of this process, by active messages. REQUIRES: active messages are open.
[[nodiscard]] Waves& waves();

}  // namespace imbrex::distributed
