// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures by active messages: which rank has asked for which value, and where values
// arrive. Knows no type of a value, and no MPI. FutureMessage lists the protocol.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/carrier/leaving.hpp"
#include "distributed/carrier/transfers.hpp"
#include "distributed/carrier/waves.hpp"
#include "imbrex/detail/distributed/spaces.hpp"
#include "imbrex/future.hpp"

namespace imbrex::distributed {

class Futures;

enum class FutureMessage : std::uint8_t {
  ask,       // reader to home: asks for the value; with a landing, or inline
  data,      // home to reader: the value
  size,      // home to reader: the length of the value; asks for a landing
  go,        // reader to home: the landing
  not_now,   // reader to home: no longer needed
  error,     // home to reader: the text
  give_up,   // reader to home: end this landing, without data
  put,       // to home: the value, and the place of the put
  announce,  // to home: the length of the value; and the place of the put
  land,      // home to putting rank: the landing
  taken,     // home to putting rank: the value has arrived
  refused,   // home to putting rank: the text
  left       // to all ranks: an exception has ended the space on the sending rank
};

// One space on one rank. Thread safety: any thread; receive() and the functions that transfers call
// run one at a time (as handlers do).
// Invariants:
//   (1) `taken` of a future's state is set once: by the thread that builds its value or failure,
//       and fires it.
//   (2) At home the table owns a reference to a state from its first use until all readers have the
//       value, which is then freed. Afterwards, and on other ranks, it owns none: a state at zero
//       removes itself. At home an entry stays, so that a second put is detected.
//   (3) after the message `left` of this rank no function of the program (SpaceSpec) is called,
//       since the exception destroys the variables that it may refer to.
//   (4) open_ counts what close() waits for here: fetches and puts in flight, and futures of this
//       home that were asked for here and not put. Handlers go on until all ranks have called
//       close(): tests/models/future_space.pml.
class SpaceOn final : public detail::Space {
 public:
  SpaceOn(Futures& futures, detail::SpaceSpec spec);
  SpaceOn(const SpaceOn&) = delete;
  SpaceOn& operator=(const SpaceOn&) = delete;

  [[nodiscard]] detail::SpaceFuture& future(std::uint64_t guid) override;
  void put(std::uint64_t guid, const detail::Build& build,
           const std::source_location& where) override;
  void expect() override;
  void close() override;
  void let_go() noexcept override;

  struct Head;
  void receive(int from, const Head& head, Bytes body) noexcept;
  [[nodiscard]] std::uint64_t id() const noexcept { return spec_.id; }
  void release() noexcept;

 private:
  struct Waiter {
    int rank;
    std::uint64_t token;  // the reader's Fetch
    Landing landing;
  };
  struct Site {  // of a put
    int rank = -1;
    std::source_location where;   // here
    const char* text = nullptr;   // elsewhere
  };
  struct Fetch;
  struct Entry {
    detail::SpaceFuture* state = nullptr;
    std::unique_ptr<std::vector<Waiter>> waiters;
    Site site;                       // at home: the place of the put, finished or not
    std::uint32_t readers = 0;       // number of ranks that have read it
    bool there = false;              // at home: it has its value
    bool requested_here = false;
    bool given_back = false;
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, Entry> entries IMBREX_GUARDED_BY(mutex);
  };
  struct Put;
  struct Arriving;

  [[nodiscard]] Shard& shard(std::uint64_t guid) noexcept;
  [[nodiscard]] int home_of(std::uint64_t guid) const;  // of MPI_COMM_WORLD
  [[nodiscard]] bool is_home(const int home) const noexcept;
  [[nodiscard]] std::string name_of(std::uint64_t guid) const;
  [[nodiscard]] std::string text_of(const Site& site) const;
  [[nodiscard]] detail::SpaceFuture& make_state(std::uint64_t guid);
  static void destroy_state(detail::PromiseState& state) noexcept;
  static void describe_state(const detail::RemoteState& state, std::string& text);

  [[nodiscard]] detail::SpaceFuture& future_here(std::uint64_t guid);
  [[nodiscard]] detail::SpaceFuture& future_of(int home, std::uint64_t guid);
  void ask(int home, Fetch& fetch);
  void end_fetch(Fetch& fetch) noexcept;
  void finish_fetch(Fetch& fetch, std::exception_ptr error) noexcept;
  static void fetched(void* fetch, std::exception_ptr error) noexcept;

