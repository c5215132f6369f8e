// SPDX-License-Identifier: BSD-3-Clause
// Events of messages, sends and parts of collectives (imbrex/events.h). Communicators that match
// their receives here report arrivals; for a send the program gets a generalised request, and the
// engine tests MPI's own; collectives/blocks/ reports parts as they end.
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/events.h"
#include "mpi/abi/switches.hpp"
#include "mpi/calls/observed.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/guard_mpi.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"

namespace imbrex::mpi {

namespace {

base::SpinLock events_lock;
imbrex_mpi_event_handler* event_handler IMBREX_GUARDED_BY(events_lock) = nullptr;
void* handler_argument IMBREX_GUARDED_BY(events_lock) = nullptr;
// No bound: as many as the program has messages that it does not poll for.
std::deque<imbrex_mpi_event> events IMBREX_GUARDED_BY(events_lock);

imbrex_mpi_event event_of(const int kind, MPI_Comm comm, const int peer, const int tag,
                      MPI_Request request) {
  return {.kind = kind,
          .comm = comm,
          .peer = peer,
          .tag = tag,
          .request = request,
          .code = MPI_SUCCESS,
          .block = -1,
          .part = -1,
          .address = nullptr,
          .call = nullptr};
}

struct Delivery {
  imbrex_mpi_event event;
  imbrex_mpi_event_handler* handler;
  void* argument;

  static void run(void* self) {
    const std::unique_ptr<Delivery> owned(static_cast<Delivery*>(self));
    owned->handler(&owned->event, owned->argument);
  }
};

// REQUIRES: no lock of the library is held.
void deliver(const imbrex_mpi_event& event) {
  auto delivery = std::make_unique<Delivery>(event, nullptr, nullptr);
  {
    const std::lock_guard guard(events_lock);
    delivery->handler = event_handler;
    delivery->argument = handler_argument;
    if (event_handler == nullptr) events.push_back(event);
  }
  if (delivery->handler != nullptr) run_handler({&Delivery::run, delivery.release(), false});
}

// ---- messages --------------------------------------------------------------------------------

// An arrival is reported together with the operations that the round completes, without a lock.
struct ArrivalEvent : Operation {
  imbrex_mpi_event event;

  static void report(Operation& self) noexcept {
    const std::unique_ptr<ArrivalEvent> owned(static_cast<ArrivalEvent*>(&self));
    deliver(owned->event);
  }
};

void note_incoming(Round& round, MPI_Comm comm, const MPI_Status& status, MPI_Request request) {
  auto arrival = std::make_unique<ArrivalEvent>();
  arrival->call = {.name = "an event"};
  arrival->complete = &ArrivalEvent::report;
  arrival->event = event_of(IMBREX_INCOMING_PTP, comm, status.MPI_SOURCE, status.MPI_TAG, request);
  engine().expect();  // counted as an operation until it is reported
  engine().leave_feed();
  engine().attend();
  round.complete(*arrival.release());
}

// ---- sends -----------------------------------------------------------------------------------

// Invariant (1): it is freed when the engine has reported it and MPI has freed the handle.
struct WatchedSend : Operation {
  imbrex_mpi_event event = {};  // `request` is the program's handle
  std::atomic<int> owners{2};

