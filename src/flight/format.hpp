// SPDX-License-Identifier: BSD-3-Clause
// The file of the flight recorder: what a process did last and what it waits for, readable after
// the process has died in any way (docs/design/flight.md). A process maps its file and stores into
// it; the kernel keeps the pages when the process is gone. Integers are those of the machine.
//
// Thread safety: one thread writes a ring, or the wait of a stack; any thread or process reads. All
// values are relaxed atomics: a reader may see a record half written, and checks what it uses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace imbrex::flight {

inline constexpr std::uint64_t magic = 0x31746867696c6678;  // "xflight1"
inline constexpr std::uint32_t version = 2;

using Word = std::atomic<std::uint64_t>;
static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

struct Event {
  Word task;   // its id
  Word what;   // address of a literal: the call; for a begin and an end the name of the task
  Word where;  // peer << 32 | tag, each as std::int32_t; -1: none
  Word rest;   // bytes or items << 32 (at most 2^32 - 1) | tenths of a second << 8 (modulo 2^24) |
               // detail::FlightEvent
};

// The wait of one stack; free while `task` is 0.
struct Wait {
  Word task;   // its id; written last, and cleared first
  Word name;   // address of its name
  Word file;   // address of the file that spawned it
  Word what;   // address of a literal: the call or the reason
  Word since;  // line << 40 | detail::WaitKind << 32 | tenths of a second
  Word where;  // as in an event
  Word bytes;
  Word comm;   // the handle of MPI, as a number; 0: none
};
static_assert(sizeof(Wait) == 64);

// What one worker does, as of the last look of a thread that looks ten times a second.
struct WorkerNow {
  Word events;  // written into its ring since the start; by the worker
  Word task;    // id of what runs; 0: nothing
  Word name, file, line;
  Word tasks, steals, suspensions, polls;  // since the start
  Word in_task, idle, overhead;            // looks that found it so
  Word spare[4];
};
static_assert(sizeof(WorkerNow) == 128);

// An entry of the hash table of texts by their addresses.
struct Name {
  Word address;  // 0: free
  Word text;     // place in the pool << 16 | length
};

enum class End : std::uint64_t {
  runs,
  failed,  // with an error
  stuck    // imbrex ends the program, since no task can ever run again
};

// What has a ring beside the workers.
enum class Beside : std::uint32_t {
  completed,  // operations of MPI; by the thread that finds them complete
  resumed     // tasks whose wait took longer than a look
};
inline constexpr std::uint32_t rings_beside = 2;

struct Sizes {
  std::uint32_t workers;  // `rings_beside` rings follow theirs
  std::uint32_t events;   // of each ring, a power of two
  std::uint32_t waits;
  std::uint32_t names;    // a power of two
  std::uint32_t pool_bytes, facts_bytes;
  [[nodiscard]] std::uint32_t rings() const noexcept { return workers + rings_beside; }
};

struct Head {
  std::uint64_t magic;
  std::uint32_t version;
  Sizes sizes;
  std::int32_t pid;
  std::uint64_t started_at;      // the process, in the kernel's clock ticks since its boot
  std::uint64_t begun_ns;        // the recorder, since 1970
  Word tenths;                   // of a second since then: the clock of events
  Word rank, ranks;              // of MPI_COMM_WORLD; ranks is 0 before MPI_Init
  Word world;                    // the handle of MPI_COMM_WORLD
  Word end;                      // End
  Word waits_used;               // waits below have been used
  Word pool_used;
  Word facts_length;             // odd while they are written; else twice the length
  Word facts_events;             // sum of the counts of all rings when the facts were written
  Word ready;                    // tasks
  Word in_flight;                // operations of MPI
  Word watched_until;            // tenths; `imbrex top` looks on until then
  char host[64];
  char job[64];
  char program[256];
};

// Where the areas of a file lie, in bytes.
struct Layout {
  std::size_t workers, waits, names, pool, facts, rings, end;
  explicit Layout(const Sizes& sizes) noexcept
      : workers(4096),
        waits(workers + sizes.rings() * sizeof(WorkerNow)),
        names(waits + sizes.waits * sizeof(Wait)),
        pool(names + sizes.names * sizeof(Name)),
        facts(pool + sizes.pool_bytes),
        rings(facts + sizes.facts_bytes),
        end(rings + std::size_t{sizes.rings()} * sizes.events * sizeof(Event)) {}
};
static_assert(sizeof(Head) <= 4096);

[[nodiscard]] constexpr std::uint64_t pack_where(const int peer, const int tag) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | static_cast<std::uint32_t>(tag);
}

// The first place of an address in the table of names, which has a power of two of entries.
[[nodiscard]] constexpr std::size_t place_of(const std::uint64_t address,
                                             const std::size_t names) noexcept {
  return static_cast<std::size_t>((address * 0x9E3779B97F4A7C15u) >> 32) & (names - 1);
}

}  // namespace imbrex::flight
