// SPDX-License-Identifier: BSD-3-Clause
// Data with owners on one rank: the records of all data of a space, kept from the sequence of
// insertions, and the resulting tasks on this rank: bodies, sends, arrivals of copies. Accesses to
// copies, named by their addresses, order the tasks here; the records alone describe the actions of
// other ranks. docs/design/data-with-owners.md has the reasons.
//
// Thread safety: one thread or task inserts, and calls all unmarked functions; it is the parent of
// all tasks here, so that its table orders them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/data/space/datum.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "distributed/data/recorder.hpp"
#include "distributed/data/space/pending.hpp"
#include "distributed/data/space/sends.hpp"
#include "distributed/carrier/leaving.hpp"
#include "distributed/carrier/waves.hpp"
#include "imbrex/detail/distributed/data_space.hpp"
#include "imbrex/detail/loops.hpp"

namespace imbrex::distributed {

// The network of a space.
struct DataNetwork {
  Broadcasts& broadcasts;
  Waves& waves;
  int rank;             // of MPI_COMM_WORLD
  bool checks = false;  // all ranks compare their insertions
  Recorder* recorder = nullptr;  // not null: tasks are recorded for a simulation, and do not run
};

// One access of a task that runs here, with references to the copies.
struct Use {
  Copy* from;  // null: the value before is not read
  Copy* to;    // null: only read; `from` itself: changed in place
  const detail::DataReduction* reduction;  // `to` has this rank's elements of a reduction
  Datum* datum;
};
struct Insertion;  // bodies.hpp
class Loop;        // loop/data_loop.hpp
struct LoopDatum;
struct DatumPlace;
struct LoopEndOfDatum;

// `to` gets the value of `from`; or both are combined in `to`. A failure stays in `to`. The caller
// has both copies alone, or `from` with other readers.
void merge_values(Datum& datum, Copy& to, Copy& from,
                  const detail::DataReduction* reduction) noexcept;

struct Site {
  const char* task;
  std::source_location where;
  int priority;
};

}  // namespace imbrex::distributed

namespace imbrex::detail {

class DataSpace {
 public:
  // Throws Error if an option or the list of ranks is wrong.
  DataSpace(const distributed::DataNetwork& network, Members ranks, SpaceOptions options);
  DataSpace(const DataSpace&) = delete;
  DataSpace& operator=(const DataSpace&) = delete;
  // The end; see close_data_space(). Waits for other ranks, and then deletes the space; unless an
  // exception ends it.
  void end();
  ~DataSpace();

  [[nodiscard]] int rank() const noexcept { return me_; }
  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(ranks_.world.size()); }
  [[nodiscard]] Datum& make(const DatumSpec& spec);
  [[nodiscard]] DataMemory memory_of(Datum& datum);

  // ---- insertion.cpp
  [[nodiscard]] bool concerns(int on, std::span<const DataAccess> accesses);
  [[nodiscard]] void* begin(const DataTaskSpec& spec, std::span<const DataAccess> accesses,
                            const BodyOps& ops, std::size_t bytes);

  // ---- movement.cpp
  void flush(Datum& datum, const std::source_location& where);
  void flush_all(const std::source_location& where);
  void discard(Datum& datum, const std::source_location& where);
  void move(Datum& datum, int owner, const std::source_location& where);

  // ---- loop/
  void iterate(const IterateSpec& spec, void (*body)(void*, std::int64_t), void* argument);
  [[nodiscard]] bool is_in_loop() const noexcept { return loop_ != nullptr; }
  void built_in_loop();
  void not_built_in_loop(std::exception_ptr error) noexcept;
  void check_iterates(const char* what) const;

  // ---- ending.cpp
  void finish();
  [[nodiscard]] SpaceCounters counters() const noexcept;

