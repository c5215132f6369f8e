// SPDX-License-Identifier: BSD-3-Clause
#include "check/check.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/spin_lock.hpp"
#include "check/memory.hpp"
#include "errors.hpp"
#include "messages.hpp"
#include "report/look.hpp"

namespace imbrex::mpi::check {

bool enabled = false;

void start() { enabled = detail::number_option("CHECK") != 0; }

// An operation that is under way.
struct Use {
  Use(const Call& its_call, const Buffer& its_buffer)
      : call(its_call),
        buffer(its_buffer),
        text(report::describe(report::wait_of(its_call, detail::current_task()))),
        memory(its_buffer.address, its_buffer.address == nullptr ? 0 : its_call.count,
               its_buffer.address == nullptr ? MPI_BYTE : its_call.type) {}

  Call call;
  Buffer buffer;
  std::string text;  // told at once: the communicator may be freed before the operation ends
  Memory memory;
};

namespace {

// Thread safety: every member, any thread.
// Calls of MPI under the lock are local and call nothing of the user's.
class Table {
 public:
  [[nodiscard]] Use* add(const Call& call, const Buffer& buffer);
  void remove(Use& use) noexcept;
  void add(MPI_Request request, const Call& call, const Buffer& buffer);
  void remove(MPI_Request request) noexcept;

 private:
  using Uses = std::multimap<std::uintptr_t, std::unique_ptr<Use>>;  // by first byte

  void compare_memory(const Use& fresh);
  void compare_order(const Use& fresh);
  void say(const std::string& finding);

