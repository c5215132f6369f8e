// SPDX-License-Identifier: BSD-3-Clause
// The protocols of this process on its active messages: one object each, made at its first use.
#include "distributed/by_messages.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "distributed/call_messages.hpp"
#include "distributed/carrier/errors.hpp"
#include "distributed/carrier/leaving.hpp"
#include "distributed/carrier/transfers.hpp"
#include "distributed/carrier/waves.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "distributed/data/recorder.hpp"
#include "distributed/data/space/space.hpp"
#include "distributed/futures.hpp"
#include "distributed/pool/pools.hpp"
#include "imbrex/detail/distributed/members.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/active/active.hpp"

namespace imbrex::distributed {

namespace active = mpi::active;

static_assert(message_bytes_max == active::message_bytes_max);

Waves& waves() {
  // Never destroyed: at exit() a worker may still be in a handler.
  static auto& on_messages = []() -> auto& {
    // Every object whose end is collective uses waves.
    active::describe_by([](void*, const std::size_t lines_max, std::string& text) noexcept {
      Leaving::describe(lines_max, text);
    }, nullptr);
    return *new OnMessages<Waves>(active::Id::waves);
  }();
  return on_messages.protocol;
}

Pools& pools() {
  static auto& on_messages = *new OnMessages<Pools>(active::Id::pools);
  return on_messages.protocol;
}

[[nodiscard]] static Calls& calls() {
  static auto& on_messages = *new OnMessages<Calls>(active::Id::remote);
  return on_messages.protocol;
}

Futures& futures() {
  static auto& on_messages = *new OnMessages<Futures>(active::Id::futures, waves());
  return on_messages.protocol;
}

namespace {
[[nodiscard]] BroadcastOptions options_of_broadcasts() {
  const std::string wanted = detail::text_option("TREES");  // "auto" is none of these
  BroadcastOptions options;
  for (const TreeKind kind : {TreeKind::star, TreeKind::binomial, TreeKind::chain,
                              TreeKind::binary}) {
    if (wanted == name_of(kind)) options.kind = kind;
  }
  return options;
}
}  // namespace

Broadcasts& broadcasts() {
  static const BroadcastOptions options = options_of_broadcasts();
  static auto& on_messages = []() -> auto& {
    auto& made = *new OnMessages<Broadcasts>(active::Id::data, options);
    active::describe_by(
        [](void* const context, const std::size_t lines_max, std::string& text) noexcept {
          static_cast<const Broadcasts*>(context)->describe(lines_max, text);
        },
        &made.protocol);
    return made;
  }();
  return on_messages.protocol;
}

}  // namespace imbrex::distributed

namespace imbrex::detail {

void require_messages(const std::string& what) {
  if (!mpi::active::is_open()) {
    throw Error("imbrex: " + what + " while messages between ranks are not open: use it between "
                "MPI_Init and MPI_Finalize, and load the code that uses it before MPI_Init");
  }
  if (in_callback()) {
    throw Error("imbrex: " + what + " is made inside an event handler, a continuation or another "
                "callback: its ranks wait for each other, and no task runs there that could be "
                "suspended; let the callback set a Promise, and make it in a task that waits for "
                "the future");
  }
}

Space& open_space(SpaceSpec spec) {
  require_messages(spec.name);
  distributed::refuse_simulation("space of futures ", spec.name);
  return distributed::futures().open(std::move(spec));
}

namespace {
// The process stands for all ranks of a simulation, on any communicator.
void stand_for_all(Members& members, const std::string& name) {
  const auto ranks = static_cast<std::size_t>(distributed::Recorder::ranks());
  if (mpi::active::ranks() != 1) {
    throw Error(fmt::format("imbrex: space \"{}\" is recorded for a simulation of {} ranks in a "
                            "program of {} processes: imbrex simulate starts one process, so name "
                            "the program itself and no launcher", name, ranks,
                            mpi::active::ranks()));
  }
  members.world.resize(ranks);
  std::iota(members.world.begin(), members.world.end(), 0);
  members.nodes = members.world;
}
}  // namespace

DataSpace* make_data_space(Members members, SpaceOptions options) {
  distributed::Recorder* const recorder = distributed::Recorder::of_process();
  if (recorder != nullptr) [[unlikely]] stand_for_all(members, options.name);
  return new DataSpace({distributed::broadcasts(), distributed::waves(), mpi::active::rank(),
                        mpi::active::all_check(), recorder},
                       std::move(members), std::move(options));
}

void call_on(const CalledRank& rank, const Callee& callee, std::vector<std::byte> arguments,
             CallEnded ended) {
  distributed::refuse_simulation("a remote call", "");
  if (!mpi::active::calls_are_open()) {
    throw Error("imbrex: a remote call to rank " + std::to_string(rank.rank) + " while ranks "
                "take no calls: call between MPI_Init and MPI_Finalize, and load the code that "
                "calls before MPI_Init");
  }
  if (rank.rank < 0 || rank.rank >= mpi::active::ranks()) {
    throw Error("imbrex: a remote call to rank " + std::to_string(rank.rank) + ": valid: 0 to " +
                std::to_string(mpi::active::ranks() - 1));
  }
  distributed::calls().call(rank, callee, std::move(arguments), std::move(ended));
}
}  // namespace imbrex::detail

namespace imbrex {

namespace {
[[maybe_unused]] const bool is_named =
    (mpi::active::take_calls_by([] { (void)distributed::calls(); }), true);

}  // namespace

void detail::take_calls_at_init() noexcept { mpi::active::want_calls(); }

}  // namespace imbrex

#pragma GCC visibility push(default)
extern "C" {

void imbrex_open_messages_at_init() { imbrex::mpi::active::want(); }

std::uint64_t imbrex_new_id() {
  static std::atomic<std::uint32_t> count{0};
  return static_cast<std::uint64_t>(imbrex::mpi::active::rank()) << 32 |
         count.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number
}

}  // extern "C"
#pragma GCC visibility pop
