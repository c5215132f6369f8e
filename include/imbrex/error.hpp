// SPDX-License-Identifier: BSD-3-Clause
// The exceptions that imbrex throws. Their texts say what happened, with which values, in which
// task, and what to do.
#pragma once

#include "imbrex/detail/language.hpp"

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace imbrex {

/// The program uses the interface wrongly, or the runtime cannot work in this environment.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Future::get() throws it if the last Promise of the value is gone and none was set.
class BrokenPromise : public Error {
 public:
  using Error::Error;
};

/// A task fails with this error if it did not run because its input was never written: a task or
/// future that it depends on has failed. The text names the first cause.
class DependencyFailed : public Error {
 public:
  /// For the runtime only.
  DependencyFailed(const std::string& text, std::exception_ptr cause)
      : Error(text), cause_(std::move(cause)) {}
  /// The exception that was thrown first.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// The future of a task has this error if the task has not run, since a finish() around it was told
/// to stop (scope.hpp).
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// A call on another rank (remote.hpp) threw, or could not be made. what() has the text of the
/// exception, and the rank.
class RemoteError : public Error {
 public:
  /// For the runtime only. `rank` is a rank of MPI_COMM_WORLD.
  RemoteError(const std::string& text, int rank) : Error(text), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// An MPI call failed. what() names the call, the task and MPI's text.
class MpiError : public Error {
 public:
  /// For the runtime only. `call` is the call of MPI, such as "MPI_Recv"; `code` is its return
  /// value; `error_class` is the class of that code (MPI_Error_class).
  MpiError(const std::string& text, const char* call, int code, int error_class)
      : Error(text), call_(call), code_(code), class_(error_class) {}
  [[nodiscard]] const char* call() const noexcept { return call_; }
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] int error_class() const noexcept { return class_; }

 private:
  const char* call_;
  int code_;
  int class_;
};

}  // namespace imbrex

#pragma GCC visibility pop
