// SPDX-License-Identifier: BSD-3-Clause
// Remote calls by active messages. Knows no signature, and no MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "distributed/modules.hpp"
#include "imbrex/detail/distributed/remote_calls.hpp"

namespace imbrex::distributed {

enum class CallMessage : std::uint8_t {
  call,         // with the arguments
  long_call,    // with the length of the arguments; asks for a landing
  land,         // the landing
  result,       // with its bytes
  long_result,  // with its length; asks for a landing
  go,           // the landing
  failed        // the text
};

// The calls of this process to others, and theirs to it. It has no state of its own: a call belongs
// to the caller's Made; on the other rank first to Taken, then to a task; messages carry the
// addresses. The handler that takes a call spawns its task without a parent, so that MPI_Finalize
// waits for it as for all tasks. Thread safety: any thread calls call(); receive() and the
// functions that transfers call run one at a time.
class Calls {
 public:
  // Other ranks may call until MPI_Finalize, so a worker here polls for messages until then.
  explicit Calls(Transfers& transfers) : transfers_(transfers) { transfers_.expect(); }

  void call(const CalledRank& to, const detail::Callee& callee,
            std::vector<std::byte> arguments, detail::CallEnded ended);
  void receive(int from, Bytes message) noexcept;

 private:
  struct Head;
  struct Made;   // a call of this rank
  struct Taken;  // a call of another rank
  struct Sending;
  void handle(int from, const Head& head, Bytes body);
  void take(int from, const Head& head, Bytes arguments);
  void start(std::unique_ptr<Taken> taken);
  void run(const Taken& taken);
  void fail(const Taken& taken, const std::string& why);
  void answer(const Taken& taken, std::vector<std::byte> result);
  void send(int to, const Head& head, Bytes body);
  void deliver(const Landing& landing, std::unique_ptr<Sending> sending);
  [[nodiscard]] static Head head(CallMessage message, std::uint64_t token) noexcept;

  Transfers& transfers_;
};

}  // namespace imbrex::distributed
