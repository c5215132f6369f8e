// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: hc_async, hc_finish, places.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c/places.hpp"
#include "imbrex/compat/hcmpi.h"
#include "hcmpi/ddf.hpp"
#include "hcmpi/handles.hpp"
#include "hcmpi/hc_phaser.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/task.hpp"

namespace imbrex::hcmpi {

namespace {

// ---- finish ------------------------------------------------------------------------------------

struct Scope {
  detail::ScopeMemory memory;  // the first member: the runtime knows the scope by its address
  std::atomic<int> references{1};
};
using Scopes = Handles<Scope>;

Scope* open_scope(const std::source_location& where) {
  auto made = std::make_unique<Scope>();
  detail::open_scope(made->memory, where, detail::ScopeKind::of_hcmpi);
  return Scopes::all().add(std::move(made));
}

// The code of the first failure in it, or success.
int close(const Ref<Scope>& scope) {
  const std::exception_ptr failure = detail::close_scope(scope->memory);
  return failure ? tell(failure) : MPI_SUCCESS;
}

// C has no destructors that would close scopes that a body leaves open. Returns their number, up to
// `outermost`, or up to a scope that is not one of HCMPI.
int close_what_is_open(const Scope* const outermost) {
  int count = 0;
  for (;; ++count) {
    const detail::ScopeMemory* const innermost = detail::innermost_scope();
    if (innermost == nullptr || (outermost != nullptr && innermost == &outermost->memory)) break;
    const Ref<Scope> left = Scopes::all().take(innermost);
    if (!left) break;
    detail::abandon_scope(left->memory, nullptr);
  }
  return count;
}

[[noreturn]] void refuse_open(const char* const call, const int count) {
  refuse(call, MPI_ERR_OTHER,
         "the body returned without hc_finish_end() for " + std::to_string(count) +
             " hc_finish_begin()");
}

int finish_around(void (*const body)(void*), void* const argument,
                  const std::source_location& where) {
  require(reinterpret_cast<const void*>(body), "hc_finish", "the body");
  Scope* const scope = open_scope(where);
  try {
    body(argument);
  } catch (...) {  // scopes of C++
    close_what_is_open(scope);
    detail::abandon_scope(Scopes::all().take(scope)->memory, std::current_exception());
    throw;
  }
  const int open = close_what_is_open(scope);
  const int code = close(Scopes::all().take(scope));
  if (open != 0) refuse_open("hc_finish", open);
  return code;
}

// ---- async -------------------------------------------------------------------------------------

// The closure of a task: the function, and the copy of its argument.
class Body {
 public:
  Body(void (*const function)(void*), const void* const in, const std::size_t bytes)
      : function_(function), given_(const_cast<void*>(in)), bytes_(bytes) {
    if (bytes == 0) return;
    if (bytes > small_.size()) large_ = std::make_unique<std::byte[]>(bytes);
    std::memcpy(bytes > small_.size() ? large_.get() : small_.data(), in, bytes);
  }
  void operator()() {
    void* const copy = large_ ? large_.get() : small_.data();
    function_(bytes_ == 0 ? given_ : copy);
    const int open = close_what_is_open(nullptr);
    if (open == 0) return;
    const int code = guard("hc_async", [open] { refuse_open("hc_async", open); });
    throw Misuse(code, detail::kept_message());  // errors return: the task fails
  }