  // Claims the one put of a guid at home. Throws Error if there was a put before.
  [[nodiscard]] detail::SpaceFuture& claim(std::uint64_t guid, const Site& site);
  void put_here(std::uint64_t guid, const detail::Build& build, const std::source_location& where);
  void put_at(int home, std::uint64_t guid, const detail::Build& build,
              const std::source_location& where);
  void end_put(Put& put, std::exception_ptr error) noexcept;
  static void landed_here(void* arriving, std::exception_ptr error) noexcept;
  // The value of a claimed state, or its failure, is here: fires it, and answers the waiting
  // readers. Takes over a reference.
  void complete(detail::SpaceFuture& state, std::exception_ptr error);
  void fill(detail::SpaceFuture& state, Bytes bytes) const;
  void serve(detail::SpaceFuture& state, const Waiter& waiter);
  [[nodiscard]] bool view(detail::SpaceFuture& state, const Waiter& waiter,
                          std::vector<std::byte>& scratch, Bytes& data);
  void deliver(detail::SpaceFuture& state, const Waiter& waiter);
  void send_error(const Waiter& waiter, std::uint64_t guid, const std::string& text, bool dead);
  void has_read(std::uint64_t guid, std::uint32_t more);
  // The result of size(), or ValueOps::varying. Values that are put or read on this rank have this
  // length.
  [[nodiscard]] std::size_t size_of(std::uint64_t guid) const;
  void check_size(std::uint64_t guid, std::size_t bytes) const;
  [[nodiscard]] std::string other_size(std::uint64_t guid, std::size_t bytes, int home, int reader,
                                       std::size_t expected) const;
  void check_size_read(const Fetch& fetch, std::size_t bytes) const;

  void on_ask(int from, const Head& head, Bytes body);
  void on_data(const Head& head, Bytes body);
  void on_size(int from, const Head& head);
  void on_go(int from, const Head& head);
  void on_not_now(std::uint64_t guid);
  void on_error(const Head& head, Bytes body);
  void on_put(int from, const Head& head, Bytes body);
  void on_land(const Head& head);
  void on_left(int from);
  static void fail_of_leaving(detail::SpaceFuture& state, std::exception_ptr error);
  void leave();
  void end_entries();  // the last step of close() and leave()
  // Throws Error if an exception has ended the space on a rank.
  void check_left() const;
  [[nodiscard]] std::string object_text() const;
  void handle(int from, const Head& head, Bytes body);
  void answer_put(int to, std::uint64_t guid, std::uint64_t token, const std::string& refusal);
  void send(int to, const Head& head, Bytes body = {});
  [[nodiscard]] Head head(FutureMessage message, std::uint64_t guid) const noexcept;

  void opened() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }
  void ended();  // one of (4) has ended, or closing itself
  void describe_open(std::string& text);
  void check_open(std::uint64_t guid) const;
  void check_type(std::uint64_t guid, std::uint64_t type) const;
  void check_home(std::uint64_t guid) const;

  Futures& futures_;
  const char* const name_;
  const detail::SpaceSpec spec_;
  std::array<Shard, 16> shards_;
  std::atomic<std::uint64_t> references_{1};
  std::atomic<std::int64_t> open_{1};  // one of them stands for the space until close()
  std::atomic<bool> closing_{false};
  std::atomic<bool> expects_{false};
  Leaving leaving_;
  std::atomic<bool> has_left_{false};        // this rank: see (3)
  std::atomic<int> left_by_{-1};             // the first such rank, of MPI_COMM_WORLD
  Promise<void>* left_here_ = nullptr;  // of leave(), which waits for on_left()
  // The event that close() waits for.
  struct End : detail::RemoteState {
    explicit End(SpaceOn& its_space) noexcept;
    SpaceOn& space;
    // Written before it fires: the number of ranks that have left, and the rank if there is one.
    std::int64_t leavers = 0;
    int leaver = -1;
  };
  End end_{*this};
};

// All spaces of this process, or in tests of one rank of a network.
class Futures {
 public:
  Futures(Transfers& transfers, Waves& waves) noexcept : transfers_(transfers), waves_(waves) {}
  [[nodiscard]] detail::Space& open(detail::SpaceSpec spec);
  void receive(int from, Bytes message) noexcept;

 private:
  friend class SpaceOn;
  void forget(std::uint64_t id);

  struct Known {
    SpaceOn* space = nullptr;  // null: only messages for it have arrived
    std::vector<std::pair<int, std::vector<std::byte>>> kept;
  };
  Transfers& transfers_;
  Waves& waves_;
  std::mutex mutex_;  // held for a look
  std::unordered_map<std::uint64_t, Known> spaces_ IMBREX_GUARDED_BY(mutex_);
};

[[nodiscard]] Futures& futures();  // those of this process. REQUIRES: active messages are open

}  // namespace imbrex::distributed
