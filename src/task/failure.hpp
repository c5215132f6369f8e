// SPDX-License-Identifier: BSD-3-Clause
// Failure: why a task, a promise or a joint has no value, and whether anybody has been told. Knows
// no runtime: whoever prints what is left asks a FailureLog for it.
//
// A failure is its own cause (a body has thrown), or what became of one: the task did not run,
// since what it depends on has failed. To take it, by get() or finish(), is to take its cause.
//
// Thread safety: Failure: any thread; FailureLog: as it says.
// Invariants:
//   (1) whoever points to a failure holds a reference.
//   (2) an exception that the program has thrown is never written to: other threads may hold it,
//       and read its text. Where the text shall name the task, a new exception is made, which needs
//       the exact type: so only for the standard's classes and Error. The label of any other
//       stands beside it, here.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::detail {

// Causes that a log has no room for, and that nobody has taken: their number is told, not they.
struct Rest {
  std::atomic<std::uint32_t> references{1};  // the log's, and one of each cause
  std::atomic<std::uint32_t> count{0};       // any thread
  std::atomic<bool> told{false};             // set by the log: a finish() has told of all
};

struct Failure {
  enum class Told : std::uint8_t {
    nobody,
    being_counted,  // somebody writes `rest`
    counted,        // in `rest`; whoever takes it lowers the count
    someone         // get(), finish(), or a report
  };
  std::atomic<std::uint32_t> references{1};
  std::atomic<Told> told{Told::nobody};  // of a cause; any thread
  Rest* rest = nullptr;                  // a reference; written before `told` is `counted`
  Failure* cause = nullptr;              // null: itself; else a reference, and `error` is null
  std::exception_ptr error;
  const char* kind = nullptr;            // "task" or "promise", whose label is next; else null
  TaskLabel who;
};

}  // namespace imbrex::detail

namespace imbrex::task {

using detail::Failure;
struct Task;  // descriptor.hpp

// What names `task` in messages. A task that a compiler has made and nobody has named is told by
// what it runs: the name in its label is that address, to be looked up if somebody wants to know. A
// label has no word to spare: operations of MPI hold one, and few lines of the cache.
[[nodiscard]] detail::TaskLabel label_of(const Task& task) noexcept;
// The code of such a task; null for others.
[[nodiscard]] const void* code_of(const detail::TaskLabel& label) noexcept;

// The caller owns the reference. `error` is kept as it is, or, by (2), as one of the same type, or
// of a class derived from that, whose text names the task or promise.
[[nodiscard]] Failure& failure_of_task(const Task& task, std::exception_ptr error) noexcept;
[[nodiscard]] Failure& failure_of_promise(const detail::PromiseState& promise,
                                          std::exception_ptr error) noexcept;
[[nodiscard]] Failure& failure_of_nobody(std::exception_ptr error) noexcept;
// `task` does not run, because of `failure`, or of its cause.
[[nodiscard]] Failure& failure_by(const Task& task, Failure& failure) noexcept;

[[nodiscard]] inline Failure& cause_of(Failure& failure) noexcept {
  return failure.cause != nullptr ? *failure.cause : failure;
}
[[nodiscard]] inline Failure& share(Failure& failure) noexcept {
  failure.references.fetch_add(1, std::memory_order_relaxed);
  return failure;
}
void drop(Failure& failure) noexcept;

// `completion` fails; before it fires. Takes over the reference.
inline void set_failure(detail::Completion& completion, Failure& failure) noexcept {
  completion.failure = &failure;
}

// Someone is told. What to throw: DependencyFailed, if it is not a cause.
void take(Failure& failure) noexcept;
[[nodiscard]] std::exception_ptr exception_of(const Failure& failure) noexcept;
[[nodiscard]] inline bool is_taken(const Failure& failure) noexcept {
  const Failure::Told told = failure.told.load(std::memory_order_acquire);
  return told == Failure::Told::someone ||
         (told == Failure::Told::counted && failure.rest->told.load(std::memory_order_relaxed));
}

// `task "load" (file:line): text`, or what the exception says if that names the task.
[[nodiscard]] std::string describe(const Failure& failure);

// What a report prints of the failures that nobody has taken.
struct Untold {
  std::vector<std::string> texts;  // of those that were kept
  std::uint32_t others = 0;
  [[nodiscard]] bool empty() const noexcept { return texts.empty() && others == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return texts.size() + others; }
};

// How many causes outside of any finish() no log has kept and nobody has been told; forgets them.
[[nodiscard]] std::uint32_t take_lost_failures() noexcept;

// Notes which tasks have failed lately, those that did not run among them: what waits when nothing
// runs may wait for what they would have done, so reports of stalls tell of them. Keeps labels and
// texts, so that no exception lives longer for it.
void note_failed(const Failure& failure) noexcept;
// `code`, which is no task, such as the body of a finish(), has thrown `error`; its tasks are
// waited for before anybody can catch it.
void note_thrown(const std::string& code, const std::exception_ptr& error) noexcept;
// An exception that nobody catches is about to end the program: prints which of them has thrown it,
// where its own text cannot say so. For the handler of std::terminate().
void tell_who_has_thrown() noexcept;
// One text for each of the last 16, in the order in which they failed; before them the number of
// all, if that is larger.
[[nodiscard]] std::vector<std::string> describe_failed();

// The failures of one scope: the first few, and how many there were. Not thread-safe.
class FailureLog {
 public:
  FailureLog() = default;
  ~FailureLog();
  FailureLog(const FailureLog&) = delete;
  FailureLog& operator=(const FailureLog&) = delete;

  // What finds no place here: count() is for it, by the log of the finish() around.
  struct Left {
    std::vector<Failure*> causes;  // whose references are those of what was added
    std::uint32_t counted = 0;     // in the inner log
  };
  [[nodiscard]] Left add(Failure& failure) noexcept;
  // Empties the count of `inner`.
  [[nodiscard]] Left add_all(const FailureLog& inner) noexcept;
  void count(const Left& left) noexcept;
  // As count(), where no finish() is around.
  static void count_lost(const Left& left) noexcept;

  // The first that failed by itself, else the first that did not run; its text, if it is an Error,
  // names the number of others. All count as taken. Null if there are none.
  [[nodiscard]] std::exception_ptr take() noexcept;
  // The causes that nobody has taken; from now on they are taken.
  [[nodiscard]] Untold take_untold() noexcept;

 private:
  static constexpr std::size_t kept_max = 16;

  void keep(Failure& cause, Left& left) noexcept;

  std::array<Failure*, kept_max> kept_{};  // causes; the first kept_count_
  std::size_t kept_count_ = 0;
  Failure* first_ = nullptr;               // that failed by itself
  Failure* first_not_run_ = nullptr;
  std::uint32_t failed_ = 0;               // all
  detail::Rest* rest_ = nullptr;           // a reference; made by the first that is counted
};

}  // namespace imbrex::task
