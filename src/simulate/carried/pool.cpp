// SPDX-License-Identifier: BSD-3-Clause
// A copy of src/distributed/pool/rank_pool.cpp and answers.cpp, which have threads, locks and a
// clock. The search for items of other ranks, the waves that detect the end, the messages and the
// pace of workers are the library's own code.
#include "simulate/carried/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <numeric>
#include <vector>

#include "distributed/carrier/waves.hpp"
#include "distributed/pool/messages.hpp"
#include "distributed/pool/pace.hpp"
#include "distributed/pool/search.hpp"
#include "imbrex/error.hpp"
#include "simulate/carried/carriers.hpp"
#include "simulate/lend/rank_seats.hpp"
#include "uts/expand.hpp"

namespace imbrex::simulate {

using distributed::PoolHead;
using distributed::PoolMessage;
using distributed::Waves;
using distributed::WaveSums;
using uts::Node;

namespace {

constexpr std::uint64_t the_pool = 1;
constexpr std::uint32_t the_round = 1;
constexpr std::size_t messages_max = 8;  // of items, in one answer
constexpr std::size_t per_message = detail::item_bytes_max / sizeof(Node);

// What all ranks share.
struct Common {
  EventQueue events;
  Carriers* carriers = nullptr;
  uts::Expand expand = nullptr;
  const uts::Tree* tree = nullptr;
  double node_ns = 0;
  Time slice_ns = 0;        // to begin and end a slice
  std::vector<int> ranks;   // all
  std::int64_t nodes = 0;
  double in_task = 0;
  double overhead = 0;
};

class PoolRank final : private SeatUser {
 public:
  // `processors` of its own. `node`: where it borrows others; null if its ranks do not lend.
  PoolRank(Common& common, const int rank, const int processors, Processors* const node,
           const std::uint32_t victims)
      : common_(common),
        rank_(rank),
        processors_(processors),
        waves_(common.carriers->end(rank, Carriers::wave_protocol)),
        search_(static_cast<std::size_t>(rank), common.ranks.size(), victims),
        workers_(static_cast<std::size_t>(Seats::count(node, processors))),
        runs_(workers_.size()),
        seats_(common.events, node, processors, *this),
        active_(static_cast<int>(workers_.size())) {
    common.carriers->handle(rank, Carriers::wave_protocol,
                            {.receive = [](void* const its, const int from,
                                           const distributed::Bytes message) {
                               static_cast<PoolRank*>(its)->waves_.receive(from, message);
                             },
                             .object = this});
    common.carriers->handle(rank, Carriers::pool_protocol,
                            {.receive = [](void* const its, const int from,
                                           const distributed::Bytes message) {
                               static_cast<PoolRank*>(its)->receive(from, message);
                             },
                             .object = this});
    search_.begin(the_round);
  }
  void push(const Node& node) { shared_.add(&node, sizeof node); }
  void start() {
    for (Worker& worker : workers_) begin_soon(worker);
  }
  // When the rank sees a message that has arrived now; time_most if no idle worker polls.
  [[nodiscard]] Time next_poll() const noexcept {
    bool naps = false;
    for (int seat = 0; seat < static_cast<int>(runs_.size()); ++seat) {
      if (runs_[static_cast<std::size_t>(seat)].worker != nullptr) continue;
      if (seats_.has_processor(seat)) return common_.events.now();
      naps = naps || !seats_.is_spare(seat);
    }
    return naps ? seats_.next_poll(last_message_) : time_most;
  }
  [[nodiscard]] double borrowed_ns() const noexcept { return seats_.borrowed_ns(); }
  [[nodiscard]] bool is_over() const noexcept { return ended_ && shared_items() == 0; }
  [[nodiscard]] Time end() const noexcept { return end_; }

 private:
  struct Worker {
    detail::ItemStack stack;
    distributed::Pace pace{sizeof(Node), 0, 0};
    std::uint64_t items = 0;   // of the slice that runs
    Time slice = 0;
  };
  // What a seat does.
  struct Runs {
    Worker* worker = nullptr;  // null: the seat is idle
    bool is_woken = false;     // an event that lets it look is to come
  };

  // ---- seats: workers are tasks, which yield after each slice ----------------------------------

