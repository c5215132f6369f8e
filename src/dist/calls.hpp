// SPDX-License-Identifier: BSD-3-Clause
// Remote calls by active messages. Knows no signature, and no MPI.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "dist/modules.hpp"
#include "dist/transfers.hpp"
#include "dist/waves.hpp"
#include "imbrex/detail/dist/calls.hpp"
#include "imbrex/future.hpp"

namespace imbrex::dist {

class CallSets;

enum class CallMessage : std::uint8_t {
  call,         // with the arguments
  long_call,    // whose arguments are that long: where shall they land?
  land,         // there
  result,       // with its bytes
  long_result,  // that is that long: where shall it land?
  go,           // there
  failed        // the text
};

// The calls of one RemoteCalls on one rank. Handlers make no tasks: one task, the acceptor, waits
// for calls that have come, and makes a task of each.
// Thread safety: any thread; receive() and what transfers call, one at a time.
// Invariants:
//   (1) active_: calls of this rank that have not ended, and calls that others make here.
//   (2) the end is found by four counters in waves that do not overlap: a
//       rank joins one when nothing is active, with the calls that it has made and taken so far. It
//       is the end when as many were made in a wave as were taken in the one before.
class CallsOn final : public detail::Calls {
 public:
  CallsOn(CallSets& sets, std::uint64_t id, std::vector<int> members);
  CallsOn(const CallsOn&) = delete;
  CallsOn& operator=(const CallsOn&) = delete;
  ~CallsOn();

  void call(int rank, const detail::Callee& callee, std::vector<std::byte> arguments,
            detail::CallEnded ended) override;
  void close() override;

  struct Head;
  void receive(int from, const Head& head, Bytes body) noexcept;

 private:
  struct Made;   // a call of this rank
  struct Taken;  // a call of another one
  void handle(int from, const Head& head, Bytes body);
  void take(int from, const Head& head, Bytes arguments);
  void queue(std::unique_ptr<Taken> taken);
  void accept();  // the acceptor's body
  void run(std::unique_ptr<Taken> taken);
  void answer(const Taken& taken, std::vector<std::byte> result);
  void end(Made& made, const std::exception_ptr& error, Bytes result) noexcept;
  void one_less();
  void join_if_passive();
  void wave_ended(const WaveSums& sums) noexcept;
  void send(int to, const Head& head, Bytes body);
  [[nodiscard]] Head head(CallMessage message, std::uint64_t token) const noexcept;

  CallSets& sets_;
  const std::uint64_t id_;
  const std::vector<int> members_;
  std::mutex mutex_;  // never held over a send, a task or a callback
  std::vector<std::unique_ptr<Taken>> queued_ IMBREX_GUARDED_BY(mutex_);
  std::optional<Promise<void>> more_ IMBREX_GUARDED_BY(mutex_);  // the acceptor waits for it
  std::int64_t active_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::int64_t made_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::int64_t taken_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::int64_t taken_last_ IMBREX_GUARDED_BY(mutex_) = -1;  // of all, in the last wave
  std::uint64_t epoch_ IMBREX_GUARDED_BY(mutex_) = 0;
  bool closing_ IMBREX_GUARDED_BY(mutex_) = false;
  bool joined_ IMBREX_GUARDED_BY(mutex_) = false;
  bool stops_ IMBREX_GUARDED_BY(mutex_) = false;
  Promise<void> closed_{"the end of remote calls"};
  Future<void> acceptor_;
};

// Those of this process.
class CallSets {
 public:
  CallSets(Transfers& transfers, Waves& waves) noexcept : transfers_(transfers), waves_(waves) {}
  [[nodiscard]] detail::Calls& open(std::uint64_t id, std::vector<int> members);
  [[nodiscard]] std::uint64_t draw_id() noexcept;
  void receive(int from, Bytes message) noexcept;

 private:
  friend class CallsOn;
  struct Known {
    CallsOn* calls = nullptr;  // null: only messages for it have come
    std::vector<std::pair<int, std::vector<std::byte>>> kept;
  };
  Transfers& transfers_;
  Waves& waves_;
  std::atomic<std::uint64_t> drawn_{0};
  std::mutex mutex_;  // held for a look
  std::unordered_map<std::uint64_t, Known> known_ IMBREX_GUARDED_BY(mutex_);
};

}  // namespace imbrex::dist
