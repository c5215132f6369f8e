// SPDX-License-Identifier: BSD-3-Clause
// Counters, times and event records of one thread, and the files that they are written to. Used by
// sched/. Knows no task: the caller passes ids and names.
//
// Thread safety: only its thread uses a Recorder. Other threads may read the counters and the
// records so far at any time, and the rest when the thread has stopped.
#pragma once

#include <atomic>
#include <array>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "base/arch.hpp"

namespace imbrex::trace {

enum class Kind : std::uint32_t {
#define IMBREX_EVENT(name, number) name = number,
#include "trace/events.def"
#undef IMBREX_EVENT
};

inline constexpr int format_version = 3;  // docs/design/trace-format.md

// The meaning of another field of a record, which names what a task waits for.
enum class Awaited : std::uint64_t {
  unknown,  // the field has no meaning
  task,     // the id of a task
  message,  // the peer, in ranks of its communicator, and tag << 32
  future    // the address of a future that is no task; its lowest bit: it was set before
};

// A record as on disk, except `a` of events with a name, which is the address of the name until
// then.
struct Record {
  std::uint64_t time;  // ticks; ns on disk
  std::uint64_t task;
  std::uint32_t worker;
  Kind kind;
  std::uint64_t a, b, c;
};
static_assert(sizeof(Record) == 48);

// Records in the order of their arrival. One thread writes; any thread may read the present
// records, since a program may end while its threads run: records never move and are never removed.
// Bounded by the memory that the user gives a trace.
class Records {
 public:
  Records() = default;
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  void add(const Record& record) noexcept;
  // Passes the records that are present at the time of the call, as several spans.
  template <typename Take>
  void for_each(Take&& take) const {
    std::uint64_t left = count_.load(std::memory_order_acquire);  // pairs with add()
    if (left == 0) return;  // the first link may not be complete yet
    for (const Chunk* chunk = first_;; chunk = chunk->next) {
      const std::uint64_t here = left < chunk_records ? left : chunk_records;
      take(std::span<const Record>(chunk->records, here));
      left -= here;
      if (left == 0) return;  // the next link may not be complete yet
    }
  }

  [[nodiscard]] bool empty() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0 && lost() == 0;  // only counts
  }
  // Number of records for which there was no memory.
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return lost_.load(std::memory_order_relaxed);  // only a count
  }

 private:
  static constexpr std::uint64_t chunk_records = 1365;  // 64 KiB
  struct Chunk {
    Chunk* next;
    Record records[chunk_records];
  };
  // Links are written before the count that makes them visible, and not changed afterwards.
  Chunk* first_ = nullptr;
  Chunk* last_ = nullptr;
  std::atomic<std::uint64_t> count_{0};  // its thread writes, any thread reads; so is the next
                                         // field
  std::atomic<std::uint64_t> lost_{0};
};

