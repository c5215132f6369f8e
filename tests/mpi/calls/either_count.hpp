// SPDX-License-Identifier: BSD-3-Clause
// either::Bcast(...) and so on: MPI_Bcast if the count is an int, MPI_Bcast_c if it is an MPI_Count.
// Made from the table, so that a test is written once for both.
#pragma once

#include <mpi.h>

#include <type_traits>

namespace imbrex::test {

// The type of displacements that goes with a type of count.
template <class Count>
using PlaceOf = std::conditional_t<std::is_same_v<Count, int>, int, MPI_Aint>;

#define EITHER_LIST(...) __VA_ARGS__
#define EITHER_STATUS(...) (__VA_ARGS__, status)
#define EITHER_STATUS_PARAMETER(...) (__VA_ARGS__, MPI_Status* status)
#define EITHER_INIT(...) (__VA_ARGS__, info, request)
#define EITHER_INIT_PARAMETERS(...) (__VA_ARGS__, MPI_Info info, MPI_Request* request)

#define EITHER_PLAIN(name, function, parameters, arguments)                     \
  [[maybe_unused]] inline int name parameters { return MPI_##function arguments; }
#define EITHER_SEND(name, function)                                             \
  EITHER_PLAIN(name, function,                                                  \
               (const void* buffer, Count count, MPI_Datatype type, int destination, int tag, \
                MPI_Comm comm),                                                 \
               (buffer, count, type, destination, tag, comm))

namespace of_int {
using Count = int;
using Place = int;
#define IMBREX_SEND_C(name, twin) EITHER_SEND(name, name)
#define IMBREX_CALL_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name, parameters, arguments)
#define IMBREX_COLLECTIVE_C IMBREX_CALL_C
#define IMBREX_FILE_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name, EITHER_STATUS_PARAMETER parameters, EITHER_STATUS arguments)
#define IMBREX_FILE_ALL_C IMBREX_FILE_C
#define IMBREX_SPARE_C(name, parameters, arguments) \
  EITHER_PLAIN(name, name, parameters, arguments)
#include "calls.def"
}  // namespace of_int

#if MPI_VERSION >= 4
namespace of_count {
using Count = MPI_Count;
using Place = MPI_Aint;
#define IMBREX_SEND_C(name, twin) EITHER_SEND(name, name##_c)
#define IMBREX_CALL_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, parameters, arguments)
#define IMBREX_COLLECTIVE_C IMBREX_CALL_C
#define IMBREX_FILE_C(name, twin, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, EITHER_STATUS_PARAMETER parameters, EITHER_STATUS arguments)
#define IMBREX_FILE_ALL_C IMBREX_FILE_C
#define IMBREX_SPARE_C(name, parameters, arguments) \
  EITHER_PLAIN(name, name##_c, parameters, arguments)
#include "calls.def"
}  // namespace of_count
#endif

namespace either {
using namespace of_int;
#if MPI_VERSION >= 4
using namespace of_count;
#endif
}  // namespace either

}  // namespace imbrex::test
