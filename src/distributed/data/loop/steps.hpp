// SPDX-License-Identifier: BSD-3-Clause
// The steps of a planned loop on one rank (data_loop.hpp): each is a task of the core's iterate(),
// and runs once in each period. Accesses to slots order them; the messages are those of insertions.
//
// Thread safety: an instance of a step uses its slots alone, or with other readers, as its accesses
// say. Two instances of one step never run at once.
#pragma once

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

// One access of a task.
struct SlotUse {
  Slot* from = nullptr;  // as in Use
  Slot* to = nullptr;
  bool takes = false;    // `to` gets the copy of `from`, which nothing else uses any more
};

// How many transfers of a period lead to each rank, and come from it; and the tickets of the first.
struct PairTransfers {
  struct Pair {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  std::vector<Pair> to, from;  // by rank of the space
};

class LoopStep {
 public:
  virtual ~LoopStep() = default;
  LoopStep(const LoopStep&) = delete;
  LoopStep& operator=(const LoopStep&) = delete;
  // `round` counts the periods. Runs in a task. Leaves a failure in the copies.
  virtual void run(std::uint64_t round) noexcept = 0;
  [[nodiscard]] virtual const void* code() const noexcept;  // for traces

  const char* const name;
  const std::source_location where;
  const int priority;
  const std::uint32_t offset;  // of its iteration in the period
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

 private:
  Insertion& insertion_;
  const std::vector<SlotUse> uses_;
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

 private:
  Slot& slot_;
  PairTransfers& transfers_;
  const std::vector<To> to_;
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

}  // namespace imbrex::distributed
