// SPDX-License-Identifier: BSD-3-Clause
// The noinline functions of this file are called seldom, by the loop that runs tasks. Without the
// attribute the compiler would inline them into the loop.
#include "task/failure.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <any>
#include <array>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/error.hpp"
#include "task/access_block.hpp"
#include "task/descriptor.hpp"

namespace imbrex::task {

namespace {

// The place in the label of a task that is named by its code.
constexpr std::source_location outlined = std::source_location::current();

using detail::Rest;

Rest lost;  // for failures outside of any finish(); its own reference is never dropped

void forget(Rest& rest) noexcept {
  if (rest.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &rest;
}

void lower(Rest& rest) noexcept {
  std::uint32_t count = rest.count.load(std::memory_order_relaxed);
  while (count != 0 &&
         !rest.count.compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) {
  }
}

void count_in(Rest& rest, Failure& cause) noexcept {
  auto told = Failure::Told::nobody;
  if (!cause.told.compare_exchange_strong(told, Failure::Told::being_counted,
                                          std::memory_order_acq_rel)) {
    return;
  }
  rest.references.fetch_add(1, std::memory_order_relaxed);
  rest.count.fetch_add(1, std::memory_order_relaxed);
  cause.rest = &rest;
  told = Failure::Told::being_counted;
  if (!cause.told.compare_exchange_strong(told, Failure::Told::counted,
                                          std::memory_order_acq_rel)) {
    lower(rest);  // another thread has taken it meanwhile
  }
}

void count_left(Rest& rest, const FailureLog::Left& left) noexcept {
  rest.count.fetch_add(left.counted, std::memory_order_relaxed);
  for (Failure* const cause : left.causes) count_in(rest, *cause);
}

// The class may have been compiled without run-time type information, which UBSan would report.
__attribute__((no_sanitize("vptr"))) std::string text_of(const std::exception& thrown) {
  const char* const text = thrown.what();
  return text != nullptr ? text : "a std::exception without a text";
}

std::string text_of(const std::exception_ptr& error) {
  if (error == nullptr) return "no exception";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return text_of(thrown);
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

constexpr std::string_view mark = "imbrex: ";  // prefix of an Error's text
[[nodiscard]] std::string_view without_mark(const std::string_view text) noexcept {
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

[[nodiscard]] std::string place_of(const char* const kind, const detail::TaskLabel& who) {
  return fmt::format("{} {}", kind, detail::describe(who));
}

// Makes an exception of T, a class of the standard that keeps the given text.
template <class T>
class InTask final : public T {
 public:
  InTask(const T& thrown, std::string text) : T(thrown), text_(std::move(text)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Copies the exception being handled with another text, if it has exactly one of these types;
// otherwise returns null. The type comes from the exception, not from the object: a class that was
// compiled without run-time type information has none there.
template <class... T>
std::exception_ptr remade(const std::exception& thrown, const std::string& text) {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  std::exception_ptr created;
  const auto remake = [&]<class U>(const U*) {
    if (type == nullptr || *type != typeid(U)) return;
    if constexpr (std::is_constructible_v<U, const std::string&> &&
                  !std::is_base_of_v<std::system_error, U>) {
      created = std::make_exception_ptr(U(text));
    } else {
      created = std::make_exception_ptr(InTask<U>(static_cast<const U&>(thrown), text));
    }
  };
  (remake(static_cast<const T*>(nullptr)), ...);
  return created;
}

// `error`, or a copy of it whose text names its origin: (2).
std::exception_ptr named(const std::exception_ptr& error, const char* const kind,
                         const detail::TaskLabel& who) noexcept {
  try {
    const std::string before = text_of(error);
    if (before.find("(in task \"") != std::string::npos ||
        before.find("(in promise \"") != std::string::npos ||
        before.find(detail::describe(who)) != std::string::npos) {
      return error;
    }
    const std::string text = fmt::format("{} (in {})", before, place_of(kind, who));
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      const std::exception_ptr created =
          remade<Error, std::runtime_error, std::logic_error, std::domain_error,
                 std::invalid_argument, std::length_error, std::out_of_range, std::range_error,
                 std::overflow_error, std::underflow_error, std::bad_alloc,
                 std::bad_array_new_length, std::system_error, std::ios_base::failure,
                 std::filesystem::filesystem_error, std::future_error,
                 std::bad_function_call, std::bad_optional_access, std::bad_variant_access,
                 std::bad_any_cast, std::bad_cast, std::bad_weak_ptr, std::exception>(thrown,
                                                                                      text);
      return created != nullptr ? created : error;
    }
  } catch (...) {  // it is no std::exception, or there is no memory for a text
    return error;
  }
}

Failure& make(const char* const kind, const detail::TaskLabel& who,
              const std::exception_ptr& error) {
  auto* const created = new Failure;
  created->kind = kind;
  created->who = who;
  if (error != nullptr) created->error = kind == nullptr ? error : named(error, kind, who);
  return *created;
}

// The current exception; a placeholder where code of another language has thrown.
std::exception_ptr or_unknown(std::exception_ptr error) noexcept {
  if (error != nullptr) return error;
  return std::make_exception_ptr(
      Error("imbrex: the exception is not a C++ exception: it comes from another language, or from "
            "pthread_exit() or pthread_cancel(), which a task must not call"));
}

}  // namespace

detail::TaskLabel label_of(const Task& task) noexcept {
  std::uint64_t iteration = 0;
  if ((task.wishes & Task::repeats) != 0) [[unlikely]] {
    const auto number = static_cast<std::uint64_t>(task.accesses->node->iteration) + 1;
    iteration = std::min(number, std::uint64_t{detail::TaskLabel::many});
  }
  if (task.where.line() == 0 && task.ops != nullptr && task.ops->code != nullptr &&
      std::string_view(task.name) == "task") [[unlikely]] {
    const void* const code =
        task.ops->code(reinterpret_cast<const std::byte*>(&task) + sizeof(Task));
    if (code != nullptr) return {static_cast<const char*>(code), outlined, task.id, iteration};
  }
  return {task.name, task.where, task.id, iteration};
}

const void* code_of(const detail::TaskLabel& label) noexcept {
  const bool is_outlined = label.where.line() == outlined.line() &&
                           std::string_view(label.where.file_name()) == outlined.file_name();
  return is_outlined ? label.name : nullptr;
}

[[gnu::noinline]] Failure& failure_of_task(const Task& task, std::exception_ptr error) noexcept {
  Failure& created = make("task", label_of(task), or_unknown(std::move(error)));
  note_failed(created);
  return created;
}

Failure& failure_of_promise(const detail::PromiseState& promise,
                            std::exception_ptr error) noexcept {
  // A promise of the runtime has no place in the program; its error says everything.
  if (promise.where.line() == 0) return make(nullptr, {}, error);
  return make("promise", {promise.name, promise.where, 0}, error);
}

Failure& failure_of_nobody(std::exception_ptr error) noexcept { return make(nullptr, {}, error); }

[[gnu::noinline]] Failure& failure_by(const Task& task, Failure& failure) noexcept {
  Failure& created = make("task", label_of(task), nullptr);
  created.cause = &share(cause_of(failure));
  note_failed(created);
  return created;
}

[[gnu::noinline]] void drop(Failure& failure) noexcept {
  Failure* const cause = failure.cause;
  if (failure.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (failure.rest != nullptr) forget(*failure.rest);
  delete &failure;
  if (cause != nullptr) drop(*cause);  // one step: a cause has no cause
}

[[gnu::noinline]] void take(Failure& failure) noexcept {
  Failure& cause = cause_of(failure);
  if (cause.told.exchange(Failure::Told::someone, std::memory_order_acq_rel) ==
      Failure::Told::counted) {
    lower(*cause.rest);
  }
}

std::exception_ptr exception_of(const Failure& failure) noexcept {
  if (failure.cause == nullptr) return failure.error;
  return std::make_exception_ptr(DependencyFailed(
      fmt::format("imbrex: {} did not run, since a task or future that it depends on has "
                  "failed: {}",
                  place_of(failure.kind, failure.who), describe(*failure.cause)),
      failure.cause->error));
}

[[gnu::noinline]] std::string describe(const Failure& failure) {
  const std::string text = text_of(exception_of(failure));
  if (failure.kind == nullptr || text.find(detail::describe(failure.who)) != std::string::npos) {
    return std::string(without_mark(text));
  }
  return fmt::format("{}: {}", place_of(failure.kind, failure.who), without_mark(text));
}

std::uint32_t take_lost_failures() noexcept {
  return lost.count.exchange(0, std::memory_order_relaxed);
}

// ---- recent failures -------------------------------------------------------------------------

namespace {

struct Failed {
  detail::TaskLabel task;  // null name: `text` says everything
  std::string text;        // text of its exception; empty: it did not run
  const void* object;      // the thrown object, only for comparison: it may be gone
  const char* cause_kind;  // as Failure::kind
  detail::TaskLabel cause;
};

struct Lately {
  base::LastingLock<std::mutex> lock;
  std::array<Failed, 16> failed IMBREX_GUARDED_BY(lock);
  // The number of all failures; it determines the next one's place.
  std::size_t count IMBREX_GUARDED_BY(lock) = 0;

  void add(Failed one) {
    const std::lock_guard guard(lock);
    std::swap(failed[count++ % failed.size()], one);
  }
};

// Reports may use it while static objects are destroyed.
Lately& lately() noexcept {
  static Lately* const never_destroyed = new Lately;
  return *never_destroyed;
}
[[maybe_unused]] const Lately& lately_at_load = lately();

// The suffix that names the task of a failure.
std::string suffix_of(const detail::TaskLabel& who) {
  return fmt::format(" (in {})", place_of("task", who));
}

// The text without the part that names the task, which the report adds.
std::string text_to_keep(std::string text, const detail::TaskLabel& who) {
  constexpr std::size_t length_max = 300;
  const std::string suffix = suffix_of(who);
  if (text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  if (text.size() > length_max) text = text.substr(0, length_max) + "...";
  return std::string(without_mark(text));
}

// Identifies the thrown object, as long as it lives; null if it is no std::exception.
const void* object_of(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return &thrown;
  } catch (...) {
    return nullptr;
  }
}

// The task that threw `error`, whose text is `text`, if the text does not name it and it is among
// the recent failures; else empty.
std::string label_beside(const std::exception_ptr& error, const std::string& text) {
  const void* const object = object_of(error);
  if (object == nullptr) return "";
  Lately& now = lately();
  const std::lock_guard guard(now.lock);
  for (const Failed& one : now.failed) {
    if (one.object != object || one.text != text_to_keep(text, one.task)) continue;
    const std::string suffix = suffix_of(one.task);
    return text.ends_with(suffix) ? "" : suffix;
  }
  return "";
}

std::string describe(const Failed& failed) {
  if (failed.task.name == nullptr) return failed.text;
  const std::string task = place_of("task", failed.task);
  if (!failed.text.empty()) return task + " has failed: " + failed.text;
  return task + " did not run, since " +
         (failed.cause_kind != nullptr ? place_of(failed.cause_kind, failed.cause)
                                       : "a task or future that it depends on") +
         " has failed";
}

}  // namespace

[[gnu::noinline]] void note_failed(const Failure& failure) noexcept {
  if (failure.cause == nullptr) {
    lately().add({failure.who, text_to_keep(text_of(failure.error), failure.who),
                  object_of(failure.error), nullptr, {}});
  } else {
    lately().add({failure.who, "", nullptr, failure.cause->kind, failure.cause->who});
  }
}

void note_thrown(const std::string& code, const std::exception_ptr& error) noexcept {
  lately().add({{},
                fmt::format("{} has thrown: {}", code, without_mark(text_of(error))),
                nullptr,
                nullptr,
                {}});
}

void tell_who_has_thrown() noexcept {
  const std::exception_ptr error = std::current_exception();
  if (error == nullptr) return;
  const std::string label = label_beside(error, text_of(error));
  if (label.empty()) return;
  base::report("the exception that ends the program was thrown" + label);
  base::drop_backtraces();
}

void forget_failed() noexcept {
  Lately& now = lately();
  const std::lock_guard guard(now.lock);
  now.count = 0;
}

std::vector<std::string> describe_failed() {
  Lately& now = lately();
  const std::lock_guard guard(now.lock);
  std::vector<std::string> texts;
  const std::size_t kept = std::min(now.count, now.failed.size());
  if (kept < now.count) {
    texts.push_back(fmt::format("the last {} of {} failures:", kept, now.count));
  }
  for (std::size_t index = now.count - kept; index < now.count; ++index) {
    texts.push_back(describe(now.failed[index % now.failed.size()]));
  }
  return texts;
}

}  // namespace imbrex::task

namespace imbrex::detail {

std::string thrown_text(const std::exception_ptr& error) {
  const std::string text = task::text_of(error);
  return text + task::label_beside(error, text);
}

}  // namespace imbrex::detail

namespace imbrex::task {

// ---- FailureLog ------------------------------------------------------------------------------

FailureLog::~FailureLog() {
  for (std::size_t index = 0; index < kept_count_; ++index) drop(*kept_[index]);
  if (rest_ != nullptr) forget(*rest_);
  if (first_ != nullptr) drop(*first_);
  if (first_not_run_ != nullptr) drop(*first_not_run_);
}

FailureLog::Left FailureLog::add(Failure& failure) noexcept {
  ++failed_;
  Failure*& first = failure.cause == nullptr ? first_ : first_not_run_;
  if (first == nullptr) first = &share(failure);
  Left left;
  keep(cause_of(failure), left);
  return left;
}

FailureLog::Left FailureLog::add_all(const FailureLog& inner) noexcept {
  if (first_ == nullptr && inner.first_ != nullptr) first_ = &share(*inner.first_);
  if (first_not_run_ == nullptr && inner.first_not_run_ != nullptr) {
    first_not_run_ = &share(*inner.first_not_run_);
  }
  failed_ += inner.failed_;
  Left left;
  for (std::size_t index = 0; index < inner.kept_count_; ++index) {
    keep(*inner.kept_[index], left);
  }
  if (inner.rest_ != nullptr) {
    left.counted = inner.rest_->count.exchange(0, std::memory_order_relaxed);
  }
  return left;
}

void FailureLog::count(const Left& left) noexcept {
  if (rest_ == nullptr) rest_ = new Rest;
  count_left(*rest_, left);
}

void FailureLog::count_lost(const Left& left) noexcept { count_left(lost, left); }

void FailureLog::keep(Failure& cause, Left& left) noexcept {
  if (is_taken(cause)) return;
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(kept_count_);
  if (std::find(kept_.begin(), end, &cause) != end) return;
  if (kept_count_ < kept_max) {
    kept_[kept_count_++] = &share(cause);
  } else if (const auto place = std::ranges::find_if(
                 kept_, [](const Failure* const kept) { return is_taken(*kept); });
             place != kept_.end()) {
    drop(**place);
    *place = &share(cause);
  } else {
    left.causes.push_back(&cause);
  }
}

std::exception_ptr FailureLog::take() noexcept {
  if (rest_ != nullptr) rest_->told.store(true, std::memory_order_relaxed);
  for (std::size_t index = 0; index < kept_count_; ++index) task::take(*kept_[index]);
  Failure* const first = first_ != nullptr ? first_ : first_not_run_;
  if (first == nullptr) return nullptr;
  task::take(*first);
  const std::exception_ptr error = exception_of(*first);
  if (failed_ < 2) return error;
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    // A derived class keeps its type and its own text. (The object may have no type information.)
    if (*abi::__cxa_current_exception_type() != typeid(Error)) return error;
    return std::make_exception_ptr(
        Error(fmt::format("{} (and {} other tasks of this scope failed)", thrown.what(),
                          failed_ - 1)));
  } catch (...) {
    return error;
  }
}

Untold FailureLog::take_untold() noexcept {
  Untold untold;
  if (rest_ != nullptr && !rest_->told.exchange(true, std::memory_order_relaxed)) {
    untold.others = rest_->count.load(std::memory_order_relaxed);
  }
  for (std::size_t index = 0; index < kept_count_; ++index) {
    if (is_taken(*kept_[index])) continue;
    task::take(*kept_[index]);
    untold.texts.push_back(describe(*kept_[index]));
  }
  return untold;
}

}  // namespace imbrex::task
