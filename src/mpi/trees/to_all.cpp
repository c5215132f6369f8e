// SPDX-License-Identifier: BSD-3-Clause
// IMBREX_Send_to_all and IMBREX_Isend_to_all: a send for each recipient or, on a communicator with
// trees, an announcement for each and the data along a tree.
#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <utility>

#include "mpi/trees/shape.hpp"
#include "imbrex/mpi.h"
#include "mpi/calls/p2p/notices.hpp"
#include "mpi/calls/p2p/receives.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/matching/token.hpp"
#include "mpi/matching/wait.hpp"
#include "mpi/trees/trees.hpp"

namespace imbrex::mpi::trees {

namespace {

using receive::Communicator;
using receive::Substitute;

// Below this a binomial tree has the last copy there first, from here on a chain of segments.
constexpr std::size_t chain_bytes = 256 * 1024;
constexpr std::size_t segment_bytes = 128 * 1024;

struct Message {
  const char* name;  // of the call
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int tag;
  MPI_Comm comm;

  [[nodiscard]] Call call_to(const int peer) const noexcept {
    return {name, comm, peer, tag, count, type, Kind::send, true};
  }
};

// MPI_Isend of this library, which looks on at nothing and may hold the message back.
int isend(const Message& it, const int to, MPI_Request* request) {
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) {
    return IMBREX_OWN(Isend_c)(it.buffer, it.count, it.type, to, it.tag, it.comm, request);
  }
#endif
  return IMBREX_OWN(Isend)(it.buffer, static_cast<int>(it.count), it.type, to, it.tag, it.comm,
                          request);
}

// ---- one call ----------------------------------------------------------------------------------

struct ToAll;

// A message of MPI's that the call has led to.
struct Part : Operation, receive::Listener {
  ToAll* whole = nullptr;
  std::unique_ptr<Substitute> placeholder;  // whose request MPI_Isend has given, if it is not MPI's

  static void ended(Operation& self) noexcept;
  static void told(receive::Listener& self) noexcept;
};

// The tree, at its root.
struct Tree : Rooted {
  ToAll* whole = nullptr;
  std::unique_ptr<char[]> packed;
  std::vector<Announcement> announcements;

  static void ended(Operation& self) noexcept;
};

// What the program's request stands for.
struct Whole final : Substitute {
  Whole(const Message& it, Communicator& its_communicator) noexcept
      : Substitute(its_communicator, Kind::send, false) {
    call = {.name = it.name, .comm = it.comm, .tag = it.tag, .kind = mpi::Kind::send,
            .at_once = true};
  }
  void cancel() noexcept override {}  // too late, as for most sends
};

// It ends when its parts have; then what the program's request stands for does.
// Thread safety: its parts end on any thread; the last one ends it.
struct ToAll {
  Whole* its_own = nullptr;  // the program's, from its request
  std::vector<Part> parts;
  Tree tree;
  std::atomic<const Operation*> failed{nullptr};  // the first; release: its code is seen
  std::atomic<int> left{1};  // acq_rel: the results of all parts are seen by the last

  void end_part(const Operation& part) noexcept {
    const Operation* none = nullptr;
    if (part.code != MPI_SUCCESS) {
      failed.compare_exchange_strong(none, &part, std::memory_order_release,
                                     std::memory_order_relaxed);
    }
    let_go();
  }
  void let_go() noexcept {
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::unique_ptr<ToAll> owned(this);
    Operation good;
    good.status = receive::empty_status();
    const Operation* const bad = failed.load(std::memory_order_acquire);
    const Operation& result = bad != nullptr ? *bad : good;
    its_own->end_like(result, result.code);
  }