  [[nodiscard]] bool is_idle(const int seat) const noexcept override {
    const Runs& runs = runs_[static_cast<std::size_t>(seat)];
    return runs.worker == nullptr && !runs.is_woken;
  }
  [[nodiscard]] bool has_work(int) const noexcept override { return !ready_.empty(); }
  [[nodiscard]] std::int64_t ready() const noexcept override { return std::ssize(ready_); }
  [[nodiscard]] std::uint64_t begun() const noexcept override { return slices_; }
  void look_at(const Time when, const int seat) override {
    Runs& runs = runs_[static_cast<std::size_t>(seat)];
    if (runs.worker != nullptr || runs.is_woken) return;
    runs.is_woken = true;
    common_.events.at(when, [](void* const its, const std::uint64_t which) {
      auto& here = *static_cast<PoolRank*>(its);
      here.runs_[which].is_woken = false;
      if (here.seats_.take(static_cast<int>(which))) here.look(static_cast<int>(which));
    }, this, static_cast<std::uint64_t>(seat));
  }
  void begin_soon(Worker& worker) {
    ready_.push_back(&worker);
    seats_.wake_one();
  }
  void look(const int seat) {
    Runs& runs = runs_[static_cast<std::size_t>(seat)];
    while (!seats_.must_leave(seat) && !ready_.empty()) {
      runs.worker = ready_.front();
      ready_.pop_front();
      if (runs.worker->stack.bytes() != 0 || more(*runs.worker)) return run_slice(seat);
    }
    runs.worker = nullptr;
    if (seats_.must_leave(seat)) {
      seats_.leave(seat);
      if (!ready_.empty()) seats_.wake_one();
    } else {
      seats_.rest(seat);
      common_.carriers->poll(rank_);
    }
  }
  // As more(): the worker takes shared items, or sleeps.
  [[nodiscard]] bool more(Worker& worker) {
    if (ended_) return false;
    if (take_shared(worker)) return true;
    --active_;
    sleepers_.push_back(&worker);
    if (lacks_items()) hungry_ = true;
    if (active_ == 0) search_.all_idle();
    step();
    return false;
  }
  void run_slice(const int seat) {
    Worker& worker = *runs_[static_cast<std::size_t>(seat)].worker;
    std::uint64_t children = 0;
    worker.items = 0;
    ++slices_;
    while (worker.stack.bytes() != 0 && worker.items < worker.pace.slice) {
      children += expand_some(worker);
    }
    worker.slice = time_of(static_cast<double>(children) * common_.node_ns);
    common_.nodes += static_cast<std::int64_t>(children);
    common_.in_task += worker.slice;
    common_.overhead += common_.slice_ns;
    common_.events.at(common_.events.now() + worker.slice + common_.slice_ns,
                      [](void* const its, const std::uint64_t which) {
                        static_cast<PoolRank*>(its)->end_slice(static_cast<int>(which));
                      },
                      this, static_cast<std::uint64_t>(seat));
  }
  // As a call of the application's function: some of the youngest nodes become their children.
  [[nodiscard]] std::uint64_t expand_some(Worker& worker) {
    constexpr std::size_t batch_max = 32;
    Node parents[batch_max];
    detail::ItemStack& stack = worker.stack;
    const std::size_t left = worker.pace.slice - worker.items;
    const std::size_t count = std::min({batch_max, stack.bytes() / sizeof(Node), left});
    stack.top -= count * sizeof(Node);
    std::memcpy(parents, stack.top, count * sizeof(Node));
    const std::span<const Node> all(parents, count);
    const std::size_t children = uts::children_of(all);
    stack.make_room((children + 1) * sizeof(Node));
    Node* const end = common_.expand(*common_.tree, all, reinterpret_cast<Node*>(stack.top));
    stack.top = reinterpret_cast<std::byte*>(end);
    worker.items += count;
    return children;
  }
  void end_slice(const int seat) {
    Worker& worker = *runs_[static_cast<std::size_t>(seat)].worker;
    worker.pace.adapt(worker.items, static_cast<std::uint64_t>(worker.slice));
    share(worker);
    common_.carriers->poll(rank_);
    ready_.push_back(&worker);
    seats_.look();
    look(seat);
  }
  [[nodiscard]] bool lacks_items() const noexcept { return active_ < processors_; }
  [[nodiscard]] bool take_shared(Worker& worker) {
    const std::size_t items = shared_items();
    if (items == 0) return false;
    const std::size_t fair = items / (2 * workers_.size());
    const std::size_t some = std::min(items, std::max<std::size_t>(worker.pace.chunk, fair));
    worker.stack.take_last(shared_, some * sizeof(Node));
    search_.worked();
    return true;
  }
  [[nodiscard]] std::size_t surplus(const Worker& worker) const noexcept {
    const std::size_t own = worker.stack.bytes() / sizeof(Node);
    if (own < 2 || (workers_.size() == 1 && common_.ranks.size() == 1)) return 0;
    const std::size_t enough = worker.pace.chunk * (workers_.size() + 8);
    if (shared_items() >= enough) return 0;
    if (own > 2 * worker.pace.chunk || hungry_) return std::min(own / 2, enough - shared_items());
    return shared_items() == 0 ? std::min(own / 2, worker.pace.chunk) : 0;
  }
  void share(Worker& worker) {
    const std::size_t some = surplus(worker);
    if (some == 0 && !(hungry_ && shared_items() != 0)) return;
    shared_.take_first(worker.stack, some * sizeof(Node));
    chunk_ = worker.pace.chunk;
    wake((shared_items() + chunk_ - 1) / chunk_);
    std::size_t to = 0;
    while (shared_items() != 0 && search_.take_owed(to)) {
      send_half(static_cast<int>(to), true);
    }
    hungry_ = lacks_items() || search_.owes();
  }
  void wake(const std::size_t most) {
    for (std::size_t i = 0; i < most && !sleepers_.empty(); ++i) {
      Worker& worker = *sleepers_.back();
      sleepers_.pop_back();
      ++active_;
      begin_soon(worker);
    }
  }

