// SPDX-License-Identifier: BSD-3-Clause
// partial_fuzz [--seed N] [--count N] [--workers N] [--policy P]: random partial collectives
// against scripted ranks in fake_mpi.
//
// Methodology: rank 0 makes collectives of every kind on two communicators, several at a time and
// more of them than there are numbers for, since MPI allows the smallest tags. A thread plays ranks
// 1 to 3: each makes the same collectives when it likes, and sends its parts in any order; what is
// under way arrives in any order that MPI allows. In some programs a message comes with an error,
// is too long, or says that there are no data (it has no bytes), and rank 0 lets parts go that it
// has never sent; in some a rank dies. Required is
//   1. that a part is ready when all of it is here, and never fails for another's sake,
//   2. that the bytes beside it stay as they are,
//   3. that what rank 0 sends is what its program has let go, once and whole, with a tag that no
//      other collective has at that time; and a message of no bytes for what it cannot send,
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
#include "imbrex/collective.hpp"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/partial/place.hpp"

namespace imbrex::test {
namespace {

using mpi::partial::Kind;
using mpi::partial::TagLayout;
using Random = std::mt19937_64;

constexpr int ranks = 4;
constexpr int comms = 2;
constexpr int parts_most = 5;
constexpr int tag_max = 32767;

void check(const bool condition, const char* const text) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  expect(condition, text);
}
int below(Random& random, const int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}
std::size_t at(const int index) { return static_cast<std::size_t>(index); }

// ---- what all ranks know -----------------------------------------------------------------------

enum class Trouble { none, messages, death };
enum class Bad { error, too_long, withdrawn };  // a message

struct Plan {
  int number = 0;  // of all
  std::string name;
  int comm = 0;
  int index = 0;  // on its communicator
  Kind kind = Kind::alltoall;
  int root = 0;
  int parts = 1;
  int width = 1;  // numbers of an element
  bool hold = false;
  std::array<std::array<int, ranks>, ranks> elements{};  // of the block [from][to]
  int bad_source = -1;  // whose part `bad_part` for rank 0 fails
  int bad_part = -1;
  Bad how = Bad::error;
  int kept_part = -1;  // that rank 0 holds, and never sends

  // Set by rank 0 before what is held goes, and by the other ranks before what it passes on comes.
  std::array<std::array<std::atomic<bool>, parts_most>, ranks> may_leave{};

  [[nodiscard]] int from(const int rank) const { return kind == Kind::broadcast ? root : rank; }
  [[nodiscard]] int to(const int rank) const {
    return kind == Kind::alltoall || kind == Kind::scatter ? rank : 0;
  }
  [[nodiscard]] int count(const int source, const int destination) const {
    return elements[at(from(source))][at(to(destination))];
  }
  // In numbers.
  [[nodiscard]] std::pair<int, int> range(const int source, const int destination,
                                          const int part) const {
    const int all = count(source, destination);
    return {all * part / parts * width, all * (part + 1) / parts * width};
  }
  [[nodiscard]] int value(const int source, const int destination, const int i) const {
    return number * 1'000'003 + from(source) * 70'001 + to(destination) * 9'001 + i;
  }
  [[nodiscard]] std::vector<std::byte> bytes(const int source, const int destination,
                                             const int part) const {
    const auto [first, end] = range(source, destination, part);
    std::vector<int> values;
    for (int i = first; i < end; ++i) values.push_back(value(source, destination, i));
    std::vector<std::byte> all(values.size() * sizeof(int));
    if (!all.empty()) std::memcpy(all.data(), values.data(), all.size());
    return all;
  }