  // Begins a message. The request is MPI's, or stands for one that is held back.
  void send(const Message& it, const int to) {
    Part& part = parts.emplace_back();
    part.whole = this;
    part.call = it.call_to(to);
    part.call.type = MPI_DATATYPE_NULL;  // the program may free it
    MPI_Request request = MPI_REQUEST_NULL;
    part.take(isend(it, to, &request));
    left.fetch_add(1, std::memory_order_relaxed);
    if (part.code != MPI_SUCCESS) return end_part(part);
    if (Substitute* const stands_for = receive::substitute(request)) {
      part.placeholder.reset(stands_for);
      part.fire = &Part::told;
      stands_for->take_handle();
      receive::Token& token = *stands_for->token();
      const bool waits = stands_for->attend(part);
      give_token(token);
      if (!waits) Part::told(part);
      return;
    }
    part.complete = &Part::ended;
    part.request = request;
    engine().add(part);
  }
};

void Part::ended(Operation& self) noexcept {
  Part& part = static_cast<Part&>(self);
  part.whole->end_part(part);
}
void Part::told(receive::Listener& self) noexcept {
  Part& part = static_cast<Part&>(self);
  const std::unique_ptr<Substitute> placeholder = std::move(part.placeholder);
  part.code = placeholder->code;
  part.handler_ran = placeholder->handler_ran;
  part.handler = placeholder->handler;
  part.whole->end_part(part);
}
void Tree::ended(Operation& self) noexcept {
  engine().leave_feed();
  Tree& tree = static_cast<Tree&>(self);
  tree.whole->end_part(tree);
}

// ---- trees -------------------------------------------------------------------------------------

// Bytes of the message; 0 if it has none or MPI refuses the arguments.
std::size_t bytes_of(const Message& it) noexcept {
  MPI_Count size = 0;
  if (it.count <= 0 || it.type == MPI_DATATYPE_NULL ||
      PMPI_Type_size_x(it.type, &size) != MPI_SUCCESS || size <= 0) {
    return 0;
  }
  return static_cast<std::size_t>(size) * static_cast<std::size_t>(it.count);
}

// Elements of a named type without gaps lie as they travel; others are packed. False: there is no
// memory for that.
bool lay_out(const Message& it, const std::size_t bytes, Tree& tree) {
  MPI_Aint low = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(it.type, &low, &extent);
  const auto size = static_cast<MPI_Aint>(bytes / static_cast<std::size_t>(it.count));
  if (!receive::is_derived(it.type) && low == 0 && extent == size) {
    tree.store.data = static_cast<const char*>(it.buffer);
    tree.store.bytes = bytes;
    return true;
  }
  int room = 0;
  int end = 0;
  const int count = static_cast<int>(it.count);  // it has a byte at least for each
  if (PMPI_Pack_size(count, it.type, it.comm, &room) != MPI_SUCCESS) return false;
  tree.packed.reset(new (std::nothrow) char[static_cast<std::size_t>(room)]);
  if (tree.packed == nullptr || PMPI_Pack(it.buffer, count, it.type, tree.packed.get(), room, &end,
                                          it.comm) != MPI_SUCCESS) {
    return false;
  }
  tree.store.data = tree.packed.get();
  tree.store.bytes = static_cast<std::size_t>(end);
  return true;
}

// Who hangs on whom is the root's to say. Recipients that follow it come first, so that the low
// ranks are not those that serve for all roots.
void announce(Trees& trees, const Message& it, std::vector<int> to, const int me, ToAll& all) {
  Tree& tree = all.tree;
  Store& store = tree.store;
  std::sort(to.begin(), to.end());
  std::rotate(to.begin(), std::lower_bound(to.begin(), to.end(), me), to.end());
  const int others = static_cast<int>(to.size());
  const bool chain = store.bytes >= chain_bytes;
  store.here = store.bytes;
  store.segment = chain ? segment_bytes : store.bytes;
  tree.whole = &all;
  tree.call = it.call_to(Call::none);
  tree.call.type = MPI_DATATYPE_NULL;
  tree.complete = &Tree::ended;
  tree.task = detail::current_task();
  const std::vector<Place> places =
      chain ? places_of(others, &in_chain) : places_of(others, &in_binomial);
  all.left.fetch_add(1, std::memory_order_relaxed);
  trees.communicator().with_detour([&] { trees.begin(tree, others); });
  // The tree may end before this returns, but not the call: it has a part of its own in `left`.
  tree.announcements.resize(to.size());
  for (int place = 1; place <= others; ++place) {
    const Place& its = places[static_cast<std::size_t>(place)];
    Announcement& said = tree.announcements[static_cast<std::size_t>(place) - 1];
    said = {.bytes = store.bytes,
            .id = store.name.id,
            .tag = it.tag,
            .parent = its.parent == 0 ? me : to[static_cast<std::size_t>(its.parent) - 1],
            .below = its.below,
            .segment = static_cast<std::uint32_t>(store.segment)};
    all.send({it.name, &said, sizeof said, MPI_BYTE, trees.announcing_tag(), it.comm},
             to[static_cast<std::size_t>(place) - 1]);
  }
}

// ---- the call ----------------------------------------------------------------------------------

// Sends to all, in the order of `to` but that a tree comes first for those who are part of it. This
// rank itself, and whoever is listed again, get messages of their own.
void send_all(const Message& it, const std::span<const int> to, Communicator& communicator,
              ToAll& all) {
  all.parts.reserve(to.size());
  auto* const trees = static_cast<Trees*>(communicator.detour());
  std::vector<int> alone;
  if (trees != nullptr) {
    int me = 0;
    PMPI_Comm_rank(it.comm, &me);
    std::set<int> tops;
    for (const int rank : to) {
      if (rank == MPI_PROC_NULL) continue;
      if (rank == me || !tops.insert(rank).second) alone.push_back(rank);
    }
    const std::size_t bytes = bytes_of(it);
    if (trees->suit(bytes, tops.size()) && lay_out(it, bytes, all.tree)) {
      announce(*trees, it, {tops.begin(), tops.end()}, me, all);
    } else {
      alone.assign(to.begin(), to.end());
    }
  }
  for (const int rank : trees != nullptr ? std::span<const int>(alone) : to) {
    if (rank != MPI_PROC_NULL) all.send(it, rank);
  }
}

int fail(const Message& it, const int code) {
  PMPI_Comm_call_errhandler(it.comm, code);
  return code;
}

// Where the arguments are wrong MPI says so itself, of a send that cannot begin.
int refuse_arguments(const Message& it, const std::span<const int> to,
                     const Communicator* const communicator) {
  const auto is_wrong = [&](const int rank) {
    return rank != MPI_PROC_NULL && (rank < 0 || rank >= communicator->peers());
  };
  int first = MPI_PROC_NULL;
  if (communicator != nullptr) {
    for (const int rank : to) {
      if (is_wrong(rank) || first == MPI_PROC_NULL) first = rank;
      if (is_wrong(rank)) break;
    }
    const bool right = it.tag >= 0 && it.tag <= communicator->tag_max() && it.count >= 0 &&
                       it.type != MPI_DATATYPE_NULL;
    if (right && (first == MPI_PROC_NULL || !is_wrong(first))) return MPI_SUCCESS;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = isend(it, first, &request);
  if (code != MPI_SUCCESS) return code;
  (void)PMPI_Wait(&request, MPI_STATUS_IGNORE);
  return MPI_SUCCESS;
}

int isend_to_all(const Message& it, const int ranks[], const int n, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  if (refused(it.name)) return MPI_ERR_OTHER;
  if (!in_service()) {
    say(std::string(it.name) + " is called outside of MPI_Init and MPI_Finalize: call MPI_Init "
                               "first");
    return MPI_ERR_OTHER;
  }
  if (n < 0 || (n > 0 && ranks == nullptr)) return fail(it, MPI_ERR_ARG);
  const std::span to(ranks, static_cast<std::size_t>(n));
  Communicator* const communicator = receive::communicator_of(it.comm);
  const int code = refuse_arguments(it, to, communicator);
  if (code != MPI_SUCCESS || communicator == nullptr || n == 0) return code;
  for (const int rank : to) {
    if (rank != MPI_PROC_NULL) notices::sends(it.call_to(rank));
  }

  auto all = std::make_unique<ToAll>();
  auto own = std::make_unique<Whole>(it, *communicator);
  receive::Token* const token = take_token(*own);
  if (token == nullptr) return fail(it, MPI_ERR_NO_MEM);
  own->give_handle(*token);
  engine().expect();
  all->its_own = own.release();  // conclude() ends it
  *request = token->request;
  ToAll& begun = *all.release();
  send_all(it, to, *communicator, begun);
  begun.let_go();
  return check::begun(it.call_to(Call::none), request, MPI_SUCCESS, it.buffer, false);
}

int begin(const Message& it, const int ranks[], const int n, MPI_Request* request) {
  const int code = isend_to_all(it, ranks, n, request);
  if (code == MPI_SUCCESS) detail::wake_poller();  // the caller goes on: somebody idle must ask MPI
  return code;
}

int carry_out(const Message& it, const int ranks[], const int n) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = isend_to_all(it, ranks, n, &request);
  if (code != MPI_SUCCESS || request == MPI_REQUEST_NULL) return code;
  return receive::wait({.name = it.name, .comm = it.comm}, &request, MPI_STATUS_IGNORE);
}

}  // namespace

}  // namespace imbrex::mpi::trees

