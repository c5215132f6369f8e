// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/order/order.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <source_location>
#include <span>
#include <utility>

#include "base/guarded.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/future.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/collectives/order/sequence.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/of_communicators.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::order {

// On the heap: a report may still read it when its task resumes.
struct WaitingStart : Start {
  std::shared_ptr<Order> order;
  const char* call = nullptr;
  std::string task;
  Countdown turn{1};
};

namespace {

constexpr std::size_t keys_max = 32;  // of a message, which every MPI sends eagerly
constexpr int tag = 1;
constexpr const char* about_order = "imbrex::order_collectives";

}  // namespace

// The order of one communicator, and its messages, which travel on a duplicate. Rank 0 decides and
// sends to each rank; the others have a posted receive there while a start waits for a decision.
//
// Thread safety: any thread.
class Order : public std::enable_shared_from_this<Order> {
 public:
  Order(MPI_Comm its_program, const int rank, const int its_size)
      : program(its_program), size(its_size), sequence(rank == 0) {}
  ~Order() { free_duplicate(); }
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  const MPI_Comm program;  // may be freed
  const int size;
  Sequence sequence;

  // Makes the duplicate, unless it exists. Collective: all ranks come here before they start any
  // ordered collective on the communicator. It returns when the duplicate exists, also on rank 0:
  // Open MPI makes one by several reductions on the communicator, one after the other, and no other
  // collective may begin between them. Suspends.
  void make_duplicate();
  // Sends the decisions of this rank. Posts a receive for decisions, if a start waits for one.
  void deliver();
  void receive();
  // An error of MPI in the messages of the order: no start waits any more. MPI_SUCCESS: none.
  void fail(int code) noexcept;
  [[nodiscard]] int failure() const noexcept { return failure_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_idle() noexcept { return under_way_.load(std::memory_order_acquire) == 0; }
  void free_duplicate() noexcept {
    if (comm_ != MPI_COMM_NULL) PMPI_Comm_free(&comm_);
  }

 private:
  struct Posted;
  struct Delivery;
  struct Reception;

  template <class Post>
  [[nodiscard]] bool post(Posted& operation, Post post);
  [[nodiscard]] int duplicate();
  void send(std::span<const std::uint64_t> keys);
  void end_receiving() noexcept;

  std::mutex lock_;
  bool begun_ IMBREX_GUARDED_BY(lock_) = false;
  bool sending_ IMBREX_GUARDED_BY(lock_) = false;    // one thread sends, and will check again
  bool receiving_ IMBREX_GUARDED_BY(lock_) = false;  // a receive is posted, or is about to be
  std::atomic<bool> is_made_{false};  // release: comm_ is constant from now on
  Promise<void> duplicated_{"duplicate of a communicator", std::source_location()};
  std::atomic<int> failure_{MPI_SUCCESS};  // release pairs with a thread that is woken by it
  std::atomic<int> under_way_{0};          // operations; any thread
  MPI_Comm comm_ = MPI_COMM_NULL;
};

namespace {

void wake(Start* const start) noexcept {
  if (start != nullptr) static_cast<WaitingStart*>(start)->turn.count_down();
}

}  // namespace

// An operation of the order. It keeps the order alive, and ends itself.
struct Order::Posted : Operation {
  explicit Posted(Order& its_order) : order(its_order.shared_from_this()) {
    order->under_way_.fetch_add(1, std::memory_order_relaxed);
    call = {.name = about_order, .comm = order->program, .at_once = true, .throws = true};
  }
  ~Posted() { order->under_way_.fetch_sub(1, std::memory_order_release); }
  Posted(const Posted&) = delete;
  Posted& operator=(const Posted&) = delete;
  std::shared_ptr<Order> order;
};

// Makes MPI's request of an operation. True if it is over at once; otherwise the engine owns it.
template <class Post>
bool Order::post(Posted& operation, Post post) {
  Outcome outcome = MPI_SUCCESS;
  int done = 0;
  {
    const Callback callback(operation.call);
    const Asking quiet(true);
    outcome = quiet.outcome(post(&operation.request));
  }
  if (outcome.code == MPI_SUCCESS) {
    const Callback callback(operation.call);
    outcome = completion::Test(true, &operation.request, &done, &operation.status);
  }
  if (done != 0 || outcome.code != MPI_SUCCESS) {
    operation.code = outcome.code;
    return true;
  }
  engine().add(operation);
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
  return false;
}

// ---- the duplicate -----------------------------------------------------------------------------

void Order::make_duplicate() {
  if (size == 1 || is_made_.load(std::memory_order_acquire)) return;  // pairs with the store below
  bool is_first = false;
  if (const std::lock_guard guard(lock_); true) is_first = !std::exchange(begun_, true);
  if (!is_first) {
    duplicated_.future().get();
    return;
  }
  if (const int code = duplicate(); code != MPI_SUCCESS) fail(code);
  is_made_.store(true, std::memory_order_release);
  duplicated_.set();
}

int Order::duplicate() {
  const Call call{
      .name = about_order, .comm = program, .kind = Kind::collective, .throws = true};
  MPI_Comm duplicate = MPI_COMM_NULL;
  const int code = carry_out(call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return PMPI_Comm_idup(program, &duplicate, request);
  });
  if (code != MPI_SUCCESS) return code;
  PMPI_Comm_set_name(duplicate, "imbrex ordered collectives");
  PMPI_Comm_set_errhandler(duplicate, MPI_ERRORS_RETURN);
  comm_ = duplicate;
  return MPI_SUCCESS;
}

