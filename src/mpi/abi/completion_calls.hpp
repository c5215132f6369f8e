// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI that say whether operations are complete, as this library makes them. When one
// has failed, Open MPI calls the error handler of its communicator. MPICH often calls that of
// MPI_COMM_SELF (5) or MPI_COMM_WORLD (4), so that by default a truncated message would end the
// program although its communicator says MPI_ERRORS_RETURN; and MPICH 5 returns MPI_SUCCESS once
// the handler returns. Here all give the code, and say whether the right handler is still owed, and
// which one the MPI would have called.
#pragma once

#include <mpi.h>

#include <vector>

#include "mpi/abi/error_handlers.hpp"
#include "mpi/abi/next.hpp"
#include "mpi/abi/request_state.hpp"

namespace imbrex::mpi {

// MPI's answer to a question.
struct Outcome {
  int code = MPI_SUCCESS;
  bool owed = false;  // the operation's error handler has not been called
  MPI_Comm whose = MPI_COMM_NULL;  // if owed: MPI would have called its handler
  KeptHandler kept;                // if not owed: MPI has called this one
  // The answer of the call that this thread has just made.
  Outcome(int its_code) noexcept : Outcome(its_code, false, MPI_COMM_NULL) {}  // NOLINT: converts
  Outcome(int its_code, bool is_owed, MPI_Comm its_comm) noexcept
      : code(its_code), owed(is_owed), whose(is_owed ? its_comm : MPI_COMM_NULL) {
    if (its_code != MPI_SUCCESS) [[unlikely]] kept = take_kept();
  }
};

// While it lives, what MPI tells error handlers on this thread is kept in it. Thread safety: lives
// in one piece of code that does not suspend.
class Asking {
 public:
  // `quiet`: no handler is called at all. Another question of the same call has called one, or it
  // is owed for the call as a whole.
  explicit Asking(bool quiet) noexcept;
  ~Asking();
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  [[nodiscard]] Outcome outcome(int code) const noexcept {
    const int its_code = code == MPI_SUCCESS ? kept_code_ : code;
    return {its_code, owed_ || (quiet_ && its_code != MPI_SUCCESS), comm_};
  }

  // The one of the calling thread; null if there is none. While a Lent lives, the thread that makes
  // a call for another has the Asking of that other thread.
  [[nodiscard]] static Asking* here() noexcept;
  class Lent;

  // This library's error handlers call it in a call that the library makes: keeps the code if the
  // thread is asking. True if the call must not go on to the handler, which is not that of the
  // operation's communicator, or is called later.
  [[nodiscard]] static bool keep(MPI_Comm comm, int code) noexcept;

 private:
  int kept_code_ = MPI_SUCCESS;
  const bool quiet_;
  bool owed_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Asking* const outer_;  // of a call in which MPI calls a function of the program's
};

class Asking::Lent {
 public:
  explicit Lent(Asking* asking) noexcept;
  ~Lent();
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  Asking* const outer_;
};

// `call()` asks MPI and returns MPI's code. Not noexcept, nor is what is built on it: outside of
// tasks MPI calls error handlers of the program's in it, and these may throw.
template <class F>
[[nodiscard]] Outcome ask(F call) {
  if constexpr (mpi_calls_own_handler) {
    return call();
  } else {
    const Asking asking(false);
    return asking.outcome(call());
  }
}

// Asks MPI by `call()` for an operation of this library's own, or for one whose error handler this
// library calls itself: MPI calls no handler.
template <class F>
[[nodiscard]] Outcome ask_quietly(F call) {
  const Asking quiet(true);
  return quiet.outcome(call());
}

// True where MPI calls the error handler of MPI_COMM_WORLD, and not that of the communicator, if
// the request of a collective fails (Open MPI 4), or any request (MPICH 4).
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
inline constexpr bool collectives_blame_world = true;
#else
inline constexpr bool collectives_blame_world = false;
#endif
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40200000
inline constexpr bool requests_blame_world = true;
#else
inline constexpr bool requests_blame_world = false;
#endif

// These do the same as MPI's own of these names.
namespace completion {

[[nodiscard]] inline Outcome Test(MPI_Request* request, int* done, MPI_Status* status) {
  return ask([&] { return PMPI_Test(request, done, status); });
}
// Where `quietly`, as ask_quietly().
[[nodiscard]] inline Outcome Test(const bool quietly, MPI_Request* request, int* done,
                                  MPI_Status* status) {
  const auto test = [&] { return PMPI_Test(request, done, status); };
  return quietly ? ask_quietly(test) : ask(test);
}
// Asks for the same requests until all are complete, and only then gives the error of one that has
// failed. (MPICH gives it while others are not complete, with MPI_ERR_PENDING for these; MPICH 4
// has freed those that are complete then, MPICH 5 none. And its MPI_Testall is wrong for persistent
// collectives, partitioned messages and files, so there each is asked for on its own, in turn.)
class Testall {
 public:
  [[nodiscard]] Outcome operator()(int count, MPI_Request requests[], int* done,
                                   MPI_Status statuses[]);
  // How many are over, and null in the array, although others are not.
  [[nodiscard]] int ended() const noexcept { return next_; }

 private:
  static constexpr bool one_by_one = !mpi_calls_own_handler;
  int next_ = 0;  // those before it are over
  bool failed_ = false;               // one of those before next_
  std::vector<MPI_Status> statuses_;  // of those before next_
};

[[nodiscard]] Outcome Testany(int count, MPI_Request requests[], int* index, int* done,
                              MPI_Status* status);
[[nodiscard]] Outcome Testsome(int count, MPI_Request requests[], int* found, int indices[],
                               MPI_Status statuses[]);
[[nodiscard]] inline Outcome Wait(const bool quietly, MPI_Request* request, MPI_Status* status) {
  const auto wait = [&] { return PMPI_Wait(request, status); };
  return quietly ? ask_quietly(wait) : ask(wait);
}

// True if `request` is complete; does not end it.
[[nodiscard]] inline bool is_complete(MPI_Request request) noexcept {
  int complete = 0;
  return PMPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
         complete != 0;
}
// Ends `request` if it is complete or has failed; then true. For messages of this library's own.
[[nodiscard]] inline bool has_ended(MPI_Request& request) noexcept {
  int done = 0;
  return Test(true, &request, &done, MPI_STATUS_IGNORE).code != MPI_SUCCESS || done != 0;
}

}  // namespace completion

}  // namespace imbrex::mpi
