// SPDX-License-Identifier: BSD-3-Clause
// The calls of MPI that say whether operations are complete, as this library makes them. When one
// has failed, Open MPI calls the error handler of its communicator. MPICH often calls that of
// MPI_COMM_SELF (5) or MPI_COMM_WORLD (4), so that by default a truncated message would end the
// program although its communicator says MPI_ERRORS_RETURN; and MPICH 5 returns MPI_SUCCESS once
// the handler returns. Here all give the code, and say whether the right handler is still owed, and
// which one the MPI would have called.
#pragma once

#include <mpi.h>

#include <string_view>
#include <vector>

namespace imbrex::mpi {

// True if MPI itself calls the right error handler when an operation has failed.
inline constexpr bool mpi_calls_own_handler = std::string_view(IMBREX_MPI_ABI) == "openmpi";

// What MPI said.
struct Said {
  int code = MPI_SUCCESS;
  bool owed = false;  // the operation's error handler has not been called
  MPI_Comm whose = MPI_COMM_NULL;  // if owed: of this one MPI would have called it
  // From a call that reports its own errors only.
  Said(int its_code) noexcept : code(its_code) {}  // NOLINT: converts
  Said(int its_code, bool is_owed, MPI_Comm its_comm) noexcept
      : code(its_code), owed(is_owed), whose(is_owed ? its_comm : MPI_COMM_NULL) {}
};

// While it lives, what MPI tells error handlers on this thread is kept in it. Thread safety: lives
// in one piece of code that does not suspend.
class Asking {
 public:
  // `quiet`: no handler at all is called, since that of an earlier question is.
  explicit Asking(bool quiet) noexcept;
  ~Asking();
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  [[nodiscard]] Said said(int code) const noexcept {
    return {code == MPI_SUCCESS ? kept_code_ : code, owed_, comm_};
  }

  // Called by error handlers of ours: keeps the code if this thread is asking. True if the call
  // must not go on to the handler, which is not that of the operation's communicator.
  [[nodiscard]] static bool keep(MPI_Comm comm, int code) noexcept;

 private:
  int kept_code_ = MPI_SUCCESS;
  const bool quiet_;
  bool owed_ = false;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// `call()` asks MPI and returns MPI's code.
template <class F>
[[nodiscard]] Said ask(F call) noexcept {
  if constexpr (mpi_calls_own_handler) {
    return call();
  } else {
    const Asking asking(false);
    return asking.said(call());
  }
}

// As MPI's own of these names.
namespace asked {

[[nodiscard]] inline Said Test(MPI_Request* request, int* done, MPI_Status* status) noexcept {
  return ask([&] { return PMPI_Test(request, done, status); });
}
// Asks for the same requests until all are complete, and only then gives the error of one that has
// failed. (MPICH gives it while others are not complete, with MPI_ERR_PENDING for these; MPICH 4
// has freed those that are complete then, MPICH 5 none.)
class Testall {
 public:
  [[nodiscard]] Said operator()(int count, MPI_Request requests[], int* done,
                                MPI_Status statuses[]);
  // One has failed, so that those which are complete are null in the array although others are not.
  [[nodiscard]] bool one_by_one() const noexcept { return !statuses_.empty(); }

 private:
  [[nodiscard]] Said ask_each(int count, MPI_Request requests[], int* done);

  std::vector<MPI_Status> statuses_;  // empty until one has failed
  Said failed_ = MPI_SUCCESS;         // what was said of that
};

[[nodiscard]] inline Said Testany(int count, MPI_Request requests[], int* index, int* done,
                                  MPI_Status* status) noexcept {
  return ask([&] { return PMPI_Testany(count, requests, index, done, status); });
}
[[nodiscard]] inline Said Testsome(int count, MPI_Request requests[], int* found, int indices[],
                                   MPI_Status statuses[]) noexcept {
  return ask([&] { return PMPI_Testsome(count, requests, found, indices, statuses); });
}
[[nodiscard]] inline Said Wait(MPI_Request* request, MPI_Status* status) noexcept {
  return ask([&] { return PMPI_Wait(request, status); });
}

// Without ending it.
[[nodiscard]] inline bool is_complete(MPI_Request request) noexcept {
  int complete = 0;
  return PMPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
         complete != 0;
}
// Ends it if it is complete or has failed. For messages of this library's own.
[[nodiscard]] inline bool has_ended(MPI_Request& request) noexcept {
  int done = 0;
  return PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
}

}  // namespace asked

}  // namespace imbrex::mpi
