// SPDX-License-Identifier: BSD-3-Clause
// The next definition of each MPI function below this library: of a profiling tool or of the MPI
// library.
//
// export_calls.py makes every MPI_X and PMPI_X that programs see. Both lead to this library's X,
// because a tool above it, and the Fortran bindings of most MPIs, call PMPI_X. A tool below this
// library calls PMPI_X, too, and so does the MPI library within itself: while this thread is in a
// call that the library has made, PMPI_X is the real one.
#pragma once

#include <mpi.h>

#include <atomic>
#include <type_traits>

#include "mpi/abi/quirks.hpp"
#include "trace/races.hpp"

namespace imbrex::mpi {

// True while a preloaded library has nothing to do: no part of the program uses tasks. Each MPI_X
// is then a jump to the next. Written when this library is loaded, and in MPI_Init.
extern bool passes_through;

// Sets all of next<> and real<>. Called when this library is loaded, and before: constructors of
// other libraries may run first, and call MPI.
void find_all() noexcept;

template <auto Function>
struct First;

// The definition behind this library's MPI_X, and PMPI_X, by the address of PMPI_X in this library.
template <auto Function>
inline decltype(Function) next = &First<Function>::of_next;
template <auto Function>
inline decltype(Function) real = &First<Function>::of_real;

template <class Result, class... Parameters, Result (*Function)(Parameters...)>
struct First<Function> {
  static Result of_next(Parameters... parameters) {
    find_all();
    return next<Function>(parameters...);
  }
  static Result of_real(Parameters... parameters) {
    find_all();
    return real<Function>(parameters...);
  }
};

// Ends the program, with advice, if no MPI library comes behind this library.
void require_mpi() noexcept;
// Returns the definition of `name` behind this library; nullptr if there is none.
[[nodiscard]] void* find_behind(const char* name) noexcept;
// Returns the definition of `name` behind this library, else that of `or_else`. An MPI may lack a
// function that its standard has removed, or has not had yet: then the result is `missing`, and
// only a program that calls the function ends.
template <class Function>
[[nodiscard]] Function* find_next(const char* const name, const char* const or_else,
                                  Function* const missing) noexcept {
  void* found = find_behind(name);
  if (found == nullptr) found = find_behind(or_else);
  return found != nullptr ? reinterpret_cast<Function*>(found) : missing;
}
// The program has called `function`, which its MPI lacks: says so, with the version of the MPI.
[[noreturn, gnu::cold]] void end_at_missing(const char* function) noexcept;

// The number of calls of this library that this thread is in. It belongs to the thread and not to a
// task, since nothing suspends inside such a call. The function is never inlined, so that no caller
// keeps the address over a call that does suspend.
[[nodiscard]] int& depth_in_next() noexcept;

class InNext {
 public:
  InNext() noexcept : depth_(depth_in_next()) { ++depth_; }
  ~InNext() { --depth_; }
  InNext(const InNext&) = delete;
  InNext& operator=(const InNext&) = delete;

 private:
  int& depth_;  // nothing suspends meanwhile: error handlers are kept (error_handlers.hpp)
  [[no_unique_address]] trace::races::Silent silent_;
};

// The number of kept error handlers of all threads (error_handlers.hpp). Relaxed: a thread only
// needs to see its own.
extern std::atomic<int> kept_count;
// The code that MPI has passed to the kept handler of the calling thread, if there is one; else
// `code`. MPICH 5 returns MPI_SUCCESS once a handler has returned.
[[nodiscard, gnu::cold]] int code_of_kept(int code) noexcept;

template <auto Function, class... Arguments>
auto call_next(Arguments... arguments) {
  const auto call = [&] {
    const InNext guard;
    return next<Function>(arguments...);
  };
  if constexpr (!std::is_same_v<decltype(call()), int>) {
    return call();
  } else {
    if (!has<Quirk::errors_reach_other_handlers>()) return call();
    const int code = call();
    if (code != MPI_SUCCESS || kept_count.load(std::memory_order_relaxed) == 0) return code;
    return code_of_kept(code);
  }
}

}  // namespace imbrex::mpi
