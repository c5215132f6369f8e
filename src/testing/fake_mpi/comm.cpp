// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: communicators, their attributes, error handlers and hints; groups.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "simulation.hpp"

namespace imbrex::fake_mpi {

Comm& make_like(Lock& lock, const Comm& comm, int size) {
  auto made = std::make_unique<Comm>();
  made->handle = reinterpret_cast<MPI_Comm>(lock->next_handle++);
  made->size = size;
  made->rank = std::min(comm.rank, size - 1);
  made->between_groups = comm.between_groups;
  made->peers = comm.between_groups ? comm.peers : size;
  made->handler = comm.handler;
  Comm& added = *made;
  lock->comms[number_of(added.handle)] = std::move(made);
  return added;
}

namespace {

int no_comm(Lock& lock) { return raise(lock, nullptr, MPI_ERR_COMM); }

void copy_text(const std::string& from, char* to, std::size_t size) {
  const std::size_t length = std::min(from.size(), size - 1);
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

MPI_Group make_group(Lock& lock, std::vector<int> ranks) {
  const auto group = reinterpret_cast<MPI_Group>(lock->next_handle++);
  lock->groups[number_of(group)] = std::move(ranks);
  return group;
}

std::vector<int> first_ranks(const int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void copy_attributes(Lock& lock, const Comm& from, Comm& to) {
  const std::map<int, void*> attributes = from.attributes;
  for (const auto& [key, value] : attributes) {
    const Keyval keyval = lock->keyvals.at(key);
    if (keyval.copy == MPI_COMM_NULL_COPY_FN) continue;
    void* copied = nullptr;
    const int flag = lock.unlocked([&, key, value] {
      int wanted = 0;
      keyval.copy(from.handle, key, keyval.extra, value, static_cast<void*>(&copied), &wanted);
      return wanted;
    });
    if (flag != 0) to.attributes[key] = copied;
  }
}

int duplicate(const char* function, MPI_Comm handle, MPI_Comm* made, const MPI_Info* info) {
  Lock lock(function);
  Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return no_comm(lock);
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, comm, code);
  Comm& copy = make_like(lock, *comm, comm->size);
  copy.origin = handle;
  copy.info = comm->info;
  copy.topology = comm->topology;
  if (info != nullptr && *info != MPI_INFO_NULL) copy.info = lock->infos.at(number_of(*info));
  copy_attributes(lock, *comm, copy);
  *made = copy.handle;
  return MPI_SUCCESS;
}

// The functions of the user may use the communicator, so it is freed after them.
void delete_attributes(Lock& lock, Comm& comm) {
  while (!comm.attributes.empty()) {
    const auto [key, value] = *comm.attributes.begin();
    comm.attributes.erase(key);
    const Keyval keyval = lock->keyvals.at(key);
    if (keyval.forget == MPI_COMM_NULL_DELETE_FN) continue;
    (void)lock.unlocked([&, key, value] {
      return keyval.forget(comm.handle, key, value, keyval.extra);
    });
  }
}

int free_comm(const char* function, MPI_Comm* handle) {
  Lock lock(function);
  Comm* const comm = find_comm(lock, *handle);
  if (comm == nullptr) return no_comm(lock);
  if (number_of(*handle) < 0x1000) lock->breach("a predefined communicator is freed");
  delete_attributes(lock, *comm);
  comm->freed = true;
  *handle = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

}  // namespace

void delete_predefined_attributes(Lock& lock) {
  for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
    delete_attributes(lock, *lock->comms.at(number_of(comm)));
  }
}

}  // namespace imbrex::fake_mpi

using namespace imbrex::fake_mpi;

// Looks the communicator up, as `it`, or returns.
#define FAKE_MPI_COMM(function)                     \
  Lock lock(function);                              \
  Comm* const it = find_comm(lock, comm);           \
  if (it == nullptr) return no_comm(lock)

extern "C" {

int PMPI_Comm_rank(MPI_Comm comm, int* rank) {
  FAKE_MPI_COMM("Comm_rank");
  *rank = it->rank;
  return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int* size) {
  FAKE_MPI_COMM("Comm_size");
  *size = it->size;
  return MPI_SUCCESS;
}

int PMPI_Comm_remote_size(MPI_Comm comm, int* size) {
  FAKE_MPI_COMM("Comm_remote_size");
  if (!it->between_groups) return raise(lock, it, MPI_ERR_COMM);
  *size = it->peers;
  return MPI_SUCCESS;
}

int PMPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  FAKE_MPI_COMM("Comm_test_inter");
  *flag = it->between_groups ? 1 : 0;
  return MPI_SUCCESS;
}

int PMPI_Comm_compare(MPI_Comm comm, MPI_Comm two, int* result) {
  FAKE_MPI_COMM("Comm_compare");
  const Comm* const other = find_comm(lock, two);
  if (other == nullptr) return no_comm(lock);
  *result = it == other ? MPI_IDENT : it->size == other->size ? MPI_CONGRUENT : MPI_UNEQUAL;
  return MPI_SUCCESS;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  return duplicate("Comm_dup", comm, made, nullptr);
}

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  return duplicate("Comm_dup_with_info", comm, made, &info);
}

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  const int code = duplicate("Comm_idup", comm, made, nullptr);
  return code != MPI_SUCCESS ? code : PMPI_Ibarrier(comm, request);
}

