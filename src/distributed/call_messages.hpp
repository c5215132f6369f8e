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
  long_call,    // whose arguments are that long: where shall they land?
  land,         // there
  result,       // with its bytes
  long_result,  // that is that long: where shall it land?
  go,           // there
  failed        // the text
};

// The calls of this process to others, and theirs to it. It has no state of its own: what belongs
// to a call is its caller's Made, and on the other rank first Taken, then a task; messages carry
// the addresses. The handler that takes a call spawns its task, whose parent is nobody's task, so
// that MPI_Finalize waits for it as it does for all.
// Thread safety: call(), any thread; receive() and what transfers call, one at a time.
class Calls {
 public:
  // Others may call until MPI_Finalize, so until then somebody here asks for messages.
  explicit Calls(Transfers& transfers) : transfers_(transfers) { transfers_.expect(); }

  void call(const CalledRank& to, const detail::Callee& callee,
            std::vector<std::byte> arguments, detail::CallEnded ended);
  void receive(int from, Bytes message) noexcept;

 private:
  struct Head;
  struct Made;   // a call of this rank
  struct Taken;  // a call of another one
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
