// SPDX-License-Identifier: BSD-3-Clause
// TAMPI's calls for Fortran: subroutines whose arguments are addresses, as in mpif.h. Each converts
// them to the parameters of the C function of that name.
#define IMBREX_TAMPI_3  // the wrappers of Fortran return the request
#include "mpi/interfaces/tampi/tampi_fortran.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <set>
#include <type_traits>
#include <vector>

#include "TAMPI.h"
#include "base/guarded.hpp"
#include "mpi/abi/fortran.hpp"
#include "mpi/interfaces/tampi/tampi.hpp"

namespace imbrex::mpi::tampi {

namespace {

static_assert(std::is_same_v<MPI_Fint, int>, "counts and lists of counts are passed as they are");
constexpr int status_ints = sizeof(MPI_Status) / sizeof(MPI_Fint);  // MPI_STATUS_SIZE

// MPI may read a list of types until the operation is complete, and no call reports the completion
// if the program waits itself. Each different list is therefore kept for ever: a program has few.
const MPI_Datatype* keep(const std::vector<MPI_Datatype>& types) {
  using Kept = std::set<std::vector<MPI_Datatype>>;
  static std::mutex& lock = *new std::mutex;
  static Kept* const kept IMBREX_PT_GUARDED_BY(lock) = new Kept;
  const std::lock_guard guard(lock);
  return kept->insert(types).first->data();
}

const MPI_Datatype* types_of(const void* given, const MPI_Comm comm) {
  int is_inter = 0;
  int ranks = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0) {
    PMPI_Comm_remote_size(comm, &ranks);
  } else {
    PMPI_Comm_size(comm, &ranks);
  }
  std::vector<MPI_Datatype> types;
  for (int i = 0; i < ranks; ++i) {
    types.push_back(PMPI_Type_f2c(static_cast<const MPI_Fint*>(given)[i]));
  }
  return keep(types);
}

// Converts an address from Fortran to the value of a C parameter. On MPICH handles are integers,
// and lists of types are passed unchanged.
template <class Parameter>
Parameter value_of(void* given, [[maybe_unused]] const MPI_Comm comm) {
  const auto integer = [given] { return *static_cast<const MPI_Fint*>(given); };
  if constexpr (std::is_same_v<Parameter, int>) {
    return integer();
  } else if constexpr (std::is_same_v<Parameter, MPI_Comm>) {
    return comm;
  } else if constexpr (std::is_same_v<Parameter, MPI_Datatype>) {
    return PMPI_Type_f2c(integer());
  } else if constexpr (std::is_same_v<Parameter, MPI_Op>) {
    return PMPI_Op_f2c(integer());
  } else if constexpr (std::is_same_v<Parameter, const int*>) {
    return static_cast<const int*>(given);
  } else if constexpr (std::is_same_v<Parameter, const MPI_Datatype*>) {
    return types_of(given, comm);
  } else {  // a buffer
    static_assert(std::is_same_v<std::remove_const_t<std::remove_pointer_t<Parameter>>, void>);
    if (is_fortran_bottom(given)) return MPI_BOTTOM;
    return is_fortran_in_place(given) ? MPI_IN_PLACE : given;
  }
}

void find_constants() noexcept {
  static const bool found = (find_fortran_constants(), true);
  static_cast<void>(found);
}

template <class>
MPI_Request* value_of(FortranRequest& request, MPI_Comm) {
  return request;
}

// `comm` is one of the arguments.
template <class... Parameters, class... Given>
int call(int (*function)(Parameters...), void* comm, Given&... given) {
  find_constants();
  const MPI_Comm its_comm = PMPI_Comm_f2c(*static_cast<const MPI_Fint*>(comm));
  return function(value_of<Parameters>(given, its_comm)...);
}

void write_fortran_status(void* to, const MPI_Status& status, int code) noexcept {
  MPI_Status whole = status;
  auto* const place = static_cast<MPI_Fint*>(to);
  constexpr int error_at = offsetof(MPI_Status, MPI_ERROR) / sizeof(int);
  whole.MPI_ERROR = code == MPI_SUCCESS ? place[error_at] : code;  // as in C
  PMPI_Status_c2f(&whole, place);
}

StatusPlace fortran_place(MPI_Fint* status, const MPI_Fint* ignored) noexcept {
  if (status == ignored) return {};
  return {.write = &write_fortran_status, .to = status};
}

StatusPlace fortran_place(MPI_Fint* status) noexcept {
  find_constants();
  return fortran_place(status, MPI_F_STATUS_IGNORE);
}

}  // namespace

}  // namespace imbrex::mpi::tampi

