// SPDX-License-Identifier: BSD-3-Clause
// Messages in the trace. The ranks of a communicator are translated once and kept with it, as an
// attribute, so that they are freed with it.
#include "mpi/recording/message_records.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/recording/paths.hpp"

namespace imbrex::mpi {


struct Members {
  std::vector<int> in_world;  // of the group that messages go to
  std::uint32_t id = 0;       // a hash of all members, so all ranks agree on it
};

namespace {

std::vector<int> ranks_in_world(MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group world;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&world);
  return in_world;
}

// FNV-1a.
std::uint32_t hash(const std::vector<int>& ranks) noexcept {
  std::uint32_t value = 2166136261u;
  for (const int rank : ranks) value = (value ^ static_cast<std::uint32_t>(rank)) * 16777619u;
  return value;
}

Members translate(MPI_Comm comm) {
  Members members;
  MPI_Group group;
  PMPI_Comm_group(comm, &group);
  members.in_world = ranks_in_world(group);
  if (comm != MPI_COMM_WORLD) members.id = hash(members.in_world);
  PMPI_Group_free(&group);

  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0) {
    PMPI_Comm_remote_group(comm, &group);
    members.in_world = ranks_in_world(group);
    members.id ^= hash(members.in_world);  // equal from both sides
    PMPI_Group_free(&group);
  }
  return members;
}

std::uint64_t known_bytes(const MPI_Count count, MPI_Datatype type) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes_of(count, type), 0));
}

// Values for handles of the program. MPI may reuse a handle before the call that waits for it
// reports that: the handle then has two values, and the older one goes first. Thread safety: any
// thread.
template <class Value>
class HandleMap {
 public:
  void enter(std::uintptr_t handle, const Value& value) {
    const std::lock_guard guard(lock_);
    values_.emplace(handle, value);
  }
  // False if `handle` is unknown. With `forget` the found value is removed.
  [[nodiscard]] bool find(std::uintptr_t handle, bool forget, Value* value) noexcept {
    const std::lock_guard guard(lock_);
    const auto found = values_.lower_bound(handle);
    if (found == values_.end() || found->first != handle) return false;
    *value = found->second;
    if (forget) values_.erase(found);
    return true;
  }

 private:
  base::SpinLock lock_;
  // Equal keys in their order.
  std::multimap<std::uintptr_t, Value> values_ IMBREX_GUARDED_BY(lock_);
};

// Never destroyed, like the engine.
struct Handles {
  HandleMap<const Members*> receives;      // requests
  HandleMap<const Members*> matched;       // matched by imbrex: operations
  HandleMap<detail::MessageRecord> sends;  // persistent requests
  HandleMap<const Members*> messages;
};
Handles& handles() {
  static Handles& all = *new Handles;
  return all;
}

template <class Handle>
std::uintptr_t key_of(Handle handle) noexcept {
  return (std::uintptr_t)handle;
}

// False if nothing is recorded of it.
bool describe(const Call& it, detail::MessageRecord* record) noexcept {
  // MPI_PROC_NULL, or what MPI will refuse
  if (it.peer < 0 || it.comm == MPI_COMM_NULL) return false;
  const Members& members = *members_of(it.comm);
  *record = {true, in_world(members, it.peer), it.tag, known_bytes(it.count, it.type), members.id};
  return record->peer != MPI_UNDEFINED;  // otherwise of a dynamic process
}

std::mutex members_mutex;
// The attribute by which a communicator finds its members.
int members_key IMBREX_GUARDED_BY(members_mutex) = MPI_KEYVAL_INVALID;

void send(const detail::MessageRecord& record) noexcept {
  if (paths::are_open()) paths::sent(record.peer, record.tag, record.communicator);
  detail::trace_message(record);
}

}  // namespace

int in_world(const Members& members, int peer) noexcept {
  const auto place = static_cast<std::size_t>(peer);
  return place < members.in_world.size() ? members.in_world[place] : MPI_UNDEFINED;
}

