// SPDX-License-Identifier: BSD-3-Clause
// Receives that imbrex matches: their completion, and how programs see it.
#include "mpi/matching/receive.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI 5: the errors of failed processes
#endif

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "base/arch.hpp"
#include "mpi/below/abi/types.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/communicator.hpp"
#include "mpi/matching/persistent_receive.hpp"
#include "mpi/matching/request_table.hpp"
#include "mpi/matching/spares.hpp"
#include "mpi/matching/token.hpp"
#include "mpi/matching/wait.hpp"
#include "mpi/watch/messages.hpp"

namespace imbrex::mpi::receive {

namespace {

Listener done_listener{nullptr, {}};
Listener announcing_listener{nullptr, {}};

std::atomic<std::uint64_t> unattended{0};  // any thread

[[noreturn]] void fail_two_listeners(const Call& call) noexcept {
  std::fprintf(stderr,
               "imbrex: the request of %s (source %d, tag %d) is waited for twice, now by %s: give "
               "each request to one call only\n",
               call.name, call.peer, call.tag, detail::describe_current_task().c_str());
  end_all(MPI_COMM_WORLD, 1);
}

}  // namespace

MPI_Status empty_status() noexcept {
  MPI_Status status = {};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  PMPI_Status_set_elements(&status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(&status, 0);
  return status;
}

bool is_derived(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner != MPI_COMBINER_NAMED;
}

int end_kept(MPI_Request& request, int code) noexcept {
  if (code == MPI_SUCCESS || request == MPI_REQUEST_NULL) return code;
  PMPI_Cancel(&request);
  // If a message has been faster than the cancelling, the receive ends too. A wait would report the
  // failure once more.
  constexpr int looks_max = 10'000;  // a failed process may keep even that from ending
  int over = 0;
  for (int looks = 0; over == 0 && looks < looks_max; ++looks) {
    if (PMPI_Request_get_status(request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
  }
  PMPI_Request_free(&request);
#ifdef MPIX_ERR_PROC_FAILED_PENDING
  int error_class = code;
  PMPI_Error_class(code, &error_class);
  if (error_class == MPIX_ERR_PROC_FAILED_PENDING) return MPIX_ERR_PROC_FAILED;
#endif
  return code;
}

int post(const Arguments& it, MPI_Request* request) {
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) {
    return PMPI_Irecv_c(it.buffer, it.count, it.type, it.wanted.source, it.wanted.tag, it.comm,
                        request);
  }
#endif
  return PMPI_Irecv(it.buffer, static_cast<int>(it.count), it.type, it.wanted.source,
                    it.wanted.tag, it.comm, request);
}

int receive_message(const Arguments& it, MPI_Message* message, MPI_Request* request) {
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) return PMPI_Imrecv_c(it.buffer, it.count, it.type, message, request);
#endif
  return PMPI_Imrecv(it.buffer, static_cast<int>(it.count), it.type, message, request);
}

// The standard ABI has a status of 32 bytes, eight more than any other, and they do not fit.
constexpr std::size_t lines_max = sizeof(MPI_Status) > 24 ? 5 : 4;
static_assert(sizeof(Receive) <= lines_max * base::cache_line_bytes,
              "each line is far away when many wait");

// ---- the receive -----------------------------------------------------------------------------

Listener* Receive::done_mark() noexcept { return &done_listener; }
Listener* Receive::announcing_mark() noexcept { return &announcing_listener; }

Receive::Receive(const char* name, const Arguments& it, Communicator& its_communicator,
                 Kind its_kind, bool at_once)
    : kind(its_kind),
      owns_type_(its_kind == Kind::data && its_communicator.is_derived(it.type)),
      life_(its_communicator.life()),
      buffer(it.buffer),
      communicator(its_communicator) {
  call = {.name = name,
          .comm = it.comm,
          .peer = it.wanted.source,
          .tag = it.wanted.tag,
          .count = it.count,
          .type = it.type,
          .kind = mpi::Kind::receive,
          .at_once = at_once};
  if (owns_type_) call.type = copy_of(it.type);
  if (traces_messages) trace_matched(this, it.comm);
  task = detail::current_task();
  complete = &Receive::completed;
}

Receive::~Receive() {
  if (traces_messages) trace_ended(this);
  if (owns_type_) PMPI_Type_free(&call.type);
}

void Receive::give_handle(Token& token) noexcept {
  owner = token;
  handle_.store(token.request, std::memory_order_relaxed);
}

void Receive::forget_freed() noexcept {
  if (communicator.life() != life_) call.comm = MPI_COMM_NULL;
}

void Receive::fetch() const noexcept {
  // One without a handle lies on the stack of the task that waits, which will go on from there: its
  // last calls stand below, the caller above. A prefetch of anything else does no harm.
  const bool on_stack = handle_.load(std::memory_order_relaxed) == MPI_REQUEST_NULL;
  const std::ptrdiff_t below = on_stack ? 14 * base::cache_line_bytes : 0;
  const std::ptrdiff_t above = on_stack ? 5 * base::cache_line_bytes : 0;
  const char* const begin = reinterpret_cast<const char*>(this) - below;
  const char* const end = reinterpret_cast<const char*>(this + 1) + above;
  for (const char* line = begin; line < end; line += base::cache_line_bytes) {
    __builtin_prefetch(line, 1);
  }
  __builtin_prefetch(listener_.load(std::memory_order_relaxed), 1);
}

void Receive::fetch_rest() const noexcept {
  __builtin_prefetch(buffer, 1);
  // acquire: pairs with attend()
  const Listener* const listener = listener_.load(std::memory_order_acquire);
  if (listener == nullptr || listener->woken.task == nullptr) return;
  for (const void* const part : {listener->woken.task, listener->woken.fiber}) {
    __builtin_prefetch(part, 1);
    __builtin_prefetch(static_cast<const char*>(part) + base::cache_line_bytes, 1);
  }
}

namespace {

struct Slot {
  Slot* next;
};
// No function that uses a thread's store is inlined: its caller may suspend, go on in another
// thread, and still know the address of the first thread's store.
constinit CommonSpares<Slot> all_slots;
constinit thread_local Spares<Slot, all_slots> slots;
constexpr std::size_t slots_at_once = 32;

}  // namespace

[[gnu::noinline]] void* Receive::operator new(std::size_t bytes) {
  if (Slot* const slot = slots.take()) return slot;
  auto* const chunk = static_cast<char*>(
      ::operator new(slots_at_once * bytes, std::align_val_t{alignof(Receive)}));
  for (std::size_t i = slots_at_once - 1; i > 0; --i) {
    slots.give(*::new (chunk + i * bytes) Slot);
  }
  return chunk;
}

[[gnu::noinline]] void Receive::operator delete(void* slot) noexcept {
  slots.give(*::new (slot) Slot);
}

std::uint64_t Receive::ended_unattended() noexcept {
  return unattended.load(std::memory_order_acquire);
}

bool Receive::attend(Listener& listener) noexcept {
  Listener* there = nullptr;
  // Release: the completing thread sees the listener. Acquire: a failure means that it is done.
  while (!listener_.compare_exchange_strong(there, &listener, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
    if (there == done_mark()) return false;
    if (there != announcing_mark()) fail_two_listeners(call);
    base::pause();  // a few instructions of the thread that completes it
    there = nullptr;
  }
  engine().attend();
  return true;
}

bool Receive::begin_transfer(const Arrived& arrived) {
  status = arrived.status;
  if (kind == Kind::message) message = arrived.message;
  if (kind != Kind::data) return true;
  MPI_Message its_message = arrived.message;
  Said said = receive_message({buffer, call.count, call.type, link.key, call.comm}, &its_message,
                              &request);
  int over = 0;
  if (said.code == MPI_SUCCESS) said = asked::Test(&request, &over, &status);
  take(said);
  return over != 0 || code != MPI_SUCCESS;
}

void Receive::matched(const Arrived& arrived, Round& round) {
  if (!begin_transfer(arrived)) {
    round.under_way(*this);
    return;
  }
  round.keep_handler(*this);
  round.complete(*this);
}

void Receive::matched_here(const Arrived& arrived) {
  engine().expect();
  bool over;
  {
    const Callback callback(call);
    over = begin_transfer(arrived);
  }
  if (over) {
    end(code);
  } else {
    engine().hand_over(*this);
  }
}

void Receive::end_cancelled() noexcept {
  status = empty_status();
  PMPI_Status_set_cancelled(&status, 1);
  end(MPI_SUCCESS);
}

void Receive::end_failed(int its_code) noexcept {
  status = empty_status();
  end(its_code);
}

void Receive::end_like(const Operation& other, int its_code) noexcept {
  status = other.status;
  handler_ran = other.handler_ran;
  handler = other.handler;
  end(its_code);
}

void Receive::end(int its_code) noexcept {
  code = its_code;
  completed(*this);
  engine().withdraw();
}

void Receive::completed(Operation& base) noexcept {
  Receive& self = static_cast<Receive&>(base);
  self.code = end_kept(self.request, self.code);
  engine().leave_feed();
  Listener* listener = self.listener_.load(std::memory_order_acquire);  // pairs with attend()
  if (listener == nullptr &&
      self.listener_.compare_exchange_strong(listener, announcing_mark(),
                                             std::memory_order_acquire,
                                             std::memory_order_acquire)) {
    engine().attend();  // nobody will
    if (Token* const token = self.token()) {
      token->announced = true;
      PMPI_Grequest_complete(token->request);
    }
    self.listener_.store(done_mark(), std::memory_order_release);  // `self` may be gone from here
    unattended.fetch_add(1, std::memory_order_release);  // after it: see ended_unattended()
    return;
  }
  self.listener_.store(done_mark(), std::memory_order_release);
  listener->fire(*listener);
}

// ---- as the program sees it --------------------------------------------------------------------

Receive* substitute(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL || !requests().has_substitutes()) return nullptr;
  const Known known = requests().find(request);
  if (const Token* const token = known.token()) return token->receive;
  if (const PersistentReceive* const persistent = known.persistent()) return persistent->active;
  return nullptr;
}

int conclude(Receive& receive, MPI_Request* request, MPI_Status* status) {
  const std::unique_ptr<Receive> owned(&receive);
  check::end_request(*request);
  copy_status(receive.status, status);
  if (Token* const token = receive.token()) {
    give_token(*token);
    *request = MPI_REQUEST_NULL;
  } else if (PersistentReceive* const persistent = receive.persistent()) {
    persistent->active = nullptr;
  }
  if (receive.code == MPI_SUCCESS) {
    if (traces_messages) trace_completed(receive, 0);
    return MPI_SUCCESS;
  }
  receive.forget_freed();
  return raise_error(receive);
}

namespace {

struct Orphan : Listener {
  explicit Orphan(Receive& its_receive) : receive(&its_receive) { fire = &Orphan::end; }
  std::unique_ptr<Receive> receive;

  static void end(Listener& self) noexcept { delete static_cast<Orphan*>(&self); }
};

}  // namespace

void let_go(Receive& receive) noexcept {
  Token* const token = receive.token();
  Orphan* const orphan = std::make_unique<Orphan>(receive).release();
  receive.take_handle();
  // A receive that is done has announced its token, which is given back before the receive ends.
  const bool waits = receive.attend(*orphan);
  if (token != nullptr) give_token(*token);
  if (!waits) Orphan::end(*orphan);
}

}  // namespace imbrex::mpi::receive