  void let_go() noexcept {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  static void over(Operation& base) noexcept {
    WatchedSend& self = static_cast<WatchedSend&>(base);
    imbrex_mpi_event event = self.event;
    event.code = self.code;
    PMPI_Grequest_complete(event.request);  // MPI orders the code before the query
    self.let_go();
    deliver(event);
  }
  // Called by MPI for the handle.
  static int query(void* state, MPI_Status* status) {
    *status = {};
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    return static_cast<WatchedSend*>(state)->code;
  }
  static int release(void* state) {
    static_cast<WatchedSend*>(state)->let_go();
    return MPI_SUCCESS;
  }
  static int cancel(void*, int) { return MPI_SUCCESS; }  // too late, as for most sends
};

// `request` has begun; its handle is replaced by a handle of this library.
void watch_send(const Call& call, MPI_Request* request) {
  auto send = std::make_unique<WatchedSend>();
  send->call = call;
  send->call.type = MPI_DATATYPE_NULL;  // the program may free it
  send->complete = &WatchedSend::over;
  send->request = *request;
  MPI_Request handle = MPI_REQUEST_NULL;
  const int code = PMPI_Grequest_start(&WatchedSend::query, &WatchedSend::release,
                                       &WatchedSend::cancel, send.get(), &handle);
  if (code != MPI_SUCCESS) return;  // MPI gives no more handles: the send has no event
  send->event = event_of(IMBREX_OUTGOING_PTP, call.comm, call.peer, call.tag, handle);
  *request = handle;
  engine().add(*send.release());
  detail::wake_poller();
}

// ---- parts of collectives --------------------------------------------------------------------

void note_part(const messages::EndedPart& it) {
  deliver({.kind = it.incoming ? IMBREX_COLLECTIVE_PARTIAL_INCOMING
                               : IMBREX_COLLECTIVE_PARTIAL_OUTGOING,
           .comm = it.comm,
           .peer = it.peer,
           .tag = MPI_ANY_TAG,
           .request = MPI_REQUEST_NULL,
           .code = it.code,
           .block = it.block,
           .part = it.part,
           .address = it.address,
           .call = it.call});
}

constexpr messages::Watcher watcher{&note_incoming, &watch_send, &note_part};

// The object of `comm`. Throws Error if `call` must not be made.
messages::Communicator& communicator_for(const std::string& call, MPI_Comm comm) {
  require_service(call);
  messages::Communicator* const found = messages::communicator_of(comm);
  if (found == nullptr) {
    throw Error("imbrex: " + call + " is given a communicator that MPI does not know");
  }
  return *found;
}

void begin(MPI_Comm comm) {
  messages::Communicator& it = communicator_for("imbrex_mpi_events_begin", comm);
  if (it.watcher() != nullptr) return;
  if (!it.watch(watcher)) {
    throw Error("imbrex: imbrex_mpi_events_begin works only where imbrex matches the receives of "
                "the communicator: set neither mpi_assert_no_any_source nor mpi_assert_no_any_tag "
                "on it, nor IMBREX_MATCH_ABOVE=1000000000");
  }
  detail::wake_poller();
}

bool take_event(imbrex_mpi_event* event) {
  const std::lock_guard guard(events_lock);
  if (events.empty()) return false;
  *event = events.front();
  events.pop_front();
  return true;
}

}  // namespace
}  // namespace imbrex::mpi

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_PUBLIC extern "C" [[gnu::visibility("default")]]

IMBREX_PUBLIC int imbrex_mpi_events_begin(MPI_Comm comm) {
  return imbrex::mpi::guard_mpi([comm] { imbrex::mpi::begin(comm); });
}
IMBREX_PUBLIC int imbrex_mpi_events_end(MPI_Comm comm) {
  using namespace imbrex::mpi;
  return guard_mpi([comm] { communicator_for("imbrex_mpi_events_end", comm).end_watch(); });
}

IMBREX_PUBLIC int imbrex_mpi_event_poll(imbrex_mpi_event* event) {
  using namespace imbrex::mpi;
  if (!in_service() || refused("imbrex_mpi_event_poll")) return 0;
  if (take_event(event)) return 1;
  engine().poll();
  return take_event(event) ? 1 : 0;
}

IMBREX_PUBLIC void imbrex_mpi_event_set_handler(imbrex_mpi_event_handler* handler, void* argument) {
  const std::lock_guard guard(imbrex::mpi::events_lock);
  imbrex::mpi::note_asked_for();
  if (handler != nullptr) {
    imbrex::mpi::switches.observes_calls.store(true, std::memory_order_relaxed);
  }
  imbrex::mpi::event_handler = handler;
  imbrex::mpi::handler_argument = argument;
}
