// SPDX-License-Identifier: BSD-3-Clause
// One rank's part of a work pool: the stacks of its workers, the items that they share, the search
// for items of other ranks, and the end. Reaches other ranks by a carrier, and detects the end by
// waves.
//
// A process() is a round. In each round, every worker is a task that works on a stack of its own.
// After each slice of some 100 us it shares items and yields, so that pollers run, which answer
// other ranks from the shared items. A worker that finds no shared items sleeps. The first sleeping
// worker makes the rank ask other ranks (search.hpp).
//
// The end: a rank is passive when no worker has items, none are shared, and no request of it waits
// for an answer. It then joins a wave with the numbers of messages that it has sent and received,
// of those that may make a rank active: items, and the news that a function has thrown. The round
// is over when a wave has as many sent messages as the wave before had received ones. Proof: the
// waves of a round do not overlap. With S and R the sums of wave 1 and wave 2, R1 <= S1 <= S2 and
// R1 <= R2 <= S2. If S2 = R1, all are equal, so at the end of wave 1 no message was in flight, and
// every rank was passive since it had joined wave 1. tests/models/work_pool.pml.
//
// Thread safety: receive() as handlers of messages are called; one task at a time calls the rest.
// Invariants, under the lock:
//   (1) `active_` is the number of workers that neither sleep nor have ended: the waking thread
//       adds.
//   (2) items leave `shared_`, and a message with them is counted, in one step.
//   (3) messages are sent without the lock, after they were counted: by a handler, by an active
//       worker, or, for a request and a wave, by a worker that has gone to sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/carrier/leaving.hpp"
#include "distributed/carrier/waves.hpp"
#include "distributed/pool/messages.hpp"
#include "distributed/pool/search.hpp"
#include "imbrex/name.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::distributed {

