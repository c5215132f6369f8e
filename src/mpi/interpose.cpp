// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions of calls.def, as programs call them. In a task they suspend it; elsewhere they
// are MPI's own, except collectives: a blocking and a non-blocking one do not match each other (MPI
// 3.1, section 5.12), so all ranks use the non-blocking ones, on every thread.
#include "messages.hpp"
#include "wait.hpp"

namespace imbrex::mpi {

namespace {

using SendStart = int(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

struct Sending {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int destination;
  int tag;
  MPI_Comm comm;
};

int send(const char* name, SendStart* start, const Sending& it) {
  if (detail::tracing() && suspends()) {
    trace_sent({it.comm, it.destination, it.tag, it.count, it.type});
  }
  const Call call{name, it.comm, it.destination, it.tag, it.count, it.type};
  return carry_out(call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return start(it.buffer, it.count, it.type, it.destination, it.tag, it.comm, request);
  });
}

template <class Blocking, class Start>
int collective(const Call& call, Blocking blocking, Start start) {
  if (!active()) return blocking();
  return carry_out(call, MPI_STATUS_IGNORE, start);
}

}  // namespace
}  // namespace imbrex::mpi

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_LIST(...) __VA_ARGS__

#define IMBREX_SEND(name, twin)                                                                 \
  extern "C" [[gnu::visibility("default")]] int MPI_##name(                                     \
      const void* buffer, int count, MPI_Datatype type, int destination, int tag,               \
      MPI_Comm comm) {                                                                          \
    if (imbrex::mpi::may_block()) return PMPI_##name(buffer, count, type, destination, tag, comm); \
    return imbrex::mpi::send("MPI_" #name, &PMPI_##twin,                                        \
                             {buffer, count, type, destination, tag, comm});                    \
  }

// Receives, probes and waits: defined in receive/.
#define IMBREX_CALL(...)

#define IMBREX_COLLECTIVE(name, twin, parameters, arguments)                                  \
  extern "C" [[gnu::visibility("default")]] int MPI_##name parameters {                       \
    return imbrex::mpi::collective(                                                           \
        {"MPI_" #name, comm}, [&] { return PMPI_##name arguments; },                          \
        [&](MPI_Request* request) { return PMPI_##twin(IMBREX_LIST arguments, request); });   \
  }

#include "calls.def"
