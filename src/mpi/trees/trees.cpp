// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/trees/trees.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <new>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/matching/wait.hpp"

namespace imbrex::mpi::trees {

namespace {

using receive::Arrived;

constexpr int claims_at_once = 16;
constexpr std::size_t receives_at_once = 4;  // more than a service sends at once
constexpr int tag_of_claims = 0;

// Bytes of messages that this process keeps for others, or because nobody has received them. Any
// thread; relaxed, a bound only.
std::atomic<std::size_t> kept{0};

bool keep(const std::size_t bytes) {
  static const auto kept_max = static_cast<std::size_t>(detail::number_option("TREE_MEMORY"));
  if (kept.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kept_max) return true;
  kept.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Our communicator returns its errors. What has failed is others' message too, and they would wait
// for it for ever.
void require(const int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  say(std::string(make_error(what, code, "no task").what()) +
      ": a message on its way along a tree is lost, and the program ends");
  end_all(MPI_COMM_WORLD, 1);
}

// An invariant of ours: nobody claims more than there is.
void check(const bool right, const Claim& claim) {
  if (right) [[likely]] return;
  say(fmt::format("rank {} claims message {} of rank {} for {} ranks, and there are not so many "
                  "left: a defect of imbrex",
                  claim.from, claim.name.id, claim.name.root, claim.ranks));
  detail::abort();
}

bool has_ended(MPI_Request& request) {
  int done = 0;
  require(asked::Test(true, &request, &done, MPI_STATUS_IGNORE).code, "a message along a tree");
  return done != 0;
}

}  // namespace

Trees::Trees(receive::Communicator& communicator, const Setup& setup)
    : communicator_(communicator), setup_(setup) {
  PMPI_Comm_rank(setup_.paths, &rank_);
}

// ---- the root ----------------------------------------------------------------------------------

bool Trees::suit(const std::size_t bytes, const std::size_t recipients) const noexcept {
  return recipients > 1 && bytes > 0 && bytes >= setup_.least && bytes <= INT_MAX;
}

void Trees::begin(Rooted& rooted, const int recipients) {
  rooted.store.name = {rank_, ++last_id_};
  rooted.store.unclaimed = recipients;
  announced_ += recipients;
  rooted_.emplace(rooted.store.name.id, &rooted);
  engine().expect();
  engine().attend();
}

// ---- what MPI gives ----------------------------------------------------------------------------

void Trees::take(const Arrived& arrived) {
  const int source = arrived.status.MPI_SOURCE;
  const auto line = lines_.find(source);
  if (arrived.status.MPI_TAG != announcing_tag()) {
    if (line == lines_.end()) {
      ready_.push_back(arrived);
    } else {
      line->second.push_back({arrived});
    }
    return;
  }
  const Announcement said = read(arrived);
  ++told_;
  Waiting& place = lines_[source].emplace_back(Waiting{{MPI_MESSAGE_NULL, {}}, false});
  const Name name{source, said.id};
  Transfer& it = transfers_[name];
  it.store.name = name;
  it.store.bytes = said.bytes;
  it.store.segment = said.segment;
  it.store.unclaimed = said.below;
  it.came = {source, said.tag};
  it.parent = said.parent;
  it.place = &place;
  begin(it);
  const auto its = std::stable_partition(early_.begin(), early_.end(), [&](const Claim& claim) {
    return claim.name != name;
  });
  const std::vector<Claim> claims(its, early_.end());
  early_.erase(its, early_.end());
  for (const Claim& claim : claims) take(claim);
}

Announcement Trees::read(const Arrived& arrived) {
  Announcement said{.mark = 0};
  MPI_Message message = arrived.message;
  int bytes = 0;
  PMPI_Get_count(&arrived.status, MPI_BYTE, &bytes);
  if (bytes == sizeof said) {
    require(PMPI_Mrecv(&said, sizeof said, MPI_BYTE, &message, MPI_STATUS_IGNORE),
            "MPI_Mrecv of an announcement");
  }
  if (said.mark != Announcement::mark_value) {
    say(fmt::format("a message from {} has the tag {}, the largest, which imbrex uses itself on a "
                    "communicator with imbrex_trees: give it another tag",
                    arrived.status.MPI_SOURCE, arrived.status.MPI_TAG));
    end_all(MPI_COMM_WORLD, 1);
  }
  return said;
}

bool Trees::next(Arrived& arrived) {
  if (ready_.empty()) return false;
  arrived = ready_.front();
  ready_.pop_front();
  return true;
}

// What stands first in the line of this source may be matched, as far as it is here.
void Trees::release(const int source) {
  const auto found = lines_.find(source);
  Line& line = found->second;
  while (!line.empty() && line.front().here) {
    ready_.push_back(line.front().arrived);
    line.pop_front();
  }
  if (line.empty()) lines_.erase(found);
}

// ---- claims ------------------------------------------------------------------------------------

void Trees::take_claims() {
  for (int i = 0; i < claims_at_once; ++i) {
    Arrived arrived;
    if (!find_message(MPI_ANY_SOURCE, tag_of_claims, arrived)) return;
    Claim claim;
    require(PMPI_Mrecv(&claim, sizeof claim, MPI_BYTE, &arrived.message, MPI_STATUS_IGNORE),
            "MPI_Mrecv of a claim");
    take(claim);
  }
}

void Trees::take(const Claim& claim) {
  Store* store = nullptr;
  const Transfer* passes_on = nullptr;
  if (claim.name.root == rank_) {
    const auto found = rooted_.find(claim.name.id);
    check(found != rooted_.end(), claim);
    store = &found->second->store;
  } else {
    const auto found = transfers_.find(claim.name);
    if (found == transfers_.end()) {
      early_.push_back(claim);
      return;
    }
    store = &found->second.store;
    if (!found->second.keeps) passes_on = &found->second;
  }
  store->unclaimed -= claim.ranks;
  check(store->unclaimed >= 0, claim);
  if (passes_on != nullptr) {
    post(passes_on->parent, claim);
  } else {
    store->services.push_back({claim});
  }
}

void Trees::post(const int to, const Claim& claim) {
  Letter& letter = letters_.emplace_back(Letter{claim});
  require(PMPI_Isend(&letter.claim, sizeof letter.claim, MPI_BYTE, to, tag_of_claims, setup_.paths,
                     &letter.request),
          "MPI_Isend of a claim");
}

void Trees::send_letters() {
  letters_.remove_if([](Letter& letter) { return has_ended(letter.request); });
}

// ---- data --------------------------------------------------------------------------------------

// A message that is kept here is claimed for all ranks below. Else only MPI will have it, at the
// other end, until the program receives it; those below claim it from there themselves.
void Trees::begin(Transfer& it) {
  it.tag = free_tag();
  if (keep(it.store.bytes)) {
    it.memory.reset(new (std::nothrow) char[it.store.bytes]);
    it.keeps = it.memory != nullptr;
    if (!it.keeps) kept.fetch_sub(it.store.bytes, std::memory_order_relaxed);
  }
  it.store.data = it.memory.get();
  if (it.keeps) post_segments(it);
  post(it.parent, {.name = it.store.name,
                   .from = rank_,
                   .ranks = it.keeps ? 1 + it.store.unclaimed : 1,
                   .tag = it.tag,
                   .whole = it.keeps ? 0 : 1});
}

// Two transfers at a time never have the same one.
int Trees::free_tag() noexcept {
  const auto is_used = [this](const int tag) {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [tag](const auto& entry) { return entry.second.tag == tag; });
  };
  do {
    last_tag_ = last_tag_ == communicator_.tag_max() ? 1 : last_tag_ + 1;
  } while (is_used(last_tag_));
  return last_tag_;
}

void Trees::post_segments(Transfer& it) {
  while (it.asked < it.store.bytes && it.receives.size() < receives_at_once) {
    const std::size_t bytes = std::min(it.store.segment, it.store.bytes - it.asked);
    MPI_Request request = MPI_REQUEST_NULL;
    require(PMPI_Irecv(it.memory.get() + it.asked, static_cast<int>(bytes), MPI_BYTE,
                       MPI_ANY_SOURCE, it.tag, setup_.paths, &request),
            "MPI_Irecv of a segment");
    it.receives.push_back(request);
    it.asked += bytes;
  }
}

void Trees::receive_segments(Transfer& it) {
  while (!it.receives.empty() && has_ended(it.receives.front())) {
    it.receives.pop_front();
    it.store.here = std::min(it.store.here + it.store.segment, it.store.bytes);
    post_segments(it);
  }
}

bool Trees::find_message(const int source, const int tag, Arrived& arrived) {
  int found = 0;
  require(PMPI_Improbe(source, tag, setup_.paths, &found, &arrived.message, &arrived.status),
          "MPI_Improbe along a tree");
  return found != 0;
}

// Data that are kept become a message again, from this rank to itself: so MPI does with it what the
// program asks for, and finds its errors.
void Trees::advance(Transfer& it) {
  Arrived arrived;
  if (it.keeps && !it.delivered) {
    receive_segments(it);
    if (it.store.here == it.store.bytes) {
      require(PMPI_Isend(it.store.data, static_cast<int>(it.store.bytes), MPI_PACKED, rank_, it.tag,
                         setup_.paths, &it.to_itself),
              "MPI_Isend to this rank");
      while (!find_message(rank_, it.tag, arrived)) sched_yield();
      deliver(it, arrived);
    }
  } else if (!it.delivered && find_message(MPI_ANY_SOURCE, it.tag, arrived)) {
    deliver(it, arrived);
  }
  if (it.to_itself != MPI_REQUEST_NULL) (void)has_ended(it.to_itself);
  advance(it.store);
}

void Trees::deliver(Transfer& it, const Arrived& arrived) {
  it.delivered = true;
  Waiting& place = *std::exchange(it.place, nullptr);
  place.arrived = arrived;
  place.arrived.status.MPI_SOURCE = it.came.source;
  place.arrived.status.MPI_TAG = it.came.tag;
  place.here = true;
  receive::know_origin(arrived.message, {it.came, setup_.program, it.keeps ? &it : nullptr});
  release(it.came.source);
}

void Trees::advance(Store& store) {
  std::erase_if(store.services,
                [&](Service& service) { return advance(service, store); });
}

// True once it is over.
bool Trees::advance(Service& service, const Store& store) {
  bool over = service.next == store.bytes;
  for (MPI_Request& request : service.under_way) {
    if (request != MPI_REQUEST_NULL && !has_ended(request)) {
      over = false;
      continue;
    }
    const std::size_t most = service.claim.whole != 0 ? store.bytes : store.segment;
    const std::size_t bytes = std::min(most, store.bytes - service.next);
    if (bytes == 0 || service.next + bytes > store.here) continue;
    require(PMPI_Isend(store.data + service.next, static_cast<int>(bytes),
                       service.claim.whole != 0 ? MPI_PACKED : MPI_BYTE, service.claim.from,
                       service.claim.tag, setup_.paths, &request),
            "MPI_Isend along a tree");
    service.next += bytes;
    over = false;
  }
  return over;
}

void Trees::move(Round& round) {
  take_claims();
  if (!letters_.empty()) send_letters();
  for (auto entry = transfers_.begin(); entry != transfers_.end();) {
    Transfer& it = entry->second;
    advance(it);
    if (it.delivered && it.to_itself == MPI_REQUEST_NULL && it.store.served()) {
      if (it.keeps) kept.fetch_sub(it.store.bytes, std::memory_order_relaxed);
      entry = transfers_.erase(entry);
    } else {
      ++entry;
    }
  }
  for (auto entry = rooted_.begin(); entry != rooted_.end();) {
    Rooted& it = *entry->second;
    advance(it.store);
    if (it.store.served()) {
      entry = rooted_.erase(entry);
      round.complete(it);
    } else {
      ++entry;
    }
  }
}

// ---- reports -----------------------------------------------------------------------------------

void Trees::for_each(const std::function<void(const Operation&)>& visit) {
  for (const auto& entry : rooted_) visit(*entry.second);
}

namespace {

std::string ranks_that_get_it(const Store& store) {
  std::string text;
  for (const Service& service : store.services) {
    text += fmt::format("{} {} ({} bytes have left)", text.empty() ? "; it goes to" : ",",
                        service.claim.from, service.next);
  }
  if (store.unclaimed != 0) {
    text += fmt::format("; {} {} not asked for it", store.unclaimed,
                        store.unclaimed == 1 ? "rank has" : "ranks have");
  }
  return text;
}

}  // namespace

void Trees::describe(std::vector<std::string>& lines) {
  for (const auto& entry : rooted_) {
    const Store& store = entry.second->store;
    lines.push_back(fmt::format("a tree begins here, tag {}, {} bytes{}", entry.second->call.tag,
                                store.bytes, ranks_that_get_it(store)));
  }
  for (const auto& [name, it] : transfers_) {
    const std::string state =
        it.delivered   ? "it is here and not received"
        : it.keeps     ? fmt::format("{} bytes are here from {}", it.store.here, it.parent)
                       : "it is not kept here (IMBREX_TREE_MEMORY)";
    lines.push_back(fmt::format("on a tree from {}, tag {}, {} bytes: {}{}", name.root, it.came.tag,
                                it.store.bytes, state, ranks_that_get_it(it.store)));
  }
}

// ---- the end -----------------------------------------------------------------------------------

std::int64_t Trees::open() {
  return communicator_.with_detour([this] {
    std::size_t here = letters_.size() + rooted_.size() + ready_.size();
    for (const auto& entry : transfers_) {
      if (!entry.second.is_left_over()) ++here;
    }
    return announced_ - told_ + static_cast<std::int64_t>(here);
  });
}

// No rank needs it any more but this one, whose program does not receive it.
bool Trees::Transfer::is_left_over() const noexcept {
  return delivered && keeps && store.served() && receive::owns_origin(this);
}

// A rank announces no more once it is here; so if all ranks together have been told of what they
// have announced, and nothing of that is left, nothing is under way, and nothing will be.
int Trees::drain(const char* call) {
  const Call its_call{.name = call, .comm = setup_.program, .kind = Kind::collective};
  for (;;) {
    engine().poll();
    const std::array<std::int64_t, 2> mine{open(), 0};
    std::array<std::int64_t, 2> all{};
    const int code = carry_out(its_call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
      return PMPI_Iallreduce(mine.data(), all.data(), 2, MPI_INT64_T, MPI_SUM, setup_.paths,
                             request);
    });
    if (code != MPI_SUCCESS || all[0] == 0) return code;
  }
}

