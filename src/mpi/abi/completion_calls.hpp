// SPDX-License-Identifier: BSD-3-Clause
// The completion calls of MPI, as this library makes them. When an operation has failed, Open MPI
// calls the error handler of its communicator. MPICH often calls that of MPI_COMM_SELF (5) or
// MPI_COMM_WORLD (4): by default a truncated message would end the program although its
// communicator has MPI_ERRORS_RETURN. MPICH 5 also returns MPI_SUCCESS once the handler returns.
// The calls here always return the code, and tell whether the right handler must still be called,
// and which handler the MPI would have called.
#pragma once

#include <mpi.h>

#include "mpi/abi/error_handlers.hpp"
#include "mpi/abi/next.hpp"
#include "mpi/abi/request_state.hpp"

namespace imbrex::mpi {

// The result of a completion call of MPI.
struct Outcome {
  int code = MPI_SUCCESS;
  bool owed = false;  // the operation's error handler has not been called
  MPI_Comm whose = MPI_COMM_NULL;  // if owed: MPI would have called its handler
  KeptHandler kept;                // if not owed: the handler that MPI has called
  // The result of the call that this thread has just made.
  Outcome(int its_code) noexcept : Outcome(its_code, false, MPI_COMM_NULL) {}  // NOLINT: converts
  Outcome(int its_code, bool is_owed, MPI_Comm its_comm) noexcept
      : code(its_code), owed(is_owed), whose(is_owed ? its_comm : MPI_COMM_NULL) {
    if (its_code != MPI_SUCCESS) [[unlikely]] kept = take_kept();
  }
};

// While it lives, it keeps the codes that MPI passes to error handlers on this thread. Thread
// safety: lives in one piece of code that does not suspend.
class Asking {
 public:
  // `quiet`: no handler is called at all, because another completion call has called one, or
  // because it is owed for the call as a whole.
  explicit Asking(bool quiet) noexcept;
  ~Asking();
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  [[nodiscard]] Outcome outcome(int code) const noexcept {
    const int its_code = code == MPI_SUCCESS ? kept_code_ : code;
    return {its_code, owed_ || (quiet_ && its_code != MPI_SUCCESS), comm_};
  }

  // The Asking of the calling thread; null if there is none. While a Lent lives, the thread that
  // makes a call for another thread has that thread's Asking.
  [[nodiscard]] static Asking* here() noexcept;
  class Lent;

  // This library's error handlers call it within a call of the library; it keeps the code if the
  // thread has an Asking. True if the code must not go on to the handler, which does not belong to
  // the operation's communicator, or is called later.
  [[nodiscard]] static bool keep(MPI_Comm comm, int code) noexcept;

 private:
  int kept_code_ = MPI_SUCCESS;
  const bool quiet_;
  bool owed_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Asking* const outer_;  // of a call in which MPI calls a function of the program
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

// `call()` calls MPI and returns its code. Not noexcept, nor are the functions above it: outside of
// tasks MPI calls error handlers of the program in it, and these may throw.
template <class F>
[[nodiscard]] Outcome ask(F call) {
  if (!has<Quirk::errors_reach_other_handlers>()) return call();
  const Asking asking(false);
  return asking.outcome(call());
}

// Calls MPI by `call()` for an operation of this library, or for one whose error handler this
// library calls itself: MPI calls no handler.
template <class F>
[[nodiscard]] Outcome ask_quietly(F call) {
  const Asking quiet(true);
  return quiet.outcome(call());
}

// These functions do the work of MPI's functions of these names.
namespace completion {

[[nodiscard]] inline Outcome Test(MPI_Request* request, int* done, MPI_Status* status) {
  return ask([&] { return PMPI_Test(request, done, status); });
}
// `quietly`: by ask_quietly().
[[nodiscard]] inline Outcome Test(const bool quietly, MPI_Request* request, int* done,
                                  MPI_Status* status) {
  const auto test = [&] { return PMPI_Test(request, done, status); };
  return quietly ? ask_quietly(test) : ask(test);
}
// Tests the requests until all are complete, and only then returns the error of a failed one. One
// object serves all tests of one wait. The statuses are written while some requests are pending.
//
// The requests are ended one by one, by MPI_Test. Open MPI's own function drops the errors of
// persistent requests (4.1), and MPICH's returns an error while others are pending, with
// MPI_ERR_PENDING for these: MPICH 4 has then freed the complete ones, MPICH 5 none. It is also
// wrong for persistent collectives, partitioned messages and files. With Open MPI no request is
// ended before all are complete; with MPICH, which has no safe way to look at a request, each is
// ended in its turn.
class Testall {
 public:
  [[nodiscard]] Outcome operator()(int count, MPI_Request requests[], int* done,
                                   MPI_Status statuses[]);
  // The number of requests that are over, and null in the array, although others are pending.
  [[nodiscard]] int ended() const noexcept { return ended_; }

  // Waits instead, on a thread that may block in MPI. (Open MPI 4.1's MPI_Waitall hangs if a
  // request has failed before the call.)
  [[nodiscard]] Outcome wait(int count, MPI_Request requests[], MPI_Status statuses[]);

 private:
  [[nodiscard]] Outcome look(int count, const MPI_Request requests[], MPI_Status statuses[]);
  template <class End>
  [[nodiscard]] bool end_each(int count, MPI_Request requests[], MPI_Status statuses[], End end);
  void take(int place, const Outcome& outcome, MPI_Status statuses[]) noexcept;
  [[nodiscard]] Outcome result() const noexcept;

  int complete_ = 0;      // requests before it are complete
  int ended_ = 0;         // requests before it are over
  bool failed_ = false;   // a request before ended_ has failed
  KeptHandler of_first_;  // of the first failed request
};
// MPI_Testall: one test, which ends no request unless it ends all.
[[nodiscard]] Outcome test_all(int count, MPI_Request requests[], int* done,
                               MPI_Status statuses[]);

[[nodiscard]] Outcome Testany(int count, MPI_Request requests[], int* index, int* done,
                              MPI_Status* status);
[[nodiscard]] Outcome Testsome(int count, MPI_Request requests[], int* found, int indices[],
                               MPI_Status statuses[]);
// The result of a call for many requests that has found failed ones, and has called no handler.
[[nodiscard]] Outcome failed_several() noexcept;
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
// Ends `request` and returns true if it is complete or has failed. For messages of this library.
[[nodiscard]] inline bool has_ended(MPI_Request& request) noexcept {
  int done = 0;
  return Test(true, &request, &done, MPI_STATUS_IGNORE).code != MPI_SUCCESS || done != 0;
}

}  // namespace completion

}  // namespace imbrex::mpi
