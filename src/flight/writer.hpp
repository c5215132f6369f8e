// SPDX-License-Identifier: BSD-3-Clause
// The writer of this process's file (format.hpp). A store into the mapping costs as much as any
// other, and no call of the system; no clock is read for an event. Texts are looked up by their
// addresses in tick(), which a thread calls ten times a second: so a name costs nothing where it is
// used first, and a text that is not there any more is left out.
//
// Thread safety: open(), close() and forget() by the thread that starts, ends or forks the process;
// tick() and keep_facts() by one thread at a time; a Ring by its worker; the rest by any thread.
#pragma once

#include <algorithm>
#include <source_location>
#include <string>
#include <string_view>

#include "flight/format.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::flight {

// The ring of one worker; empty while nothing is recorded.
class Ring {
 public:
  void add(const detail::FlightEvent kind, const std::uint64_t task, const void* const what,
           const std::uint64_t where = pack_where(-1, -1), const std::uint64_t size = 0) noexcept {
    if (events_ == nullptr) return;
    Event& event = events_[count_ & mask_];
    event.task.store(task, std::memory_order_relaxed);
    event.what.store(reinterpret_cast<std::uintptr_t>(what), std::memory_order_relaxed);
    event.where.store(where, std::memory_order_relaxed);
    const std::uint64_t tenths = clock_->load(std::memory_order_relaxed) & 0xffffff;
    event.rest.store(std::min<std::uint64_t>(size, 0xffffffff) << 32 | tenths << 8 |
                         static_cast<std::uint64_t>(kind),
                     std::memory_order_relaxed);
    now_->events.store(++count_, std::memory_order_release);
  }
  // The begin and the end of each task are recorded, too.
  void take_tasks() noexcept { with_tasks_ = events_ != nullptr; }
  [[nodiscard]] bool has_tasks() const noexcept { return with_tasks_; }

 private:
  friend Ring ring_at(std::uint32_t place) noexcept;
  Event* events_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t count_ = 0;
  WorkerNow* now_ = nullptr;
  const Word* clock_ = nullptr;
  bool with_tasks_ = false;
};

// Maps a new file for so many workers, unless this process has one. `directory`: of the user, or
// empty. Returns what is wrong, for a warning; then nothing is recorded.
[[nodiscard]] std::string open(int workers, const std::string& directory) noexcept;
// The process ends: removes the file if all is well.
void close(bool well) noexcept;
// The process is about to end in this way.
void note_end(End end) noexcept;
// In a child of fork: the file is the parent's. What the child still writes goes nowhere.
void forget() noexcept;

inline constinit std::atomic<Head*> mapped{nullptr};
// Null while nothing is recorded; then the next three return nothing, too.
[[nodiscard]] inline Head* head() noexcept { return mapped.load(std::memory_order_relaxed); }
[[nodiscard]] Ring ring_of(int worker) noexcept;
[[nodiscard]] Ring ring_of(Beside whose) noexcept;
[[nodiscard]] WorkerNow* worker(int index) noexcept;
// Null if the file has no such place.
[[nodiscard]] Wait* wait_of(std::uint64_t place) noexcept;

// The task waits for `reason` from now on, until `wait.task` is 0 again.
void begin(Wait& wait, std::uint64_t task, const char* name, const std::source_location& where,
           const detail::WaitReason& reason) noexcept;

// Moves the clock, and looks up the texts of addresses that are new.
void tick() noexcept;
// Keeps what a report would say of this process; the text before is gone.
void keep_facts(std::string_view facts) noexcept;

}  // namespace imbrex::flight
