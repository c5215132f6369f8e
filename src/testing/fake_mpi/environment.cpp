// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: start and end, types, statuses, and collectives, in which each rank contributes the
// data of this one.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "simulation.hpp"

namespace imbrex::fake_mpi {

namespace {

std::atomic<std::array<std::int64_t, 2> (*)()> the_others{nullptr};

template <std::size_t Size>
void say(const char (&text)[Size], char* to, int* length) {
  std::memcpy(to, text, Size);
  *length = static_cast<int>(Size) - 1;
}

void report_left(Lock& lock) {
  for (const auto& [number, request] : lock->requests) {
    if (request->freed || request->kind == Request::Kind::general) continue;
    lock->breach(std::string("a request is left at MPI_Finalize: ") +
                 (request->kind == Request::Kind::send      ? "a send"
                  : request->kind == Request::Kind::receive ? "a receive"
                                                            : "another") +
                 (request->complete ? ", complete" : ""));
  }
  if (!lock->extracted.empty()) lock->breach("a matched message is left at MPI_Finalize");
  for (const auto& [number, comm] : lock->comms) {
    if (number >= 0x1000 && !comm->freed) {
      lock->breach("a communicator is left at MPI_Finalize: " + comm->name);
    }
    if (!comm->attributes.empty()) lock->breach("an attribute is left at MPI_Finalize");
  }
  if (!lock->types.empty()) lock->breach("a type is left at MPI_Finalize");
  if (!lock->infos.empty()) lock->breach("an info is left at MPI_Finalize");
  if (!lock->groups.empty()) lock->breach("a group is left at MPI_Finalize");
}

// `buffer`: receives data; null: no data are received.
int start_collective(const char* function, MPI_Comm handle, const void* buffer,
                     MPI_Request* request) {
  Lock lock(function);
  Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, comm, code);
  const bool beside = std::exchange(comm->starts_collective, true);
  lock->begun.push_back({handle, buffer, beside});
  if (lock->chance(lock->settings.yields)) lock.give_way();
  comm->starts_collective = false;
  Request& made = lock->add_request(Request::Kind::collective, comm);
  made.rounds = static_cast<int>(lock->random() % 4);
  lock->moving.push_back(&made);
  *request = made.handle;
  return MPI_SUCCESS;
}

int wait(int code, MPI_Request request) {
  return code != MPI_SUCCESS ? code : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

std::size_t bytes_of(int count, MPI_Datatype type) {
  Lock lock("types");
  std::size_t bytes = 0;
  (void)find_size(lock, type, &bytes);
  return bytes * static_cast<std::size_t>(count);
}

void fill(const void* from, int count, MPI_Datatype type, void* to, MPI_Comm comm) {
  int size = 1;
  PMPI_Comm_size(comm, &size);
  const std::size_t bytes = bytes_of(count, type);
  for (int i = 0; i < size; ++i) {
    std::byte* const place = static_cast<std::byte*>(to) + static_cast<std::size_t>(i) * bytes;
    if (from != MPI_IN_PLACE) std::memcpy(place, from, bytes);
  }
}

int make_type(Lock& lock, std::size_t bytes, MPI_Datatype* made) {
  const std::uintptr_t number = 0x100000 + lock->next_handle++;
  lock->types[number] = bytes;
  *made = reinterpret_cast<MPI_Datatype>(number);
  return MPI_SUCCESS;
}

int element_count(const MPI_Status* status, MPI_Datatype type, MPI_Count* count) {
  Lock lock("Get_count");
  std::size_t bytes = 0;
  if (!find_size(lock, type, &bytes)) return raise(lock, nullptr, MPI_ERR_TYPE);
  const MPI_Count size = static_cast<MPI_Count>(bytes);
  *count = size == 0 ? 0 : status->fake_bytes / size;
  if (*count * size != status->fake_bytes) *count = MPI_UNDEFINED;
  return MPI_SUCCESS;
}

}  // namespace

void set_others(std::array<std::int64_t, 2> (*const others)()) { the_others.store(others); }

void delete_predefined_attributes(Lock& lock);

}  // namespace imbrex::fake_mpi

using namespace imbrex::fake_mpi;

