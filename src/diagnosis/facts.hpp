// SPDX-License-Identifier: BSD-3-Clause
// What is known of one rank when a program hangs: its state, its tasks and their waits, and its
// unexpected messages. The watchdog of MPI fills it from a live rank; a tool may fill it from the
// files of a process that has ended. causes.hpp finds the cause in the facts of all ranks. Knows
// neither MPI nor tasks.
#pragma once

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace imbrex::diagnosis {

// Values that are no rank, tag or size.
inline constexpr int none = INT_MIN;  // there is none, or it is unknown
inline constexpr int any = INT_MIN + 1;

struct Communicator {
  std::string name = {};     // empty: there is no communicator, or it is unknown
  std::uint64_t id = 0;      // a number that its ranks agree on; 0: unknown
  std::vector<int> members = {};  // ranks of MPI_COMM_WORLD; a message goes to one of them
  bool is_named = true;      // by the program or by MPI; else ranks may number it differently
  bool operator==(const Communicator&) const = default;
};

enum class WaitKind : std::uint8_t {
  receive,     // a message, also for a request
  send,        // the receiver of a message
  probe,       // a message that stays
  request,     // requests whose messages are unknown
  collective,  // the other ranks of a communicator
  part,        // parts of a collective that imbrex carries out, or its turn
  phaser,      // the signals of other tasks at a phaser
  future,      // a distributed future
  promise,     // a promise, an event or a named future of this rank
  dependency,  // a task that this one follows, or its result
  finish,      // the tasks of finish() or taskwait()
  lock,        // the thread of the task sleeps in a lock, or something like it
  window,      // a window of one-sided communication
  finalize,    // the end of other ranks, in MPI_Finalize
  asks,        // the task asks again and again, without success
  other        // everything else
};

// One wait of one task. A task with several waits needs all of them.
struct Wait {
  std::uint64_t task = 0;              // number of the task on its rank; 0: unknown
  std::string task_text = {};          // `"name" (file:line)`
  WaitKind kind = WaitKind::other;
  std::string call = {};               // the call of MPI, or a text behind "waits for"
  Communicator comm = {};
  int peer = none;                     // a rank of MPI_COMM_WORLD, or any; the home of a future
  int peer_in_comm = none;             // as the program names it
  int tag = none;
  std::int64_t bytes = -1;             // -1: unknown
  std::vector<std::uint64_t> tasks = {};  // tasks of this rank that must all act first
  std::string object = {};             // the future, as all ranks name it
  bool operator==(const Wait&) const = default;
};

// A message that has arrived, and that no receive has taken.
struct Message {
  Communicator comm = {};
  int source = none;                   // a rank of MPI_COMM_WORLD
  int source_in_comm = none;
  int tag = none;
  std::int64_t bytes = -1;
  bool operator==(const Message&) const = default;
};

// A lock of a window that a task has asked for, and not given back.
struct WindowLock {
  std::uint64_t task = 0;
  std::string task_text = {};
  Communicator window = {};            // with the name of the window
  int target = none;                   // whose part: a rank of MPI_COMM_WORLD, or any: all
  bool is_exclusive = false;
  bool operator==(const WindowLock&) const = default;
};

enum class RankState : std::uint8_t {
  answers,
  silent,     // it does not answer
  dead,       // its process has ended by an error
  finalizes,  // it is in MPI_Finalize, and has no task left
  ended       // after MPI_Finalize
};

struct RankFacts {
  int rank = 0;                        // of MPI_COMM_WORLD
  int ranks = 1;
  std::string host = {};
  std::int64_t process = 0;
  RankState state = RankState::answers;
  std::int64_t still_ms = 0;           // no task has run and no message has come for this long
  bool may_continue = true;            // a thread runs code of the program, or may do so by itself
  bool has_left_out = false;           // there are more waits than these
  std::vector<std::string> running = {};  // texts of the tasks that run or are ready
  std::vector<Wait> waits = {};
  std::vector<Message> messages = {};
  std::vector<WindowLock> locks = {};  // in the order in which they were asked for
  std::vector<std::string> failures = {};  // "task ... has failed: ..."
  bool operator==(const RankFacts&) const = default;
};

// The text form, for letters and files: a line for each wait, message and failure.
[[nodiscard]] std::string write(const RankFacts& facts);
// Returns std::nullopt if `text` is not such a text. Lines of an unknown kind are skipped.
[[nodiscard]] std::optional<RankFacts> read(std::string_view text);

// The word for a kind in the text form.
[[nodiscard]] std::string_view word_of(WaitKind kind) noexcept;
[[nodiscard]] WaitKind kind_of(std::string_view word) noexcept;  // other: no such word

}  // namespace imbrex::diagnosis