using imbrex::mpi::FortranRequest;
namespace tampi = imbrex::mpi::tampi;

// ---- the calls of calls.def --------------------------------------------------------------------

// gfortran's symbols; the preprocessor cannot make lower case.
#define IMBREX_FORTRAN_Isend tampi_isend_
#define IMBREX_FORTRAN_Issend tampi_issend_
#define IMBREX_FORTRAN_Irsend tampi_irsend_
#define IMBREX_FORTRAN_Ibsend tampi_ibsend_
#define IMBREX_FORTRAN_Ibarrier tampi_ibarrier_
#define IMBREX_FORTRAN_Ibcast tampi_ibcast_
#define IMBREX_FORTRAN_Igather tampi_igather_
#define IMBREX_FORTRAN_Igatherv tampi_igatherv_
#define IMBREX_FORTRAN_Iscatter tampi_iscatter_
#define IMBREX_FORTRAN_Iscatterv tampi_iscatterv_
#define IMBREX_FORTRAN_Iallgather tampi_iallgather_
#define IMBREX_FORTRAN_Iallgatherv tampi_iallgatherv_
#define IMBREX_FORTRAN_Ialltoall tampi_ialltoall_
#define IMBREX_FORTRAN_Ialltoallv tampi_ialltoallv_
#define IMBREX_FORTRAN_Ialltoallw tampi_ialltoallw_
#define IMBREX_FORTRAN_Ireduce tampi_ireduce_
#define IMBREX_FORTRAN_Iallreduce tampi_iallreduce_
#define IMBREX_FORTRAN_Ireduce_scatter_block tampi_ireduce_scatter_block_
#define IMBREX_FORTRAN_Ireduce_scatter tampi_ireduce_scatter_
#define IMBREX_FORTRAN_Iscan tampi_iscan_
#define IMBREX_FORTRAN_Iexscan tampi_iexscan_

// (a, b, c): void* a, void* b, void* c,
#define IMBREX_NOTHING_MORE ()
#define IMBREX_RESCAN(...) IMBREX_RESCAN_2(IMBREX_RESCAN_2(IMBREX_RESCAN_2(__VA_ARGS__)))
#define IMBREX_RESCAN_2(...) IMBREX_RESCAN_3(IMBREX_RESCAN_3(IMBREX_RESCAN_3(__VA_ARGS__)))
#define IMBREX_RESCAN_3(...) __VA_ARGS__
#define IMBREX_ADDRESSES(...) IMBREX_RESCAN(IMBREX_ADDRESS(__VA_ARGS__))
#define IMBREX_ADDRESS(name, ...) \
  void *name, __VA_OPT__(IMBREX_ADDRESS_AGAIN IMBREX_NOTHING_MORE(__VA_ARGS__))
#define IMBREX_ADDRESS_AGAIN() IMBREX_ADDRESS
#define IMBREX_LIST(...) __VA_ARGS__

#define IMBREX_SUBROUTINE(twin, arguments)                                                 \
  void IMBREX_FORTRAN_##twin(IMBREX_ADDRESSES arguments MPI_Fint* request, MPI_Fint* error) { \
    FortranRequest its_request(*request);                                                  \
    *error = tampi::call(&TAMPI_##twin, comm, IMBREX_LIST arguments, its_request);         \
  }

