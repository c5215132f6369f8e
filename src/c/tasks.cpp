// SPDX-License-Identifier: BSD-3-Clause
// imbrex.h: tasks, scopes, named events and progress functions.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "c/guard.hpp"
#include "c/places.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/imbrex.hpp"

struct imbrex_finish_s {
  imbrex::detail::ScopeMemory memory;
  std::optional<imbrex::Scope> scope = std::nullopt;  // if it can be stopped
};

namespace imbrex::c {

namespace {

constexpr std::size_t alignment = 16;
constexpr std::size_t aligned(const std::size_t bytes) noexcept {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// A task's closure: this, then the copy of its argument, then its result.
struct alignas(alignment) Closure {
  void* result;
  std::size_t argument_bytes;  // of the copy; 0: there is none
  void* argument;
  imbrex_body* body;  // last, since captured() returns it together with the copy

  static void run(void* memory);
  static std::span<const std::byte> captured(void* memory) noexcept;
};
// Nothing of a closure is destroyed, so a task of a loop runs as any other.
constexpr detail::RepeatOps repeat_ops{&Closure::run, &Closure::captured};
constexpr detail::BodyOps ops{&Closure::run, [](void*) noexcept {}, nullptr};
constexpr detail::BodyOps ops_without_future{&Closure::run, [](void*) noexcept {}, nullptr,
                                             nullptr, nullptr, &repeat_ops};

void Closure::run(void* const memory) {
  const Closure& closure = *static_cast<const Closure*>(memory);
  const int code = closure.body(closure.argument, closure.result);
  if (code == 0) return;
  throw Error(fmt::format("imbrex: the body of task {} returned {}",
                          detail::describe_current_task(), code));
}

std::span<const std::byte> Closure::captured(void* const memory) noexcept {
  static_assert(sizeof(Closure) == offsetof(Closure, body) + sizeof(imbrex_body*));
  const auto* const begin = static_cast<const std::byte*>(memory);
  const std::size_t bytes = static_cast<const Closure*>(memory)->argument_bytes;
  const std::size_t from = bytes == 0 ? offsetof(Closure, argument) : offsetof(Closure, body);
  return {begin + from, begin + sizeof(Closure) + bytes};
}

// The accesses of one task; named events are kept until it is created.
class Accesses {
 public:
  explicit Accesses(const imbrex_task_spec& spec) {
    if (spec.access_count != 0) require(spec.accesses, "imbrex_task_spec::accesses");
    for (int index = 0; index < spec.access_count; ++index) add(spec, spec.accesses[index]);
  }
  [[nodiscard]] std::span<const detail::AccessSpec> span() const noexcept { return specs_; }

 private:
  void add(const imbrex_task_spec& spec, const imbrex_access& access) {
    require(access.object, "imbrex_access::object");
    switch (access.kind) {
      case IMBREX_AFTER: {
        const auto* const future = static_cast<const imbrex_future_s*>(access.object);
        specs_.push_back({detail::completion_of(future->future), detail::AccessKind::after});
        return;
      }
      case IMBREX_NAMED:
        named_.push_back(named(static_cast<const char*>(access.object), access.number,
                               place(spec.file, spec.line)));
        specs_.push_back({detail::completion_of(named_.back()), detail::AccessKind::after});
        return;
      default:
        if ((access.kind & IMBREX_RANGE) != 0) {
          add_range(access);
        } else {
          specs_.push_back({access.object, kind_of(access.kind)});
        }
    }
  }
  void add_range(const imbrex_access& access) {
    const auto begin = reinterpret_cast<std::uintptr_t>(access.object);
    const auto bytes = static_cast<std::uint64_t>(access.number);
    if (access.number < 0 || bytes > UINTPTR_MAX - begin) {
      throw Error(fmt::format("imbrex: imbrex_access::number is {} for the range that begins at "
                              "{}: give the size of the range in bytes",
                              access.number, access.object));
    }
    const detail::AccessKind kind = kind_of(access.kind & ~IMBREX_RANGE);
    if (bytes == 0) return;
    specs_.push_back({access.object, kind, 0});
    specs_.push_back({static_cast<const std::byte*>(access.object) + bytes,
                      detail::AccessKind::range_end});
  }
  static detail::AccessKind kind_of(const int kind) {
    switch (kind) {
      case IMBREX_IN: return detail::AccessKind::in;
      case IMBREX_OUT: return detail::AccessKind::out;
      case IMBREX_INOUT: return detail::AccessKind::inout;
      case IMBREX_MUTEXINOUTSET: return detail::AccessKind::mutexinoutset;
      case IMBREX_INOUTSET: return detail::AccessKind::inoutset;
      default:
        throw Error(fmt::format("imbrex: imbrex_access::kind is {}: valid: IMBREX_IN to "
                                "IMBREX_NAMED, {} to {}",
                                kind, static_cast<int>(IMBREX_IN), static_cast<int>(IMBREX_NAMED)));
    }
  }

  std::vector<detail::AccessSpec> specs_;
  std::vector<Future<void>> named_;
};

// -1: all workers.
imbrex::Place place_of(const int place) {
  return place == -1 ? imbrex::Place() : imbrex::place(place);
}

// The result of `ask` for the place; `otherwise` if there is no such place.
template <class Ask>
int ask(const int place, const int otherwise, const Ask ask_of) {
  int answer = otherwise;
  (void)guard(IMBREX_ERR_USE, [&] { answer = ask_of(place_of(place)); });
  return answer;
}

// Fortran has no macro for the place of a call: the body stands for it.
std::source_location place_of(const char* const file, const int line, const void* const body) {
  return file != nullptr ? place(file, line) : detail::place_of_code(body);
}

// Spawns a task. `place_given`: null for the place of the parent.
void spawn(const imbrex_task_spec& spec, const Place* const place_given,
           imbrex_future_t* const future) {
  require(reinterpret_cast<const void*>(spec.body), "imbrex_task_spec::body");
  if (spec.argument_bytes != 0) require(spec.argument, "imbrex_task_spec::argument");
  if (spec.argument_bytes > bytes_max || spec.result_bytes > bytes_max) throw std::bad_alloc();
  const Accesses accesses(spec);
  const std::source_location where =
      place_of(spec.file, spec.line, reinterpret_cast<const void*>(spec.body));
  const detail::TaskSpec described{name_of_task(spec.name, spec.kept != 0),
                                   where,
                                   spec.priority,
                                   spec.tied != 0,
                                   accesses.span(), false, spec.run_after_failure != 0,
                                   spec.decides != 0};
  if (described.decides) detail::check_iterates("imbrex_task_spec::decides");
  auto handle = future == nullptr
                    ? nullptr
                    : std::make_unique<imbrex_future_s>(nullptr, nullptr, spec.result_bytes);
  const std::size_t argument_at = sizeof(Closure);
  const std::size_t result_at = argument_at + aligned(spec.argument_bytes);
  const std::size_t bytes = result_at + aligned(spec.result_bytes);
  const bool plain = described.accesses.empty() && !described.after_failure;
  const detail::BodyOps& its_ops = future == nullptr ? ops_without_future : ops;
  auto* const memory = static_cast<std::byte*>(
      plain ? detail::create(described, its_ops, bytes)
            : detail::create_with_accesses(described, its_ops, bytes));
  try {
    if (place_given != nullptr) detail::put_at(memory, *place_given);
  } catch (...) {
    detail::discard(memory);
    throw;
  }
  auto* const argument = const_cast<void*>(spec.argument);
  auto* const closure =
      ::new (memory) Closure{nullptr, spec.argument_bytes, argument, spec.body};
  if (spec.argument_bytes != 0) {
    closure->argument = std::memcpy(memory + argument_at, spec.argument, spec.argument_bytes);
  }
  if (spec.result_bytes != 0) {
    closure->result = std::memset(memory + result_at, 0, spec.result_bytes);
  }
  const bool keep = handle != nullptr;
  detail::Completion* const task = plain ? detail::submit(memory, keep)
                                         : detail::submit_with_accesses(memory, keep);
  if (!keep) return;
  handle->future = detail::future_of(task);
  handle->bytes = memory + result_at;
  *future = handle.release();
}

// A body of imbrex_iterate().
struct LoopBody {
  int (*function)(void* argument, int64_t iteration);
  void* argument;
  std::source_location where;

  void operator()(const int64_t iteration) const {
    detail::keep_message("");
    const int code = function(argument, iteration);
    if (code == 0) return;
    const std::string why = detail::kept_message();  // of a call in the body
    throw Error(fmt::format("imbrex: the body of imbrex_iterate() at {} returned {} in iteration "
                            "{}, so no task has run{}{}",
                            detail::text_of(where), code, iteration, why.empty() ? "" : ": ", why));
  }
};

// A progress function of C.
struct Progress {
  int (*function)(void* argument);
  void* argument;
  std::source_location where;

  int operator()() const {
    const int more = function(argument);
    if (more >= 0) return more;
    throw Error(fmt::format("imbrex: the progress function registered at {} returned {}",
                            detail::text_of(where), more));
  }
};

}  // namespace

}  // namespace imbrex::c

using imbrex::c::guard;
using imbrex::c::require;

#pragma GCC visibility push(default)
extern "C" {

const char* imbrex_message(void) { return imbrex::detail::kept_message(); }

const char* imbrex_keep(const char* const text) {
  const char* kept = nullptr;
  (void)guard(IMBREX_ERR_USE, [&] {
    require(text, "the text given to imbrex_keep()");
    kept = imbrex::detail::keep_text(text);
  });
  return kept;
}

int imbrex_spawn(const imbrex_task_spec* const spec, imbrex_future_t* const future) {
  return guard(IMBREX_ERR_USE, [&] {
    require(spec, "the spec given to imbrex_spawn()");
    imbrex::c::spawn(*spec, nullptr, future);
  });
}

int imbrex_spawn_at(const imbrex_task_spec* const spec, const int place,
                    imbrex_future_t* const future) {
  return guard(IMBREX_ERR_USE, [&] {
    require(spec, "the spec given to imbrex_spawn_at()");
    const imbrex::Place at = imbrex::c::place_of(place);
    imbrex::c::spawn(*spec, &at, future);
  });
}

int imbrex_place_count(void) {
  int count = -1;
  (void)guard(IMBREX_ERR_USE, [&] { count = imbrex::place_count(); });
  return count;
}
const char* imbrex_place_name(const int place) {
  const char* name = nullptr;
  (void)guard(IMBREX_ERR_USE, [&] {
    name = imbrex::detail::keep_text(imbrex::place(place).name());
  });
  return name;
}
int imbrex_current_place(void) { return imbrex::current_place().index(); }
int imbrex_local_place(void) { return imbrex::local_place().index(); }
int imbrex_current_worker(void) { return imbrex::current_worker(); }

int imbrex_parent_place(void) {
  int parent = -1;
  (void)guard(IMBREX_ERR_USE, [&] { parent = imbrex::parent_place().index(); });
  return parent;
}
int imbrex_place_parent(const int place) {
  return imbrex::c::ask(place, -2, [](const imbrex::Place& of) { return of.parent().index(); });
}
int imbrex_place_level(const int place) {
  return imbrex::c::ask(place, -1, [](const imbrex::Place& of) { return of.level(); });
}
int imbrex_place_kind(const int place) {
  return imbrex::c::ask(place, -1,
                        [](const imbrex::Place& of) { return static_cast<int>(of.kind()); });
}
int imbrex_place_children(const int place, int* const children, const int count) {
  return imbrex::c::ask(place, -1, [&](const imbrex::Place& of) {
    if (count > 0) imbrex::c::require(children, "the children given to imbrex_place_children()");
    const std::vector<imbrex::Place> all = of.children();
    const int size = static_cast<int>(all.size());
    for (int each = 0; each < std::min(count, size); ++each) {
      children[each] = all[static_cast<std::size_t>(each)].index();
    }
    return size;
  });
}

int imbrex_release(const void* const object) {
  return guard(IMBREX_ERR_USE, [&] { imbrex::detail::release_access(object); });
}

int imbrex_release_range(const void* const begin, const size_t bytes) {
  return guard(IMBREX_ERR_USE, [&] {
    if (bytes != 0) imbrex::detail::release_access(begin, bytes);
  });
}

int imbrex_finish_begin(imbrex_finish_t* const finish, const char* const file, const int line) {
  return guard(IMBREX_ERR_USE, [&] {
    require(finish, "the finish given to imbrex_finish_begin()");
    auto made = std::make_unique<imbrex_finish_s>();
    imbrex::detail::open_scope(made->memory, imbrex::c::place(file, line),
                               imbrex::detail::ScopeKind::of_c);
    *finish = made.release();
  });
}

int imbrex_finish_begin_stoppable(imbrex_finish_t* const finish, const int on_error,
                                  const char* const file, const int line) {
  return guard(IMBREX_ERR_USE, [&] {
    require(finish, "the finish given to imbrex_finish_begin_stoppable()");
    auto made = std::make_unique<imbrex_finish_s>();
    made->scope.emplace(imbrex::detail::open_stoppable_scope(
        made->memory, on_error != 0, imbrex::c::place(file, line),
        imbrex::detail::ScopeKind::of_c));
    *finish = made.release();
  });
}

int imbrex_request_stop(imbrex_finish_t const finish) {
  return guard(IMBREX_ERR_USE, [&] {
    require(finish, "the finish given to imbrex_request_stop()");
    if (!finish->scope) {
      throw imbrex::Error("imbrex: imbrex_request_stop() of a finish that cannot be stopped: begin "
                          "it by imbrex_finish_begin_stoppable()");
    }
    finish->scope->request_stop();
  });
}

int imbrex_stop_requested(void) { return imbrex::detail::stop_token().stop_requested() ? 1 : 0; }

int imbrex_finish_end(imbrex_finish_t* const finish) {
  std::exception_ptr failure;
  const int code = guard(IMBREX_ERR_USE, [&] {
    require(finish, "the finish given to imbrex_finish_end()");
    const std::string why =
        imbrex::detail::why_not_innermost(*finish == nullptr ? nullptr : &(*finish)->memory);
    if (!why.empty()) {
      throw imbrex::Error(fmt::format("imbrex: imbrex_finish_end() in {} for a finish that {}",
                                      imbrex::detail::describe_current_task(), why));
    }
    const std::unique_ptr<imbrex_finish_s> owned(*finish);
    failure = imbrex::detail::close_scope(owned->memory);
    *finish = nullptr;  // only now, because tasks of the scope may have read it
  });
  return failure ? imbrex::c::fail(IMBREX_ERR_TASK, failure) : code;
}

int imbrex_taskwait(void) {
  return guard(IMBREX_ERR_USE, [] { imbrex::taskwait(); });
}
int imbrex_yield(void) {
  return guard(IMBREX_ERR_USE, [] { imbrex::yield(); });
}

int imbrex_iterate(const int64_t count, const int64_t period,
                   int (*const body)(void*, int64_t), void* const argument, const char* const file,
                   const int line) {
  std::exception_ptr failure;
  const int code = guard(IMBREX_ERR_USE, [&] {
    require(reinterpret_cast<const void*>(body), "the body given to imbrex_iterate()");
    imbrex::c::LoopBody called{
        body, argument, imbrex::c::place_of(file, line, reinterpret_cast<const void*>(body))};
    failure = imbrex::detail::iterate(
        {count, period, called.where, "imbrex_iterate()"},
        [](void* const it, const int64_t iteration) {
          (*static_cast<const imbrex::c::LoopBody*>(it))(iteration);
        },
        &called);
  });
  return failure ? imbrex::c::fail(IMBREX_ERR_TASK, failure) : code;
}
int64_t imbrex_iteration(void) { return imbrex::detail::iteration(); }
int imbrex_stop_iterating(void) {
  return guard(IMBREX_ERR_USE, [] { imbrex::detail::stop_iterating(); });
}

int imbrex_named(const char* const name, const int64_t number, imbrex_future_t* const future,
                 const char* const file, const int line) {
  return guard(IMBREX_ERR_USE, [&] {
    require(name, "the name given to imbrex_named()");
    require(future, "the future given to imbrex_named()");
    auto handle = std::make_unique<imbrex_future_s>(nullptr, nullptr, 0);
    handle->future = imbrex::named(name, number, imbrex::c::place(file, line));
    *future = handle.release();
  });
}

const char* imbrex_named_address(const char* const name, const int64_t number) {
  const std::string_view text = name != nullptr ? std::string_view(name) : std::string_view();
  return static_cast<const char*>(imbrex::detail::address_of({text, number}));
}

int imbrex_trigger(const char* const name, const int64_t number) {
  return guard(IMBREX_ERR_USE, [&] {
    require(name, "the name given to imbrex_trigger()");
    imbrex::trigger(name, number);
  });
}

int imbrex_progress_register(int (*const function)(void*), void* const argument,
                             const char* const file, const int line) {
  return guard(IMBREX_ERR_USE, [&] {
    require(reinterpret_cast<const void*>(function), "a progress function");
    const std::source_location where = imbrex::c::place(file, line);
    imbrex::progress(imbrex::c::Progress{function, argument, where}, where);
  });
}

}  // extern "C"
#pragma GCC visibility pop
