// SPDX-License-Identifier: BSD-3-Clause
// The steps of a planned loop on one rank (data_loop.hpp): each is a task of the core's iterate(),
// and runs once in each period. Accesses to slots order them; the messages are those of insertions.
//
// Thread safety: an instance of a step uses its slots alone, or with other readers, as its accesses
// say. Two instances of one step never run at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <vector>

#include "distributed/data/space/bodies.hpp"
#include "distributed/data/space/space.hpp"

namespace imbrex::distributed {

// Names a copy on this rank by its place in the period. Each arrival is a new copy in its slot.
struct Slot {
  Datum* datum = nullptr;
  Copy* copy = nullptr;  // a reference; not null while the loop runs
};

// The elements that change nothing. REQUIRES: the caller has the copy alone.
void clear(Copy& copy, const detail::DataReduction& reduction);

// One access of a task.
struct SlotUse {
  Slot* from = nullptr;  // as in Use
  Slot* to = nullptr;
  bool takes = false;    // `to` gets the copy of `from`, which nothing else uses any more
  const detail::DataReduction* reduction = nullptr;  // as in Use
};

// How many transfers of a period lead to each rank, and come from it; and the tickets of the first.
struct PairTransfers {
  struct Pair {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::vector<Pair> to, from;  // by rank of the space
};

// Where the loop ends, as far as this rank knows.
class LoopEnd {
 public:
  explicit LoopEnd(const std::int64_t count) noexcept : iterations_(count) {}
  // The iteration of the running step, which decides, is the last.
  void stop() noexcept;
  [[nodiscard]] std::int64_t iterations() const noexcept {
    return iterations_.load(std::memory_order_relaxed);  // relaxed: read behind the loop
  }

 private:
  std::atomic<std::int64_t> iterations_;
};

// The periods in which a step does something.
enum class Rounds : std::uint8_t { all, first, later };

class LoopStep {
 public:
  virtual ~LoopStep() = default;
  LoopStep(const LoopStep&) = delete;
  LoopStep& operator=(const LoopStep&) = delete;
  // `round` counts the periods. Runs in a task. Leaves a failure in the copies.
  virtual void run(std::uint64_t round) noexcept = 0;
  [[nodiscard]] virtual const void* code() const noexcept;  // for traces
  [[nodiscard]] bool runs_in(const std::uint64_t round) const noexcept {
    return rounds == Rounds::all || (rounds == Rounds::first) == (round == 0);
  }

  const char* const name;
  const std::source_location where;
  const int priority;
  const std::uint32_t offset;  // of its iteration in the period
  bool decides = false;        // as in detail::TaskSpec
  Rounds rounds = Rounds::all;
  std::vector<detail::AccessSpec> accesses;

 protected:
  LoopStep(const char* const its_name, const std::source_location& its_where,
           const int its_priority, const std::uint32_t its_offset)
      : name(its_name), where(its_where), priority(its_priority), offset(its_offset) {}
};

// A task of the program.
class TaskStep final : public LoopStep {
 public:
  TaskStep(Insertion& insertion, int priority, std::uint32_t offset, std::vector<SlotUse> uses);
  void run(std::uint64_t round) noexcept override;
  [[nodiscard]] const void* code() const noexcept override;
  // The task may end the loop, and its failure does. `decision`, if it is not null, becomes its
  // decision, for the other ranks.
  void decide(LoopEnd& end, Slot* decision) noexcept;

 private:
  void leave_decision(bool failed) noexcept;

  Insertion& insertion_;
  const std::vector<SlotUse> uses_;
  LoopEnd* end_ = nullptr;
  Slot* decision_ = nullptr;
};

// Where a step without a task of the program stands in the sequence.
struct StepPlace {
  std::source_location where;
  int priority;
  std::uint32_t offset;
};

// A version leaves.
class SendStep final : public LoopStep {
 public:
  struct To {
    int rank;              // of the space
    std::uint32_t number;  // of the transfer among those of a period to that rank
    int priority;
  };
  SendStep(const StepPlace& place, Slot& slot, PairTransfers& transfers, std::vector<To> to);
  void run(std::uint64_t round) noexcept override;
  // The slot gets a new copy when the version leaves: nothing else uses it any more.
  void renew() noexcept;

 private:
  Slot& slot_;
  PairTransfers& transfers_;
  const std::vector<To> to_;
  bool renews_ = false;
};

// A version arrives. The step has ended when it has.
class ReceiveStep final : public LoopStep {
 public:
  struct From {
    int rank;
    std::uint32_t number;
    Writer writer;
  };
  ReceiveStep(const StepPlace& place, Slot& slot, PairTransfers& transfers, const From& from);
  void run(std::uint64_t round) noexcept override;

 private:
  Slot& slot_;
  PairTransfers& transfers_;
  const From from_;
};

// `to` gets the value of `from`, or both are combined in `to`.
struct Merging {
  Slot* to;
  Slot* from;
  const detail::DataReduction* reduction = nullptr;
  bool takes = false;   // `to` may get the copy of `from`, which nothing else uses any more
  bool renews = false;  // `from` gets a new copy
};
class MergeStep final : public LoopStep {
 public:
  MergeStep(const StepPlace& place, const Merging& merging);
  void run(std::uint64_t round) noexcept override;

 private:
  const Merging merging_;
};

// A slot loses its elements. With a reduction it gets those that change nothing.
class DropStep final : public LoopStep {
 public:
  DropStep(const StepPlace& place, Slot& slot, const detail::DataReduction* reduction);
  void run(std::uint64_t round) noexcept override;

 private:
  Slot& slot_;
  const detail::DataReduction* const reduction_;
};

// The decision of a task on another rank has arrived. A decision that does not arrive ends the
// loop.
class DecisionStep final : public LoopStep {
 public:
  DecisionStep(const StepPlace& place, Slot& slot, LoopEnd& end);
  void run(std::uint64_t round) noexcept override;

 private:
  Slot& slot_;
  LoopEnd& end_;
};

}  // namespace imbrex::distributed
