// SPDX-License-Identifier: BSD-3-Clause
// Dynamic broadcasts (Denis et al., Euro-Par 2020) by active messages: bytes of a datum for a list
// of ranks that only the root knows. A rank that gets them finds in the message the ranks that it
// must pass them on to, and hands them to its reader as if they had come for it alone.
// docs/design/broadcasts.md has the protocol, and why it cannot deadlock. Knows no task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "distributed/data/buffer.hpp"
#include "distributed/data/trees.hpp"

namespace imbrex::distributed {

// The number of no datum: names a text that ranks share about a failure. The text always arrives,
// also in a space that was given up, since ranks leave behind that broadcast.
inline constexpr std::uint64_t text_datum = UINT64_MAX;
// Names the decisions of the tasks that may end a loop.
inline constexpr std::uint64_t decision_datum = UINT64_MAX - 1;

struct DatumName {
  std::uint64_t space = 0;
  std::uint64_t datum = 0;
  friend auto operator<=>(const DatumName&, const DatumName&) = default;
};

// The callbacks of an inserted reader. Each is called once, by a handler of messages or by expect()
// itself; no lock is held, and they must not wait.
struct Incoming {
  // `buffer` has the data, and the callback owns a reference to it; or it is null, and `error` has
  // the reason. Any number of threads may read the bytes from now on.
  void (*arrived)(void* context, Buffer* buffer, std::exception_ptr error) noexcept;
  // Called after `arrived`: this rank has passed the data on, so they may be overwritten.
  void (*passed_on)(void* context) noexcept;
  void* context;
};

struct BroadcastOptions {
  TreeKind kind = TreeKind::automatic;
  std::size_t chain_from = std::size_t{256} << 10;  // data travel in segments from this size on
  // Short enough for an eager send of MPI (64 KiB is the usual limit over TCP): a rendezvous would
  // wait until that rank, and then this one, polls.
  std::size_t segment = std::size_t{60} << 10;
  unsigned window = 6;  // segments in flight to one peer, 1 to 16
  // The most bytes that may be stored here for readers that are not inserted yet.
  std::size_t early_bytes_max = std::size_t{64} << 20;
  unsigned early_payloads_max = 16;                 // from each peer
  std::size_t inline_max = 3500;                    // no more than that goes within a message
};

// Thread safety: any thread; receive() and the functions that transfers call run one at a time (as
// handlers do).
class Broadcasts {
 public:
  Broadcasts(Transfers& transfers, const BroadcastOptions& options);
  ~Broadcasts();
  Broadcasts(const Broadcasts&) = delete;
  Broadcasts& operator=(const Broadcasts&) = delete;

  // Messages for a space are kept until it is open here. While a space is open this rank polls for
  // messages. `name` is for texts. Throws Error if it is open, or was.
  void open_space(std::uint64_t space, std::string_view name);
  // Returns null if no operation of the space is in flight here, or an error that describes one:
  // its readers then get no callback, and ranks that send to them get an error. REQUIRES: no send()
  // or expect() of this space runs, or begins later.
  [[nodiscard]] std::exception_ptr close_space(std::uint64_t space) noexcept;
  // Data that have not arrived for readers of that space, also of readers inserted later, will not
  // arrive: the readers get an Error with the reason `why`.
  void give_up_space(std::uint64_t space, std::string_view why);
  // give_up_space() on all ranks of `ranks`, of MPI_COMM_WORLD.
  void leave_space(std::uint64_t space, std::span<const int> ranks, std::string_view why);
  // The node of each rank of MPI_COMM_WORLD, by any numbers; the same on all ranks. Call it before
  // the first send(). Without it, every rank is a node of its own.
  void set_nodes(std::uint64_t space, std::vector<int> node_of_rank);

  // Sends `data`, which stay unchanged until `ended`, to all ranks of `to`: distinct ranks, without
  // this one, in the order of their first readers in the program. `ended` is called once when the
  // last byte has left this rank, under the rules of Incoming, and perhaps before send() returns.
  // Its error names datum, root and rank of the first failure. Outside of handlers the call may
  // suspend. Throws Error if the list is wrong.
  void send(const DatumName& datum, std::vector<Recipient> to, Bytes data, Ended ended,
            void* context);

  // Tells all ranks of `to` that the data do not exist, and why: their readers get an Error.
  void send_failure(const DatumName& datum, std::vector<Recipient> to, std::string_view why);

  // Inserts the reader of the `ticket`-th transfer of this datum from `source`, the root, which
  // expects that many bytes. The data may be here already, or arrive much later. Throws Error if
  // that transfer is expected already.
  void expect(const DatumName& datum, int source, std::uint32_t ticket, std::size_t bytes,
              const Incoming& incoming);

  void receive(int from, Bytes message) noexcept;

  struct Counters {
    std::uint64_t broadcasts = 0;       // sends of this rank to more than one rank
    std::uint64_t sends = 0;            // all sends of this rank
    std::uint64_t copies_as_root = 0;
    std::uint64_t copies_as_relay = 0;
    std::uint64_t copies_inline = 0;    // of both kinds, copies within a message
    std::uint64_t bytes_as_root = 0;
    std::uint64_t bytes_as_relay = 0;
    std::uint64_t arrived = 0;          // copies that have arrived here
    std::uint64_t early = 0;            // of these, copies that arrived before their reader
    std::uint64_t handed_back = 0;      // copies for which this rank had no room, and their lists
    std::uint64_t served_again = 0;     // ranks of lists that were handed back to this rank
    std::uint64_t failed = 0;           // copies, from or to this rank
    std::size_t early_bytes_most = 0;   // largest amount stored here at once
  };
  [[nodiscard]] Counters counters() const noexcept;

  // Copies of one space that this rank has announced or sent, while it is open.
  struct SpaceCopies {
    std::uint64_t as_root = 0;
    std::uint64_t as_relay = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] SpaceCopies copies(std::uint64_t space) const noexcept;

  // For one space: sends that have not ended, copies that have not arrived for a reader or been
  // passed on, and copies without a reader.
  [[nodiscard]] std::size_t under_way(std::uint64_t space) const noexcept;
  // The operations of under_way() as at most `lines_max` lines of text: senders, recipients and
  // data, drawn as trees as far as this rank knows them, and the waits.
  void describe(std::uint64_t space, std::size_t lines_max, std::string& text) const;
  void describe(std::size_t lines_max, std::string& text) const;  // for all open spaces

 private:
  class Departures;
  class Protocol;
  const std::unique_ptr<Departures> departures_;  // before the protocol, which sends through it
  const std::unique_ptr<Protocol> protocol_;
};

// The broadcasts of this process, by active messages. REQUIRES: active messages are open.
[[nodiscard]] Broadcasts& broadcasts();

}  // namespace imbrex::distributed