// Two tasks may ask for a communicator that is new to both: one translates it. The calls of MPI
// under the lock are local and call no function of the user.
const Members* members_of(MPI_Comm comm) {
  using All = std::map<std::vector<int>, std::map<std::uint32_t, Members>>;
  static All* const all IMBREX_PT_GUARDED_BY(members_mutex) = new All;
  if (comm == MPI_COMM_NULL) return nullptr;
  const std::lock_guard lock(members_mutex);
  if (members_key == MPI_KEYVAL_INVALID) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &members_key, nullptr);
  }
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, members_key, static_cast<void*>(&value), &found);
  if (found == 0) {
    Members members = translate(comm);
    std::map<std::uint32_t, Members>& same = (*all)[members.in_world];
    value = &same.try_emplace(members.id, std::move(members)).first->second;
    PMPI_Comm_set_attr(comm, members_key, value);
  }
  return static_cast<const Members*>(value);
}

void end_messages() noexcept {
  const std::lock_guard lock(members_mutex);
  if (members_key != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&members_key);
}

void start_messages() noexcept {
  switches.traces_messages = detail::tracing() || paths::are_open();
}

void trace_sent(const Call& it) noexcept {
  detail::MessageRecord record{};
  if (describe(it, &record)) send(record);
}

void trace_waited(const Call& it, const std::uint64_t task,
                  const std::uint64_t waited_ns) noexcept {
  detail::MessageRecord record{};
  if (!detail::tracing() || !describe(it, &record)) return;
  record.task = task;
  record.waited_ns = waited_ns;
  detail::trace_message(record);
}

void trace_received(const Members* members, const MPI_Status& status,
                    std::uint64_t task) noexcept {
  if (members == nullptr || status.MPI_SOURCE < 0) return;  // MPI_PROC_NULL, or the empty status
  int cancelled = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  const int peer = in_world(*members, status.MPI_SOURCE);
  if (cancelled != 0 || peer == MPI_UNDEFINED) return;
  if (task == 0 && paths::are_open()) paths::received(peer, status.MPI_TAG, members->id);
  if (!detail::tracing()) return;
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (bytes == MPI_UNDEFINED) bytes = 0;
  detail::trace_message({false, peer, status.MPI_TAG, static_cast<std::uint64_t>(bytes),
                         members->id, task});
}

void trace_receive(MPI_Request request, const Members* members) {
  if (request != MPI_REQUEST_NULL) handles().receives.enter(key_of(request), members);
}

void trace_completed(MPI_Request request, const MPI_Status& status, std::uint64_t task) noexcept {
  const Members* members = nullptr;
  if (!handles().receives.find(key_of(request), true, &members)) return;
  trace_received(members, status, task);
}

void trace_matched(const Operation* receive, MPI_Comm comm) {
  handles().matched.enter(key_of(receive), members_of(comm));
}

void trace_completed(const Operation& receive, std::uint64_t task) noexcept {
  const Members* members = nullptr;
  if (handles().matched.find(key_of(&receive), false, &members)) {
    trace_received(members, receive.status, task);
  }
}

void trace_ended(const Operation* receive) noexcept {
  const Members* members = nullptr;
  (void)handles().matched.find(key_of(receive), true, &members);
}

void trace_send_init(MPI_Request request, const Call& it) {
  detail::MessageRecord record{};
  if (describe(it, &record)) handles().sends.enter(key_of(request), record);
}

void trace_start(MPI_Request request) noexcept {
  detail::MessageRecord record{};
  if (handles().sends.find(key_of(request), false, &record)) send(record);
}

void trace_found(MPI_Message found, const Members* members) {
  handles().messages.enter(key_of(found), members);
}

void trace_freed(MPI_Request request) noexcept {
  const Members* members = nullptr;
  detail::MessageRecord record{};
  (void)handles().receives.find(key_of(request), true, &members);
  (void)handles().sends.find(key_of(request), true, &record);
}

const Members* trace_taken(MPI_Message taken) noexcept {
  const Members* members = nullptr;
  (void)handles().messages.find(key_of(taken), true, &members);
  return members;
}

TracedCollective::TracedCollective(const Call& it) noexcept {
  if (!switches.traces_messages || it.comm == MPI_COMM_NULL) return;
  call_ = it.name;
  bytes_ = known_bytes(it.count, it.type);
  communicator_ = members_of(it.comm)->id;
  detail::trace_collective({true, call_, bytes_, communicator_});
}

void TracedCollective::end() noexcept {
  detail::trace_collective({false, call_, bytes_, communicator_});
}

}  // namespace imbrex::mpi