 private:
  void (*function_)(void*);
  void* given_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> large_;
  alignas(std::max_align_t) std::array<std::byte, 64> small_;
};

Place place_of(const place_t* const place) {
  const auto number = static_cast<int>(reinterpret_cast<std::uintptr_t>(place)) - 2;
  return number == -1 ? Place() : imbrex::place(number);
}
place_t* handle_of(const Place& place) {
  return reinterpret_cast<place_t*>(static_cast<std::uintptr_t>(place.index() + 2));
}

std::vector<Future<void>> futures_of(DDF_t* const* const handles, const int count) {
  if (count < 0) refuse("hc_async", MPI_ERR_ARG, "the number of awaited futures is below 0");
  if (count != 0) require(handles, "hc_async", "the array of awaited futures");
  std::vector<Future<void>> futures;
  for (int i = 0; i < count; ++i) futures.push_back(ddf_of("hc_async", handles[i])->done());
  return futures;
}

void add_phasers(const hc_clauses& clauses, TaskBuilder& task) {
  if (clauses.phased_count < 0) refuse("hc_async", MPI_ERR_ARG, "phased_count is below 0");
  if (clauses.phased_count != 0) require(clauses.phased, "hc_async", "the array of phasers");
  for (int i = 0; i < clauses.phased_count; ++i) {
    const hc_phased& one = clauses.phased[i];
    const Ref<hc_phaser> found = phaser_of("hc_async", one.on);
    if (one.mode == HC_SAME_MODE) {
      (void)task.phased(found->phaser);
    } else {
      (void)task.phased(found->phaser, mode_of("hc_async", one.mode));
    }
  }
  if (clauses.phased_all != 0) (void)task.phased();
}

void apply(const hc_clauses& clauses, TaskBuilder& task) {
  for (const auto& future : futures_of(clauses.await, clauses.await_count)) (void)task.in(future);
  if (clauses.await_any_count != 0) {
    (void)task.in(when_any(futures_of(clauses.await_any, clauses.await_any_count)));
  }
  if (clauses.await_list != nullptr) {
    const Ref<hc_ddf_list> list = Handles<hc_ddf_list>::all().find(clauses.await_list);
    if (!list) refuse("hc_async", MPI_ERR_ARG, "await_list is not a list of DDF_LIST_CREATE");
    for (const auto& future : list->futures) (void)task.in(future);
  }
  add_phasers(clauses, task);
  if (clauses.at != nullptr) (void)task.at(place_of(clauses.at));
}

void async(void (*const function)(void*), const void* const in, const std::size_t bytes,
           const hc_clauses& clauses, const std::source_location& where) {
  require(reinterpret_cast<const void*>(function), "hc_async", "the body");
  if (bytes != 0) require(in, "hc_async", "the argument, whose size is not 0,");
  TaskBuilder task = clauses.name == nullptr ? imbrex::task("hc_async", where)
                                             : imbrex::task(std::string_view(clauses.name), where);
  apply(clauses, task);
  task.launch(Body(function, in, bytes));
}

}  // namespace

}  // namespace imbrex::hcmpi

using imbrex::hcmpi::guard;
using imbrex::hcmpi::refuse;

#pragma GCC visibility push(default)
extern "C" {

int hc_async_from(const char* const file, const int line, void (*const body)(void*),
                  const void* const in, const size_t bytes, const hc_clauses* const clauses) {
  return guard("hc_async", [&] {
    static constexpr hc_clauses none{};
    imbrex::hcmpi::async(body, in, bytes, clauses == nullptr ? none : *clauses,
                         imbrex::c::place(file, line));
  });
}

int hc_finish_begin_from(const char* const file, const int line) {
  return guard("hc_finish_begin",
               [&] { (void)imbrex::hcmpi::open_scope(imbrex::c::place(file, line)); });
}

int hc_finish_end(void) {
  return guard("hc_finish_end", [] {
    const auto* const innermost = imbrex::detail::innermost_scope();
    const auto scope = imbrex::hcmpi::Scopes::all().take(innermost);
    if (!scope) {
      refuse("hc_finish_end", MPI_ERR_OTHER,
             innermost == nullptr
                 ? "this task has no finish open: each hc_finish_end() belongs to a "
                   "hc_finish_begin() of the same task"
                 : "the innermost finish of this task was not begun by hc_finish_begin()");
    }
    return imbrex::hcmpi::close(scope);
  });
}

int hc_finish_from(const char* const file, const int line, void (*const body)(void*),
                   void* const argument) {
  return guard("hc_finish", [&] {
    return imbrex::hcmpi::finish_around(body, argument, imbrex::c::place(file, line));
  });
}

place_t* hc_get_current_place(void) { return imbrex::hcmpi::handle_of(imbrex::current_place()); }
place_t* hc_get_place_parent(const place_t* const place) {
  place_t* parent = nullptr;
  (void)guard("hc_get_place_parent", [&] {
    imbrex::hcmpi::require(place, "hc_get_place_parent", "the place");
    parent = imbrex::hcmpi::handle_of(imbrex::hcmpi::place_of(place).parent());
  });
  return parent;
}
place_t* hc_get_parent_place(void) { return hc_get_place_parent(hc_get_current_place()); }
int hc_num_places(void) {
  int count = 0;
  (void)guard("hc_num_places", [&count] { count = imbrex::place_count(); });
  return count;
}
place_t* hc_get_place(const int number) {
  place_t* place = nullptr;
  (void)guard("hc_get_place", [&] {
    if (number < 0 || number >= imbrex::place_count()) {
      refuse("hc_get_place", MPI_ERR_ARG,
             "there is no place " + std::to_string(number) + ": valid: 0 to " +
                 std::to_string(imbrex::place_count() - 1));
    }
    place = imbrex::hcmpi::handle_of(imbrex::place(number));
  });
  return place;
}
int hc_get_place_number(const place_t* const place) {
  return static_cast<int>(reinterpret_cast<uintptr_t>(place)) - 2;
}

}  // extern "C"
#pragma GCC visibility pop