  std::mutex lock_;  // guards all below
  Uses uses_;        // no bound: one for each operation that is under way
  std::uintptr_t longest_ = 0;  // of all that were ever here, so that a look begins far enough left
  std::map<MPI_Request, Use*> by_request_;
  std::set<std::string> said_;
};

Table& table() {
  static Table& the_table = *new Table;  // tasks may end operations while static objects are gone
  return the_table;
}

bool is_collective(const Call& call) noexcept {
  return call.comm != MPI_COMM_NULL && call.peer == Call::none;
}

Use* Table::add(const Call& call, const Buffer& buffer) {
  if (call.peer == MPI_PROC_NULL || (buffer.address == nullptr && !is_collective(call))) {
    return nullptr;
  }
  auto use = std::make_unique<Use>(call, buffer);
  const std::lock_guard guard(lock_);
  if (is_collective(call)) compare_order(*use);
  if (!use->memory.empty()) compare_memory(*use);
  longest_ = std::max(longest_, use->memory.end() - use->memory.begin());
  return uses_.emplace(use->memory.begin(), std::move(use))->second.get();
}

void Table::remove(Use& use) noexcept {
  const std::lock_guard guard(lock_);
  const auto [first, last] = uses_.equal_range(use.memory.begin());
  for (auto place = first; place != last; ++place) {
    if (place->second.get() != &use) continue;
    uses_.erase(place);
    return;
  }
}

void Table::add(MPI_Request request, const Call& call, const Buffer& buffer) {
  remove(request);  // it ended out of our sight
  Use* const use = add(call, buffer);
  if (use == nullptr) return;
  const std::lock_guard guard(lock_);
  by_request_[request] = use;
}

void Table::remove(MPI_Request request) noexcept {
  Use* use = nullptr;
  {
    const std::lock_guard guard(lock_);
    const auto place = by_request_.find(request);
    if (place == by_request_.end()) return;
    use = place->second;
    by_request_.erase(place);
  }
  remove(*use);
}

void Table::compare_memory(const Use& fresh) {
  const std::uintptr_t begin = fresh.memory.begin();
  const std::uintptr_t from = begin > longest_ ? begin - longest_ : 0;
  for (auto place = uses_.lower_bound(from);
       place != uses_.end() && place->first < fresh.memory.end(); ++place) {
    const Use& other = *place->second;
    if (!fresh.buffer.writes && !other.buffer.writes) continue;  // two sends may read the same
    const std::uintptr_t where = Memory::meet(fresh.memory, other.memory);
    if (where == 0) continue;
    say(fmt::format("two operations that are under way use the byte at {:#x}:\n"
                    "imbrex:   {} ({} {:#x} to {:#x})\nimbrex:   {} ({} {:#x} to {:#x})\n"
                    "imbrex:   Let the first complete before the second begins (by a dependency "
                    "on the buffer), or give each a buffer of its own",
                    where, other.text, other.buffer.writes ? "writes" : "reads",
                    other.memory.begin(), other.memory.end(), fresh.text,
                    fresh.buffer.writes ? "writes" : "reads", fresh.memory.begin(),
                    fresh.memory.end()));
  }
}

void Table::compare_order(const Use& fresh) {
  const auto [first, last] = uses_.equal_range(0);
  for (auto place = first; place != last; ++place) {
    const Use& other = *place->second;
    if (other.call.comm != fresh.call.comm || !is_collective(other.call)) continue;
    say(fmt::format("two tasks are in collectives on one communicator at the same time:\n"
                    "imbrex:   {}\nimbrex:   {}\n"
                    "imbrex:   Every rank must begin them in the same order, but tasks run in any: "
                    "order the tasks by a dependency, or give each a communicator of its own "
                    "(MPI_Comm_dup)",
                    other.text, fresh.text));
  }
}

void Table::say(const std::string& finding) {
  constexpr std::size_t findings_max = 20;
  if (said_.size() >= findings_max || !said_.insert(finding).second) return;
  std::fprintf(stderr, "imbrex: IMBREX_CHECK: %s.%s\n", finding.c_str(),
               said_.size() == findings_max ? " (No more findings are printed.)" : "");
}

}  // namespace

Use* Guard::begin(const Call& call, const Buffer& buffer) { return table().add(call, buffer); }
void Guard::end(Use& use) noexcept { table().remove(use); }

void begin_request(MPI_Request request, const Call& call, const Buffer& buffer) {
  if (on() && request != MPI_REQUEST_NULL) table().add(request, call, buffer);
}
void end_request(MPI_Request request) noexcept {
  if (on()) table().remove(request);
}

// ---- two waits for one request -----------------------------------------------------------------

namespace {

struct Waiter {
  const char* call;
  detail::TaskLabel task;
  const Waiting* waiting = nullptr;  // that has entered it, and takes it out
};

// Requests that somebody waits for. Thread safety: any thread, under the lock.
struct Shard {
  base::SpinLock lock;
  std::map<MPI_Request, Waiter> waiters;
};
Shard& shard_of(MPI_Request request) {
  constexpr std::size_t count = 64;
  static auto& shards = *new std::array<Shard, count>;  // tasks may wait while static objects go
  return shards[(std::hash<MPI_Request>()(request) >> 4) % count];  // many handles are addresses
}

int refuse(const Waiter& fresh, const Waiter& earlier) {
  std::fprintf(stderr, "imbrex: %s\n",
               fmt::format("{} in task {} waits for a request that {} in task {} waits for "
                           "already: let one of them wait, and the other for that task",
                           fresh.call, detail::describe(fresh.task), earlier.call,
                           detail::describe(earlier.task))
                   .c_str());
  return raise_error({.name = fresh.call, .comm = MPI_COMM_WORLD}, MPI_ERR_REQUEST);
}

// Whoever waits for `request`, if that is another task than `id`. With `fresh`, that is entered if
// nobody else does; false: somebody of the same task does.
std::optional<Waiter> find_other(MPI_Request request, std::uint64_t id, const Waiter* fresh,
                                 bool* entered) {
  Shard& shard = shard_of(request);
  const std::lock_guard guard(shard.lock);
  const auto place = shard.waiters.find(request);
  const bool known = place != shard.waiters.end() && !place->second.waiting->over();
  if (known && place->second.task.id != id) return place->second;
  if (fresh != nullptr && !known) {
    shard.waiters.insert_or_assign(request, *fresh);
    *entered = true;
  }
  return {};
}

// The same once it is sure: for a moment MPI has let go of a request, and may have given its handle
// to the caller, and its task's entry does not say so yet. No longer: the earlier wait may be for
// the caller's own request, which must not complete meanwhile.
std::optional<Waiter> find_lasting(MPI_Request request, std::uint64_t id, const Waiter* fresh,
                                   bool* entered) {
  using Clock = std::chrono::steady_clock;
  std::optional<Waiter> other = find_other(request, id, fresh, entered);
  if (!other) return {};
  for (const Clock::time_point begin = Clock::now();
       other && Clock::now() - begin < std::chrono::milliseconds(1);) {
    sched_yield();
    other = find_other(request, id, fresh, entered);
  }
  return other;
}

}  // namespace

int second_wait(const char* const call, MPI_Request request) {
  const Waiter fresh{call, detail::current_task()};
  const std::optional<Waiter> other = find_lasting(request, fresh.task.id, nullptr, nullptr);
  return other ? refuse(fresh, *other) : MPI_SUCCESS;
}

void Waiting::begin(const char* const call, const int count, const MPI_Request requests[]) {
  const Waiter fresh{call, detail::current_task(), this};
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    bool entered = false;
    const std::optional<Waiter> earlier =
        find_lasting(requests[i], fresh.task.id, &fresh, &entered);
    if (entered) requests_.push_back(requests[i]);
    if (!earlier) continue;
    code_ = refuse(fresh, *earlier);
    return;
  }
}

void Waiting::end() noexcept {
  for (const MPI_Request request : requests_) {
    Shard& shard = shard_of(request);
    const std::lock_guard guard(shard.lock);
    const auto place = shard.waiters.find(request);
    if (place != shard.waiters.end() && place->second.waiting == this) shard.waiters.erase(place);
  }
}

}  // namespace imbrex::mpi::check

// ---- sends that return a request (those with int counts: continuation/events.cpp) --------------

#define IMBREX_ISEND(twin, Count)                                                                \
  extern "C" int MPI_##twin(                                                                     \
      const void* buffer, Count count, MPI_Datatype type, int destination, int tag,              \
      MPI_Comm comm, MPI_Request* request) {                                                     \
    if (imbrex::mpi::traces_messages) {                                                          \
      imbrex::mpi::trace_sent({comm, destination, tag, count, type});                            \
    }                                                                                            \
    const int code = PMPI_##twin(buffer, count, type, destination, tag, comm, request);          \
    if (code == MPI_SUCCESS && imbrex::mpi::check::on()) {                                       \
      imbrex::mpi::check::begin_request(                                                         \
          *request, {"MPI_" #twin, comm, destination, tag, count, type}, {buffer, false});       \
    }                                                                                            \
    return code;                                                                                 \
  }

#if MPI_VERSION >= 4
IMBREX_ISEND(Isend_c, MPI_Count)
IMBREX_ISEND(Issend_c, MPI_Count)
IMBREX_ISEND(Irsend_c, MPI_Count)
#endif
