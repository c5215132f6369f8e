// SPDX-License-Identifier: BSD-3-Clause
// Messages in the trace. The ranks of a communicator are translated once and kept with it, as an
// attribute, so that they are freed with it.
#include "mpi/recording/message_records.hpp"

#include <algorithm>
#include <atomic>
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

// A request that the program has begun, or a receive that imbrex matches.
struct Open {
  const Members* members = nullptr;  // of a receive; null: of another operation
  std::uint32_t number = 0;          // in records; 0: of a blocking call
};

// Never destroyed, like the engine.
struct Handles {
  HandleMap<Open> requests;
  HandleMap<Open> matched;                 // matched by imbrex: operations
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
  if (record->peer != MPI_UNDEFINED) return true;
  detail::trace_unrecorded("messages to processes outside of MPI_COMM_WORLD");
  return false;
}

// The rank of the root, which stands in the place of the peer; -1: there is none.
int root_of(const Call& it, const Members& members) noexcept {
  return it.peer >= 0 ? in_world(members, it.peer) : -1;
}

std::mutex members_mutex;
// The attribute by which a communicator finds its members.
int members_key IMBREX_GUARDED_BY(members_mutex) = MPI_KEYVAL_INVALID;

void send(const detail::MessageRecord& record) noexcept {
  if (paths::are_open()) paths::sent(record.peer, record.tag, record.communicator);
  detail::trace_message(record);
}

std::uint32_t next_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  const std::uint32_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;  // only unique
  return number != 0 ? number : last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void note(const detail::RequestStep step, const std::uint32_t number,
          const detail::RequestRecord& record) noexcept {
  if (number == 0 || !detail::tracing()) return;
  detail::RequestRecord full = record;
  full.step = step;
  full.request = number;
  detail::trace_request(full);
}

void end_request(const std::uint32_t number, const std::uint64_t task) noexcept {
  note(detail::RequestStep::ended, number, {.task = task});
}

void trace_arrived(const Open& open, const MPI_Status& status, std::uint64_t task) noexcept;

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

std::uint32_t trace_sent(const Call& it) noexcept {
  detail::MessageRecord record{};
  if (!describe(it, &record)) return 0;
  if (it.at_once) record.request = next_number();
  send(record);
  return record.request;
}

void trace_begun(MPI_Request request, const std::uint32_t number) {
  if (number == 0 || request == MPI_REQUEST_NULL) return;
  handles().requests.enter(key_of(request), {nullptr, number});
}

void trace_over(const std::uint32_t number) noexcept { end_request(number, 0); }

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
  trace_arrived({members, 0}, status, task);
}

namespace {

void trace_arrived(const Open& open, const MPI_Status& status, std::uint64_t task) noexcept {
  const Members* const members = open.members;
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
  detail::trace_message({.sent = false,
                         .peer = peer,
                         .tag = status.MPI_TAG,
                         .bytes = static_cast<std::uint64_t>(bytes),
                         .communicator = members->id,
                         .task = task,
                         .request = open.number});
}

// The receive that imbrex matches gets the number of its request.
void number_matched(const Operation& ours, const std::uint32_t number) {
  Open matched;
  if (!handles().matched.find(key_of(&ours), true, &matched)) return;
  matched.number = number;
  handles().matched.enter(key_of(&ours), matched);
}

}  // namespace

void trace_posted(MPI_Request request, const Call& it, const Operation* const ours) {
  if (request == MPI_REQUEST_NULL || it.comm == MPI_COMM_NULL || it.peer == MPI_PROC_NULL) return;
  const Members* const members = members_of(it.comm);
  const std::uint32_t number = next_number();
  handles().requests.enter(key_of(request), {members, number});
  if (ours != nullptr) number_matched(*ours, number);
  const int peer = it.peer == MPI_ANY_SOURCE ? -1 : in_world(*members, it.peer);
  note(detail::RequestStep::receive_posted, number,
       {.peer = peer,
        .tag = it.tag == MPI_ANY_TAG ? -1 : it.tag,
        .bytes = known_bytes(it.count, it.type),
        .communicator = members->id});
}

void trace_receive(MPI_Request request, const Members* members) {
  if (request == MPI_REQUEST_NULL) return;
  handles().requests.enter(key_of(request), {members, next_number()});
}

void trace_completed(MPI_Request request, const MPI_Status& status, std::uint64_t task) noexcept {
  Open open;
  if (!handles().requests.find(key_of(request), true, &open)) return;
  trace_arrived(open, status, task);
  end_request(open.number, task);
}

void trace_matched(const Operation* receive, MPI_Comm comm) {
  handles().matched.enter(key_of(receive), {members_of(comm), 0});
}

void trace_completed(const Operation& operation, MPI_Request request,
                     std::uint64_t task) noexcept {
  Open open;
  if (request != MPI_REQUEST_NULL) (void)handles().requests.find(key_of(request), true, &open);
  Open matched;
  if (handles().matched.find(key_of(&operation), false, &matched)) {
    if (open.number == 0) open.number = matched.number;
    trace_arrived({matched.members, open.number}, operation.status, task);
  }
  end_request(open.number, task);
}