void Trees::end() noexcept {
  const std::unique_ptr<Trees> owned(this);
  for (auto& [name, it] : transfers_) {
    say(fmt::format("the program has not received a message from {} with tag {}, {} bytes, which "
                    "has come along a tree", name.root, it.came.tag, it.store.bytes));
    PMPI_Request_free(&it.to_itself);
    (void)it.memory.release();  // MPI may still look at it
  }
  MPI_Comm paths = setup_.paths;
  PMPI_Comm_free(&paths);
}

namespace {

// One communicator's way to its end, beside that of others: ranks may see them in any order.
struct Ending {
  Trees* trees;
  std::array<std::int64_t, 2> mine{};
  std::array<std::int64_t, 2> all{};
  MPI_Request request = MPI_REQUEST_NULL;
  bool over = false;

  void advance() {
    if (request == MPI_REQUEST_NULL) {
      mine[0] = trees->open();
      require(PMPI_Iallreduce(mine.data(), all.data(), 2, MPI_INT64_T, MPI_SUM, trees->paths(),
                              &request),
              "MPI_Iallreduce in MPI_Finalize");
    } else if (has_ended(request)) {
      over = all[0] == 0;
    }
  }
};

}  // namespace

void end_all_trees() noexcept {
  std::list<Ending> endings;
  receive::for_each_communicator([&](receive::Communicator& one) {
    if (one.detour() != nullptr) endings.push_back({static_cast<Trees*>(one.detour())});
  });
  while (!endings.empty()) {
    engine().poll();
    for (Ending& ending : endings) ending.advance();
    endings.remove_if([](const Ending& ending) {
      if (!ending.over) return false;
      ending.trees->communicator().end_detour();
      ending.trees->end();
      return true;
    });
    sched_yield();
  }
}

}  // namespace imbrex::mpi::trees
