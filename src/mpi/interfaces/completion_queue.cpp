// SPDX-License-Identifier: BSD-3-Clause
// Completion queues (imbrex/continue.h): continuations and probes that append to a queue. The
// record of a completion is made when the request is handed over, so nothing fails later.
#include <atomic>
#include <climits>
#include <memory>
#include <utility>

#include "base/arch.hpp"
#include "imbrex/continue.h"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/guard_mpi.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/interfaces/continue.hpp"
#include "mpi/interfaces/readable_queue.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/recording/message_records.hpp"

// Thread safety: any thread, until imbrex_queue_close().
// Invariants: (1) `users` counts the program, until it closes the queue, and each request that is
// not complete; the last of them ends the queue. So a completion that comes after
// imbrex_queue_close() finds the queue and its descriptor.
struct imbrex_queue {
  imbrex_queue() = default;
  ~imbrex_queue();
  imbrex_queue(const imbrex_queue&) = delete;
  imbrex_queue& operator=(const imbrex_queue&) = delete;

  // Thread safety: the caller does not use the queue afterwards.
  void leave() noexcept {
    // acq_rel: all uses of the queue by other threads come before its end.
    if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::unique_ptr<imbrex_queue> ended(this);
    }
  }

  imbrex::mpi::ReadableQueue done;
  std::atomic<int> users{1};        // any thread; see (1)
  std::atomic<bool> closed{false};  // written once; relaxed: only spares later completions a push
};

namespace imbrex::mpi {

namespace {

struct Leave {
  void operator()(imbrex_queue* const queue) const noexcept { queue->leave(); }
};
using User = std::unique_ptr<imbrex_queue, Leave>;  // one of (1)

struct Awaited : Readable {
  Awaited(imbrex_queue& its_queue, std::uint64_t tag) noexcept : queue(its_queue) {
    completion.tag = tag;
    queue.users.fetch_add(1, std::memory_order_relaxed);
    user.reset(&queue);
  }

  [[nodiscard]] bool is(const imbrex_queue* const other, const std::uint64_t tag) const noexcept {
    return &queue == other && completion.tag == tag;
  }

  // The object ends in the call that takes the completion, or here.
  void arrive(const int code, const MPI_Status& status, MPI_Message message) noexcept {
    std::unique_ptr<Awaited> self(this);
    const User its = std::move(user);
    completion.code = code;
    completion.status = status;
    completion.message = message;
    if (!its->closed.load(std::memory_order_relaxed)) its->done.push(*self.release());
  }
  static void arrived(int code, int, const MPI_Status* statuses, void* argument) {
    static_cast<Awaited*>(argument)->arrive(code, statuses[0], MPI_MESSAGE_NULL);
  }

  imbrex_queue& queue;
  User user;  // until the completion
  imbrex_completion completion = {};
};

// A matched message that is to come.
struct Probe : messages::Listener {
  Probe(const messages::Arguments& arguments, messages::Communicator& communicator,
        std::unique_ptr<Awaited> its_awaited)
      : receive("imbrex_mprobe_to", arguments, communicator, messages::Receive::Kind::message,
                true),
        awaited(std::move(its_awaited)) {
    fire = &Probe::on_completion;
  }

  static void on_completion(Listener& self) noexcept {
    const std::unique_ptr<Probe> owned(static_cast<Probe*>(&self));
    messages::Receive& its = owned->receive;
    const int code = its.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error_in_callback(its);
    MPI_Message const message = code == MPI_SUCCESS ? its.message : MPI_MESSAGE_NULL;
    if (switches.traces_messages && message != MPI_MESSAGE_NULL) {
      trace_found(message, members_of(its.communicator.handle_unless_freed()));
    }
    owned->awaited.release()->arrive(code, its.status, message);
  }

