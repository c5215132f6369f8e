// SPDX-License-Identifier: BSD-3-Clause
// The request of a call such as MPI_Ialltoall that goes block by block: an operation of this
// library behind a handle, which ends when the collective does. Used by blocks.cpp.
#pragma once

#include <mpi.h>

#include <memory>

#include "imbrex/future.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::blocks {

// Made before the collective begins, so that nothing can fail once data are in flight.
class Begun {
 public:
  // Throws MpiError if there can be no request.
  explicit Begun(const Call& call);
  ~Begun();  // without a request, unless it has been given
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  // The request, which is complete when `all` is ready. Call it once.
  [[nodiscard]] MPI_Request give(Future<void> all) noexcept;

 private:
  class WhenAll;
  std::unique_ptr<WhenAll> operation_;
};

}  // namespace imbrex::mpi::blocks
