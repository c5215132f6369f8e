// SPDX-License-Identifier: BSD-3-Clause
// What every application throws for wrong input.
#pragma once

#include <stdexcept>

namespace apps {

// An input error that every rank knows: after a collective, all ranks throw it together.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace apps