  messages::Receive receive;
  std::unique_ptr<Awaited> awaited;
};

void probe(imbrex_queue& queue, const messages::Envelope wanted, MPI_Comm comm,
           const std::uint64_t tag) {
  const messages::Arguments arguments{nullptr, 0, MPI_BYTE, wanted, comm};
  messages::Communicator* const communicator = messages::communicator_of(comm);
  if (communicator == nullptr || wanted.source == MPI_PROC_NULL ||
      !communicator->accepts(arguments)) {
    // MPI answers at once: MPI_PROC_NULL, or an error.
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status = {};
    const int code = MPI_Mprobe(wanted.source, wanted.tag, comm, &message, &status);
    return std::make_unique<Awaited>(queue, tag).release()->arrive(code, status, message);
  }
  auto expected = std::make_unique<Probe>(arguments, *communicator,
                                          std::make_unique<Awaited>(queue, tag));
  messages::Arrived arrived;
  if (communicator->begin_probe(wanted, expected->receive, &arrived) == messages::Begun::held) {
    return expected->awaited.release()->arrive(MPI_SUCCESS, arrived.status, arrived.message);
  }
  Probe& waiting = *expected.release();
  if (!waiting.receive.attend(waiting)) Probe::on_completion(waiting);
  detail::wake_poller();  // the caller returns: an idle worker must poll MPI
}

int take(imbrex_queue& queue, const int most, imbrex_completion out[]) noexcept {
  int count = 0;
  for (Readable* item = queue.done.take(most); item != nullptr; ++count) {
    const std::unique_ptr<Awaited> owned(static_cast<Awaited*>(item));
    item = item->next;
    out[count] = owned->completion;
  }
  return count;
}

int poll(imbrex_queue& queue, const int us, const int most, imbrex_completion out[]) noexcept {
  const ReadableQueue::Attention attention(queue.done);
  const std::uint64_t begin = base::monotonic_ns();
  const std::uint64_t most_ns = us > 0 ? std::uint64_t{1000} * static_cast<unsigned>(us) : 0;
  for (;;) {
    const int count = take(queue, most, out);
    if (count != 0 || most <= 0 || in_handler() || !in_service()) return count;
    if (base::monotonic_ns() - begin >= most_ns) return 0;
    (void)engine().poll();
  }
}

}  // namespace

}  // namespace imbrex::mpi

// Frees the completions that no call has taken.
imbrex_queue::~imbrex_queue() {
  using namespace imbrex::mpi;
  for (Readable* item = done.take(INT_MAX); item != nullptr;) {
    const std::unique_ptr<Awaited> owned(static_cast<Awaited*>(item));
    item = item->next;
  }
}

extern "C" [[gnu::visibility("default")]] int imbrex_queue_open(imbrex_queue** queue, int* fd) {
  using namespace imbrex::mpi;
  return guard_mpi([=] {
    imbrex::c::require(queue, "`queue` of imbrex_queue_open");
    imbrex::c::require(fd, "`fd` of imbrex_queue_open");
    *queue = std::make_unique<imbrex_queue>().release();
    *fd = (*queue)->done.descriptor();
  });
}

extern "C" [[gnu::visibility("default")]] int imbrex_continue_to(imbrex_queue* queue,
                                                                 MPI_Request* request,
                                                                 const uint64_t tag) {
  using namespace imbrex::mpi;
  return guard_mpi([&] {
    imbrex::c::require(queue, "`queue` of imbrex_continue_to");
    auto awaited = std::make_unique<Awaited>(*queue, tag);
    continue_all(1, request, &Awaited::arrived, awaited.get());
    static_cast<void>(awaited.release());
  });
}

extern "C" [[gnu::visibility("default")]] int imbrex_mprobe_to(imbrex_queue* queue,
                                                               const int source,
                                                               const int message_tag,
                                                               MPI_Comm comm, const uint64_t tag) {
  using namespace imbrex::mpi;
  return guard_mpi([&] {
    imbrex::c::require(queue, "`queue` of imbrex_mprobe_to");
    require_service("imbrex_mprobe_to");
    probe(*queue, {source, message_tag}, comm, tag);
  });
}

extern "C" [[gnu::visibility("default")]] int imbrex_queue_take(imbrex_queue* queue, const int n,
                                                                imbrex_completion out[]) {
  return queue == nullptr ? 0 : imbrex::mpi::take(*queue, n, out);
}

extern "C" [[gnu::visibility("default")]] int imbrex_queue_poll(imbrex_queue* queue, const int us,
                                                                const int n,
                                                                imbrex_completion out[]) {
  return queue == nullptr ? 0 : imbrex::mpi::poll(*queue, us, n, out);
}

extern "C" [[gnu::visibility("default")]] int imbrex_queue_cancel(imbrex_queue* queue,
                                                                  const uint64_t tag) {
  using namespace imbrex::mpi;
  return guard_mpi([=] {
    imbrex::c::require(queue, "`queue` of imbrex_queue_cancel");
    require_service("imbrex_queue_cancel");
    cancel_continued(&Awaited::arrived, [=](const void* argument) {
      return static_cast<const Awaited*>(argument)->is(queue, tag);
    });
    messages::cancel_where(
        [=](const messages::Listener& listener) {
          return listener.fire == &Probe::on_completion &&
                 static_cast<const Probe&>(listener).awaited->is(queue, tag);
        },
        [](const Operation&) { return false; });
  });
}

extern "C" [[gnu::visibility("default")]] int imbrex_queue_close(imbrex_queue* queue) {
  using namespace imbrex::mpi;
  if (queue == nullptr) return IMBREX_SUCCESS;
  queue->closed.store(true, std::memory_order_relaxed);
  queue->leave();
  return IMBREX_SUCCESS;
}