void Order::fail(const int code) noexcept {
  failure_.store(code, std::memory_order_release);
  for (Start* const start : sequence.give_up()) wake(start);
}

// ---- messages ----------------------------------------------------------------------------------

// A message on its way to one rank.
struct Order::Delivery : Posted {
  Delivery(Order& its_order, const std::span<const std::uint64_t> keys) : Posted(its_order) {
    std::copy(keys.begin(), keys.end(), buffer.begin());
    complete = &Delivery::end;
  }
  static void end(Operation& self) noexcept {
    const std::unique_ptr<Delivery> owned(static_cast<Delivery*>(&self));
    if (owned->code != MPI_SUCCESS) owned->order->fail(owned->code);
  }
  std::array<std::uint64_t, keys_max> buffer;
};

// One thread sends at a time, so messages leave in the order of the decisions; a thread that finds
// another one sending leaves the decisions to it.
void Order::deliver() {
  if (size == 1) return;
  if (const std::lock_guard guard(lock_); true) {
    if (sending_) return;
    sending_ = true;
  }
  std::array<std::uint64_t, keys_max> keys;
  for (;;) {
    std::size_t count = 0;
    if (const std::lock_guard guard(lock_); true) {
      count = sequence.take_decisions(keys);
      if (count == 0) sending_ = false;
    }
    if (count == 0) return;
    send(std::span(keys).first(count));
  }
}

void Order::send(const std::span<const std::uint64_t> keys) {
  for (int to = 1; to < size; ++to) {
    auto operation = std::make_unique<Delivery>(*this, keys);
    Delivery& its = *operation;
    const bool is_over = post(its, [&](MPI_Request* request) {
      return PMPI_Isend(its.buffer.data(), static_cast<int>(keys.size()), MPI_UINT64_T, to, tag,
                        comm_, request);
    });
    Delivery* const it = operation.release();
    if (is_over) Delivery::end(*it);
  }
}

struct Order::Reception : Posted {
  explicit Reception(Order& its_order) : Posted(its_order) { complete = &Reception::end; }
  static void end(Operation& self) noexcept {
    const std::unique_ptr<Reception> owned(static_cast<Reception*>(&self));
    Order& order = *owned->order;
    owned->take();
    order.end_receiving();
    order.receive();
  }
  void take() noexcept {
    if (code != MPI_SUCCESS) return order->fail(code);
    int count = 0;
    PMPI_Get_count(&status, MPI_UINT64_T, &count);
    wake(order->sequence.learn(std::span(buffer).first(static_cast<std::size_t>(count))));
  }
  std::array<std::uint64_t, keys_max> buffer;
};

// receive() must follow: it checks whether another start waits, also for a start that found this
// receive in flight and relied on it.
void Order::end_receiving() noexcept {
  const std::lock_guard guard(lock_);
  receiving_ = false;
}

void Order::receive() {
  for (;;) {
    if (const std::lock_guard guard(lock_); true) {
      // The awaited decision may have arrived meanwhile, and a needless receive would stay for
      // ever. From here on only this receive ends the wait.
      if (receiving_ || !sequence.lacks_decisions()) return;
      receiving_ = true;
    }
    auto operation = std::make_unique<Reception>(*this);
    Reception& its = *operation;
    const bool is_over = post(its, [&](MPI_Request* request) {
      return PMPI_Irecv(its.buffer.data(), static_cast<int>(keys_max), MPI_UINT64_T, 0, tag, comm_,
                        request);
    });
    if (!is_over) {
      static_cast<void>(operation.release());  // it ends itself
      return;
    }
    operation->take();
    end_receiving();
  }
}

// ---- the orders of all communicators -----------------------------------------------------------

namespace {

// For all communicators that have not been freed. Operations in flight keep their order alive.
OfCommunicators<Order>& orders() {
  static auto& the_orders = *new OfCommunicators<Order>;
  return the_orders;
}

// The order of `comm`; null: `code` is the error.
std::shared_ptr<Order> order_of(MPI_Comm comm, int& code) {
  return orders().find_or(comm, code, [comm] {
    int rank = 0;
    int size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    return std::make_shared<Order>(comm, rank, size);
  });
}

}  // namespace

// ---- a turn ------------------------------------------------------------------------------------

void Turn::take(const Call& call) {
  if (!in_service() || call.comm == MPI_COMM_NULL) return;
  detail::OrderScope* const scope = innermost();
  if (scope == nullptr) return;
  call_ = call;
  if (scope->object != nullptr) {
    scope_ = scope;
  } else {
    take_by_key(call, scope->key);
  }
}