  // ---- other ranks ---------------------------------------------------------------------------

  void receive(const int from, const distributed::Bytes message) {
    last_message_ = common_.events.now();
    PoolHead head;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.kind == PoolMessage::steal) {
      answer(from, head);
    } else {
      take_in(from, head, message.subspan(sizeof head));
    }
  }
  void answer(const int from, const PoolHead& head) {
    const bool has_some = !ended_ && shared_items() != 0;
    if (has_some) {
      send_half(from, false);
    } else if (head.lifeline) {
      search_.keep(static_cast<std::size_t>(from), head.round);
    }
    if (shared_items() == 0) hungry_ = true;
    if (!has_some) send(from, {the_pool, head.round, PoolMessage::none}, {});
  }
  void take_in(const int from, const PoolHead& head, const distributed::Bytes items) {
    if (head.kind == PoolMessage::none) {
      asks_ = false;
      search_.brought_none();
    } else {
      ++received_;
      if (head.pushed) {
        search_.got_push(static_cast<std::size_t>(from));
      } else if (head.last) {
        asks_ = false;
      }
      search_.got_items();
      shared_.add(items.data(), items.size());
    }
    wake((shared_items() + chunk_ - 1) / chunk_);
    step();
  }
  // As next_step(): a rank without items asks for some, or says that it is passive.
  void step() {
    if (ended_ || asks_ || !lacks_items() || shared_items() != 0) return;
    if (common_.ranks.size() > 1) {
      distributed::Search::Request request;
      if (search_.next(request)) {
        asks_ = true;
        PoolHead head{the_pool, the_round, PoolMessage::steal};
        head.lifeline = request.lifeline;
        return send(static_cast<int>(request.to), head, {});
      }
    }
    if (active_ != 0 || in_wave_) return;
    if (common_.ranks.size() == 1) return end_round();
    in_wave_ = true;
    waves_.join({the_pool, wave_++}, common_.ranks, {sent_, received_, 0, 0},
                [](void* const its, const WaveSums& sums) noexcept {
                  static_cast<PoolRank*>(its)->wave_ended(sums);
                },
                this);
  }
  void wave_ended(const WaveSums& sums) {
    in_wave_ = false;
    if (sums[0] == received_before_) return end_round();
    received_before_ = sums[1];
    step();
  }
  void end_round() {
    ended_ = true;
    end_ = common_.events.now();
  }
  // The older half of the shared items, as far as one answer holds them.
  void send_half(const int to, const bool pushed) {
    const std::size_t some = std::min((shared_items() + 1) / 2, messages_max * per_message);
    sent_ += static_cast<std::int64_t>((some + per_message - 1) / per_message);
    PoolHead head{the_pool, the_round, PoolMessage::work};
    head.pushed = pushed;
    for (std::size_t at = 0; at < some; at += per_message) {
      const std::size_t bytes = std::min(per_message, some - at) * sizeof(Node);
      head.last = at + per_message >= some;
      send(to, head, {shared_.bottom, bytes});
      shared_.bottom += bytes;
    }
  }
  void send(const int to, const PoolHead& head, const distributed::Bytes body) {
    common_.carriers->end(rank_, Carriers::pool_protocol).send(to, distributed::bytes_of(head),
                                                               body);
  }
  [[nodiscard]] std::size_t shared_items() const noexcept {
    return shared_.bytes() / sizeof(Node);
  }

