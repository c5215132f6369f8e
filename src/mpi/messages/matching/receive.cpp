// SPDX-License-Identifier: BSD-3-Clause
// Receives that imbrex matches: their completion, and their view by programs.
#include "mpi/messages/matching/receive.hpp"

#include <climits>
#include <new>
#include <utility>

#include "base/arch.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/object_pool.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

bool is_derived(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner != MPI_COMBINER_NAMED;
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

Receive::Receive(const char* name, const Arguments& it, Communicator& its_communicator,
                 Kind its_kind, bool at_once)
    : Substitute(its_communicator, its_kind,
                 its_kind == Kind::data && its_communicator.is_derived(it.type)),
      buffer(it.buffer) {
  call = {.name = name,
          .comm = it.comm,
          .peer = it.wanted.source,
          .tag = it.wanted.tag,
          .count = it.count,
          .type = it.type,
          .kind = mpi::Kind::receive,
          .at_once = at_once};
  if (owns_type_) call.type = copy_of(it.type);
  if (switches.traces_messages) trace_matched(this, it.comm);
}

Receive::~Receive() {
  if (switches.traces_messages) trace_ended(this);
}

void Receive::cancel() noexcept { (void)communicator.cancel(*this); }

void Receive::fetch() const noexcept {
  // A receive without a handle lies on the stack of the waiting task, which resumes there: its last
  // calls lie below, the caller above. A prefetch of other memory does no harm.
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
// No function that uses a thread's store is inlined: its caller may suspend, resume in another
// thread, and still have the address of the first thread's store.
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

bool Receive::begin_transfer(const Arrived& arrived) {
  status = arrived.status;
  if (kind == Kind::message) message = arrived.message;
  if (kind != Kind::data) return true;
  MPI_Message its_message = arrived.message;
  Outcome outcome = receive_message({buffer, call.count, call.type, link.key, call.comm},
                                    &its_message, &request);
  int over = 0;
  if (outcome.code == MPI_SUCCESS) {
    outcome = completion::Test(call.owes_handler(), &request, &over, &status);
  }
  take(outcome);
  return over != 0 || code != MPI_SUCCESS;
}

void Receive::matched(const Arrived& arrived, Round& round) {
  if (!begin_transfer(arrived)) {
    round.under_way(*this);
    return;
  }
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
    end();
  } else {
    engine().hand_over(*this);
  }
}

}  // namespace imbrex::mpi::messages
