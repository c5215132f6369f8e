// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/sends/window.hpp"

#include <chrono>
#include <mutex>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::sends {

namespace {

Time now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

ChannelKey channel_of(messages::Communicator& communicator, const int peer, const int tag) {
  return {&communicator, peer, communicator.asserts_no_any_tag() ? tag : -1};
}

}  // namespace

void Window::limit(const Limits& limits) {
  const std::lock_guard guard(lock_);
  turns_.limit(limits);
}

bool Window::begin(Send& send) {
  Turn& turn = send.turn;
  const detail::Precedence precedence = detail::precedence_of_message(send.rank);
  turn.urgency = precedence.urgency;
  turn.task = precedence.task;
  turn.key = channel_of(send.communicator, send.call.peer, send.call.tag);
  const std::pair<const void*, int> process =
      send.rank >= 0 ? std::pair<const void*, int>{nullptr, send.rank}
                     : std::pair<const void*, int>{&send.communicator, send.call.peer};
  engine().expect();
  Send* refused = nullptr;
  bool posted = true;
  bool waits = false;
  {
    const std::lock_guard guard(lock_);
    if (turns_.enter(turn, process, now())) {
      posted = send.post();
      if (posted) {
        engine().hand_over(send);
      } else {
        turns_.ended(turn, now());
      }
    } else {
      waits = true;
      send.since = now();
      send.call.waits_here = true;
      send.keep_type();
      waiting.fetch_add(1, std::memory_order_relaxed);
      if (!std::exchange(listed_, true)) engine().add(*this);
    }
    release(refused);
  }
  end_refused(refused);
  if (!posted) {
    engine().leave_feed();
    engine().attend();
    engine().withdraw();
  } else if (waits && send.call.at_once) {
    detail::wake_poller();  // the caller goes on, so an idle worker must poll
  }
  return posted;
}

bool Window::holds_back(messages::Communicator& communicator, const int peer, const int tag) {
  const ChannelKey channel = channel_of(communicator, peer, tag);
  const std::lock_guard guard(lock_);
  return turns_.has_channel(channel);
}

void Window::ended(Send& send) noexcept {
  Send* refused = nullptr;
  {
    const std::lock_guard guard(lock_);
    turns_.ended(send.turn, now());
    release(refused);
  }
  end_refused(refused);
}

void Window::cancel(Send& send) noexcept {
  Send* refused = nullptr;
  bool waited = false;
  {
    const std::lock_guard guard(lock_);
    waited = Turns::waits(send.turn);
    if (waited) {
      turns_.remove(send.turn);
      send.call.waits_here = false;
      waiting.fetch_sub(1, std::memory_order_release);
      release(refused);
    }
  }
  end_refused(refused);
  if (waited) {
    send.end_cancelled();
    return;
  }
  // Under the engine's lock no thread completes, and so frees, the request. If it is missing, it is
  // complete.
  engine().hold_still(
      [&send](const Operation& operation) {
        if (&operation != &send) return;
        MPI_Request request = operation.request;  // MPI only reads it
        PMPI_Cancel(&request);
      },
      [](bool) {});
}

bool Window::cancel_of(const std::function<bool(const messages::Listener&)>& is_it) {
  Send* found = nullptr;
  {
    const std::lock_guard guard(lock_);
    turns_.for_each([&](const Turn& turn) {
      const messages::Listener* const listener = Send::of(turn).listener();
      if (listener != nullptr && is_it(*listener)) found = static_cast<Send*>(turn.owner);
    });
    if (found == nullptr) return false;
    turns_.remove(found->turn);
    found->call.waits_here = false;
    waiting.fetch_sub(1, std::memory_order_release);
  }
  found->end_cancelled();
  return true;
}

void Window::let_go(const messages::Communicator* const communicator, const int peer) noexcept {
  Send* refused = nullptr;
  {
    const std::lock_guard guard(lock_);
    while (Turn* const turn = turns_.force(communicator, peer)) post(*turn, refused);
  }
  end_refused(refused);
}

bool Window::draw(Round& round) {
  const std::lock_guard guard(lock_);
  Send* refused = nullptr;
  release(refused);
  while (refused != nullptr) {
    Send& one = *refused;
    refused = one.next_refused;
    round.complete(one);
  }
  listed_ = !turns_.empty();
  return listed_;
}

void Window::for_each(const std::function<void(const Operation&)>& visit) {
  const std::lock_guard guard(lock_);
  turns_.for_each([&](const Turn& turn) { visit(Send::of(turn)); });
}

void Window::release(Send*& refused) noexcept {
  if (turns_.empty()) return;
  const Time time = now();
  while (Turn* const turn = turns_.next(time)) post(*turn, refused);
}

// Gives a message that has waited to MPI.
void Window::post(Turn& turn, Send*& refused) noexcept {
  Send& send = Send::of(turn);
  send.call.waits_here = false;
  if (switches.traces_messages) send.waited = now() - send.since;
  if (send.post()) {
    engine().hand_over(send);
  } else {
    turns_.ended(turn, now());
    send.next_refused = std::exchange(refused, &send);
  }
  waiting.fetch_sub(1, std::memory_order_release);  // after it: see (1)
}

void Window::end_refused(Send* refused) noexcept {
  while (refused != nullptr) {
    Send* const next = refused->next_refused;
    refused->end();
    refused = next;
  }
}

Window& window() noexcept {
  static Window& the_window = *new Window;
  return the_window;
}

}  // namespace imbrex::mpi::sends
