// SPDX-License-Identifier: BSD-3-Clause
// Messages that one rank sends to many, on a communicator for which the program asked for trees.
// The root announces the message to each recipient, in its place among what it sends there; the
// data come along a tree, over a communicator of ours, to whoever claims them. Used by to_all.cpp
// and begin.cpp; docs/design/send-to-all.md argues why the order is MPI's and nothing deadlocks.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mpi/engine/engine.hpp"
#include "mpi/matching/communicator.hpp"
#include "mpi/matching/detour.hpp"
#include "mpi/trees/protocol.hpp"

namespace imbrex::mpi::trees {

// Data that go to one rank. The window is as small as keeps the link busy: what is posted at once
// arrives at once, so that a chain would pass on nothing before all of it is there.
struct Service {
  Claim claim;
  std::size_t next = 0;
  std::array<MPI_Request, 2> under_way = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

// What this rank has of a message, and gives to others.
struct Store {
  Name name;
  const char* data = nullptr;
  std::size_t bytes = 0;
  std::size_t here = 0;     // of them; all that come before are here too
  std::size_t segment = 0;
  int unclaimed = 0;        // ranks that have not claimed the data, from here or from below
  std::vector<Service> services = {};

  [[nodiscard]] bool served() const noexcept { return unclaimed == 0 && services.empty(); }
};

// A message at its root. It is complete when no rank needs the root's buffer any more.
struct Rooted : Operation {
  Store store;
};

// Thread safety: all but open() and the fields that are const, under the communicator's lock.
// Invariants: (1) what is ready was sent, by each source, before what stands in its line, and a
// line begins with a message whose data are not here; (2) `unclaimed` of all stores of a message
// and the ranks that have not been told of it add up to the ranks of whose claim nobody who has the
// data knows.
class Trees final : public receive::Detour {
 public:
  struct Setup {
    MPI_Comm program;   // the program's communicator
    MPI_Comm paths;     // a duplicate of it, of ours
    std::size_t least;  // bytes from which a message goes along a tree
  };
  Trees(receive::Communicator& communicator, const Setup& setup);

  // ---- for the root
  [[nodiscard]] bool suit(std::size_t bytes, std::size_t recipients) const noexcept;
  // `rooted` will be complete when all recipients, of whom there are so many, have what they need.
  // Gives it its number.
  void begin(Rooted& rooted, int recipients);
  [[nodiscard]] int announcing_tag() const noexcept { return communicator_.tag_max(); }

  // What is under way on this rank, and what it has announced less what it has been told of: over
  // all ranks the sum is 0 if and only if nothing is under way. Any thread.
  [[nodiscard]] std::int64_t open();
  [[nodiscard]] MPI_Comm paths() const noexcept { return setup_.paths; }
  [[nodiscard]] receive::Communicator& communicator() const noexcept { return communicator_; }

  void take(const receive::Arrived& arrived) override;
  void move(Round& round) override;
  [[nodiscard]] bool next(receive::Arrived& arrived) override;
  void for_each(const std::function<void(const Operation&)>& visit) override;
  void describe(std::vector<std::string>& lines) override;
  [[nodiscard]] int drain(const char* call) override;
  void end() noexcept override;

 private:
  // A place among the messages of one source.
  struct Waiting {
    receive::Arrived arrived;
    bool here = true;  // it may be matched when it is the first
  };
  using Line = std::deque<Waiting>;

  // A message at a recipient.
  struct Transfer {
    Store store;
    receive::Envelope came;
    int parent = 0;
    int tag = 0;              // of the data, on our communicator
    bool keeps = false;       // the data are kept here; else only MPI has them
    bool delivered = false;   // it stands in its line as a message of MPI's
    Waiting* place = nullptr;  // until it is delivered
    std::unique_ptr<char[]> memory;
    std::size_t asked = 0;    // bytes for which receives are posted
    std::deque<MPI_Request> receives;  // of segments, oldest first
    MPI_Request to_itself = MPI_REQUEST_NULL;

    [[nodiscard]] bool is_left_over() const noexcept;
  };
  using Transfers = std::map<Name, Transfer>;

  struct Letter {
    Claim claim;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  [[nodiscard]] Announcement read(const receive::Arrived& arrived);
  void begin(Transfer& it);
  void take_claims();
  void take(const Claim& claim);
  void post(int to, const Claim& claim);
  void send_letters();
  void advance(Store& store);
  [[nodiscard]] bool advance(Service& service, const Store& store);
  void advance(Transfer& it);
  void receive_segments(Transfer& it);
  void post_segments(Transfer& it);
  [[nodiscard]] bool find_message(int source, int tag, receive::Arrived& arrived);
  void deliver(Transfer& it, const receive::Arrived& arrived);
  void release(int source);
  [[nodiscard]] int free_tag() noexcept;

  receive::Communicator& communicator_;
  const Setup setup_;
  int rank_ = 0;

  std::uint32_t last_id_ = 0;
  int last_tag_ = 0;
  std::int64_t announced_ = 0;  // messages, once for each recipient
  std::int64_t told_ = 0;
  std::map<std::uint32_t, Rooted*> rooted_;
  Transfers transfers_;
  std::vector<Claim> early_;  // of messages that this rank has not been told of yet
  std::list<Letter> letters_;
  std::unordered_map<int, Line> lines_;  // by source; none is empty
  std::deque<receive::Arrived> ready_;
};

// In MPI_Finalize, by all ranks: ends the trees of communicators that are not freed. Does not
// suspend.
void end_all_trees() noexcept;

}  // namespace imbrex::mpi::trees
