// SPDX-License-Identifier: BSD-3-Clause
// partial_fuzz [--seed N] [--count N] [--workers N] [--policy P]: random partial collectives
// against scripted ranks in fake_mpi.
//
// Methodology: rank 0 makes collectives of every kind on two communicators, those of neighbours on
// the second, which is a grid or a graph with several edges between two ranks and to one itself. It
// makes several at a time and more of them than there are numbers for, since MPI allows the
// smallest tags. A thread plays ranks 1 to 3: each makes the same collectives when it likes, and
// sends its parts in any order; messages in flight arrive in any order that MPI allows. In some
// programs a message comes with an error, is too long, or says that there are no data (it has no
// bytes), and rank 0 drops parts that it has never sent; in some a rank dies. Required is
//   1. that a part is ready when all of it is here, and never fails for another's sake,
//   2. that the bytes beside it stay as they are,
//   3. that rank 0 sends the parts that its program releases, once and whole, with a tag that no
//      other collective has at that time; and a message of no bytes for a part it cannot send,
//   4. that all() fails if and only if a part has, and everything ends,
//   5. that each part of which events are wanted has one, before all() is ready, and with an error
//      if its future has,
//   6. that fake_mpi has seen no breach of MPI's rules, and nothing is left at MPI_Finalize.
// Each program runs in a process of its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "fuzz/on_fake_mpi.hpp"
#include "fuzz/partial_plan.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/messages/sends/limits.hpp"

namespace imbrex::test {
namespace {

using mpi::blocks::TagLayout;

void check(const bool condition, const char* const text) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  expect(condition, text);
}

// ---- the other ranks ---------------------------------------------------------------------------

// All but begin_on(), is_done() and lost() is its thread's.
class Others {
 public:
  Others(const Plans& plans, const std::uint64_t seed, const Trouble trouble)
      : random_(seed), trouble_(trouble) {
    for (const auto& plan : plans) on_[at(plan->comm)].push_back(plan.get());
    thread_ = std::thread([this] { run(); });
  }
  ~Others() {
    stopping_.store(true);
    thread_.join();
  }
  Others(const Others&) = delete;
  Others& operator=(const Others&) = delete;
  void begin_on(const int comm, MPI_Comm handle) { handles_[at(comm)].store(handle); }
  // They have sent and received everything.
  [[nodiscard]] bool is_done() const { return done_.load(); }
  [[nodiscard]] int lost() const { return lost_.load(); }

 private:
  static constexpr TagLayout tags{.part_bits = 6, .instance_bits = 6};

  struct Message {
    Plan* plan;
    int source;
    int part;
  };
  using Which = std::tuple<int, int, int>;  // rank, number of the collective, part
  // A rank's part in a collective: how many messages it has neither sent nor received.
  using Left = std::map<std::pair<int, int>, int>;  // by rank and number

  void run() {
    const int dies_after = 20 + below(random_, 200);
    std::size_t seen = 0;
    int rounds = 0;
    while (!stopping_.load()) {
      const std::vector<fake_mpi::Sent> sent = fake_mpi::sent(seen);
      for (const fake_mpi::Sent& it : sent) {
        if (!take(it)) break;  // on a communicator that it is told of soon
        ++seen;
      }
      for (int i = 0; i < 4; ++i) make_one();
      for (int i = 0; i < 3; ++i) send_one();
      for (int i = below(random_, 6); i > 0; --i) (void)fake_mpi::arrive_any();
      const bool dies = trouble_ == Trouble::death && lost_.load() < 0 && ++rounds > dies_after;
      if (dies && handles_[0].load() != MPI_COMM_NULL) {
        lost_.store(1 + below(random_, ranks - 1));
        fake_mpi::lose(lost_.load());
      }
      done_.store(expected_.empty() && pool_.empty() && made_all());
      std::this_thread::yield();
    }
  }
  [[nodiscard]] bool made_all() const {
    for (int comm = 0; comm < comms; ++comm) {
      for (int rank = 1; rank < ranks; ++rank) {
        if (made_[at(rank)][at(comm)] < on_[at(comm)].size() && rank != lost_.load()) return false;
      }
    }
    return true;
  }