class Pool {
 public:
  struct Options {
    std::uint64_t id = 0;
    std::size_t item_bytes = 0;
    std::vector<int> ranks;
    const char* name = "";
    std::uint32_t chunk = 0;     // 0: automatic
    std::uint32_t interval = 0;  // 0: automatic
    std::uint32_t victims = 1;
    int processors = 1;          // of this process
    int workers = 1;             // more than that where it may borrow processors of other ranks
  };
  Pool(Carrier& carrier, Waves& waves, const Options& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  void push(const void* item);
  // Suspends. Throws the exception of a function, or Error if another rank threw it.
  [[nodiscard]] WorkPoolCounters process(const detail::PoolBody& body);
  void receive(int from, const PoolHead& head, Bytes body);

  // An exception ends the pool here: the next round of the other ranks, and with it their pool,
  // fails. Never suspends. The pool stays, and takes part in that round; `over` is called, under
  // the rules of a handler, when the round has ended.
  void leave(void (*over)(void* context) noexcept, void* context);
  [[nodiscard]] bool is_unwound() const noexcept { return leaving_.is_unwound(); }

 private:
  struct Worker;
  struct Sleeper {
    detail::EventWord event;
    Sleeper* next = nullptr;
  };
  // The actions that follow without the lock.
  enum class Kind : std::uint8_t {
    nothing,
    ask,   // `to`
    join,  // the next wave
    end    // the round is over: all have been woken
  };
  struct Step {
    Kind kind = Kind::nothing;
    int to = 0;
    bool lifeline = false;
    std::uint32_t round = 0;
    Sleeper* woken = nullptr;
    WaveSums sums{};
    std::uint64_t wave = 0;
  };
  struct Parcel {  // items for another rank
    int to;
    std::uint32_t round;
    std::vector<std::byte> items;
  };

  void begin_round();
  void run_worker(Worker& worker, const detail::PoolBody& body);
  void run_slices(Worker& worker, const detail::PoolBody& body);
  [[nodiscard]] bool more(Worker& worker);  // False: the round is over. Suspends.
  [[nodiscard]] bool take_shared(Worker& worker) IMBREX_REQUIRES(mutex_);
  void share(Worker& worker);
  [[nodiscard]] std::size_t surplus(const Worker& worker) const noexcept;
  void fail(const std::exception_ptr& error);
  [[nodiscard]] WorkPoolCounters count(std::uint64_t elapsed_ns) const;
  void end_round();  // throws the exception of the round

  void answer(int from, const PoolHead& head);
  void take_in(int from, const PoolHead& head, Bytes items);
  void note_failure(int from, const PoolHead& head, Bytes text);
  [[nodiscard]] std::string object_text() const;
  void wave_ended(const WaveSums& sums);

  [[nodiscard]] Step next_step() IMBREX_REQUIRES(mutex_);
  void perform(const Step& step);
  // More workers would keep no processor of this rank busy, so it asks nobody for their items.
  [[nodiscard]] bool lacks_items() const IMBREX_REQUIRES(mutex_) {
    return active_ < options_.processors;
  }
  [[nodiscard]] Sleeper* wake(std::size_t most) IMBREX_REQUIRES(mutex_);
  static void fire(Sleeper* woken) noexcept;
  [[nodiscard]] Parcel pack_half(int to) IMBREX_REQUIRES(mutex_);
  void send(const Parcel& parcel, bool pushed);
  void send(int to, const PoolHead& head, Bytes body);
  [[nodiscard]] std::size_t place_of(int rank) const noexcept;
  [[nodiscard]] std::size_t shared_items() const noexcept IMBREX_REQUIRES(mutex_);
  void note_shared() noexcept IMBREX_REQUIRES(mutex_);

  Carrier& carrier_;
  Waves& waves_;
  const Options options_;
  const Name name_;              // of workers
  const char* const waits_for_;  // for reports
  std::vector<std::unique_ptr<Worker>> workers_;  // each used by its task
  std::uint64_t begun_ns_ = 0;  // the round

  // Workers read these without the lock: a stale value makes them share one slice later.
  std::atomic<std::size_t> shared_count_{0};  // items; written under the lock
  std::atomic<bool> hungry_{false};  // workers or ranks wait for items: less than a chunk is enough
  std::atomic<bool> failed_{false};  // of this round; written under the lock
  std::atomic<std::uint32_t> chunk_{1};  // of the worker that shared last

  mutable std::mutex mutex_;  // held over memory accesses only; never over a send or a firing
  detail::ItemStack shared_ IMBREX_GUARDED_BY(mutex_);
  Search search_ IMBREX_GUARDED_BY(mutex_);
  Sleeper* sleepers_ IMBREX_GUARDED_BY(mutex_) = nullptr;
  int active_ IMBREX_GUARDED_BY(mutex_) = 0;
  bool runs_ IMBREX_GUARDED_BY(mutex_) = false;     // a round, on this rank
  bool ended_ IMBREX_GUARDED_BY(mutex_) = false;    // it is over
  bool asks_ IMBREX_GUARDED_BY(mutex_) = false;     // a request waits for its answer
  bool in_wave_ IMBREX_GUARDED_BY(mutex_) = false;
  std::uint32_t round_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::uint64_t wave_ IMBREX_GUARDED_BY(mutex_) = 0;            // the next one
  std::int64_t sent_ IMBREX_GUARDED_BY(mutex_) = 0;             // messages, in all rounds
  std::int64_t received_ IMBREX_GUARDED_BY(mutex_) = 0;
  // by all ranks, from the last wave; -1
  std::int64_t received_before_ IMBREX_GUARDED_BY(mutex_) = 0;
  WorkPoolCounters counters_ IMBREX_GUARDED_BY(mutex_);
  std::exception_ptr error_ IMBREX_GUARDED_BY(mutex_);  // thrown here, in this round
  // Errors of other ranks, by round: this round, and the next one, which they may have begun
  // already.
  std::map<std::uint32_t, std::string> errors_elsewhere_ IMBREX_GUARDED_BY(mutex_);
  // The first round in which a rank is missing, and the Error of all later ones; 0: none.
  std::uint32_t left_round_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::string left_text_ IMBREX_GUARDED_BY(mutex_);

  Leaving leaving_;
  bool has_left_ IMBREX_GUARDED_BY(mutex_) = false;
  void (*over_)(void* context) noexcept = nullptr;  // of leave(), written before has_left_
  void* over_context_ = nullptr;
};

}  // namespace imbrex::distributed
