// SPDX-License-Identifier: BSD-3-Clause
// Failure: the reason why a task, a promise or a joint has no value, and whether the program has
// been told. Knows no runtime: the code that prints unreported failures asks a FailureLog for them.
//
// A failure is its own cause (a body has thrown), or the consequence of another failure: the task
// did not run, because a task or future that it depends on has failed. A get() or finish() that
// takes a failure takes its cause.
//
// Thread safety: any thread uses a Failure; FailureLog says its own rule.
// Invariants:
//   (1) every pointer to a failure owns a reference.
//   (2) an exception of the program is never written to: other threads may hold it, and read its
//       text. Where the text shall name the task, a new exception is made. That needs the exact
//       type, so it is done only for the standard's classes and Error. The label of any other
//       exception is kept beside it, here.
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

// Causes for which a log has no room, and which were not reported: only their number is reported.
struct Rest {
  std::atomic<std::uint32_t> references{1};  // one of the log, and one of each cause
  std::atomic<std::uint32_t> count{0};       // any thread
  std::atomic<bool> told{false};             // set by the log: a finish() has reported all
};

struct Failure {
  enum class Told : std::uint8_t {
    nobody,
    being_counted,  // a thread writes `rest`
    counted,        // counted in `rest`; the thread that takes it lowers the count
    someone         // get(), finish(), or a report
  };
  std::atomic<std::uint32_t> references{1};
  std::atomic<Told> told{Told::nobody};  // of a cause; any thread
  Rest* rest = nullptr;                  // a reference; written before `told` is `counted`
  Failure* cause = nullptr;              // null: itself; else a reference, and `error` is null
  std::exception_ptr error;
  const char* kind = nullptr;            // "task" or "promise", whose label follows; else null
  TaskLabel who;
};

}  // namespace imbrex::detail

namespace imbrex::task {

using detail::Failure;
struct Task;  // descriptor.hpp

// Names `task` in messages. A task that a compiler has made, and that has no name, is named by its
// code: the name in its label is the address of the code, which is looked up on demand. A label has
// no spare word: operations of MPI hold one, within few cache lines.
[[nodiscard]] detail::TaskLabel label_of(const Task& task) noexcept;
// The code of a task that is named by its code; null for others.
[[nodiscard]] const void* code_of(const detail::TaskLabel& label) noexcept;

// Makes the failure of `task`; the caller owns the reference. `error` is kept unchanged, or, by
// (2), replaced by an exception of its type or a class derived from it, whose text names the task
// or promise.
[[nodiscard]] Failure& failure_of_task(const Task& task, std::exception_ptr error) noexcept;
[[nodiscard]] Failure& failure_of_promise(const detail::PromiseState& promise,
                                          std::exception_ptr error) noexcept;
[[nodiscard]] Failure& failure_of_nobody(std::exception_ptr error) noexcept;
// `task` does not run because of `failure`, or of its cause.
[[nodiscard]] Failure& failure_by(const Task& task, Failure& failure) noexcept;

[[nodiscard]] inline Failure& cause_of(Failure& failure) noexcept {
  return failure.cause != nullptr ? *failure.cause : failure;
}
[[nodiscard]] inline Failure& share(Failure& failure) noexcept {
  failure.references.fetch_add(1, std::memory_order_relaxed);
  return failure;
}
void drop(Failure& failure) noexcept;

// `completion` fails, before it fires. Takes over the reference.
inline void set_failure(detail::Completion& completion, Failure& failure) noexcept {
  completion.failure = &failure;
}

// The program is told. Returns what to throw: DependencyFailed, if `failure` is not a cause.
void take(Failure& failure) noexcept;
[[nodiscard]] std::exception_ptr exception_of(const Failure& failure) noexcept;
[[nodiscard]] inline bool is_taken(const Failure& failure) noexcept {
  const Failure::Told told = failure.told.load(std::memory_order_acquire);
  return told == Failure::Told::someone ||
         (told == Failure::Told::counted && failure.rest->told.load(std::memory_order_relaxed));
}

// `task "load" (file:line): text`, or the text of the exception if it names the task.
[[nodiscard]] std::string describe(const Failure& failure);

// The unreported failures for a report.
struct Untold {
  std::vector<std::string> texts;  // of the failures that were kept
  std::uint32_t others = 0;
  [[nodiscard]] bool empty() const noexcept { return texts.empty() && others == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return texts.size() + others; }
};

// The number of unreported causes outside of any finish() that no log has kept; resets it.
[[nodiscard]] std::uint32_t take_lost_failures() noexcept;

// Notes a task that has failed lately, or did not run: in a stall, the waiting tasks may wait for
// its effects, so reports of stalls list it. Keeps labels and texts, so that no exception lives
// longer.
void note_failed(const Failure& failure) noexcept;
// `code`, which is no task (the body of a finish(), for example), has thrown `error`; its tasks are
// waited for before a handler can catch it.
void note_thrown(const std::string& code, const std::exception_ptr& error) noexcept;
// An uncaught exception is about to end the program: prints the task that threw it, where the
// exception's own text cannot say so. For the handler of std::terminate().
void tell_who_has_thrown() noexcept;
// One text for each of the last 16 failures, in their order, after the number of all failures if
// that is larger.
[[nodiscard]] std::vector<std::string> describe_failed();
void forget_failed() noexcept;

// The failures of one scope: the first few, and their number. Not thread-safe.
class FailureLog {
 public:
  FailureLog() = default;
  ~FailureLog();
  FailureLog(const FailureLog&) = delete;
  FailureLog& operator=(const FailureLog&) = delete;

  // The failures that find no room here: count() by the log of the finish() around handles them.
  struct Left {
    std::vector<Failure*> causes;  // they own the references of the added failures
    std::uint32_t counted = 0;     // in the inner log
  };
  [[nodiscard]] Left add(Failure& failure) noexcept;
  // Adds all failures of `inner`, and empties its count.
  [[nodiscard]] Left add_all(const FailureLog& inner) noexcept;
  void count(const Left& left) noexcept;
  // count() for the case that there is no finish() around.
  static void count_lost(const Left& left) noexcept;

  // The first task that failed by itself, else the first that did not run; the text of an Error
  // names the number of others. All failures count as taken. Null if there are none.
  [[nodiscard]] std::exception_ptr take() noexcept;
  // The unreported causes; from now on they count as taken.
  [[nodiscard]] Untold take_untold() noexcept;

 private:
  static constexpr std::size_t kept_max = 16;

  void keep(Failure& cause, Left& left) noexcept;

  std::array<Failure*, kept_max> kept_{};  // causes; the first kept_count_
  std::size_t kept_count_ = 0;
  Failure* first_ = nullptr;               // the first that failed by itself
  Failure* first_not_run_ = nullptr;
  std::uint32_t failed_ = 0;               // number of all failures
  detail::Rest* rest_ = nullptr;           // a reference; made by the first failure that is counted
};

}  // namespace imbrex::task