#pragma GCC visibility push(default)
extern "C" {

#define IMBREX_SEND_C(name, twin) \
  IMBREX_SUBROUTINE(twin, (buffer, count, type, destination, tag, comm))
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments) IMBREX_SUBROUTINE(twin, arguments)
#define IMBREX_NEIGHBOR_C(...)  // TAMPI has none of these
#include "mpi/calls/calls.def"
IMBREX_SUBROUTINE(Ibarrier, (comm))

// ---- the others --------------------------------------------------------------------------------

void tampi_irecv_(void* buffer, void* count, void* type, void* source, void* tag, void* comm,
                  MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
  FortranRequest its_request(*request);
  const int code =
      tampi::call(&MPI_Irecv, comm, buffer, count, type, source, tag, comm, its_request);
  *error = tampi::bind_started("TAMPI_Irecv", code, its_request, tampi::fortran_place(status));
}

void tampi_iwait_(MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
  FortranRequest its_request = FortranRequest::that_is(*request);
  *error = tampi::bind("TAMPI_Iwait", its_request, tampi::fortran_place(status));
}

void tampi_iwaitall_(MPI_Fint* count, MPI_Fint requests[], MPI_Fint statuses[], MPI_Fint* error) {
  tampi::find_constants();
  const bool ignored = statuses == MPI_F_STATUSES_IGNORE;
  *error = MPI_SUCCESS;
  for (int i = 0; i < *count; ++i) {
    FortranRequest request = FortranRequest::that_is(requests[i]);
    MPI_Fint* const status = ignored ? nullptr : statuses + i * tampi::status_ints;
    const int code = tampi::bind("TAMPI_Iwaitall", request, tampi::fortran_place(status, nullptr));
    if (*error == MPI_SUCCESS) *error = code;
  }
}

void tampi_wait_(MPI_Fint* request, MPI_Fint* status, MPI_Fint* error) {
  if (tampi::is_enabled()) {
    *error = tampi::wait_for_bound("TAMPI_Wait");
    return;
  }
  FortranRequest its_request = FortranRequest::that_is(*request);
  MPI_Status result;
  *error = MPI_Wait(its_request, &result);
  const imbrex::mpi::StatusPlace place = tampi::fortran_place(status);
  if (place.write != nullptr) place.write(place.to, result, *error);
}

void tampi_waitall_(MPI_Fint* count, MPI_Fint requests[], MPI_Fint statuses[], MPI_Fint* error) {
  if (tampi::is_enabled()) {
    *error = tampi::wait_for_bound("TAMPI_Waitall");
    return;
  }
  tampi::find_constants();
  const bool ignored = statuses == MPI_F_STATUSES_IGNORE;
  std::vector<MPI_Request> its_requests(static_cast<std::size_t>(*count));
  std::vector<MPI_Status> results(its_requests.size());
  std::transform(requests, requests + *count, its_requests.begin(),
                 [](MPI_Fint request) { return PMPI_Request_f2c(request); });
  *error = MPI_Waitall(*count, its_requests.data(), results.data());
  for (std::size_t i = 0; i < results.size(); ++i) {
    requests[i] = PMPI_Request_c2f(its_requests[i]);
    if (!ignored) PMPI_Status_c2f(&results[i], statuses + i * tampi::status_ints);
  }
}

void tampi_init_(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {
  *error = TAMPI_Init(*required, provided);
}
void tampi_finalize_(MPI_Fint* error) { *error = TAMPI_Finalize(); }
void tampi_property_get_(MPI_Fint* property, MPI_Fint* value, MPI_Fint* error) {
  *error = TAMPI_Property_get(*property, value);
}
void tampi_property_set_(MPI_Fint* property, MPI_Fint* value, MPI_Fint* error) {
  *error = TAMPI_Property_set(*property, *value);
}
void tampi_blocking_enabled_(MPI_Fint* flag, MPI_Fint* error) {
  *error = TAMPI_Blocking_enabled(flag);
}
void tampi_nonblocking_enabled_(MPI_Fint* flag, MPI_Fint* error) {
  *error = TAMPI_Nonblocking_enabled(flag);
}

}  // extern "C"
#pragma GCC visibility pop
