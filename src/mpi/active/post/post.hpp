// SPDX-License-Identifier: BSD-3-Clause
// Active messages over MPI: the parts that send, receive and count, and how they begin, are polled
// and end. docs/design/active.md argues why that is correct. Other code sees active.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/active/post/active_transfers.hpp"
#include "mpi/active/post/credits.hpp"
#include "mpi/active/post/holder.hpp"
#include "mpi/active/post/inbox.hpp"
#include "mpi/active/post/message_handlers.hpp"
#include "mpi/active/post/open_work.hpp"
#include "mpi/active/post/outbox.hpp"
#include "mpi/active/post/wire.hpp"

namespace imbrex::mpi::active {

// Thread safety: open() and close() in MPI_Init and MPI_Finalize, any thread calls the rest in
// between; each part says what belongs to the holder. Invariant: a part uses only the parts before
// it.
class Post {
 public:
  // Collective.
  void open();
  // Returns when every message of every rank has been handled, and every message that it led to.
  void close();
  // The program ends without MPI_Finalize: no handler is called any more.
  void abandon() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  // Returns the number of messages and transfers that have ended.
  int poll() noexcept;

  Wire wire;
  Holder holder;
  OpenWork work;
  Credits credits;
  MessageHandlers handlers{work};
  Outbox outbox;
  Inbox inbox{wire, credits, handlers, outbox};
  ActiveTransfers transfers{wire, work};

  Post() noexcept;

 private:
  struct Sums {
    std::int64_t sent = 0;
    std::int64_t handled = 0;
  };
  [[nodiscard]] Sums wait_until_passive() noexcept;

  std::atomic<bool> open_{false};  // release in open() pairs with is_open()
  detail::Guest guest_;            // only the holder uses it
};

// The Post of this process; never destroyed.
[[nodiscard]] Post& post() noexcept;

// The requests of this process before MPI_Init; in MPI_Init the request of one rank is the request
// of all.
struct Wishes {
  void want() noexcept { messages.store(true, std::memory_order_relaxed); }
  void want_calls() noexcept {
    calls.store(true, std::memory_order_relaxed);
    want();
  }

  std::atomic<bool> messages{false};  // any thread; relaxed: MPI_Init comes later
  std::atomic<bool> calls{false};     // likewise
  void (*take_calls)() = nullptr;     // set while the library is loaded
  bool calls_agreed = false;          // written in MPI_Init, before Post::open()
};
inline constinit Wishes wishes;

}  // namespace imbrex::mpi::active