// All ranks have one color; a positive key is the new rank.
int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  FAKE_MPI_COMM("Comm_split");
  *made = MPI_COMM_NULL;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  Comm& part = make_like(lock, *it, it->size);
  if (key > 0) part.rank = std::min(key, part.size - 1);
  *made = part.handle;
  return MPI_SUCCESS;
}

// The other ranks are on other machines.
int PMPI_Comm_split_type(MPI_Comm comm, int, int, MPI_Info, MPI_Comm* made) {
  FAKE_MPI_COMM("Comm_split_type");
  *made = make_like(lock, *it, 1).handle;
  return MPI_SUCCESS;
}

int PMPI_Comm_get_parent(MPI_Comm* parent) {
  *parent = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int PMPI_Comm_free(MPI_Comm* comm) { return free_comm("Comm_free", comm); }
int PMPI_Comm_disconnect(MPI_Comm* comm) { return free_comm("Comm_disconnect", comm); }

int PMPI_Comm_set_name(MPI_Comm comm, const char* name) {
  FAKE_MPI_COMM("Comm_set_name");
  it->name = name;
  return MPI_SUCCESS;
}

int PMPI_Comm_get_name(MPI_Comm comm, char* name, int* length) {
  FAKE_MPI_COMM("Comm_get_name");
  copy_text(it->name, name, MPI_MAX_OBJECT_NAME);
  *length = static_cast<int>(std::strlen(name));
  return MPI_SUCCESS;
}

// ---- attributes ------------------------------------------------------------------------------

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy,
                            MPI_Comm_delete_attr_function* forget, int* key, void* extra) {
  const Lock lock("Comm_create_keyval");
  *key = 1000 + static_cast<int>(lock->keyvals.size());
  lock->keyvals[*key] = {copy, forget, extra};
  return MPI_SUCCESS;
}

// It is destroyed with the last attribute, hence never.
int PMPI_Comm_free_keyval(int* key) {
  *key = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

int PMPI_Comm_delete_attr(MPI_Comm comm, int key) {
  FAKE_MPI_COMM("Comm_delete_attr");
  const auto found = it->attributes.find(key);
  if (found == it->attributes.end()) return raise(lock, it, MPI_ERR_KEYVAL);
  void* const value = found->second;
  it->attributes.erase(found);
  const Keyval keyval = lock->keyvals.at(key);
  if (keyval.forget == MPI_COMM_NULL_DELETE_FN) return MPI_SUCCESS;
  return lock.unlocked([&] { return keyval.forget(comm, key, value, keyval.extra); });
}

int PMPI_Comm_set_attr(MPI_Comm comm, int key, void* value) {
  {
    FAKE_MPI_COMM("Comm_set_attr");
    if (!lock->keyvals.contains(key)) return raise(lock, it, MPI_ERR_KEYVAL);
    if (it->attributes.try_emplace(key, value).second) return MPI_SUCCESS;
  }
  const int code = PMPI_Comm_delete_attr(comm, key);
  return code != MPI_SUCCESS ? code : PMPI_Comm_set_attr(comm, key, value);
}

int PMPI_Comm_get_attr(MPI_Comm comm, int key, void* value, int* flag) {
  FAKE_MPI_COMM("Comm_get_attr");
  void* found = nullptr;
  if (key == MPI_TAG_UB) {
    found = &lock->settings.tag_max;
  } else if (it->attributes.contains(key)) {
    found = it->attributes.at(key);
  }
  *flag = key == MPI_TAG_UB || it->attributes.contains(key) ? 1 : 0;
  if (*flag != 0) *static_cast<void**>(value) = found;
  return MPI_SUCCESS;
}

int fake_mpi_copy_attribute(MPI_Comm, int, void*, void* value, void* copy, int* flag) {
  *static_cast<void**>(copy) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

// ---- error handlers --------------------------------------------------------------------------

int PMPI_Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* made) {
  const Lock lock("Comm_create_errhandler");
  *made = reinterpret_cast<MPI_Errhandler>(lock->next_handle++);
  lock->handlers[number_of(*made)] = function;
  return MPI_SUCCESS;
}

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  FAKE_MPI_COMM("Comm_set_errhandler");
  it->handler = handler;
  return MPI_SUCCESS;
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  FAKE_MPI_COMM("Comm_get_errhandler");
  *handler = it->handler;
  return MPI_SUCCESS;
}