  // A rank makes its next collective, if its number is free there.
  void make_one() {
    const int rank = 1 + below(random_, ranks - 1);
    const int comm = below(random_, comms);
    if (handles_[at(comm)].load() == MPI_COMM_NULL || rank == lost_.load()) return;
    std::size_t& next = made_[at(rank)][at(comm)];
    const auto& all = on_[at(comm)];
    if (next == all.size()) return;
    const auto numbers = static_cast<std::size_t>(tags.instances());
    if (next >= numbers && left_[{rank, all[next - numbers]->number}] != 0) return;
    Plan& plan = *all[next++];
    int& left = left_[{rank, plan.number}];
    for (int part = 0; part < plan.all_parts(rank, 0); ++part) {
      if (has(plan.sources(), rank) && !plan.bytes(rank, 0, part).empty()) {
        pool_.push_back({&plan, rank, part});
        ++left;
      }
    }
    for (int part = 0; part < plan.all_parts(0, rank); ++part) {
      if (has(plan.destinations(), rank) && !plan.bytes(0, rank, part).empty()) {
        if (!received_.contains({rank, plan.number, part})) {
          expected_.insert({rank, plan.number, part});
        }
        ++left;
      }
    }
  }
  static bool has(const std::vector<int>& all, const int rank) {
    return std::ranges::find(all, rank) != all.end();
  }

  void send_one() {
    if (pool_.empty()) return;
    const std::size_t which = random_() % pool_.size();
    const Message it = pool_[which];
    pool_.erase(pool_.begin() + static_cast<std::ptrdiff_t>(which));
    --left_[{it.source, it.plan->number}];
    if (it.source == lost_.load()) return;
    fake_mpi::Sending sending{.comm = handles_[at(it.plan->comm)].load(),
                              .source = it.source,
                              .tag = tags.tag(it.plan->index % tags.instances(), it.plan->kind,
                                              it.part),
                              .bytes = it.plan->bytes(it.source, 0, it.part),
                              .rounds = below(random_, 3)};
    if (it.plan->is_bad(it.source, it.part)) {
      switch (it.plan->how) {
        case Bad::error: sending.error = MPI_ERR_OTHER; break;
        case Bad::too_long: sending.bytes.resize(sending.bytes.size() + 4); break;
        case Bad::withdrawn: sending.bytes.clear();
      }
    } else if (it.plan->passes_on()) {
      it.plan->may_leave[1][at(it.part)].store(true);
    }
    fake_mpi::send(sending);
  }

  bool take(const fake_mpi::Sent& sent) {
    int comm = 0;
    while (comm < comms && handles_[at(comm)].load() != sent.comm) ++comm;
    if (comm == comms) return false;
    const int part = sent.tag & (tags.parts_max() - 1);
    const int kind = sent.tag >> 6 & 7;
    const int instance = sent.tag >> 9;
    // The oldest of this number of which this rank has not had it: messages of a tag keep order.
    Plan* found = nullptr;
    for (Plan* const plan : on_[at(comm)]) {
      if (plan->index % tags.instances() != instance) continue;
      if (!has(plan->destinations(), sent.destination)) continue;
      if (static_cast<int>(plan->kind) != kind) continue;
      if (part >= plan->all_parts(0, sent.destination)) continue;
      if (plan->bytes(0, sent.destination, part).empty()) continue;
      if (received_.contains({sent.destination, plan->number, part})) continue;
      found = plan;
      break;
    }
    check(found != nullptr, "a message of a collective that is under way, once");
    if (found == nullptr) return true;
    const Which which{sent.destination, found->number, part};
    received_.insert(which);
    expected_.erase(which);
    --left_[{sent.destination, found->number}];  // perhaps before it has made it
    if (found->withdraws(part) || (found->passes_on() && lost_.load() >= 0)) {
      const bool is_empty = sent.bytes.empty();
      check(is_empty || !found->withdraws(part), "what rank 0 cannot send is withdrawn");
      if (is_empty) return true;
    }
    check(found->may_leave[at(sent.destination)][at(part)].load(), "nothing leaves before send()");
    check(sent.bytes == found->bytes(0, sent.destination, part), "a part leaves whole");
    return true;
  }

