// SPDX-License-Identifier: BSD-3-Clause
// What imbrex throws. A text says what happened, with which values, in which task, and what to do.
#pragma once

#include <stdexcept>

#pragma GCC visibility push(default)

namespace imbrex {

// Wrong use of the interface, or an environment in which the runtime cannot work.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown by Future::get() when the last Promise of its value is gone and none was set.
class BrokenPromise : public Error {
 public:
  using Error::Error;
};

}  // namespace imbrex

#pragma GCC visibility pop