// Written by one thread, read by any.
class Counter {
 public:
  void add(const std::uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// The kinds of a worker's time (Pereira et al. 2021, section 4.3).
enum class Activity : std::uint8_t {
  overhead,  // outside tasks while some task is ready
  task,      // in a task's body
  idle,      // outside tasks, or polling inside one, with nothing ready
  away       // a spare worker, without a processor
};

class Recorder {
 public:
  Counter tasks, steals, polls;  // tasks: begun
  Counter suspensions;           // suspensions that have ended, yields included

  // Call it before the thread runs. `timing`: sum up times; `tracing`: keep records. Watches if
  // there is a trace, or if the order of tasks is kept.
  void enable(bool timing, bool tracing, std::uint32_t worker) noexcept;
  [[nodiscard]] bool timing() const noexcept { return timing_; }
  // A task that leaves its worker, or resumes there, is noted: by times, or by an observer.
  [[nodiscard]] bool notes_switches() const noexcept { return notes_switches_; }
  void note_switches() noexcept { notes_switches_ = true; }  // only its thread calls it
  [[nodiscard]] bool tracing() const noexcept { return tracing_; }
  // The trace, or another observer, needs to know when tasks begin and end. Call it before the
  // thread runs.
  void watch() noexcept { watched_ = true; }
  [[nodiscard]] bool watched() const noexcept { return watched_; }

  [[nodiscard]] bool has_records() const noexcept { return !records_.empty(); }

  // Sets the thread's activity from now on. One predictable branch when off.
  void enter(const Activity activity) noexcept {
    if (timing_) [[unlikely]] enter_slow(activity);
  }
  [[gnu::cold, gnu::noinline]] void record(Kind kind, std::uint64_t task, std::uint64_t a,
                                           std::uint64_t b, std::uint64_t c);
  // Also counts the time since the last change of activity, because main may compute to the end.
  // Only its thread calls it.
  void count_activity() noexcept {
    if (!timing_) return;
    const std::uint64_t now = base::ticks();
    spent_[static_cast<std::size_t>(activity_)].add(now - since_);
    since_ = now;
  }
  [[nodiscard]] std::uint64_t ticks_in(const Activity activity) const noexcept {
    return spent_[static_cast<std::size_t>(activity)].get();
  }

 private:
  friend class Writer;
  [[gnu::cold, gnu::noinline]] void enter_slow(Activity activity) noexcept;

  bool timing_ = false;
  bool tracing_ = false;
  bool watched_ = false;
  bool notes_switches_ = false;  // also with times
  std::uint32_t worker_ = 0;
  Activity activity_ = Activity::overhead;
  std::uint64_t since_ = 0;
  std::array<Counter, 4> spent_;
  Records records_;
};

// Converts ticks to time.
class TimeBase {
 public:
  void start() noexcept;
  void stop() noexcept;  // fixes the rate
  [[nodiscard]] double seconds(std::uint64_t ticks) const noexcept;
  [[nodiscard]] std::uint64_t wall_ns(std::uint64_t ticks) const noexcept;
  [[nodiscard]] std::uint64_t start_ns() const noexcept { return start_ns_; }
  [[nodiscard]] std::uint64_t end_ns() const noexcept { return end_ns_; }
  [[nodiscard]] std::uint64_t end_ticks() const noexcept { return end_ticks_; }

 private:
  std::uint64_t start_ticks_ = 0, end_ticks_ = 0;
  std::uint64_t start_ns_ = 0, end_ns_ = 0;  // since 1970
};

struct Header {
  int rank;
  int ranks;
  int workers;
  std::string policy;
  std::vector<int> processors = {};      // processors that the workers may use, by the system's
                                         // numbers
  std::vector<int> spare_workers = {};   // workers whose processors belong to other ranks
  std::string cut = {};                  // why the program ended early; empty: it did not
  std::uint64_t until = UINT64_MAX;      // ticks; later records are left out
};

// Makes the directory and its parents. Returns false after a warning if the disk has no room.
// Throws base::OptionError if the directory cannot be written to.
[[nodiscard]] bool prepare_directory(const std::string& directory);

// Writes directory/rank-R.json and .events, with the records for which there is room. Returns a
// text that says what is missing and why, or an empty one. Threads may go on recording.
[[nodiscard]] std::string write_files(const std::string& directory, const Header& header,
                                      const TimeBase& time,
                                      const std::vector<Recorder*>& recorders);

// The record field of a name: an index in a table that only grows.
[[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t intern(const char* text,
                                                             const std::source_location* where);

// The record field of a function that a compiler has made of a construct; `otherwise` if the
// function has no name. The symbol is looked up when the files are written, since the first search
// takes tenths of a second.
[[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t intern_code(const void* code,
                                                                  const char* otherwise);
// The record field of the name `text`, whose place is that of `code`, looked up as by
// intern_code().
[[nodiscard, gnu::cold, gnu::noinline]] std::uint64_t intern_at(const char* text, const void* code);

// Counts an operation that has no records. `what`: a literal, in the plural, for readers.
[[gnu::cold]] void count_unrecorded(const char* what) noexcept;

}  // namespace imbrex::trace
