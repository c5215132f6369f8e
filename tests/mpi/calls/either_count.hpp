// SPDX-License-Identifier: BSD-3-Clause
// either::Bcast(...) and so on: MPI_Bcast if the count is an int, MPI_Bcast_c if it is an
// MPI_Count; while `persistently` is set, MPI_Bcast_init and so on, twice started and waited for.
// Made from the table, so that a test is written once for all of them.
#pragma once

#include <mpi.h>

#include <type_traits>

#include "mpi/abi/standard.hpp"

namespace imbrex::test {

// Set by a test before it runs what it tests, on any thread.
inline bool persistently = false;

// `init(&request)` makes a persistent collective.
template <class Init>
int start_twice(Init init) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = init(&request);
  for (int round = 0; round < 2 && code == MPI_SUCCESS; ++round) {
    code = MPI_Start(&request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return code;
}

// The type of displacements that goes with a type of count.
template <class Count>
using PlaceOf = std::conditional_t<std::is_same_v<Count, int>, int, MPI_Aint>;

#define EITHER_STATUS(...) (__VA_ARGS__, status)
#define EITHER_STATUS_PARAMETER(...) (__VA_ARGS__, MPI_Status* status)
#define EITHER_INIT(...) (__VA_ARGS__, MPI_INFO_NULL, request)

#define EITHER_PLAIN(name, function, parameters, arguments)                     \
  [[maybe_unused]] inline int name parameters { return MPI_##function arguments; }
#define EITHER_SEND(name, function)                                             \
  EITHER_PLAIN(name, function,                                                  \
               (const void* buffer, Count count, MPI_Datatype type, int destination, int tag, \
                MPI_Comm comm),                                                 \
               (buffer, count, type, destination, tag, comm))
#if IMBREX_MPI_4
#define EITHER_COLLECTIVE(name, function, init, parameters, arguments)          \
  [[maybe_unused]] inline int name parameters {                                 \
    if (!persistently) return MPI_##function arguments;                         \
    return start_twice([&](MPI_Request* request) { return MPI_##init EITHER_INIT arguments; }); \
  }
#else
#define EITHER_COLLECTIVE(name, function, init, parameters, arguments) \
  EITHER_PLAIN(name, function, parameters, arguments)
#endif

namespace of_int {
using Count = int;
using Place = int;
#define IMBREX_SEND_C(name, twin) EITHER_SEND(name, name)
#define IMBREX_CALL_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name, parameters, arguments)
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments) \
  EITHER_COLLECTIVE(name, name, name##_init, parameters, arguments)
#define IMBREX_FILE_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name, EITHER_STATUS_PARAMETER parameters, EITHER_STATUS arguments)
#define IMBREX_FILE_ALL_C IMBREX_FILE_C
#define IMBREX_SPARE_C(name, parameters, arguments) \
  EITHER_PLAIN(name, name, parameters, arguments)
#include "mpi/calls/calls.def"
}  // namespace of_int

#if MPI_VERSION >= 4
namespace of_count {
using Count = MPI_Count;
using Place = MPI_Aint;
#define IMBREX_SEND_C(name, twin) EITHER_SEND(name, name##_c)
#define IMBREX_CALL_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, parameters, arguments)
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments) \
  EITHER_COLLECTIVE(name, name##_c, name##_init_c, parameters, arguments)
#define IMBREX_FILE_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, EITHER_STATUS_PARAMETER parameters, EITHER_STATUS arguments)
#define IMBREX_FILE_ALL_C IMBREX_FILE_C
#define IMBREX_SPARE_C(name, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, parameters, arguments)
#include "mpi/calls/calls.def"
}  // namespace of_count
#endif

namespace either {
using namespace of_int;
#if MPI_VERSION >= 4
using namespace of_count;
#endif
}  // namespace either

}  // namespace imbrex::test
