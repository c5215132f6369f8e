// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/post.hpp"

#include <mpi.h>
#include <sched.h>

#include <string>

#include "imbrex/detail/waist.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/report/look.hpp"
#include "trace/races.hpp"

namespace imbrex::mpi::active {

namespace {

// Handlers may spawn tasks.
class InGuest {
 public:
  explicit InGuest(detail::Guest& guest) : guest_(guest) { detail::enter_as(guest_); }
  ~InGuest() { detail::leave_as(guest_); }
  InGuest(const InGuest&) = delete;
  InGuest& operator=(const InGuest&) = delete;

 private:
  detail::Guest& guest_;
};

}  // namespace

Post& post() noexcept {
  static Post& the_post = *new Post;
  return the_post;
}

Post::Post() noexcept
    : outbox(wire, holder, work, credits, []() noexcept { return post().poll(); }) {}

int Post::poll() noexcept {
  if (!is_open() || holder.is_here() || !holder.try_take()) return 0;
  int count = 0;
  if (is_open()) {
    const trace::races::Outside of_the_task;
    const InGuest guest(guest_);
    count += handlers.take_kept();
    count += inbox.receive();
    count += inbox.take_own();
    count += transfers.take_ended();
    outbox.transmit();
    outbox.return_credit();
    outbox.forget_sent();
  }
  outbox.release_holder();
  return count;
}

void Post::open() {
  wire.open();
  credits.open(wire.ranks);
  outbox.open();
  inbox.open();
  report::add_description(
      [](void* const it, std::size_t, std::string& text) noexcept {
        static_cast<const OpenWork*>(it)->describe(text);
      },
      &work);
  traffic().open.store(true, std::memory_order_relaxed);
  open_.store(true, std::memory_order_release);
}

// The four-counter method (Mattern, 1987): two waves; a rank joins one only while it is passive, so
// that only a message could make it send. If the first wave counts as many handled as the second
// counts sent, nothing was in flight at the end of the first. The counts are of packets, also those
// that only return credit, and of transfers.
void Post::close() {
  std::int64_t last_handled = -1;
  for (;;) {
    const Sums mine = wait_until_passive();
    Sums all;
    MPI_Request request = MPI_REQUEST_NULL;
    static_assert(sizeof(Sums) == 2 * sizeof(std::int64_t), "sent as numbers");
    wire.require("MPI_Iallreduce",
                 PMPI_Iallreduce(&mine, &all, 2, MPI_INT64_T, MPI_SUM, wire.comm, &request));
    for (int done = 0; done == 0;) {
      const Outcome outcome = completion::Test(true, &request, &done, MPI_STATUS_IGNORE);
      if (outcome.code != MPI_SUCCESS) wire.fail("MPI_Iallreduce in MPI_Finalize", outcome.code);
      if (done != 0) break;
      if (detail::in_task()) detail::yield();
      if (poll() == 0) sched_yield();
    }
    if (all.sent == last_handled) break;
    last_handled = all.handled;
  }
  work.end_expecting();
  holder.take();
  open_.store(false, std::memory_order_release);
  traffic().open.store(false, std::memory_order_relaxed);
  handlers.report_kept(wire.rank);
  inbox.close();
  PMPI_Comm_free(&wire.comm);
  outbox.release_holder();
}

void Post::abandon() noexcept {
  if (holder.is_here()) return;  // a handler ends the program
  holder.take();
  open_.store(false, std::memory_order_release);
  outbox.release_holder();
}

// Returns once this rank is passive: no task is left, and no operation that it has begun is open.
Post::Sums Post::wait_until_passive() noexcept {
  for (;;) {
    const std::uint64_t before = traffic().handled.load(std::memory_order_acquire);
    if (detail::in_task()) detail::drain();
    holder.take();
    const bool passive =
        work.none() && traffic().handled.load(std::memory_order_relaxed) == before;
    const Sums sums{outbox.packets_sent() + transfers.delivered(),
                    inbox.packets_handled() + transfers.landed()};
    outbox.release_holder();
    if (passive) return sums;
    if (poll() == 0) sched_yield();
  }
}

}  // namespace imbrex::mpi::active