void trace_ended(const Operation* receive) noexcept {
  Open open;
  (void)handles().matched.find(key_of(receive), true, &open);
}

void trace_waiting(const char* const call, const WaitsFor what, const int count,
                   const MPI_Request* const requests) noexcept {
  for (int i = 0; requests != nullptr && i < count; ++i) {
    Open open;
    if (requests[i] == MPI_REQUEST_NULL ||
        !handles().requests.find(key_of(requests[i]), false, &open)) {
      continue;
    }
    note(detail::RequestStep::awaited, open.number,
         {.call = call, .bytes = static_cast<std::uint64_t>(what)});
  }
}

void trace_given(MPI_Request request, const detail::Completion* const future,
                 const Operation* const ours) noexcept {
  Open open;
  if (!handles().requests.find(key_of(request), ours != nullptr, &open)) return;
  if (ours != nullptr) number_matched(*ours, open.number);
  note(detail::RequestStep::given, open.number,
       {.bytes = reinterpret_cast<std::uint64_t>(future)});
}

void trace_send_init(MPI_Request request, const Call& it) {
  detail::MessageRecord record{};
  if (describe(it, &record)) handles().sends.enter(key_of(request), record);
}

void trace_start(MPI_Request request) noexcept {
  detail::MessageRecord record{};
  if (!handles().sends.find(key_of(request), false, &record)) return;
  record.request = next_number();
  handles().requests.enter(key_of(request), {nullptr, record.request});
  send(record);
}

void trace_found(MPI_Message found, const Members* members) {
  handles().messages.enter(key_of(found), members);
}

void trace_freed(MPI_Request request) noexcept {
  Open open;
  detail::MessageRecord record{};
  (void)handles().requests.find(key_of(request), true, &open);
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
  const Members& members = *members_of(it.comm);
  communicator_ = members.id;
  root_ = root_of(it, members);
  detail::trace_collective({detail::CollectiveStep::begins, call_, bytes_, communicator_, root_});
}

void TracedCollective::end() noexcept {
  detail::trace_collective({detail::CollectiveStep::ends, call_, bytes_, communicator_, root_});
}

namespace {

// The records of a part. No communicator of the program has this number, as good as certainly.
bool describe_part(const Call& it, detail::MessageRecord* record) noexcept {
  if (!describe(it, record)) return false;
  record->communicator = ~record->communicator;
  record->request = next_number();
  return true;
}

void note_given(const std::uint32_t number, const detail::Completion* const future) noexcept {
  note(detail::RequestStep::given, number,
       {.bytes = reinterpret_cast<std::uint64_t>(future)});
}

}  // namespace

std::uint32_t trace_part_posted(const Call& it, const detail::Completion* const future) noexcept {
  detail::MessageRecord record{};
  if (!describe_part(it, &record)) return 0;
  note(detail::RequestStep::receive_posted, record.request,
       {.peer = record.peer,
        .tag = record.tag,
        .bytes = record.bytes,
        .communicator = record.communicator});
  note_given(record.request, future);
  return record.request;
}

std::uint32_t trace_part_sent(const Call& it, const detail::Completion* const future,
                              const bool passes_on) noexcept {
  detail::MessageRecord record{};
  if (!describe_part(it, &record)) return 0;
  record.by_library = passes_on;
  detail::trace_message(record);
  note_given(record.request, future);
  return record.request;
}

std::uint32_t trace_part_reduced(const Call& it, const detail::Completion* const future) noexcept {
  const std::uint32_t number = next_number();
  detail::trace_collective({detail::CollectiveStep::begun, it.name, known_bytes(it.count, it.type),
                            members_of(it.comm)->id, -1, number});
  note_given(number, future);
  return number;
}

void trace_part_ended(const Call& it, const std::uint32_t number,
                      const std::uint64_t task) noexcept {
  detail::MessageRecord record{};
  if (number == 0) return;
  if (it.kind == Kind::receive && describe(it, &record)) {
    record.sent = false;
    record.communicator = ~record.communicator;
    record.request = number;
    record.by_library = true;
    detail::trace_message(record);
  }
  end_request(number, task);
}

int trace_begun_collective(const Call& it, const int code, const MPI_Request* const request) {
  if (!switches.traces_messages || code != MPI_SUCCESS || it.comm == MPI_COMM_NULL ||
      *request == MPI_REQUEST_NULL) {
    return code;
  }
  const Members& members = *members_of(it.comm);
  const std::uint32_t number = next_number();
  handles().requests.enter(key_of(*request), {nullptr, number});
  detail::trace_collective({detail::CollectiveStep::begun, it.name, known_bytes(it.count, it.type),
                            members.id, root_of(it, members), number});
  return code;
}

}  // namespace imbrex::mpi
