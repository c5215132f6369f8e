// SPDX-License-Identifier: BSD-3-Clause
// The interface of active messages for plug-ins: its checks, and nothing else.
#include "mpi/active/active.hpp"

#include <limits>
#include <string>

#include "imbrex/detail/observation.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/active/post/post.hpp"
#include "mpi/check/ranks/ranks.hpp"
#include "mpi/engine/traffic.hpp"
#include "mpi/report/look.hpp"

namespace imbrex::mpi::active {

namespace {

static_assert(static_cast<std::size_t>(Id::last) < MessageHandlers::ids);
static_assert(transfer_bytes_max <= std::numeric_limits<int>::max());
static_assert(Packet::place_after(sizeof(PacketHead)) + sizeof(MessageHead) + message_bytes_max <=
              packet_bytes);

void require_open(const char* const call) {
  if (is_open()) return;
  throw Error(std::string("imbrex: messages between ranks are not open any more (active::") + call +
              "): end every Space, FutureSpace, WorkPool and remote call before MPI_Finalize, and "
              "before the program exits");
}

int rank_of(const char* const call, const int rank) {
  if (rank < 0 || rank >= post().wire.ranks) {
    throw Error(std::string("imbrex: active::") + call + ": there is no rank " +
                std::to_string(rank) + ": ranks are 0 to " + std::to_string(post().wire.ranks - 1));
  }
  return rank;
}

std::uint32_t id_of(const char* const call, const Id id) {
  if (id > Id::last) {
    throw Error(std::string("imbrex: active::") + call + ": there is no handler " +
                std::to_string(static_cast<int>(id)) + ": 63 is the last");
  }
  return static_cast<std::uint32_t>(id);
}

// What a trace does not contain. Copies of data have records of their own.
void note_unrecorded(const Id id) noexcept {
  switch (id) {
    case Id::paths:
    case Id::waves:
    case Id::data: return;
    case Id::futures: return detail::trace_unrecorded("messages for futures of other ranks");
    case Id::remote: return detail::trace_unrecorded("messages of remote calls");
    case Id::pools: return detail::trace_unrecorded("messages of work pools");
    default: return detail::trace_unrecorded("active messages");
  }
}

void require_function(const char* const call, const bool given) {
  if (!given) throw Error(std::string("imbrex: active::") + call + " without a function");
}

void require_countable(const char* const call, const std::size_t bytes) {
  if (bytes <= transfer_bytes_max) return;
  throw Error(std::string("imbrex: active::") + call + " of " + std::to_string(bytes) +
              " bytes: " + std::to_string(transfer_bytes_max) +
              " are possible at most; transfer the data in parts");
}

}  // namespace

void want() noexcept { wishes.want(); }
void want_calls() noexcept { wishes.want_calls(); }
void take_calls_by(void (*const begin)()) noexcept { wishes.take_calls = begin; }

bool is_open() noexcept { return post().is_open(); }
bool calls_are_open() noexcept { return is_open() && wishes.calls_agreed; }

bool all_check() noexcept { return switches.compares_ranks; }

int rank() {
  require_open("rank");
  return post().wire.rank;
}
int ranks() {
  require_open("ranks");
  return post().wire.ranks;
}

void set_handler(const Id id, const Handler handler, void* const context) {
  require_function("set_handler", handler != nullptr);
  if (!post().handlers.set(id_of("set_handler", id), handler, context)) {
    throw Error("imbrex: active::set_handler: handler " + std::to_string(static_cast<int>(id)) +
                " is set already: choose another number");
  }
}

void send(const int to, const Id id, const std::span<const std::byte> head,
          const std::span<const std::byte> body) {
  require_open("send");
  if (head.size() > message_bytes_max || body.size() > message_bytes_max - head.size()) {
    throw Error("imbrex: active::send of " + std::to_string(head.size()) + " and " +
                std::to_string(body.size()) + " bytes: " + std::to_string(message_bytes_max) +
                " are possible in all; use deliver()");
  }
  if (detail::tracing()) [[unlikely]] note_unrecorded(id);
  post().outbox.send(rank_of("send", to), id_of("send", id), head, body);
}

void flush() noexcept {
  if (is_open()) post().outbox.flush();
}

Landing offer(const int from, const std::span<std::byte> memory, const Ended ended,
              void* const context) {
  require_open("offer");
  require_function("offer", ended != nullptr);
  require_countable("offer", memory.size());
  return {post().transfers.offer(rank_of("offer", from), memory, ended, context), post().wire.rank,
          memory.size()};
}

void deliver(const Landing& landing, const std::span<const std::byte> data, const Ended ended,
             void* const context) {
  require_open("deliver");
  require_function("deliver", ended != nullptr);
  require_countable("deliver", data.size());
  if (landing.tag < 1) throw Error("imbrex: active::deliver to a landing that no rank has offered");
  if (data.size() > landing.bytes) {
    throw Error("imbrex: active::deliver of " + std::to_string(data.size()) +
                " bytes to a landing of " + std::to_string(landing.bytes));
  }
  post().transfers.deliver(rank_of("deliver", landing.rank), landing.tag, data, ended, context);
}

Expecting::Expecting() noexcept { post().work.expect(); }
Expecting::~Expecting() { post().work.expect_no_more(); }

void describe_by(const Describe describe, void* const context) {
  require_function("describe_by", describe != nullptr);
  report::add_description(describe, context);
}

Counts counts() noexcept {
  // A message is sent before it is handled: read in this order, one process never has handled more.
  const std::uint64_t handled = traffic().handled.load(std::memory_order_acquire);
  return {traffic().sent.load(std::memory_order_relaxed), handled};
}

}  // namespace imbrex::mpi::active