#define IMBREX_TO_ALL(suffix, Count)                                                              \
  int IMBREX_Send_to_all##suffix(const void* buffer, Count count, MPI_Datatype type,              \
                                 const int ranks[], int n, int tag, MPI_Comm comm) {              \
    imbrex::mpi::forget_kept();                                                                   \
    return imbrex::mpi::returned(imbrex::mpi::trees::carry_out(                                   \
        {"IMBREX_Send_to_all" #suffix, buffer, count, type, tag, comm}, ranks, n));               \
  }                                                                                               \
  int IMBREX_Isend_to_all##suffix(const void* buffer, Count count, MPI_Datatype type,             \
                                  const int ranks[], int n, int tag, MPI_Comm comm,               \
                                  MPI_Request* request) {                                         \
    imbrex::mpi::forget_kept();                                                                   \
    return imbrex::mpi::returned(imbrex::mpi::trees::begin(                                       \
        {"IMBREX_Isend_to_all" #suffix, buffer, count, type, tag, comm}, ranks, n, request));     \
  }

#pragma GCC visibility push(default)
extern "C" {
IMBREX_TO_ALL(, int)
#if MPI_VERSION >= 4
IMBREX_TO_ALL(_c, MPI_Count)
#endif
}  // extern "C"
#pragma GCC visibility pop
