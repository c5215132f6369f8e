// SPDX-License-Identifier: BSD-3-Clause
// to_all_fuzz [--seed N] [--count N] [--workers N] [--policy P]: random programs of messages along
// trees, against scripted ranks in fake_mpi.
//
// Methodology: ranks 1 to 3 send to rank 0 plain messages and messages along trees, in which rank
// 0 is a leaf, or passes on to others; and rank 0 sends to all three. A thread plays the other
// ranks: it reads what has been sent there, answers claims, makes its own, with and without room
// for what it is to pass on, and lets what is under way arrive in any order that MPI allows. It
// requires
//   1. that each receive, by whatever call, gets the next message of its source, whole, with the
//      source, the tag and the length that the sender gave it,
//   2. that what is claimed from rank 0 is sent from there, whole, or claimed from its parent,
//   3. that a claim speaks for the right number of ranks,
//   4. that fake_mpi has seen no breach of MPI's rules, and nothing is left at MPI_Finalize.
// Each program runs in a process of its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "fuzz/on_fake_mpi.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.h"
#include "mpi/trees/protocol.hpp"

namespace imbrex::test {
namespace {

using mpi::trees::Announcement;
using mpi::trees::Claim;
using mpi::trees::Name;
using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

constexpr int ranks = 4;
constexpr int messages_each = 40;  // from each other rank to this one
constexpr int senders = 2;
constexpr int sends_each = 12;
constexpr int tags = 3;

void check(const bool condition, const char* const text) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  expect(condition, text);
}

int below(Random& random, const int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

template <class T>
Bytes bytes_of(const T& value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
template <class T>
T value_of(const Bytes& bytes) {
  T value{};
  check(bytes.size() == sizeof value, "a message of the protocol has its length");
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// What a message of this sender with this number says, all of it.
std::vector<int> contents(const int sender, const int number, const int ints) {
  std::vector<int> values(static_cast<std::size_t>(ints));
  for (int i = 0; i < ints; ++i) values[static_cast<std::size_t>(i)] = number * 31 + i;
  values[0] = sender;
  values[1] = number;
  values[2] = ints;
  return values;
}
Bytes as_bytes(const std::vector<int>& values) {
  Bytes bytes(values.size() * sizeof(int));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
int random_ints(Random& random) { return 3 + below(random, below(random, 4) == 0 ? 1'500 : 60); }

// ---- the other ranks ---------------------------------------------------------------------------

std::atomic<std::int64_t> others_open{0};
std::array<std::int64_t, 2> sums_of_others() { return {others_open.load(), 0}; }

// Plays ranks 1 to 3, until it is stopped. All but begin_on() is its thread's.
class Others {
 public:
  explicit Others(const std::uint64_t seed) : random_(seed), thread_([this] { run(); }) {}
  ~Others() {
    stopping_.store(true);
    thread_.join();
  }
  void begin_on(MPI_Comm comm) { comm_.store(comm); }

 private:
  // A message along a tree whose root is another rank.
  struct Broadcast {
    Bytes data;
    int segment = 0;
    int parent = 0;  // of rank 0
    int below = 0;   // rank 0, in this tree
    bool claimed = false;
  };
  // Pieces that travel to rank 0 in this order.
  struct Stream {
    int source;
    int tag;
    std::deque<Bytes> pieces;
  };
  // What rank 0 owes another rank, by (rank, tag).
  struct Debt {
    Name name;
    Bytes expected;  // empty if rank 0 is the root: what it says is looked at then
    Bytes got;
    std::size_t bytes = 0;
  };

  void run() {
    std::size_t seen = 0;
    while (!stopping_.load()) {
      const std::vector<fake_mpi::Sent> sent = fake_mpi::sent();
      for (; seen < sent.size(); ++seen) take(sent[seen]);
      if (comm_.load() != MPI_COMM_NULL) act();
      for (int i = below(random_, 3); i > 0; --i) (void)fake_mpi::arrive_any();
      std::this_thread::yield();
    }
  }

  void take(const fake_mpi::Sent& it) {
    if (it.comm == comm_.load()) {
      const int tag_max = *static_cast<int*>(tag_bound_);
      if (it.tag == tag_max) take_announcement(it.destination, value_of<Announcement>(it.bytes));
    } else if (comm_.load() != MPI_COMM_NULL && it.tag == 0) {
      paths_ = it.comm;
      take_claim(it.destination, value_of<Claim>(it.bytes));
    } else if (comm_.load() != MPI_COMM_NULL) {
      paths_ = it.comm;
      take_data(it);
    }
  }

  // ---- rank 0 is the root
  void take_announcement(const int me, const Announcement& said) {
    check(said.mark == Announcement::mark_value, "an announcement");
    others_open.fetch_sub(1);
    const bool keeps = keeps_.try_emplace({me, said.id}, below(random_, 3) != 0).first->second;
    if (said.parent == 0) {
      claim_from_root(me, me, said, keeps ? 1 + said.below : 1);
      return;
    }
    // It gets it through the other one, or claims it through that one.
    const bool parent_keeps =
        keeps_.try_emplace({said.parent, said.id}, below(random_, 3) != 0).first->second;
    if (!parent_keeps) claim_from_root(said.parent, me, said, 1 + (keeps ? said.below : 0));
  }
  void claim_from_root(const int through, const int me, const Announcement& said, const int count) {
    owe(me, {{0, said.id}, {}, {}, said.bytes}, through, count);
  }

  // ---- rank 0 is between
  void take_claim(const int at, const Claim& claim) {
    const auto found = broadcasts_.find(claim.name);
    check(found != broadcasts_.end(), "a claim for a message that there is");
    if (found == broadcasts_.end()) return;
    Broadcast& it = found->second;
    if (claim.from != 0) {  // handed on: the debt is another's
      check(at == it.parent, "a claim is handed on to the parent");
      const auto debt = debts_.find({claim.from, claim.tag});
      check(debt != debts_.end(), "a claim is handed on as it was made");
      if (debt != debts_.end()) pay(debt);
      return;
    }
    check(!it.claimed, "a message is claimed once");
    check(claim.ranks == (claim.whole != 0 ? 1 : 1 + it.below), "a claim speaks for all below");
    check(at == it.parent, "a claim goes to the parent");
    it.claimed = true;
    Stream stream{at, claim.tag, {}};
    const std::size_t all = it.data.size();
    const std::size_t most = claim.whole != 0 ? all : static_cast<std::size_t>(it.segment);
    for (std::size_t first = 0; first < all; first += most) {
      const auto begin = it.data.begin() + static_cast<std::ptrdiff_t>(first);
      stream.pieces.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(
                                                    std::min(most, all - first)));
    }
    streams_.push_back(std::move(stream));
  }

  void take_data(const fake_mpi::Sent& sent) {
    const auto found = debts_.find({sent.destination, sent.tag});
    check(found != debts_.end(), "data that were claimed");
    if (found == debts_.end()) return;
    Debt& debt = found->second;
    debt.got.insert(debt.got.end(), sent.bytes.begin(), sent.bytes.end());
    check(debt.got.size() <= debt.bytes, "not more than there is");
    if (debt.got.size() < debt.bytes) return;
    if (debt.expected.empty()) {
      std::vector<int> values(debt.got.size() / sizeof(int));
      std::memcpy(values.data(), debt.got.data(), debt.got.size());
      check(values == contents(0, values[1], static_cast<int>(values.size())), "data of rank 0");
    } else {
      check(debt.got == debt.expected, "data that rank 0 passes on");
    }
    pay(found);
  }
  using Debts = std::map<std::pair<int, int>, Debt>;
  void pay(const Debts::iterator& debt) {
    debts_.erase(debt);
    others_open.fetch_sub(1);
  }
  // `me` claims it from rank 0, in a while.
  void owe(const int me, const Debt& debt, const int through, const int count) {
    const int tag = ++last_tag_;
    debts_[{me, tag}] = debt;
    others_open.fetch_add(1);
    const Claim claim{debt.name, me, count, tag, below(random_, 3) == 0 ? 1 : 0};
    claims_.push_back({through, bytes_of(claim)});
  }

  // ---- what they do by themselves
  void act() {
    const int source = 1 + below(random_, ranks - 1);
    int& number = numbers_[static_cast<std::size_t>(source)];
    if (number < messages_each && below(random_, 4) == 0) send(source, number++);
    if (!claims_.empty() && paths_ != MPI_COMM_NULL && below(random_, 2) == 0) {
      const std::size_t which = random_() % claims_.size();
      const auto [from, bytes] = claims_[which];
      claims_.erase(claims_.begin() + static_cast<std::ptrdiff_t>(which));
      fake_mpi::send({.comm = paths_, .source = from, .tag = 0, .bytes = bytes});
    }
    if (streams_.empty()) return;
    const std::size_t which = random_() % streams_.size();
    Stream& stream = streams_[which];
    fake_mpi::send({.comm = paths_, .source = stream.source, .tag = stream.tag,
                    .bytes = stream.pieces.front(), .rounds = below(random_, 3)});
    stream.pieces.pop_front();
    if (!stream.pieces.empty()) return;
    streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void send(const int source, const int number) {
    const int tag = below(random_, tags);
    const Bytes data = as_bytes(contents(source, number, random_ints(random_)));
    MPI_Comm comm = comm_.load();
    if (below(random_, 3) == 0) {
      fake_mpi::send({.comm = comm, .source = source, .tag = tag, .bytes = data,
                      .rounds = below(random_, 3)});
      return;
    }
    Broadcast it{data, 1 + below(random_, 900), 1 + below(random_, ranks - 1), 0};
    std::vector<int> children;  // of rank 0
    for (int other = 1; other < ranks; ++other) {
      const bool may = other != source && other != it.parent;
      if (may && below(random_, 2) == 0) children.push_back(other);
    }
    it.below = static_cast<int>(children.size());
    // The first child may pass it on to the second.
    if (it.below == 2 && below(random_, 2) == 0) children.pop_back();
    const Name name{source, static_cast<std::uint32_t>(number) + 1};
    const Announcement said{.bytes = data.size(),
                            .id = name.id,
                            .tag = tag,
                            .parent = it.parent,
                            .below = it.below,
                            .segment = static_cast<std::uint32_t>(it.segment)};
    others_open.fetch_add(1);
    for (const int child : children) {
      owe(child, {name, data, {}, data.size()}, child,
          1 + it.below - static_cast<int>(children.size()));
    }
    broadcasts_.emplace(name, std::move(it));
    fake_mpi::send({.comm = comm, .source = source, .tag = *static_cast<int*>(tag_bound_),
                    .bytes = bytes_of(said)});
  }

  static void* bound() {
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
    return value;
  }

  Random random_;
  void* const tag_bound_ = bound();
  std::atomic<MPI_Comm> comm_{MPI_COMM_NULL};
  MPI_Comm paths_ = MPI_COMM_NULL;
  std::array<int, ranks> numbers_{};
  int last_tag_ = 0;
  std::map<Name, Broadcast> broadcasts_;
  std::map<std::pair<int, std::uint32_t>, bool> keeps_;
  Debts debts_;
  std::vector<std::pair<int, Bytes>> claims_;
  std::vector<Stream> streams_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// ---- this rank ---------------------------------------------------------------------------------

constexpr int room = 2'000;

MPI_Status receive_one(MPI_Comm comm, const int source, std::vector<int>& got, Random& random) {
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  int there = 0;
  switch (below(random, 6)) {
    case 0:
      MPI_Irecv(got.data(), room, MPI_INT, source, MPI_ANY_TAG, comm, &request);
      MPI_Wait(&request, &status);
      break;
    case 1:
      MPI_Mprobe(source, MPI_ANY_TAG, comm, &message, &status);
      MPI_Mrecv(got.data(), room, MPI_INT, &message, &status);
      break;
    case 2:
      while (there == 0) {
        MPI_Improbe(source, MPI_ANY_TAG, comm, &there, &message, &status);
        if (there == 0) yield();
      }
      MPI_Imrecv(got.data(), room, MPI_INT, &message, &request);
      MPI_Wait(&request, &status);
      break;
    case 3:
      MPI_Recv_init(got.data(), room, MPI_INT, source, MPI_ANY_TAG, comm, &request);
      MPI_Start(&request);
      MPI_Wait(&request, &status);
      MPI_Request_free(&request);
      break;
    case 4:
      MPI_Probe(source, MPI_ANY_TAG, comm, &status);
      MPI_Recv(got.data(), room, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
      break;
    default:
      MPI_Recv(got.data(), room, MPI_INT, source, MPI_ANY_TAG, comm, &status);
  }
  return status;
}

// All messages of one source, or of any.
void receive_all(MPI_Comm comm, const int source, Random random) {
  std::array<int, ranks> next{};
  const int count = source == MPI_ANY_SOURCE ? messages_each * (ranks - 1) : messages_each;
  for (int i = 0; i < count; ++i) {
    std::vector<int> got(room, -1);
    const MPI_Status status = receive_one(comm, source, got, random);
    int ints = 0;
    MPI_Get_count(&status, MPI_INT, &ints);
    check(ints == got[2] && got[0] == status.MPI_SOURCE, "the status names the message");
    if (ints != got[2] || got[0] < 1 || got[0] >= ranks) return;
    check(got[1] == next[static_cast<std::size_t>(got[0])]++, "messages come in order");
    got.resize(static_cast<std::size_t>(ints));
    check(got == contents(got[0], got[1], ints), "a message comes whole");
    if (below(random, 8) == 0) yield();
  }
}

void send_all(MPI_Comm comm, const int sender, Random random) {
  const std::array to{1, 2, 3};
  std::deque<std::vector<int>> values;
  std::vector<MPI_Request> requests;
  for (int i = 0; i < sends_each; ++i) {
    values.push_back(contents(0, sender * sends_each + i, 20 + random_ints(random)));
    const int ints = static_cast<int>(values.back().size());
    if (below(random, 2) == 0) {
      IMBREX_Send_to_all(values.back().data(), ints, MPI_INT, to.data(), 3, sender, comm);
    } else {
      requests.emplace_back();
      IMBREX_Isend_to_all(values.back().data(), ints, MPI_INT, to.data(), 3, sender, comm,
                          &requests.back());
    }
    MPI_Send(&i, 1, MPI_INT, 1 + i % 2, sender, comm);
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

MPI_Comm make() {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "imbrex_trees", "64");
  MPI_Comm comm;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
  MPI_Info_free(&info);
  return comm;
}

bool run_all(const std::uint64_t seed) {
  MPI_Init(nullptr, nullptr);
  fake_mpi::set_others(&sums_of_others);
  {
    MPI_Comm comm = make();
    Others others(seed);
    others.begin_on(comm);
    Random random(seed);
    finish([&] {
      for (int sender = 0; sender < senders; ++sender) {
        const Random its(random());
        task("sends").launch([=] { send_all(comm, sender, its); });
      }
      const Random its(random());
      if (seed % 2 == 0) {
        task("receives").launch([=] { receive_all(comm, MPI_ANY_SOURCE, its); });
      } else {
        for (int source = 1; source < ranks; ++source) {
          task("receives").launch([=] { receive_all(comm, source, its); });
        }
      }
    });
    MPI_Comm_free(&comm);
    MPI_Finalize();
  }
  return all_is_well();
}

// ---- processes ---------------------------------------------------------------------------------

void prepare(const std::uint64_t seed, const int workers, const std::string& policy) {
  set_environment(seed, workers, policy);
  constexpr const char* memory[] = {"64M", "0", "6K", "3K"};
  setenv("IMBREX_TREE_MEMORY", memory[seed % 4], 1);
  fake_mpi::reset({.ranks = ranks, .seed = seed, .patience = 20, .yields = 5,
                   .late = seed % 2 == 0, .watch_held = true});
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, 4, &prepare, &run_all);
}
