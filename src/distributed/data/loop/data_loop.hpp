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
//   (4) a combination belongs to the iteration of the access that ends the reduction, where both
//       ends of its transfers are. Its members may be others in the first period.
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

// A part of the sequence.
enum class EntryKind : std::uint8_t {
  task,     // on any rank
  combine,  // the elements of a reduction; the program does not insert it
  flush,
  discard,
  move
};
struct Entry {
  EntryKind kind = EntryKind::task;
  bool decides = false;
  bool adds = false;         // a combination: to a value
  bool adds_first = false;   // to one from before the loop, in the first period
  std::uint32_t offset = 0;  // of its iteration in the period
  // That runs a task; of a move: the new owner. The walks find the root of a combination, and the
  // owner of a flush.
  int rank = -1;
  int on = -1;               // as in DataTaskSpec
  int priority = 0;
  const char* name = nullptr;
  std::source_location where;
  std::vector<detail::DataAccess> accesses;  // one, unless it is a task
  std::vector<int> first_reducers = {};  // of a combination or discard: in the first period
  OwnedInsertion insertion;  // null: on another rank, or no task

  [[nodiscard]] StepPlace place() const noexcept { return {where, priority, offset}; }
  [[nodiscard]] Datum& datum() const noexcept { return *accesses.front().datum; }
};

struct LoopReader {
  int rank;
  int priority;
};

// A value that an entry of the period leaves.
struct LoopVersion {
  int rank;  // that has it first
  std::vector<LoopReader> readers;  // other ranks, in the order of the program
  Slot* received = nullptr;         // here
};

// The records of a datum at one place of the sequence.
struct DatumPlace {
  int owner = -1;
  int source = -1;  // below 0: no value
  Writer writer;
  bool changed = false;  // its value, since the period began
  bool flushed = false;  // the owner has the value, in the program's memory if there is any
  const detail::DataReduction* reduction = nullptr;  // an open one, or null
  std::vector<int> reducers;                         // and its participants
};

// A datum behind an iteration that may be the last.
struct LoopEndOfDatum {
  DatumPlace place;
  DatumPlace in_first_period;  // then the values of other data are those before the loop
  Slot* slot = nullptr;
  std::size_t version = 0;     // LoopDatum::none: not of the loop
};

// A datum that the period names.
struct LoopDatum {
  Datum* datum = nullptr;
  DatumPlace before;  // the loop
  DatumPlace now;     // at the present entry

  std::vector<LoopVersion> versions;
  std::size_t written = 0;           // number of versions up to the present entry
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t version = none;        // at the present entry; none: not of this period
  std::vector<LoopReader> early_readers;  // ranks that use the value that a period begins with
  const detail::DataReduction* first_reduction = nullptr;  // of the period
  const detail::DataReduction* begins_with = nullptr;  // the first access adds by it; or null
  bool discarded = false;
  bool moved = false;

  // ---- here
  Slot* mine = nullptr;      // that tasks here write; the program's memory, if there is any
  Slot* here = nullptr;      // has the value at the present entry; null: none
  Slot* at_start = nullptr;  // at the beginning of a period, if the period uses it here
  Slot* partial = nullptr;   // this rank's elements of a reduction

  std::map<std::uint32_t, LoopEndOfDatum> ends;  // by offset, where a loop may end

  // The value that the first period adds to, where none was before the loop.
  void clear_start();
  // A period leaves another value than it has found, or none.
  [[nodiscard]] bool changes() const noexcept { return !versions.empty() || discarded; }
  // The reduction that is open before the loop goes on in it.
  [[nodiscard]] bool joins() const noexcept {
    return datum->reduction != nullptr && datum->reduction == begins_with;
  }
};

// Says why a period that leaves the datum with another owner cannot repeat.
[[nodiscard]] std::string text_of_moved(const Datum& datum, int owner, int owner_before);

struct LoopSpec {
  std::int64_t count;
  std::int64_t period;  // at most `count`
  std::source_location where;
};

