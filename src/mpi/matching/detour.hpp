// SPDX-License-Identifier: BSD-3-Clause
// Messages that reach this rank through others than their sender: mpi/trees brings them, the
// communicator matches them as all others. To MPI such a message comes from elsewhere and has
// another tag, so what it says of them is known here until the message is received.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "mpi/engine/engine.hpp"
#include "mpi/matching/match_queue.hpp"

namespace imbrex::mpi::receive {

struct Arrived;

// What stands between a communicator and MPI. Its functions are called under the communicator's
// lock, unless they say otherwise.
class Detour {
 public:
  Detour() = default;
  virtual ~Detour() = default;
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;

  // MPI has given this message. Messages of one source are taken in their order.
  virtual void take(const Arrived& arrived) = 0;
  // Brings forward what is under way.
  virtual void move(Round& round) = 0;
  // The next message that may be matched: of one source, in the order in which they were sent.
  // False: there is none.
  [[nodiscard]] virtual bool next(Arrived& arrived) = 0;
  // Visits the operations of this rank that wait.
  virtual void for_each(const std::function<void(const Operation&)>& visit) = 0;
  // Says, a line for each, which messages are on their way through this rank.
  virtual void describe(std::vector<std::string>& lines) = 0;
  // Collective; not under the lock. Returns when nothing is under way on any rank. Suspends.
  virtual int drain(const char* call) = 0;
  // Collective; not under the lock. The communicator is about to go: nothing is under way.
  virtual void end() noexcept = 0;
};

// What MPI does not know of a matched message.
struct Origin {
  Envelope came;
  MPI_Comm comm;
  const void* owner;  // who waits for its receive to begin; null: nobody
};
// Thread safety: any thread; one message, one thread at a time.
void know_origin(MPI_Message message, const Origin& origin);
[[nodiscard]] bool find_origin(MPI_Message message, Origin& origin) noexcept;
void forget_origin(MPI_Message message) noexcept;
// True if no receive has begun to take the message that `owner` waits for.
[[nodiscard]] bool owns_origin(const void* owner) noexcept;

}  // namespace imbrex::mpi::receive