extern "C" {

int PMPI_Init_thread(int*, char***, int, int* provided) {
  const Lock lock("Init_thread");
  if (lock->initialised) lock->breach("MPI_Init is called twice");
  lock->initialised = true;
  *provided = lock->settings.thread_level;
  return MPI_SUCCESS;
}

int PMPI_Init(int* argc, char*** argv) {
  int provided = 0;
  return PMPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

int PMPI_Initialized(int* flag) {
  *flag = Lock("Initialized")->initialised ? 1 : 0;
  return MPI_SUCCESS;
}

int PMPI_Finalize(void) {
  Lock lock("Finalize");
  delete_predefined_attributes(lock);
  report_left(lock);
  lock->finalised = true;
  return MPI_SUCCESS;
}

int PMPI_Finalized(int* flag) {
  *flag = Lock("Finalized")->finalised ? 1 : 0;
  return MPI_SUCCESS;
}

int PMPI_Query_thread(int* provided) {
  *provided = Lock("Query_thread")->settings.thread_level;
  return MPI_SUCCESS;
}

int PMPI_Is_thread_main(int* flag) {
  *flag = 1;
  return MPI_SUCCESS;
}

int PMPI_Abort(MPI_Comm, int code) {
  std::fprintf(stderr, "fake_mpi: MPI_Abort(%d)\n", code);
  std::abort();
}

int PMPI_Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int PMPI_Get_library_version(char* text, int* length) {
  say("fake_mpi, one process", text, length);
  return MPI_SUCCESS;
}

int PMPI_Get_processor_name(char* text, int* length) {
  say("here", text, length);
  return MPI_SUCCESS;
}

int PMPI_Error_class(int code, int* error_class) {
  *error_class = code;
  return MPI_SUCCESS;
}

int PMPI_Error_string(int code, char* text, int* length) {
  *length = std::snprintf(text, MPI_MAX_ERROR_STRING, "fake error %d%s", code,
                          code == MPI_ERR_TRUNCATE ? ": message truncated" : "");
  return MPI_SUCCESS;
}

int PMPI_Get_address(const void* location, MPI_Aint* address) {
  *address = static_cast<MPI_Aint>(number_of(location));
  return MPI_SUCCESS;
}

// Buffered sends copy at once and need no buffer.
int PMPI_Buffer_attach(void*, int) { return MPI_SUCCESS; }
int PMPI_Buffer_detach(void*, int*) { return MPI_SUCCESS; }

double PMPI_Wtime(void) {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double MPI_Wtime(void) { return PMPI_Wtime(); }

// ---- types and statuses ------------------------------------------------------------------------

int PMPI_Type_size(MPI_Datatype type, int* size) {
  *size = static_cast<int>(bytes_of(1, type));
  return MPI_SUCCESS;
}

int PMPI_Type_size_x(MPI_Datatype type, MPI_Count* size) {
  *size = static_cast<MPI_Count>(bytes_of(1, type));
  return MPI_SUCCESS;
}

int PMPI_Type_get_extent(MPI_Datatype type, MPI_Aint* low, MPI_Aint* extent) {
  *low = 0;
  *extent = static_cast<MPI_Aint>(bytes_of(1, type));
  return MPI_SUCCESS;
}

int PMPI_Type_get_true_extent(MPI_Datatype type, MPI_Aint* low, MPI_Aint* extent) {
  return PMPI_Type_get_extent(type, low, extent);
}

int PMPI_Type_get_extent_x(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
  return PMPI_Type_get_extent(type, low, extent);
}

int PMPI_Type_get_true_extent_x(MPI_Datatype type, MPI_Count* low, MPI_Count* extent) {
  return PMPI_Type_get_extent(type, low, extent);
}

int PMPI_Type_get_envelope(MPI_Datatype type, int* integers, int* addresses, int* types,
                           int* combiner) {
  const bool named = number_of(type) >= 0x10000 && number_of(type) < 0x20000;
  *integers = named ? 0 : 1;
  *addresses = 0;
  *types = named ? 0 : 1;
  *combiner = named ? MPI_COMBINER_NAMED : MPI_COMBINER_CONTIGUOUS;
  return MPI_SUCCESS;
}

int PMPI_Type_contiguous(int count, MPI_Datatype type, MPI_Datatype* made) {
  Lock lock("Type_contiguous");
  std::size_t bytes = 0;
  if (!find_size(lock, type, &bytes)) return raise(lock, nullptr, MPI_ERR_TYPE);
  return make_type(lock, bytes * static_cast<std::size_t>(count), made);
}

int PMPI_Type_dup(MPI_Datatype type, MPI_Datatype* made) {
  return PMPI_Type_contiguous(1, type, made);
}

int PMPI_Type_commit(MPI_Datatype*) { return MPI_SUCCESS; }

int PMPI_Type_free(MPI_Datatype* type) {
  const Lock lock("Type_free");
  if (lock->types.erase(number_of(*type)) == 0) lock->breach("a type is freed that is not ours");
  *type = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

int PMPI_Pack_size(int count, MPI_Datatype type, MPI_Comm, int* bytes) {
  *bytes = static_cast<int>(bytes_of(count, type));
  return MPI_SUCCESS;
}

int PMPI_Pack(const void* from, int count, MPI_Datatype type, void* to, int, int* position,
              MPI_Comm) {
  const std::size_t bytes = bytes_of(count, type);
  std::memcpy(static_cast<std::byte*>(to) + *position, from, bytes);
  *position += static_cast<int>(bytes);
  return MPI_SUCCESS;
}

int PMPI_Unpack(const void* from, int, int* position, void* to, int count, MPI_Datatype type,
                MPI_Comm) {
  const std::size_t bytes = bytes_of(count, type);
  std::memcpy(to, static_cast<const std::byte*>(from) + *position, bytes);
  *position += static_cast<int>(bytes);
  return MPI_SUCCESS;
}

int PMPI_Get_elements_x(const MPI_Status* status, MPI_Datatype type, MPI_Count* count) {
  return element_count(status, type, count);
}

int PMPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) {
  MPI_Count elements = 0;
  const int code = element_count(status, type, &elements);
  *count = static_cast<int>(elements);
  return code;
}

int PMPI_Get_elements(const MPI_Status* status, MPI_Datatype type, int* count) {
  return PMPI_Get_count(status, type, count);
}

int PMPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype type, MPI_Count count) {
  status->fake_bytes = count * static_cast<MPI_Count>(bytes_of(1, type));
  return MPI_SUCCESS;
}

int PMPI_Status_set_elements(MPI_Status* status, MPI_Datatype type, int count) {
  return PMPI_Status_set_elements_x(status, type, count);
}

int PMPI_Status_set_cancelled(MPI_Status* status, int flag) {
  status->fake_cancelled = flag;
  return MPI_SUCCESS;
}

int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  *flag = status->fake_cancelled;
  return MPI_SUCCESS;
}

// ---- collectives -----------------------------------------------------------------------------

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return start_collective("Ibarrier", comm, nullptr, request);
}