  // Who sends parts to rank 0, and to whom it does, but for itself.
  [[nodiscard]] std::vector<int> sources() const {
    switch (kind) {
      case Kind::alltoall: case Kind::allgather: return {1, 2, 3};
      case Kind::gather: return root == 0 ? std::vector{1, 2, 3} : std::vector<int>{};
      case Kind::scatter: return root == 0 ? std::vector<int>{} : std::vector{root};
      case Kind::broadcast: return root == 0 ? std::vector<int>{} : std::vector{ranks - 1};
      default: return {};
    }
  }
  [[nodiscard]] std::vector<int> destinations() const {
    switch (kind) {
      case Kind::alltoall: case Kind::allgather: return {1, 2, 3};
      case Kind::gather: return root == 0 ? std::vector<int>{} : std::vector{root};
      case Kind::scatter: return root == 0 ? std::vector{1, 2, 3} : std::vector<int>{};
      case Kind::broadcast: return root == 1 ? std::vector<int>{} : std::vector{1};
      default: return {};
    }
  }
  [[nodiscard]] bool is_bad(const int source, const int part) const {
    return source == bad_source && part == bad_part;
  }
  // Rank 0 passes on what comes.
  [[nodiscard]] bool passes_on() const { return kind == Kind::broadcast && root != 0; }
  // Rank 0 has to say that it does not send this.
  [[nodiscard]] bool withdraws(const int part) const {
    return part == kept_part || (passes_on() && is_bad(ranks - 1, part));
  }
};
using Plans = std::vector<std::unique_ptr<Plan>>;

Plans make_plans(Random& random, const int count, const Trouble trouble) {
  Plans plans;
  std::array<int, comms> on{};
  for (int number = 0; number < count; ++number) {
    auto plan = std::make_unique<Plan>();
    plan->number = number;
    plan->name = "collective " + std::to_string(number);
    plan->comm = below(random, 4) == 0 ? 1 : 0;
    plan->index = on[at(plan->comm)]++;
    plan->kind = static_cast<Kind>(below(random, 6));
    plan->root = below(random, ranks);
    plan->parts = 1 + below(random, parts_most);
    plan->width = 1 + below(random, 2);
    plan->hold = plan->kind != Kind::allreduce && below(random, 2) == 0;
    constexpr std::array sizes{0, 1, 3, 8, 60};
    for (auto& row : plan->elements) {
      for (int& each : row) each = sizes[random() % sizes.size()];
    }
    const std::vector<int> sources = plan->sources();
    if (trouble == Trouble::messages && below(random, 4) == 0 && !sources.empty()) {
      plan->bad_source = sources[random() % sources.size()];
      plan->bad_part = below(random, plan->parts);
      plan->how = static_cast<Bad>(below(random, 3));
    }
    if (trouble == Trouble::messages && plan->hold && !plan->passes_on() && below(random, 3) == 0) {
      plan->kept_part = below(random, plan->parts);
    }
    for (auto& row : plan->may_leave) {
      for (auto& each : row) each.store(!plan->hold && !plan->passes_on());
    }
    plans.push_back(std::move(plan));
  }
  return plans;
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
    for (int part = 0; part < plan.parts; ++part) {
      if (has(plan.sources(), rank) && !plan.bytes(rank, 0, part).empty()) {
        pool_.push_back({&plan, rank, part});
        ++left;
      }
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
      if (plan->bytes(0, sent.destination, part % plan->parts).empty()) continue;
      if (received_.contains({sent.destination, plan->number, part})) continue;
      if (static_cast<int>(plan->kind) != kind || part >= plan->parts) continue;
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

// What has been told, until it is taken. Thread safety: any.
class Events {
 public:
  explicit Events(const Listening listening) : listening_(listening) {
    if (listening_ == Listening::by_handler) imbrex_event_set_handler(&Events::note, this);
  }
  ~Events() { imbrex_event_set_handler(nullptr, nullptr); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  void begin_on(MPI_Comm comm) {
    if (wanted()) check(imbrex_events_begin(comm) == MPI_SUCCESS, "events begin");
  }
  void end_on(MPI_Comm comm) {
    if (wanted()) check(imbrex_events_end(comm) == MPI_SUCCESS, "events end");
  }
  [[nodiscard]] bool wanted() const { return listening_ != Listening::no; }
  // Those of a collective that has ended.
  [[nodiscard]] std::vector<imbrex_event> take(const std::string& name) {
    imbrex_event event = {};
    while (listening_ == Listening::by_polls && imbrex_event_poll(&event) != 0) {
      note(&event, this);
    }
    const std::lock_guard guard(lock_);
    return std::move(told_[name]);
  }

 private:
  static void note(const imbrex_event* const event, void* const self) {
    auto& it = *static_cast<Events*>(self);
    const std::lock_guard guard(it.lock_);
    it.told_[event->call].push_back(*event);
  }

  const Listening listening_;
  std::mutex lock_;
  std::map<std::string, std::vector<imbrex_event>> told_;
};

// ---- this rank ---------------------------------------------------------------------------------

class Case {
 public:
  Case(Plan& plan, const Others& others, Events& events, Random random)
      : plan_(plan), others_(others), events_(events), random_(random) {
    MPI_Type_contiguous(plan.width, MPI_INT, &type_);
    MPI_Type_commit(&type_);
    const bool sends_many = plan.kind == Kind::alltoall ||
                            (plan.kind == Kind::scatter && plan.root == 0);
    const bool receives_many = plan.kind == Kind::alltoall || plan.kind == Kind::allgather ||
                               (plan.kind == Kind::gather && plan.root == 0);
    for (int rank = 0; rank < (sends_many ? ranks : 1); ++rank) out_.add(plan.count(0, rank));
    for (int rank = 0; rank < (receives_many ? ranks : 1); ++rank) {
      in_.add(plan.count(plan.kind == Kind::scatter ? plan.root : rank, 0));
    }
    out_.make(plan.width);
    in_.make(plan.width);
    if (plan.hold) return;
    for (int rank = 0; rank < (sends_many ? ranks : 1); ++rank) {
      for (int part = 0; part < plan.parts; ++part) fill(rank, part);
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
      default: object_ = allreduce(send, receive, MPI_MAX, comm, options);
    }
    all_ = object_.all();
    MPI_Type_free(&type_);  // it is kept
  }

  void run() {
    std::vector<std::array<int, 3>> order;  // what, rank, part
    for (int rank = 0; rank < ranks; ++rank) {
      for (int part = 0; part < plan_.parts; ++part) {
        order.push_back({0, rank, part});
        order.push_back({1, rank, part});
        const bool is_kept = part == plan_.kept_part;
        if (plan_.hold && fills(rank) && !is_kept) order.push_back({2, rank, part});
      }
    }
    std::shuffle(order.begin(), order.end(), random_);
    for (const auto& [what, rank, part] : order) {
      tasks_.push_back(what == 0   ? look(rank, part)
                       : what == 1 ? overwrite(rank, part)
                                   : send(rank, part));
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
    const std::vector<imbrex_event> told = events_.take(plan_.name);
    for (const Future<void>& each : tasks_) each.get();
    if (events_.wanted()) check_events(told);
    check(failed == any_failed_.load(), "all() fails if and only if a part has");
    check(seen_.load() == ranks * plan_.parts, "each part is seen once");
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
    int end = 1;

    void add(const int count) {
      counts.push_back(count);
      displacements.push_back(counts.size() == 1 ? 0 : end);
      end = displacements.back() + count + 1;
    }
    void make(const int width) {
      data.assign(at(end * width), -1);
      owner.assign(data.size(), -1);
      for (std::size_t block = 0; block < counts.size(); ++block) {
        first.push_back(displacements[block] * width);
        for (int i = 0; i < counts[block] * width; ++i) {
          owner[at(first[block] + i)] = static_cast<int>(block);
        }
      }
    }
    template <class Address>
    [[nodiscard]] Blocks<Address> blocks(const Address address, MPI_Datatype type) const {
      if (counts.size() == 1) return {.address = address, .count = counts[0], .type = type};
      return {.address = address, .type = type, .counts = counts, .displacements = displacements};
    }
    // Where the block of this rank begins.
    [[nodiscard]] int* block(const int rank) {
      return &data[at(first[first.size() == 1 ? 0 : at(rank)])];
    }
  };

  void fill(const int rank, const int part) {
    const bool here = plan_.kind == Kind::broadcast;
    if (here && plan_.root != 0) return;
    int* const numbers = here ? in_.block(0) : out_.block(rank);
    const auto [first, end] = plan_.range(0, rank, part);
    for (int i = first; i < end; ++i) numbers[i] = plan_.value(0, rank, i);
  }
  // Whether a task for this rank fills the part: what goes to all is filled once.
  [[nodiscard]] bool fills(const int rank) const {
    switch (plan_.kind) {
      case Kind::alltoall: return true;
      case Kind::gather: return rank == plan_.root;
      case Kind::scatter: return plan_.root == 0;
      case Kind::broadcast: return rank == 1 && plan_.root == 0;
      default: return rank == 0;
    }
  }

  // Whether to(rank, part) stands for what rank 0 sends of its own.
  [[nodiscard]] bool goes(const int rank) const {
    switch (plan_.kind) {
      case Kind::alltoall: case Kind::allgather: return true;
      case Kind::gather: return rank == plan_.root;
      default: return plan_.root == 0;
    }
  }

  Future<void> send(const int rank, const int part) {
    std::vector<int> to{rank};
    if (plan_.kind == Kind::allgather) {
      to = {0, 1, 2, 3};
      std::shuffle(to.begin(), to.end(), random_);
    }
    return task("send").priority(below(random_, 3)).spawn([this, x = object_, to, part] {
      fill(to.front(), part);
      for (const int each : to) {
        plan_.may_leave[at(each)][at(part)].store(true);
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

  Future<void> look(const int rank, const int part) {
    return task("look").priority(below(random_, 3))
        .spawn([this, rank, part, future = object_.from(rank, part)] {
          seen_.fetch_add(1);
          const bool reduces = plan_.kind == Kind::allreduce;
          const int source = plan_.kind == Kind::broadcast ? ranks - 1 : rank;
          const auto range = reduces ? plan_.range(0, 0, part) : plan_.range(source, 0, part);
          const std::vector<int> sources = plan_.sources();
          const bool comes = std::ranges::find(sources, source) != sources.end();
          const bool is_there = range.first != range.second;
          const bool from_itself = rank == 0 && fills(0) && plan_.kind != Kind::broadcast;
          const bool must = (comes && plan_.is_bad(source, part)) ||
                            (from_itself && part == plan_.kept_part);
          if (fails(future, failed_[0][at(rank)][at(part)], must && is_there)) return;
          if (!comes && !from_itself && !reduces) return;
          const int* const numbers = in_.block(rank);
          for (int i = range.first; i < range.second; ++i) {
            const int wanted = plan_.value(reduces ? 0 : source, 0, i);
            check(numbers[i] == wanted, "a part that is ready is here");
            if (numbers[i] != wanted) return;
          }
        });
  }

  Future<void> overwrite(const int rank, const int part) {
    return task("overwrite").priority(below(random_, 3))
        .spawn([this, rank, part, future = object_.to(rank, part)] {
          const std::vector<int> to = plan_.destinations();
          const bool is_there = plan_.range(plan_.root, 0, part).first !=
                                plan_.range(plan_.root, 0, part).second;
          const bool must = plan_.passes_on() && !to.empty() && is_there &&
                            plan_.is_bad(ranks - 1, part);
          const bool is_kept = part == plan_.kept_part && goes(rank) &&
                               plan_.range(0, rank, part).first !=
                                   plan_.range(0, rank, part).second;
          if (fails(future, failed_[1][at(rank)][at(part)], must || is_kept)) return;
          const bool own = plan_.kind == Kind::alltoall ||
                           (plan_.kind == Kind::scatter && plan_.root == 0) ||
                           (plan_.kind == Kind::gather && rank == plan_.root);
          if (!own) return;
          const auto [first, end] = plan_.range(0, rank, part);
          std::fill(out_.block(rank) + first, out_.block(rank) + end, -7);
        });
  }

  // Whether there is such a part; blocks are those of the ranks with which parts are exchanged.
  [[nodiscard]] bool exists(const bool comes, const int rank, const int part) const {
    const auto [first, end] = comes ? plan_.range(rank, 0, part) : plan_.range(0, rank, part);
    if (first == end) return false;
    if (plan_.kind == Kind::allreduce) return comes && rank == 0;
    const std::vector<int> others = comes ? plan_.sources() : plan_.destinations();
    if (std::ranges::find(others, rank) != others.end()) return true;
    return rank == 0 && fills(0) && plan_.kind != Kind::broadcast;
  }
  void check_events(const std::vector<imbrex_event>& told) {
    std::size_t all = 0;
    for (const bool comes : {true, false}) {
      for (int rank = 0; rank < ranks; ++rank) {
        for (int part = 0; part < plan_.parts; ++part) {
          if (!exists(comes, rank, part)) continue;
          ++all;
          const auto [first, end] = comes ? plan_.range(rank, 0, part) : plan_.range(0, rank, part);
          const bool here = comes || plan_.kind == Kind::broadcast;
          const int* const address = (here ? in_ : out_).block(rank) + first;
          const bool failed = failed_[comes ? 0 : 1][at(rank)][at(part)].load();
          const auto is_it = [&](const imbrex_event& it) {
            return it.kind == (comes ? IMBREX_COLLECTIVE_PARTIAL_INCOMING
                                     : IMBREX_COLLECTIVE_PARTIAL_OUTGOING) &&
                   it.comm == comm_ && it.peer == rank && it.block == rank && it.part == part &&
                   it.address == address && (it.code != MPI_SUCCESS) == failed;
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
  // Of from() and of to().
  std::array<std::array<std::array<std::atomic<bool>, parts_most>, ranks>, 2> failed_{};
};

void run_cases(const Plans& plans, Others& others, Events& events, Random& random) {
  std::array<MPI_Comm, comms> comm{};
  for (MPI_Comm& each : comm) {
    MPI_Comm_dup(MPI_COMM_WORLD, &each);
    events.begin_on(each);
  }
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
                      mpi::partial::place_of("partial_fuzz", comm[at(plan->comm)])->comm);
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
    const Plans plans = make_plans(random, trouble == Trouble::none ? 120 : 50, trouble);
    Others others(plans, seed, trouble);
    {
      Events events(static_cast<Listening>(seed % 3));
      run_cases(plans, others, events, random);
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
    setenv("IMBREX_SENDS_UNDER_WAY", "1", 1);
    setenv("IMBREX_SENDS_BYTES", "0", 1);
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
