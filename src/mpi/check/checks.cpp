// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/check/double_wait.hpp"
#include "mpi/check/memory.hpp"
#include "mpi/check/unordered.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::check {


void start() { switches.checks = detail::number_option("CHECK") != 0; }

// A part of the memory that an operation uses.
struct Part {
  Part(const Use& its_use, const Buffer& buffer)
      : use(its_use), writes(buffer.writes), memory(buffer.address, buffer.count, buffer.type) {}

  const Use& use;
  bool writes;
  Memory memory;
};

// Its end tells that a receive has taken the message.
static bool is_synchronous(const Call& call) noexcept {
  return std::strstr(call.name, "ssend") != nullptr || std::strstr(call.name, "Ssend") != nullptr;
}

// An operation in flight, or a persistent one that may be started.
struct Use {
  Use(const Call& call, const detail::TaskLabel& its_task, const Buffers& buffers)
      : comm(call.comm),
        wait(report::wait_of(call)),
        task(its_task),
        ordered(call.kind == Kind::collective),
        envelope(envelope_of(call)),
        is_nonlocal(call.kind != Kind::send || is_synchronous(call)) {
    if (call.peer == MPI_PROC_NULL) return;
    for (const Buffer& buffer : buffers) {
      if (buffer.address == nullptr) continue;
      parts.emplace_back(*this, buffer);
      if (parts.back().memory.empty()) parts.pop_back();
    }
  }

  [[nodiscard]] std::string text() const { return describe(wait, task); }

  MPI_Comm comm;
  report::Wait wait;  // read at once: the communicator may be freed before the operation ends
  detail::TaskLabel task;
  bool ordered;       // a collective
  Envelope envelope;
  bool is_nonlocal;   // see are_nonlocal()
  bool active = false;
  bool persistent = false;
  std::deque<Part> parts;  // they never move
  Compared collective;
};

namespace {

// Thread safety: any thread uses every member. Calls of MPI under the lock are local and call no
// function of the user.
class Table {
 public:
  void add(const Use& use);  // for a blocking call
  void remove(const Use& use) noexcept;
  void add(MPI_Request request, std::unique_ptr<Use> use);
  void start(MPI_Request request);
  void remove(MPI_Request request) noexcept;  // the request has completed
  void forget(MPI_Request request) noexcept;  // the handle is invalid
  void keep_open(MPI_Request request, Compared& collective);
  void post(MPI_Request request);
  [[nodiscard]] bool is_nonlocal(MPI_Request request);

 private:
  using Parts = std::multimap<std::uintptr_t, const Part*>;  // by first byte

  void enter(const Use& use) IMBREX_REQUIRES(lock_);
  void leave(const Use& use) noexcept IMBREX_REQUIRES(lock_);
  void compare_memory(const Use& fresh) IMBREX_REQUIRES(lock_);
  void compare_order(const Use& fresh) IMBREX_REQUIRES(lock_);