int PMPI_Ibcast(void* buffer, int, MPI_Datatype, int, MPI_Comm comm, MPI_Request* request) {
  return start_collective("Ibcast", comm, buffer, request);
}

int PMPI_Igather(const void* from, int count, MPI_Datatype type, void* to, int, MPI_Datatype,
                 int root, MPI_Comm comm, MPI_Request* request) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank == root) fill(from, count, type, to, comm);
  return start_collective("Igather", comm, to, request);
}

int PMPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int, MPI_Datatype,
                    MPI_Comm comm, MPI_Request* request) {
  fill(from, count, type, to, comm);
  return start_collective("Iallgather", comm, to, request);
}

int PMPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request* request) {
  if (op == MPI_SUM && type == MPI_INT64_T && count == 2 && the_others.load() != nullptr) {
    const std::array<std::int64_t, 2> others = the_others.load()();
    std::array<std::int64_t, 2> sums{};
    std::memcpy(sums.data(), from, sizeof sums);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
    std::memcpy(to, sums.data(), sizeof sums);
    return start_collective("Iallreduce", comm, to, request);
  }
  if (op == MPI_SUM) {
    Lock("Iallreduce")->breach("fake_mpi cannot add: its ranks contribute the same");
  }
  if (from != MPI_IN_PLACE) std::memcpy(to, from, bytes_of(count, type));
  return start_collective("Iallreduce", comm, to, request);
}

int PMPI_Barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Ibarrier(comm, &request);
  return wait(code, request);
}

int PMPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Ibcast(buffer, count, type, root, comm, &request);
  return wait(code, request);
}

int PMPI_Gather(const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
                MPI_Datatype to_type, int root, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Igather(from, from_count, from_type, to, to_count, to_type, root, comm,
                                &request);
  return wait(code, request);
}

int PMPI_Allgather(const void* from, int from_count, MPI_Datatype from_type, void* to,
                   int to_count, MPI_Datatype to_type, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Iallgather(from, from_count, from_type, to, to_count, to_type, comm,
                                   &request);
  return wait(code, request);
}

int PMPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Iallreduce(from, to, count, type, op, comm, &request);
  return wait(code, request);
}

}  // extern "C"