  Common& common_;
  const int rank_;
  const int processors_;
  Waves waves_;
  distributed::Search search_;
  std::vector<Worker> workers_;
  std::vector<Worker*> sleepers_;   // the last one is woken first
  std::deque<Worker*> ready_;       // that no seat runs
  std::vector<Runs> runs_;          // of each seat
  Seats seats_;
  std::uint64_t slices_ = 0;        // that have begun
  Time last_message_ = 0;
  detail::ItemStack shared_;
  std::size_t chunk_ = 1;           // of the worker that shared last
  int active_;
  bool hungry_ = false;
  bool asks_ = false;
  bool in_wave_ = false;
  bool ended_ = false;
  std::uint64_t wave_ = 0;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
  std::int64_t received_before_ = -1;
  Time end_ = 0;
};

[[nodiscard]] const uts::Parameters& parameters_of(const std::string& name) {
  std::string names;
  for (const uts::KnownTree& tree : uts::known_trees()) {
    if (tree.name == name) return tree.parameters;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", tree.name);
  }
  throw Error(fmt::format("there is no tree {:.40}; trees: {}", name, names));
}

using PoolRanks = std::deque<PoolRank>;

void run(Common& common, const ClusterSetup& cluster) {
  constexpr std::uint64_t events_between_looks = 1 << 16;
  for (std::uint64_t steps = 1; common.events.step(); ++steps) {
    if (cluster.progress == nullptr || steps % events_between_looks != 0) continue;
    cluster.progress(common.nodes, common.events.now());
  }
}

}  // namespace

Outcome simulate_pool(const PoolSetup& setup, const ClusterSetup& cluster) {
  const uts::Tree tree(parameters_of(setup.tree));
  Common common;
  Links links(common.events, cluster.network, cluster.ranks, cluster.per_node, cluster.seed);
  Carriers carriers(common.events, links, cluster.ranks);
  common.carriers = &carriers;
  common.expand = uts::expand_with(uts::best_hash());
  common.tree = &tree;
  common.node_ns = setup.node_ns;
  common.slice_ns = cluster.rank.task_ns;
  common.ranks.resize(static_cast<std::size_t>(cluster.ranks));
  std::iota(common.ranks.begin(), common.ranks.end(), 0);
  Nodes nodes(cluster.lends, cluster.ranks, cluster.per_node, cluster.rank.workers);
  PoolRanks ranks;
  for (const int rank : common.ranks) {
    ranks.emplace_back(common, rank, cluster.rank.workers, nodes.of(rank), setup.victims);
  }
  carriers.watch_idle({.next_poll = [](void* const all, const int rank) {
                         return (*static_cast<PoolRanks*>(all))[static_cast<std::size_t>(rank)]
                             .next_poll();
                       },
                       .object = &ranks});
  const Node root = uts::root_of(tree);
  common.nodes = 1;
  if (root.children != 0) ranks.front().push(root);
  for (PoolRank& rank : ranks) rank.start();
  run(common, cluster);
  Outcome outcome;
  for (const PoolRank& rank : ranks) {
    if (!rank.is_over()) throw Error("imbrex simulate: a work pool has not ended");
    outcome.time_ns = std::max(outcome.time_ns, rank.end());
    outcome.sums.borrowed_ns += rank.borrowed_ns();
  }
  outcome.sums.tasks = common.nodes;
  outcome.sums.in_task_ns = common.in_task;
  outcome.sums.overhead_ns = common.overhead + carriers.overhead();
  outcome.messages = carriers.messages();
  outcome.messages_received = carriers.messages_handled();
  outcome.bytes = links.bytes_sent();
  outcome.bytes_received = links.bytes_arrived();
  outcome.events = common.events.count();
  return outcome;
}

}  // namespace imbrex::simulate