void Turn::take_by_key(const Call& call, const std::uint64_t key) {
  int between_groups = 0;
  PMPI_Comm_test_inter(call.comm, &between_groups);
  if (between_groups != 0) {
    print(fmt::format("{} in task {}: imbrex::order_collectives() does not take an "
                      "intercommunicator: order the tasks by a dependency",
                      call.name, detail::describe_current_task()));
    code_ = raise_error(call, MPI_ERR_COMM);
    return;
  }
  std::shared_ptr<Order> order = order_of(call.comm, code_);
  if (order == nullptr) {
    code_ = raise_error(call, code_);
    return;
  }
  order->make_duplicate();
  auto start = std::make_unique<WaitingStart>();
  start->key = key;
  start->call = call.name;
  start->task = detail::describe_current_task();
  start->order = order;
  const bool is_turn = order->sequence.enter(*start);
  order->deliver();
  if (!is_turn) {
    order->receive();
    engine().want_polls();
    start->turn.wait({.name = call.name, .comm = call.comm});
    engine().call_off_polls(1);
  }
  code_ = order->failure();
  if (code_ != MPI_SUCCESS) {
    code_ = raise_error(call, code_);
    return;
  }
  start_ = start.release();
}

check::Ordering Turn::ordering() const {
  if (start_ != nullptr) return {check::By::key, start_->key, text_of(start_->key)};
  return {scope_ != nullptr ? check::By::spawns : check::By::nothing, 0, ""};
}

void Turn::end_taken() {
  if (detail::OrderScope* const scope = std::exchange(scope_, nullptr)) {
    if (--scope->left != 0) return;
    try {
      detail::release_access(scope->object, scope->bytes);
    } catch (const Error& error) {
      print(fmt::format("{} in imbrex::order_collectives_as_spawned(): {}", call_.name,
                        unprefixed(error)));
      code_ = raise_error(call_, MPI_ERR_OTHER);
    }
  }
  give_back();
}

void Turn::give_back() noexcept {
  scope_ = nullptr;
  const std::unique_ptr<WaitingStart> start(std::exchange(start_, nullptr));
  if (start != nullptr) wake(start->order->sequence.leave());
}

// ---- reports, and the end ----------------------------------------------------------------------

std::vector<std::string> describe_waiting() {
  std::vector<std::string> lines;
  for (const std::shared_ptr<Order>& order : orders().living()) {
    const std::string comm = report::name_of(order->program);
    order->sequence.for_each_waiting([&](const Sequence::View& it) {
      const auto& start = static_cast<const WaitingStart&>(*it.start);
      std::string why;
      if (it.is_decided) {
        why = fmt::format(
            "{} collectives go first, the next with key {}, {}", it.ahead, text_of(it.first_key),
            it.first_is_here ? "which is about to start" : "for which no task has come on this "
                                                           "rank");
      } else if (it.decided == 0) {
        why = "rank 0 has begun no collective";
      } else {
        why = fmt::format("rank 0 has not begun it; rank 0 has begun {} collectives, the last with "
                          "key {}",
                          it.decided, text_of(it.last_key));
        if (it.ahead != 0 && !it.first_is_here) {
          why += fmt::format(", and for key {} no task has come on this rank",
                             text_of(it.first_key));
        }
      }
      lines.push_back(fmt::format("{} on {} waits for its turn by key {} ({}): in {}", start.call,
                                  comm, text_of(start.key), why, start.task));
    });
  }
  return lines;
}

int refuse_to_free(const char* const call, MPI_Comm comm) {
  if (!in_service() || comm == MPI_COMM_NULL || engine().polling_here()) return MPI_SUCCESS;
  int code = MPI_SUCCESS;
  const std::shared_ptr<Order> order = orders().find(comm, code);
  if (order == nullptr) return MPI_SUCCESS;  // MPI reports the error of `comm`
  std::string obstacle;
  order->sequence.for_each_waiting([&](const Sequence::View& it) {
    const auto& start = static_cast<const WaitingStart&>(*it.start);
    obstacle = fmt::format("{} with key {} in task {}", start.call, text_of(start.key), start.task);
  });
  if (!obstacle.empty()) {
    print(fmt::format("{} in task {}: another task waits for its turn on this communicator: {}. "
                      "The communicator is not freed; wait for that task first, by its future, a "
                      "dependency, or finish.",
                      call, detail::describe_current_task(), obstacle));
    return raise_error({.name = call, .comm = comm}, MPI_ERR_COMM);
  }
  return MPI_SUCCESS;
}

void end_all_orders() noexcept {
  const std::vector<std::shared_ptr<Order>> left = orders().living();
  orders().end();
  for (const std::shared_ptr<Order>& order : left) {
    while (!order->is_idle()) {
      engine().poll();
      sched_yield();
    }
    order->free_duplicate();
  }
}

}  // namespace imbrex::mpi::order