class Loop {
 public:
  Loop(DataSpace& space, const LoopSpec& spec) noexcept
      : space_(space), spec_(spec), end_(spec.count) {}
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // ---- while the body runs: recording.cpp
  void begin_iteration(std::int64_t offset) noexcept {
    offset_ = static_cast<std::uint32_t>(offset);
  }
  // From now on entries are compared with those that are there, and forgotten.
  void begin_comparison() noexcept { comparing_ = true; }
  [[nodiscard]] bool is_comparing() const noexcept { return comparing_; }
  void end_comparison() const;
  [[nodiscard]] void* add_task(const detail::DataTaskSpec& spec, int rank,
                               std::span<const detail::DataAccess> accesses,
                               const detail::BodyOps& ops, std::size_t bytes);
  // The closure from add_task() is complete; or its construction has thrown.
  void task_is_built();
  void task_is_not_built(std::exception_ptr error);
  // A flush, discard or move; `rank`: the new owner.
  void add_movement(EntryKind kind, Datum& datum, int rank, const std::source_location& where);
  // The records of the data are as before the loop.
  void end_recording() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] std::string text() const;
  [[noreturn]] void refuse(const std::string& why) const;

  // ---- plan.cpp
  // Throws Error if a period cannot follow another one.
  void plan();

  // ---- results
  [[nodiscard]] const LoopSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::map<std::uint64_t, LoopDatum>& data() noexcept { return data_; }
  [[nodiscard]] std::span<const std::unique_ptr<LoopStep>> steps() const noexcept { return steps_; }
  [[nodiscard]] std::deque<Slot>& slots() noexcept { return slots_; }
  [[nodiscard]] PairTransfers& transfers() noexcept { return transfers_; }
  // The last iteration may leave data as they were before the loop.
  [[nodiscard]] bool may_end_in_first_period() const noexcept;
  [[nodiscard]] std::int64_t iterations() const noexcept { return end_.iterations(); }
  [[nodiscard]] SpaceCounters counters() const noexcept;  // of all iterations

 private:
  [[nodiscard]] LoopDatum& of(Datum& datum);
  void compare(const Entry& entry);
  void keep(Entry&& entry);
  [[nodiscard]] std::string text_of(const Entry& entry) const;

  // ---- plan.cpp
  enum class Walk : std::uint8_t {
    first,    // finds the records in the first period
    settle,   // finds those behind a period that follows another one
    collect,  // finds versions and readers of a period that follows another one
    make      // makes the steps of such a period
  };
  void add_combinations();
  void walk(Walk kind);
  void pass(Entry& entry);
  void pass_task(const Entry& entry);
  void pass_combination(const Entry& entry, LoopDatum& datum);
  void pass_move(const Entry& entry, LoopDatum& datum);
  void note_end(std::uint32_t offset);
  void check_owners() const;
  void check_rank(const Entry& entry) const;
  void read(LoopDatum& datum, const Entry& entry);
  void write(LoopDatum& datum, const Entry& entry);
  void close_period();

  // ---- planned_steps.cpp
  void begin_steps(LoopDatum& datum);
  void make_steps(Entry& entry);
  void make_task(Entry& entry);
  [[nodiscard]] SlotUse use_of(const detail::DataAccess& access,
                               std::vector<detail::AccessSpec>& specs);
  void send_version(const Entry& entry, LoopDatum& datum);
  SendStep& send(const Entry& entry, Slot& slot, std::span<const LoopReader> readers);
  void receive(const Entry& entry, int source, Slot& slot);
  LoopStep& add(std::unique_ptr<LoopStep> step);
  [[nodiscard]] Slot& make_slot(Datum& datum);
  [[nodiscard]] Slot& mine(LoopDatum& datum);
  [[nodiscard]] Slot& partial(LoopDatum& datum);

  // ---- special_steps.cpp
  void make_combination(const Entry& entry, LoopDatum& datum);
  struct Combination {
    const std::vector<int>& reducers;
    bool adds;
    Rounds rounds;
  };
  void combine(const Entry& entry, LoopDatum& datum, const Combination& combination);
  void combine_here(const Entry& entry, LoopDatum& datum, std::span<const int> members,
                    std::size_t place, const Combination& combination);
  void merge(const Entry& entry, const Merging& merging);
  void make_flush(const Entry& entry, LoopDatum& datum);
  void make_move(const Entry& entry, LoopDatum& datum);
  void make_discard(const Entry& entry, LoopDatum& datum);
  void make_decision(const Entry& entry);

  DataSpace& space_;
  const LoopSpec spec_;
  std::uint32_t offset_ = 0;
  bool comparing_ = false;
  std::size_t compared_ = 0;
  OwnedInsertion compared_insertion_;  // of an entry that is compared
  std::vector<Entry> entries_;
  std::map<std::uint64_t, LoopDatum> data_;  // by number: the same order on all ranks
  Walk walk_ = Walk::first;
  Rounds rounds_ = Rounds::all;  // of the steps that are made
  Slot* decision_ = nullptr;  // of the entry whose steps are made; null: nobody is told of one
  std::deque<Slot> slots_;
  PairTransfers transfers_;
  std::vector<std::unique_ptr<LoopStep>> steps_;
  LoopEnd end_;
  struct Counted {  // in each period
    std::uint32_t offset;
    SpaceCounters counters;
  };
  std::vector<Counted> counted_;
};

}  // namespace imbrex::distributed
