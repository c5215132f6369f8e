// SPDX-License-Identifier: BSD-3-Clause
// The request of a call such as MPI_Ialltoall that goes block by block: an operation of ours behind
// a handle, which ends when the collective does. Used by blocks.cpp.
#pragma once

#include <mpi.h>

#include <memory>

#include "imbrex/future.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::blocks {

// Made before the collective begins, so that nothing can fail once data are under way.
class Begun {
 public:
  // Throws MpiError if there can be no request.
  explicit Begun(const Call& call);
  ~Begun();  // without a request, unless it has been given
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  // The request, which is complete when `all` is ready. Once.
  [[nodiscard]] MPI_Request give(Future<void> all) noexcept;

 private:
  class WhenAll;
  std::unique_ptr<WhenAll> operation_;
};

}  // namespace imbrex::mpi::blocks
