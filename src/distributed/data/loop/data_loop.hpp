// SPDX-License-Identifier: BSD-3-Clause
// Loop: the tasks of one period of Space::iterate(), as every rank has inserted them, and the plan
// of this rank: its own tasks, and the transfers that it takes part in, as steps that run once in
// each period. docs/design/data-with-owners.md has the argument. Knows no message.
//
// Thread safety: the inserting thread only; the steps (steps.hpp) run on any worker.
// Invariants:
//   (1) all ranks record the same entries, so all find the same versions and readers.
//   (2) in a plan, a version goes to all its readers of this period and the next at once, in the
//       iteration that writes it. So both ends of a transfer belong to the same iteration, and an
//       end of the loop after any iteration leaves no transfer with one end.
//   (3) the plan describes a period that follows another one. A loop therefore begins with the
//       transfers that leave each rank what the period before would have left (early_readers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "distributed/data/loop/steps.hpp"
#include "distributed/data/space/bodies.hpp"
#include "distributed/data/space/space.hpp"

namespace imbrex::distributed {

struct DeleteInsertion {
  void operator()(Insertion* insertion) const noexcept;
};
using OwnedInsertion = std::unique_ptr<Insertion, DeleteInsertion>;

// A task of the sequence, on any rank.
struct Entry {
  std::uint32_t offset = 0;  // of its iteration in the period
  int rank = -1;             // that runs it
  int on = -1;               // as in DataTaskSpec
  int priority = 0;
  const char* name = nullptr;
  std::source_location where;
  std::vector<detail::DataAccess> accesses;
  OwnedInsertion insertion;  // null: on another rank
};

// A value that a task of the period leaves.
struct LoopVersion {
  int rank;  // that has it first
  struct Reader {
    int rank;
    int priority;
  };
  std::vector<Reader> readers;  // other ranks, in the order of the program
  Slot* received = nullptr;     // here
};

// The owner and source of a datum at one place of the sequence.
struct DatumPlace {
  int owner = -1;
  int source = -1;
  Writer writer;
};

// A datum that the period names.
struct LoopDatum {
  Datum* datum = nullptr;
  DatumPlace before;  // the loop
  DatumPlace now;     // at the present entry

  std::vector<LoopVersion> versions;
  std::size_t written = 0;           // number of versions up to the present entry
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t version = none;        // at the present entry; none: not of a period
  std::vector<int> early_readers;    // ranks that use the value that a period begins with

  // ---- here
  Slot* mine = nullptr;      // that tasks here write; the program's memory, if there is any
  Slot* here = nullptr;      // has the value at the present entry; null: none
  Slot* at_start = nullptr;  // at the beginning of a period, if the period uses it here
  // After the last iteration.
  struct End {
    DatumPlace place;
    Slot* slot = nullptr;
    std::size_t version = none;
  } end;
};

struct LoopSpec {
  std::int64_t count;
  std::int64_t period;  // at most `count`
  std::source_location where;
};

class Loop {
 public:
  Loop(DataSpace& space, const LoopSpec& spec) noexcept : space_(space), spec_(spec) {}
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // ---- while the body runs: recording.cpp
  void begin_iteration(std::int64_t offset) noexcept {
    offset_ = static_cast<std::uint32_t>(offset);
  }
  // From now on entries are compared with those that are there, and forgotten.
  void begin_comparison() noexcept { comparing_ = true; }
  void end_comparison() const;
  [[nodiscard]] void* add_task(const detail::DataTaskSpec& spec, int rank,
                               std::span<const detail::DataAccess> accesses,
                               const detail::BodyOps& ops, std::size_t bytes);
  // The closure from add_task() is complete; or its construction has thrown.
  void task_is_built();
  void task_is_not_built(std::exception_ptr error);
  // The records of the data are as before the loop.
  void end_recording() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::string text() const;

  // ---- plan.cpp
  void plan();

  // ---- results
  [[nodiscard]] const LoopSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::map<std::uint64_t, LoopDatum>& data() noexcept { return data_; }
  [[nodiscard]] std::span<const std::unique_ptr<LoopStep>> steps() const noexcept { return steps_; }
  [[nodiscard]] std::deque<Slot>& slots() noexcept { return slots_; }
  [[nodiscard]] PairTransfers& transfers() noexcept { return transfers_; }
  [[nodiscard]] SpaceCounters counters() const noexcept { return counters_; }

 private:
  [[nodiscard]] LoopDatum& of(Datum& datum);
  [[noreturn]] void refuse(const std::string& why) const;
  void compare(const Entry& entry);
  [[nodiscard]] static std::string text_of(const Entry& entry);

  // ---- plan.cpp
  void walk();
  void read(LoopDatum& datum, const Entry& entry);
  void write(LoopDatum& datum, const Entry& entry);

  // ---- planned_steps.cpp
  void make_steps();
  void begin_steps(LoopDatum& datum);
  void steps_of(Entry& entry);
  [[nodiscard]] SlotUse use_of(const detail::DataAccess& access,
                               std::vector<detail::AccessSpec>& specs);
  void written(const Entry& entry, LoopDatum& datum);
  void send(const Entry& entry, Slot& slot, std::span<const LoopVersion::Reader> readers);
  void receive(const Entry& entry, Slot& slot);
  [[nodiscard]] Slot& make_slot(const LoopDatum& datum);
  [[nodiscard]] Slot& mine(LoopDatum& datum);
  [[nodiscard]] std::uint64_t instances(std::uint32_t offset) const noexcept;

  DataSpace& space_;
  const LoopSpec spec_;
  std::uint32_t offset_ = 0;
  bool comparing_ = false;
  std::size_t compared_ = 0;
  OwnedInsertion compared_insertion_;  // of an entry that is compared
  std::vector<Entry> entries_;
  std::map<std::uint64_t, LoopDatum> data_;  // by number: the same order on all ranks
  std::deque<Slot> slots_;
  PairTransfers transfers_;
  std::vector<std::unique_ptr<LoopStep>> steps_;
  SpaceCounters counters_;  // of all iterations
};

}  // namespace imbrex::distributed