  // ---- for tasks and messages, any thread
  [[nodiscard]] const distributed::Trouble& keep(std::string text);
  // A body has thrown; or a task does not run. finish() reports it.
  [[nodiscard]] const distributed::Trouble& failed(const distributed::Insertion& insertion,
                                                   std::exception_ptr error);
  void not_run(const distributed::Trouble& trouble);
  void send_failed(std::exception_ptr error);
  void received(std::size_t bytes) noexcept {
    bytes_received_.fetch_add(bytes, std::memory_order_relaxed);  // relaxed: a counter
  }
  // The transfer with this ticket brings `copy`, whose arrival fires then.
  void begin_arrival(Datum& datum, distributed::Copy& copy, int source, std::uint32_t ticket,
                     const distributed::Writer& writer);
  [[nodiscard]] distributed::Recipient recipient(int rank, std::uint32_t ticket,
                                                 int priority) const;
  [[nodiscard]] distributed::Broadcasts& broadcasts() const noexcept { return network_.broadcasts; }
  [[nodiscard]] std::string text_of(const Datum& datum) const;
  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] std::uint64_t id() const noexcept { return ranks_.id; }
  [[nodiscard]] int world(const int rank) const noexcept {
    return ranks_.world[static_cast<std::size_t>(rank)];
  }
  // Not null: an exception has ended the space on this rank, so tasks that have not begun do not
  // run.
  [[nodiscard]] const distributed::Trouble* left() const noexcept {
    return left_.load(std::memory_order_acquire);
  }
  // Stands for the decisions of the tasks that may end a loop.
  [[nodiscard]] Datum& decision();
  distributed::Pending pending;
  distributed::CopyBytes copy_bytes;

 private:
  [[nodiscard]] int executor_of(int on, std::span<const DataAccess> accesses) const noexcept;
  [[nodiscard]] int check(const DataTaskSpec& spec, std::span<const DataAccess> accesses);
  [[noreturn]] void refuse(const DataTaskSpec& spec, const std::string& why) const;
  void check_rank(const char* what, int rank) const;
  void insert_elsewhere(int executor, const distributed::Site& site,
                        std::span<const DataAccess> accesses);
  void insert_here(const distributed::Site& site, std::span<const DataAccess> accesses);
  // The copies from here that lead to what a task on `executor` writes; versions of other ranks
  // that it reads are sent to it, and raise theirs.
  void look_ahead(int executor, std::span<const DataAccess> accesses,
                  distributed::VersionLeads& leads);
  void wait_for_room();
  void record(const DataTaskSpec& spec, int executor, std::span<const DataAccess> accesses);
  void record(distributed::recorded::Operation operation, Datum& datum, int owner);
  void end_reduction(Datum& datum);

  // ---- copies
  [[nodiscard]] distributed::Copy& make_copy(const Datum& datum);
  // This rank has the value of a version of which it is the source.
  [[nodiscard]] distributed::Copy& own(Datum& datum);
  // The copy that will have the value: already here, or to be received.
  [[nodiscard]] distributed::Copy& bring(Datum& datum);
  [[nodiscard]] distributed::Copy& receive(Datum& datum, int source);
  void drop_current(Datum& datum) noexcept;
  void close_list(Datum& datum) noexcept;
  // `writer` makes a new version on `rank`.
  void written(Datum& datum, int rank, const distributed::Site& site);
  // The copy that a task here changes, which becomes `current`.
  [[nodiscard]] distributed::Copy& target(Datum& datum);
  // `rank` needs the value of which this rank is the source.
  void send(Datum& datum, int rank, const distributed::Site& site);
  void send_once(Datum& datum, distributed::Copy& copy, int rank, const distributed::Site& site);
  [[nodiscard]] distributed::Recipient recipient(int rank, const distributed::Site& site);
  void start(distributed::VersionSend& sending, distributed::Copy& copy,
             const distributed::Site& site);
  // The owner has the value, and gets it into the memory of the program.
  void bring_home(Datum& datum, const distributed::Site& site);
  // Sends the value to `rank` if it lacks it.
  void provide(Datum& datum, int rank, const distributed::Site& site);

  // ---- accesses of the task that is being made
  void add_use(const DataAccess& access);
  void add_spec(distributed::Copy& copy, AccessKind kind);
  void add_arrival(distributed::Copy& copy);

  // A task of the space: `call(argument)` runs once, with the added accesses.
  void step(const char* name, const distributed::Site& site, void (*call)(void*) noexcept,
            void* argument);
  // merge_values() in a task.
  void merge(Datum& datum, distributed::Copy& to, distributed::Copy& from,
             const DataReduction* reduction, const distributed::Site& site);

  // ---- loop/: what the body of iterate() inserts
  [[nodiscard]] bool body_runs() const noexcept { return loop_ != nullptr || inserts_each_; }
  // Throws Error while the body runs.
  void refuse_in_loop(const char* what) const;
  [[nodiscard]] void* insert_in_loop(const DataTaskSpec& spec, int executor,
                                     std::span<const DataAccess> accesses, const BodyOps& ops,
                                     std::size_t bytes);
  void flush_in_loop(Datum& datum, const std::source_location& where);
  void discard_in_loop(Datum& datum, const std::source_location& where);
  void move_in_loop(Datum& datum, int owner, const std::source_location& where);
  void insert_each(const IterateSpec& spec, void (*body)(void*, std::int64_t), void* argument);
  void record_loop(distributed::Loop& loop, void (*body)(void*, std::int64_t), void* argument);
  void begin_loop(distributed::Loop& loop);
  void provide_for_loop(distributed::LoopDatum& its, const distributed::Site& site);
  void fill_slots(distributed::LoopDatum& its);
  void run_loop(const distributed::Loop& loop);
  void end_loop(distributed::Loop& loop);
  void put_current(Datum& datum, distributed::Copy& copy) noexcept;
  void leave_reduction(distributed::LoopDatum& its, const distributed::DatumPlace& place);
  void leave_value(distributed::LoopDatum& its, const distributed::LoopEndOfDatum& end);

  // ---- reductions.cpp
  void join_reduction(Datum& datum, const DataReduction& reduction, int rank);
  void combine(Datum& datum, const distributed::Site& site);
  void combine_here(Datum& datum, std::span<const int> members, std::size_t place,
                    const distributed::Site& site);

  // ---- ending.cpp
  struct Failed {
    std::exception_ptr error;     // exception of a body or send here; null: none
    bool is_of_body = false;      // so it is no consequence of another rank's failure
    const distributed::Trouble* trouble = nullptr;  // why a task here did not run
    std::uint64_t others = 0;
  };
  using WaveEnded = void (*)(void* context, const distributed::WaveSums& sums) noexcept;
  void join_wave(const distributed::WaveSums& mine, WaveEnded ended, void* context);
  // Sees in the sums whether ranks have left.
  [[nodiscard]] distributed::WaveSums wave(const distributed::WaveSums& mine);
  [[nodiscard]] bool note_left(const distributed::WaveSums& sums);
  void close();
  void leave();
  [[nodiscard]] std::string object_text() const;
  // True if all ranks close.
  [[nodiscard]] bool end_together(bool closes, std::exception_ptr& error);
  [[nodiscard]] std::exception_ptr take_failure();
  [[nodiscard]] std::string share_failure(const std::string& mine, bool failed);
  void note(const DataTaskSpec& spec, std::span<const DataAccess> accesses);
  void note(const char* what, const Datum& datum, int rank);
  void note(const IterateSpec& spec);
  [[nodiscard]] std::exception_ptr compare_sequences();
  // If the sequences differ, missing data will not arrive from now on.
  [[nodiscard]] std::exception_ptr end_if_different();

  const distributed::DataNetwork network_;
  const Members ranks_;
  const SpaceOptions options_;
  int me_ = -1;
  std::uint64_t recorded_ = 0;  // its number in the recorder
  std::uint64_t window_ = 0;  // 0: none
  bool checks_ = false;
  distributed::Loop* loop_ = nullptr;  // not null while the body of iterate() runs
  bool inserts_each_ = false;          // it runs for each iteration, in a simulation
  std::unique_ptr<Datum> decision_;    // made by the first loop that needs it
  bool looks_ahead_ = false;  // the policy learns which tasks lead to sends
  bool trimmed_ = false;      // concerns() has left something out
  distributed::Leaving leaving_;
  std::atomic<const distributed::Trouble*> left_{nullptr};  // written once, by leave()
  // Not null: on another rank an exception has ended the space, so no rank joins waves any more.
  std::exception_ptr left_elsewhere_;
  bool differs_ = false;      // ranks have inserted different sequences: transfers do not match
  std::deque<Datum> data_;
  std::uint64_t inserted_ = 0;  // names an insertion, for Datum::seen
  std::uint64_t counted_ = 0;
  std::uint64_t waves_ = 0;
  std::vector<std::uint32_t> tickets_to_, tickets_from_;  // number of transfers so far, by rank
  std::vector<distributed::Use> uses_;          // of the task under construction; so are the next
                                                // fields
  std::vector<AccessSpec> specs_;
  struct Noted {
    std::uint64_t hash;  // of all insertions up to here
    std::string text;
  };
  std::vector<Noted> noted_;  // with IMBREX_CHECK: the whole sequence
  std::uint64_t noted_before_ = 0;  // already compared
  SpaceCounters counters_;
  std::atomic<std::uint64_t> bytes_received_{0};

  std::mutex mutex_;  // held for a look
  std::deque<distributed::Trouble> troubles_ IMBREX_GUARDED_BY(mutex_);
  Failed failure_ IMBREX_GUARDED_BY(mutex_);
};

}  // namespace imbrex::detail