  Random random_;
  const Trouble trouble_;
  std::array<std::atomic<MPI_Comm>, comms> handles_{MPI_COMM_NULL, MPI_COMM_NULL};
  std::array<std::vector<Plan*>, comms> on_;
  std::array<std::array<std::size_t, comms>, ranks> made_{};
  Left left_;
  std::set<Which> expected_;
  std::set<Which> received_;
  std::vector<Message> pool_;
  std::atomic<int> lost_{-1};
  std::atomic<bool> done_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// ---- events ------------------------------------------------------------------------------------

enum class Listening { no, by_handler, by_polls };

// Events that have been told, until they are taken. Thread safety: any thread.
class Events {
 public:
  explicit Events(const Listening listening) : listening_(listening) {
    if (listening_ == Listening::by_handler) imbrex_mpi_event_set_handler(&Events::note, this);
  }
  ~Events() { imbrex_mpi_event_set_handler(nullptr, nullptr); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  void begin_on(MPI_Comm comm) {
    if (wanted()) check(imbrex_mpi_events_begin(comm) == MPI_SUCCESS, "events begin");
  }
  void end_on(MPI_Comm comm) {
    if (wanted()) check(imbrex_mpi_events_end(comm) == MPI_SUCCESS, "events end");
  }
  [[nodiscard]] bool wanted() const { return listening_ != Listening::no; }
  // Takes the events of a collective that has ended.
  [[nodiscard]] std::vector<imbrex_mpi_event> take(const std::string& name) {
    imbrex_mpi_event event = {};
    while (listening_ == Listening::by_polls && imbrex_mpi_event_poll(&event) != 0) {
      note(&event, this);
    }
    const std::lock_guard guard(lock_);
    return std::move(told_[name]);
  }

 private:
  static void note(const imbrex_mpi_event* const event, void* const self) {
    auto& it = *static_cast<Events*>(self);
    const std::lock_guard guard(it.lock_);
    it.told_[event->call].push_back(*event);
  }

  const Listening listening_;
  std::mutex lock_;
  std::map<std::string, std::vector<imbrex_mpi_event>> told_;
};

// ---- this rank ---------------------------------------------------------------------------------

class Case {
 public:
  Case(Plan& plan, const Others& others, Events& events, Random random)
      : plan_(plan), others_(others), events_(events), random_(random) {
    MPI_Type_contiguous(plan.width, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    for (int block = 0; sends_many() && block < blocks(false); ++block) {
      const Other to = destination_of(block);
      out_.add(to.rank < 0 ? 2 : plan.count(0, to.rank, to.first));
    }
    if (!sends_many()) out_.add(plan.count(0, 0, 0));
    for (int block = 0; block < (receives_many() ? blocks(true) : 1); ++block) {
      const Other from = source_of(block);
      const int rank = plan.kind == Kind::scatter ? plan.root : from.rank;
      in_.add(rank < 0 ? 2 : plan.count(rank, 0, from.first), rank >= 0);
    }
    out_.make(plan.width);
    in_.make(plan.width);
    if (plan.hold) return;
    for (int block = 0; block < (sends_many() ? blocks(false) : 1); ++block) {
      for (int part = 0; part < plan.parts; ++part) fill(block, part);
    }
  }

  void begin(MPI_Comm comm) {
    comm_ = comm;
    const CollectiveOptions options{
        .parts = plan_.parts, .hold = plan_.hold, .name = plan_.name.c_str()};
    const SendBlocks send = out_.blocks<const void*>(out_.data.data(), type_);
    const ReceiveBlocks receive = in_.blocks<void*>(in_.data.data(), type_);
    switch (plan_.kind) {
      case Kind::alltoall: object_ = alltoall(send, receive, comm, options); break;
      case Kind::allgather: object_ = allgather(send, receive, comm, options); break;
      case Kind::gather: object_ = gather(send, receive, plan_.root, comm, options); break;
      case Kind::scatter: object_ = scatter(send, receive, plan_.root, comm, options); break;
      case Kind::broadcast: object_ = broadcast(receive, plan_.root, comm, options); break;
      case Kind::allreduce: object_ = allreduce(send, receive, MPI_MAX, comm, options); break;
      case Kind::neighbor_alltoall:
        object_ = neighbor_alltoall(send, receive, comm, options);
        break;
      case Kind::neighbor_allgather: object_ = neighbor_allgather(send, receive, comm, options);
    }
    all_ = object_.all();
    MPI_Type_free(&type_);  // it is kept
  }

  void run() {
    std::vector<std::array<int, 3>> order;  // what, block, part
    for (int part = 0; part < plan_.parts; ++part) {
      for (int block = 0; block < blocks(true); ++block) order.push_back({0, block, part});
      for (int block = 0; block < blocks(false); ++block) {
        order.push_back({1, block, part});
        const bool is_kept = part == plan_.kept_part;
        if (plan_.hold && fills(block) && !is_kept) order.push_back({2, block, part});
      }
    }
    std::shuffle(order.begin(), order.end(), random_);
    for (const auto& [what, block, part] : order) {
      tasks_.push_back(what == 0   ? look(block, part)
                       : what == 1 ? overwrite(block, part)
                                   : send(block, part));
    }
    if (plan_.kept_part >= 0 || below(random_, 2) == 0) object_ = {};
  }

  void end() {
    bool failed = false;
    try {
      all_.get();
    } catch (const Error&) {
      failed = true;
    }
    const std::vector<imbrex_mpi_event> told = events_.take(plan_.name);
    for (const Future<void>& each : tasks_) each.get();
    if (events_.wanted()) check_events(told);
    check(failed == any_failed_.load(), "all() fails if and only if a part has");
    check(seen_.load() == blocks(true) * plan_.parts, "each part is seen once");
    for (std::size_t i = 0; i < in_.data.size(); ++i) {
      if (in_.owner[i] < 0) check(in_.data[i] == -1, "nothing beside the blocks changes");
    }
  }

 private:
  struct Side {
    std::vector<int> data;
    std::vector<int> owner;  // of each number: its block, or -1
    std::vector<int> counts;
    std::vector<int> displacements;
    std::vector<int> first;  // number of each block
    std::vector<bool> used;
    int end = 1;

    // `is_there`: something may come.
    void add(const int count, const bool is_there = true) {
      counts.push_back(count);
      used.push_back(is_there);
      displacements.push_back(counts.size() == 1 ? 0 : end);
      end = displacements.back() + count + 1;
    }
    void make(const int width) {
      data.assign(at(end * width), -1);
      owner.assign(data.size(), -1);
      for (std::size_t block = 0; block < counts.size(); ++block) {
        first.push_back(displacements[block] * width);
        for (int i = 0; used[block] && i < counts[block] * width; ++i) {
          owner[at(first[block] + i)] = static_cast<int>(block);
        }
      }
    }
    template <class Address>
    [[nodiscard]] Blocks<Address> blocks(const Address address, MPI_Datatype type) const {
      if (counts.size() == 1) return {.address = address, .count = counts[0], .type = type};
      return {.address = address, .type = type, .counts = counts, .displacements = displacements};
    }
    // Returns the place at which the block of this rank begins.
    [[nodiscard]] int* block(const int rank) {
      return &data[at(first[first.size() == 1 ? 0 : at(rank)])];
    }
  };

  // The rank at the other end of a block, < 0: none; and the number of the block's first part.
  struct Other {
    int rank = -1;
    int first = 0;
  };
  [[nodiscard]] Other source_of(const int block) const {
    if (!plan_.of_neighbors()) return {plan_.kind == Kind::broadcast ? ranks - 1 : block, 0};
    for (const Edge& it : plan_.topology->edges) {
      if (it.to == 0 && it.in == block) return {it.from, it.number * plan_.parts};
    }
    return {};
  }
  [[nodiscard]] Other destination_of(const int block) const {
    if (!plan_.of_neighbors()) return {block, 0};
    for (const Edge& it : plan_.topology->edges) {
      if (it.from == 0 && it.out == block) return {it.to, it.number * plan_.parts};
    }
    return {};
  }
  [[nodiscard]] int blocks(const bool comes) const {
    if (!plan_.of_neighbors()) return ranks;
    return comes ? plan_.topology->in : plan_.topology->out;
  }
  [[nodiscard]] bool sends_many() const {
    return plan_.kind == Kind::alltoall || plan_.kind == Kind::neighbor_alltoall ||
           (plan_.kind == Kind::scatter && plan_.root == 0);
  }
  [[nodiscard]] bool receives_many() const {
    return plan_.kind == Kind::alltoall || plan_.kind == Kind::allgather || plan_.of_neighbors() ||
           (plan_.kind == Kind::gather && plan_.root == 0);
  }

  void fill(const int block, const int part) {
    const bool here = plan_.kind == Kind::broadcast;
    if (here && plan_.root != 0) return;
    const Other to = plan_.kind == Kind::neighbor_allgather ? Other{0, 0} : destination_of(block);
    if (to.rank < 0) return;
    int* const numbers = here ? in_.block(0) : out_.block(block);
    const int of_all = to.first + part;
    const auto [first, end] = plan_.range(0, to.rank, of_all);
    for (int i = first; i < end; ++i) numbers[i] = plan_.value(0, to.rank, of_all, i);
  }
  // Returns whether a task for this block fills the part: data for all ranks are filled once.
  [[nodiscard]] bool fills(const int block) const {
    switch (plan_.kind) {
      case Kind::alltoall: case Kind::neighbor_alltoall: return true;
      case Kind::gather: return block == plan_.root;
      case Kind::scatter: return plan_.root == 0;
      case Kind::broadcast: return block == 1 && plan_.root == 0;
      default: return block == 0;
    }
  }

  // Returns whether to(block, part) stands for data that rank 0 sends of its own.
  [[nodiscard]] bool goes(const int block) const {
    switch (plan_.kind) {
      case Kind::alltoall: case Kind::allgather: return true;
      case Kind::neighbor_alltoall: case Kind::neighbor_allgather: return true;
      case Kind::gather: return block == plan_.root;
      default: return plan_.root == 0;
    }
  }

  Future<void> send(const int block, const int part) {
    std::vector<int> to{block};
    if (plan_.kind == Kind::allgather || plan_.kind == Kind::neighbor_allgather) {
      to.resize(at(blocks(false)));
      std::iota(to.begin(), to.end(), 0);
      std::shuffle(to.begin(), to.end(), random_);
    }
    return task("send").priority(below(random_, 3)).spawn([this, x = object_, to, part] {
      fill(to.front(), part);
      for (const int each : to) {
        const Other other = destination_of(each);
        if (other.rank >= 0) plan_.may_leave[at(other.rank)][at(other.first + part)].store(true);
        x.send(each, part);
      }
    });
  }

  // Waits, and says whether it has failed, as it may only where it must or a rank is lost.
  bool fails(const Future<void>& part, std::atomic<bool>& failed, const bool must) {
    try {
      part.get();
    } catch (const Error&) {
      failed.store(true);
      any_failed_.store(true);
      check(must || others_.lost() >= 0, "no part fails for another's sake");
      return true;
    }
    check(!must, "what has not come whole fails");
    return false;
  }

  Future<void> look(const int block, const int part) {
    return task("look").priority(below(random_, 3))
        .spawn([this, block, part, future = object_.from(block, part)] {
          seen_.fetch_add(1);
          const Other from = source_of(block);
          if (from.rank < 0) return check(future.ready(), "where nothing comes a part is ready");
          const bool reduces = plan_.kind == Kind::allreduce;
          const int source = reduces ? 0 : from.rank;
          const int of_all = from.first + part;
          const auto range = plan_.range(source, 0, of_all);
          const std::vector<int> sources = plan_.sources();
          const bool comes = std::ranges::find(sources, from.rank) != sources.end();
          const bool is_there = range.first != range.second;
          const bool from_itself =
              from.rank == 0 &&
              (plan_.of_neighbors() || (fills(0) && plan_.kind != Kind::broadcast));
          const bool must = (comes && plan_.is_bad(from.rank, of_all)) ||
                            (from_itself && part == plan_.kept_part);
          if (fails(future, failed_[0][at(block)][at(part)], must && is_there)) return;
          if (!comes && !from_itself && !reduces) return;
          const int* const numbers = in_.block(block);
          for (int i = range.first; i < range.second; ++i) {
            const int wanted = plan_.value(source, 0, of_all, i);
            check(numbers[i] == wanted, "a part that is ready is here");
            if (numbers[i] != wanted) return;
          }
        });
  }

  Future<void> overwrite(const int block, const int part) {
    return task("overwrite").priority(below(random_, 3))
        .spawn([this, block, part, future = object_.to(block, part)] {
          const Other to = destination_of(block);
          if (to.rank < 0) return check(future.ready(), "where nothing goes a part is ready");
          const std::vector<int> destinations = plan_.destinations();
          const bool is_there = plan_.range(plan_.root, 0, part).first !=
                                plan_.range(plan_.root, 0, part).second;
          const bool must = plan_.passes_on() && !destinations.empty() && is_there &&
                            plan_.is_bad(ranks - 1, part);
          const auto [first, end] = plan_.range(0, to.rank, to.first + part);
          const bool is_kept = part == plan_.kept_part && goes(block) && first != end;
          if (fails(future, failed_[1][at(block)][at(part)], must || is_kept)) return;
          const bool own = plan_.kind == Kind::alltoall ||
                           plan_.kind == Kind::neighbor_alltoall ||
                           (plan_.kind == Kind::scatter && plan_.root == 0) ||
                           (plan_.kind == Kind::gather && block == plan_.root);
          if (!own) return;
          std::fill(out_.block(block) + first, out_.block(block) + end, -7);
        });
  }

  // Returns the rank from which a block comes, or to which it goes; a rank < 0: there is none.
  [[nodiscard]] Other other_of(const bool comes, const int block) const {
    if (plan_.of_neighbors()) return comes ? source_of(block) : destination_of(block);
    const std::vector<int> others = comes ? plan_.sources() : plan_.destinations();
    const bool from_itself = block == 0 && fills(0) && plan_.kind != Kind::broadcast;
    const bool reduces = plan_.kind == Kind::allreduce;
    const bool is_there = reduces ? comes && block == 0
                                  : from_itself || std::ranges::find(others, block) != others.end();
    return {is_there ? block : -1, 0};
  }
  void check_events(const std::vector<imbrex_mpi_event>& told) {
    std::size_t all = 0;
    for (const bool comes : {true, false}) {
      for (int block = 0; block < blocks(comes); ++block) {
        const Other other = other_of(comes, block);
        for (int part = 0; other.rank >= 0 && part < plan_.parts; ++part) {
          const int of_all = other.first + part;
          const auto [first, end] =
              comes ? plan_.range(other.rank, 0, of_all) : plan_.range(0, other.rank, of_all);
          if (first == end) continue;
          ++all;
          const bool here = comes || plan_.kind == Kind::broadcast;
          const int* const address = (here ? in_ : out_).block(block) + first;
          const bool failed = failed_[comes ? 0 : 1][at(block)][at(part)].load();
          const auto is_it = [&](const imbrex_mpi_event& it) {
            return it.kind == (comes ? IMBREX_COLLECTIVE_PARTIAL_INCOMING
                                     : IMBREX_COLLECTIVE_PARTIAL_OUTGOING) &&
                   it.comm == comm_ && it.peer == other.rank && it.block == block &&
                   it.part == part && it.address == address &&
                   (it.code != MPI_SUCCESS) == failed;
          };
          check(std::ranges::count_if(told, is_it) == 1, "a part has one event");
        }
      }
    }
    check(told.size() == all, "what is no part has no event");
  }

  Plan& plan_;
  const Others& others_;
  Events& events_;
  Random random_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Side out_;
  Side in_;
  Collective object_;
  Future<void> all_;
  std::vector<Future<void>> tasks_;
  std::atomic<int> seen_{0};
  std::atomic<bool> any_failed_{false};
  // The failures of from() and of to().
  std::array<std::array<std::array<std::atomic<bool>, parts_most>, blocks_most>, 2> failed_{};
};

MPI_Comm make_comm(const Topology& it) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (!it.sizes.empty()) {
    MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(it.sizes.size()), it.sizes.data(),
                    it.periods.data(), 0, &comm);
  } else {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, it.in, it.sources[0].data(), MPI_UNWEIGHTED,
                                   it.out, it.destinations[0].data(), MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &comm);
  }
  return comm;
}

void run_cases(const Plans& plans, const Topology& topology, Others& others, Events& events,
               Random& random) {
  std::array<MPI_Comm, comms> comm{MPI_COMM_NULL, make_comm(topology)};
  MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
  for (MPI_Comm each : comm) events.begin_on(each);
  std::array<bool, comms> told{};
  const auto window = at(1 + below(random, 12));
  std::deque<std::unique_ptr<Case>> open;
  const auto end_first = [&] {
    open.front()->end();
    open.pop_front();
  };
  for (const auto& plan : plans) {
    open.push_back(std::make_unique<Case>(*plan, others, events, Random(random())));
    open.back()->begin(comm[at(plan->comm)]);
    if (!std::exchange(told[at(plan->comm)], true)) {
      others.begin_on(plan->comm,
                      mpi::blocks::place_of("partial_fuzz", comm[at(plan->comm)])->comm);
    }
    open.back()->run();
    if (open.size() > window) end_first();
  }
  while (!open.empty()) end_first();
  for (MPI_Comm& each : comm) {
    events.end_on(each);
    MPI_Comm_free(&each);
  }
}

bool run_all(const std::uint64_t seed) {
  MPI_Init(nullptr, nullptr);
  {
    Random random(seed);
    const Trouble trouble = seed % 4 == 1   ? Trouble::messages
                            : seed % 4 == 3 ? Trouble::death
                                            : Trouble::none;
    const Topology topology = below(random, 2) == 0 ? make_grid(random) : make_graph(random);
    const Plans plans = make_plans(random, topology, trouble == Trouble::none ? 120 : 50, trouble);
    Others others(plans, seed, trouble);
    {
      Events events(static_cast<Listening>(seed % 3));
      run_cases(plans, topology, others, events, random);
    }
    while (trouble != Trouble::death && !others.is_done()) yield();
    MPI_Finalize();
  }
  return all_is_well();
}

// ---- processes ---------------------------------------------------------------------------------

void prepare(const std::uint64_t seed, const int workers, const std::string& policy) {
  set_environment(seed, workers, policy);
  if (seed % 2 == 0) {  // every part takes its turn
    setenv("IMBREX_SENDS_ABOVE", "0", 1);
    mpi::sends::initial_limits().each = 1;
    mpi::sends::initial_limits().bytes = 0;
  }
  fake_mpi::reset({.ranks = ranks, .seed = seed, .patience = 20, .yields = 5,
                   .late = seed % 2 == 0, .tag_max = tag_max});
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, 4, &prepare, &run_all);
}
