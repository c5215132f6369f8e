// SPDX-License-Identifier: BSD-3-Clause
// Whether requests of Open MPI are complete, read from their memory in 4.1 and 5.0, after a check
// in MPI_Init. This library then tests only complete requests, one by one: when Open MPI finds a
// failed request among several, it frees each request whose error is set, names one, frees some
// requests that are not complete yet, and 4.1 takes failed persistent ones for good
// (docs/design/mpi-facts.md).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace imbrex::mpi {

enum class RequestState : std::uint8_t {
  pending,
  complete,
  inactive  // also the null request
};

#ifdef OPEN_MPI

// Written by the two functions below only, while no other thread calls MPI.
extern bool reads_requests;
// A generalised request that never completes: MPI_Testall, given a pending request and this one,
// makes progress and ends neither. Null unless reads_requests.
extern MPI_Request never_complete;
// Called in MPI_Init and in MPI_Finalize. REQUIRES: MPI is initialised, and not finalised.
void learn_to_read_requests() noexcept;
void end_reading_requests() noexcept;

// REQUIRES: reads_requests.
[[nodiscard]] inline RequestState state_of(MPI_Request request) noexcept {
  // Offsets of members of ompi_request_t, in the release builds.
  constexpr std::size_t complete_at = 88;  // a pointer
  constexpr std::size_t state_at = 96;     // an int
  constexpr int inactive = 1;
  const char* const memory = reinterpret_cast<const char*>(request);
  int state = 0;
  __atomic_load(reinterpret_cast<const int*>(memory + state_at), &state, __ATOMIC_RELAXED);
  if (state == inactive) return RequestState::inactive;
  std::uintptr_t complete = 0;  // acquire: MPI stores it last
  __atomic_load(reinterpret_cast<const std::uintptr_t*>(memory + complete_at), &complete,
                __ATOMIC_ACQUIRE);
  return complete == 1 ? RequestState::complete : RequestState::pending;
}

#else

inline constexpr bool reads_requests = false;
inline const MPI_Request never_complete = MPI_REQUEST_NULL;
inline void learn_to_read_requests() noexcept {}
inline void end_reading_requests() noexcept {}
[[nodiscard]] inline RequestState state_of(MPI_Request) noexcept { return RequestState::pending; }

#endif

}  // namespace imbrex::mpi
