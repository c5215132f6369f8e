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

/// Wrong use of the interface, or an environment in which the runtime cannot work.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by Future::get() when the last Promise of its value is gone and none was set.
class BrokenPromise : public Error {
 public:
  using Error::Error;
};

/// A task fails with this if it did not run, since what it would have read was never written: a
/// task that it depends on through data, or a future given to in(), has failed. The text names the
/// first cause.
class DependencyFailed : public Error {
 public:
  /// Made by the runtime.
  DependencyFailed(const std::string& text, std::exception_ptr cause)
      : Error(text), cause_(std::move(cause)) {}
  /// The exception that was thrown first.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  std::exception_ptr cause_;
};

/// A call on another rank (remote.hpp) has thrown, or could not be made. what() has the text of
/// what was thrown, and the rank.
class RemoteError : public Error {
 public:
  /// Made by the runtime. The rank is that of MPI_COMM_WORLD.
  RemoteError(const std::string& text, int rank) : Error(text), rank_(rank) {}
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// An MPI call failed. what() names the call, the task and MPI's text.
class MpiError : public Error {
 public:
  /// Made by the runtime: the call of MPI, such as "MPI_Recv"; the code that it returned; and the
  /// class of that code (MPI_Error_class).
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