int PMPI_Comm_call_errhandler(MPI_Comm comm, int code) {
  FAKE_MPI_COMM("Comm_call_errhandler");
  (void)raise(lock, it, code);
  return MPI_SUCCESS;
}

// It lives while a communicator has it: here, for ever.
int PMPI_Errhandler_free(MPI_Errhandler* handler) {
  *handler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

// ---- hints -----------------------------------------------------------------------------------

int PMPI_Info_create(MPI_Info* info) {
  const Lock lock("Info_create");
  *info = reinterpret_cast<MPI_Info>(lock->next_handle++);
  lock->infos[number_of(*info)] = {};
  return MPI_SUCCESS;
}

int PMPI_Info_dup(MPI_Info info, MPI_Info* made) {
  const int code = PMPI_Info_create(made);
  const Lock lock("Info_dup");
  lock->infos.at(number_of(*made)) = lock->infos.at(number_of(info));
  return code;
}

int PMPI_Info_free(MPI_Info* info) {
  const Lock lock("Info_free");
  if (lock->infos.erase(number_of(*info)) == 0) lock->breach("an info is freed twice");
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

int PMPI_Info_set(MPI_Info info, const char* key, const char* value) {
  const Lock lock("Info_set");
  lock->infos.at(number_of(info))[key] = value;
  return MPI_SUCCESS;
}

int PMPI_Info_get(MPI_Info info, const char* key, int length, char* value, int* flag) {
  const Lock lock("Info_get");
  const auto& pairs = lock->infos.at(number_of(info));
  const auto found = pairs.find(key);
  *flag = found != pairs.end() ? 1 : 0;
  if (*flag != 0) copy_text(found->second, value, static_cast<std::size_t>(length) + 1);
  return MPI_SUCCESS;
}

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  FAKE_MPI_COMM("Comm_set_info");
  for (const auto& [key, value] : lock->infos.at(number_of(info))) it->info[key] = value;
  return MPI_SUCCESS;
}

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  FAKE_MPI_COMM("Comm_get_info");
  *info = reinterpret_cast<MPI_Info>(lock->next_handle++);
  lock->infos[number_of(*info)] = it->info;
  return MPI_SUCCESS;
}

// ---- groups: of ranks of MPI_COMM_WORLD ------------------------------------------------------

int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  FAKE_MPI_COMM("Comm_group");
  *group = make_group(lock, first_ranks(it->size));
  return MPI_SUCCESS;
}

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  FAKE_MPI_COMM("Comm_remote_group");
  *group = make_group(lock, first_ranks(it->peers));
  return MPI_SUCCESS;
}

int PMPI_Group_size(MPI_Group group, int* size) {
  const Lock lock("Group_size");
  *size = static_cast<int>(lock->groups.at(number_of(group)).size());
  return MPI_SUCCESS;
}

int PMPI_Group_rank(MPI_Group, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}

int PMPI_Group_translate_ranks(MPI_Group from, int count, const int ranks[], MPI_Group,
                               int translated[]) {
  const Lock lock("Group_translate_ranks");
  const std::vector<int>& members = lock->groups.at(number_of(from));
  std::transform(ranks, ranks + count, translated,
                 [&](const int rank) { return members.at(static_cast<std::size_t>(rank)); });
  return MPI_SUCCESS;
}

int PMPI_Group_free(MPI_Group* group) {
  const Lock lock("Group_free");
  if (lock->groups.erase(number_of(*group)) == 0) lock->breach("a group is freed twice");
  *group = MPI_GROUP_NULL;
  return MPI_SUCCESS;
}

int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* group) {
  FAKE_MPI_COMM("Comm_get_failed");
  *group = make_group(lock, {lock->lost.begin(), lock->lost.end()});
  return MPI_SUCCESS;
}

MPI_Fint PMPI_Comm_c2f(MPI_Comm comm) { return static_cast<MPI_Fint>(number_of(comm)); }
MPI_Comm PMPI_Comm_f2c(MPI_Fint number) {
  return reinterpret_cast<MPI_Comm>(static_cast<std::uintptr_t>(number));
}

}  // extern "C"
