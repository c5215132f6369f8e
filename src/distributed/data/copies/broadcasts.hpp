// SPDX-License-Identifier: BSD-3-Clause
// Dynamic broadcasts (Denis et al., Euro-Par 2020) by active messages: bytes of a datum for a list
// of ranks that only the root knows. A rank that gets them finds in the message to whom it has to
// pass them on, and hands them to its reader as if they had come for it alone.
// docs/design/broadcasts.md has the protocol, and why it cannot deadlock. Knows no task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "distributed/data/buffer.hpp"
#include "distributed/data/trees.hpp"

namespace imbrex::distributed {

struct DatumName {
  std::uint64_t space = 0;
  std::uint64_t datum = 0;
  friend auto operator<=>(const DatumName&, const DatumName&) = default;
};

// What a reader that is inserted gives. Both functions are called once, by a handler of messages or
// by expect() itself; no lock is held, and they must not wait.
struct Incoming {
  // `buffer` has the data, and whoever is called owns a reference to it. Or it is null, and `error`
  // says why. The bytes may be read from now on, by as many as like.
  void (*arrived)(void* context, Buffer* buffer, std::exception_ptr error) noexcept;
  // After `arrived`: this rank has passed the data on to whom it had to: they may be overwritten.
  void (*passed_on)(void* context) noexcept;
  void* context;
};

struct BroadcastOptions {
  TreeKind kind = TreeKind::automatic;
  std::size_t chain_from = std::size_t{256} << 10;  // from here on data travel in segments
  // Short enough for MPI to send a segment without asking the receiver first (64 KiB is the usual
  // limit over TCP): the answer would wait until that rank, and then this one, looks at messages.
  std::size_t segment = std::size_t{60} << 10;
  unsigned window = 6;  // segments under way to one peer, 1 to 16
  // What may lie here of data for which no reader has been inserted yet.
  std::size_t early_bytes_max = std::size_t{64} << 20;
  unsigned early_payloads_max = 16;                 // from each peer
  std::size_t inline_max = 3500;                    // no more than that goes within a message
};

// Thread safety: any thread; receive(), and what transfers call, one at a time (as handlers are).
class Broadcasts {
 public:
  Broadcasts(Transfers& transfers, const BroadcastOptions& options);
  ~Broadcasts();
  Broadcasts(const Broadcasts&) = delete;
  Broadcasts& operator=(const Broadcasts&) = delete;

  // Messages for a space are kept until it is open here. While one is open this rank asks for
  // messages. `name` is for texts. Throws Error if it is open, or was.
  void open_space(std::uint64_t space, std::string_view name);
  // Null if nothing of the space is under way here; otherwise the error that says what is: then its
  // readers are not told any more, and those who send to them get an error.
  // REQUIRES: no send() or expect() of this space goes on, or begins later.
  [[nodiscard]] std::exception_ptr close_space(std::uint64_t space) noexcept;
  // What has not come here for a reader in that space will not, nor for readers that are inserted
  // later: they get an Error that says why.
  void give_up_space(std::uint64_t space, std::string_view why);
  // On which node each rank of MPI_COMM_WORLD is, by any numbers; the same on all ranks. Before the
  // first send(). Without it, every rank counts as a node of its own.
  void set_nodes(std::uint64_t space, std::vector<int> node_of_rank);

  // Sends `data`, which stay unchanged until `ended`, to all of `to`: distinct ranks, not this one,
  // in the order of their first readers in the program. `ended` is called once, as Incoming's
  // functions are, and perhaps before send() returns: when the last byte has left this rank. Its
  // error names datum, root and rank, the first of those that failed. Outside of handlers this may
  // suspend. Throws Error if the list is wrong.
  void send(const DatumName& datum, std::vector<Recipient> to, Bytes data, Ended ended,
            void* context);

  // Tells all of `to` that there are no such data, and why: their readers get an Error.
  void send_failure(const DatumName& datum, std::vector<Recipient> to, std::string_view why);

  // The reader of the `ticket`-th transfer of this datum from `source`, the root, is inserted here,
  // and expects that many bytes. The data may be here already, or come much later.
  // Throws Error if that transfer is expected already.
  void expect(const DatumName& datum, int source, std::uint32_t ticket, std::size_t bytes,
              const Incoming& incoming);

  void receive(int from, Bytes message) noexcept;

  struct Counters {
    std::uint64_t broadcasts = 0;       // sends of this rank to more than one
    std::uint64_t sends = 0;            // all sends of this rank
    std::uint64_t copies_as_root = 0;
    std::uint64_t copies_as_relay = 0;
    std::uint64_t copies_inline = 0;    // of both, those within a message
    std::uint64_t bytes_as_root = 0;
    std::uint64_t bytes_as_relay = 0;
    std::uint64_t arrived = 0;          // copies that have come here
    std::uint64_t early = 0;            // of those, the ones that came before their reader
    std::uint64_t handed_back = 0;      // copies that this rank had no room for, and their lists
    std::uint64_t served_again = 0;     // ranks of lists that were handed back to this one
    std::uint64_t failed = 0;           // copies, from or to this rank
    std::size_t early_bytes_most = 0;   // that have lain here at once
  };
  [[nodiscard]] Counters counters() const noexcept;

  // Copies of one space that this rank has announced or sent, while it is open.
  struct SpaceCopies {
    std::uint64_t as_root = 0;
    std::uint64_t as_relay = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] SpaceCopies copies(std::uint64_t space) const noexcept;

  // Of one space: sends that have not ended, copies that have not arrived for a reader or been
  // passed on, and copies without a reader.
  [[nodiscard]] std::size_t under_way(std::uint64_t space) const noexcept;
  // The same as lines of text, at most `lines_max`, each ended: who sends what to whom, drawn as
  // trees as far as this rank knows them, and who waits for whom.
  void describe(std::uint64_t space, std::size_t lines_max, std::string& text) const;
  void describe(std::size_t lines_max, std::string& text) const;  // of all spaces that are open

 private:
  class Departures;
  class Protocol;
  const std::unique_ptr<Departures> departures_;  // before the protocol, which sends by it
  const std::unique_ptr<Protocol> protocol_;
};

// Those of this process, by active messages. REQUIRES: they are open.
[[nodiscard]] Broadcasts& broadcasts();

}  // namespace imbrex::distributed