  std::mutex lock_;
  Parts parts_ IMBREX_GUARDED_BY(lock_);  // no bound: the parts of each operation in flight
  // The longest part so far, so that a search begins far enough left.
  std::uintptr_t longest_ IMBREX_GUARDED_BY(lock_) = 0;
  std::vector<const Use*> in_order_ IMBREX_GUARDED_BY(lock_);  // blocking collectives
  std::map<MPI_Request, std::unique_ptr<Use>> by_request_ IMBREX_GUARDED_BY(lock_);
};

Table& table() {
  static Table& the_table = *new Table;  // tasks may end operations after static objects are
                                         // destroyed
  return the_table;
}

void Table::add(const Use& use) {
  const std::lock_guard guard(lock_);
  if (use.ordered) {
    compare_order(use);
    in_order_.push_back(&use);
  }
  enter(use);
}

void Table::remove(const Use& use) noexcept {
  const std::lock_guard guard(lock_);
  if (use.ordered) std::erase(in_order_, &use);
  leave(use);
}

void Table::add(MPI_Request request, std::unique_ptr<Use> use) {
  const std::lock_guard guard(lock_);
  std::unique_ptr<Use>& place = by_request_[request];
  if (place != nullptr && place->active) leave(*place);  // it ended unobserved
  place = std::move(use);
  if (place->persistent) return;
  place->active = true;
  enter(*place);
}

void Table::start(MPI_Request request) {
  const detail::TaskLabel task = detail::current_task();
  const std::lock_guard guard(lock_);
  const auto place = by_request_.find(request);
  if (place == by_request_.end() || !place->second->persistent) return;
  Use& use = *place->second;
  if (use.active) leave(use);
  use.task = task;
  use.active = true;
  enter(use);
}

void Table::remove(MPI_Request request) noexcept {
  const std::lock_guard guard(lock_);
  const auto place = by_request_.find(request);
  if (place == by_request_.end()) return;
  Use& use = *place->second;
  if (std::exchange(use.active, false)) leave(use);
  if (!use.persistent) by_request_.erase(place);
}

void Table::forget(MPI_Request request) noexcept {
  const std::lock_guard guard(lock_);
  const auto place = by_request_.find(request);
  if (place == by_request_.end()) return;
  if (place->second->active) leave(*place->second);
  by_request_.erase(place);
}

void Table::keep_open(MPI_Request request, Compared& collective) {
  const std::lock_guard guard(lock_);
  const auto place = by_request_.find(request);
  if (place != by_request_.end()) place->second->collective = std::move(collective);
}

void Table::post(MPI_Request request) {
  Envelope envelope{};
  report::Wait wait;
  {
    const std::lock_guard guard(lock_);
    const auto place = by_request_.find(request);
    if (place == by_request_.end() || !is_exact(place->second->envelope)) return;
    envelope = place->second->envelope;
    wait = place->second->wait;
  }
  check::post(envelope, wait);
}

bool Table::is_nonlocal(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return false;
  const std::lock_guard guard(lock_);
  const auto place = by_request_.find(request);
  return place == by_request_.end() || place->second->is_nonlocal;
}

void Table::enter(const Use& use) {
  compare_memory(use);
  for (const Part& part : use.parts) {
    longest_ = std::max(longest_, part.memory.end() - part.memory.begin());
    parts_.emplace(part.memory.begin(), &part);
  }
}

void Table::leave(const Use& use) noexcept {
  for (const Part& part : use.parts) {
    const auto [first, last] = parts_.equal_range(part.memory.begin());
    const auto place =
        std::find_if(first, last, [&](const auto& entry) { return entry.second == &part; });
    if (place != last) parts_.erase(place);
  }
}

// One finding for two operations, however many of their parts overlap.
void Table::compare_memory(const Use& fresh) {
  std::set<const Use*> reported;
  for (const Part& part : fresh.parts) {
    const std::uintptr_t begin = part.memory.begin();
    const std::uintptr_t from = begin > longest_ ? begin - longest_ : 0;
    for (auto place = parts_.lower_bound(from);
         place != parts_.end() && place->first < part.memory.end(); ++place) {
      const Part& other = *place->second;
      if (!part.writes && !other.writes) continue;  // two sends may read one buffer
      if (reported.contains(&other.use)) continue;
      const std::uintptr_t where = Memory::meet(part.memory, other.memory);
      if (where == 0) continue;
      reported.insert(&other.use);
      report_finding(fmt::format("two operations in flight use the byte at {:#x}:\n"
                              "imbrex:   {} ({} {:#x} to {:#x})\n"
                              "imbrex:   {} ({} {:#x} to {:#x})\n"
                              "imbrex:   Let the first complete before the second begins (by a "
                              "dependency on the buffer), or give each a buffer of its own",
                      where, other.use.text(), other.writes ? "writes" : "reads",
                      other.memory.begin(), other.memory.end(), fresh.text(),
                      part.writes ? "writes" : "reads", begin, part.memory.end()));
    }
  }
}

void Table::compare_order(const Use& fresh) {
  for (const Use* const other : in_order_) {
    if (other->comm != fresh.comm) continue;
    report_finding(
        fmt::format("two tasks are in collectives on one communicator at the same time:\n"
                    "imbrex:   {}\n"
                    "imbrex:   {}\n"
                    "imbrex:   All ranks must begin these collectives in the same order, "
                    "but tasks run in any order: order the tasks by a dependency, or give "
                    "each a communicator of its own (MPI_Comm_dup)",
                    other->text(), fresh.text()));
  }
}

}  // namespace

void Guard::begin(const Call& call, const detail::TaskLabel& task, const Buffers& buffers) {
  auto use = std::make_unique<Use>(call, task, buffers);
  if (!use->ordered && use->parts.empty()) return;
  table().add(*use);
  use_ = use.release();
}

void Guard::end() noexcept {
  const std::unique_ptr<Use> use(use_);
  table().remove(*use);
}

namespace {

void enter_request(MPI_Request request, const Call& call, const Buffers& buffers,
                   const bool persistent) {
  if (!on() || request == MPI_REQUEST_NULL) return;
  auto use = std::make_unique<Use>(call, detail::current_task(), buffers);
  use->persistent = persistent;
  forget_waits(request);
  table().add(request, std::move(use));
}

}  // namespace

void begin_request(MPI_Request request, const Call& call, const Buffers& buffers) {
  enter_request(request, call, buffers, false);
}
void prepare_request(MPI_Request request, const Call& call, const Buffers& buffers) {
  enter_request(request, call, buffers, true);
}
void start_request(MPI_Request request) {
  if (on()) table().start(request);
}
void end_request(MPI_Request request) noexcept {
  if (on()) table().remove(request);
}
void post_request(MPI_Request request) { table().post(request); }
bool are_nonlocal(const int count, const MPI_Request* const requests) {
  return std::any_of(requests, requests + std::max(count, 0),
                     [](const MPI_Request request) { return table().is_nonlocal(request); });
}
void keep_open(MPI_Request request, Compared collective) { table().keep_open(request, collective); }
void forget_request(MPI_Request request) noexcept {
  if (on()) table().forget(request);
}

}  // namespace imbrex::mpi::check
