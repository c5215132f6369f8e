// SPDX-License-Identifier: BSD-3-Clause
// ordered_fuzz [--seed N] [--count N] [--workers N] [--policy P]: random programs of ordered
// collectives against scripted ranks in fake_mpi.
//
// Methodology: tasks start collectives in scopes of imbrex::order_collectives() on three
// communicators. In the first this rank is 0, and decides. In the others it is another rank, and a
// thread plays rank 0, which announces an order that it draws: all of it at once, little by little,
// or when all tasks have come here; the messages arrive when they like. A task may start one
// collective, of a key that others use as well, or several one after the other, of keys of its own,
// in scopes of their own or of one. In some programs MPI refuses calls, and in some a message about
// the order fails. Required is
//   1. that collectives of a communicator begin on this rank in the order that rank 0 has
//      announced, each once, none beside another one, and what belongs to one together,
//   2. that what this rank announces is the order in which it begins them, to all ranks,
//   3. that a call that returns an error has begun nothing, and has had its turn, while one that
//      returns none has begun: so also after an error in the order, when none waits any more,
//   4. that a communicator on which a start waits for its turn cannot be freed,
//   5. that fake_mpi has seen no breach of MPI's rules, and nothing is left at MPI_Finalize.
// Each program runs in a process of its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "fuzz/on_fake_mpi.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/collectives/order/order_scope.hpp"

namespace imbrex::mpi::order {
// order.hpp is for who knows which MPI it is compiled for.
[[nodiscard]] std::vector<std::string> describe_waiting();
}  // namespace imbrex::mpi::order

namespace imbrex::test {
namespace {

using Random = std::mt19937_64;
using Keys = std::vector<std::uint64_t>;

constexpr int ranks = 4;
constexpr int comms = 3;
constexpr std::array<int, comms> rank_in{0, 1, 3};
constexpr std::array names{"decides", "second", "last"};
constexpr int keys_most = 32;  // of a message
constexpr const char* of_order = "imbrex ordered collectives";

void check(const bool condition, const char* const text) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  expect(condition, text);
}
int below(Random& random, const int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}
std::size_t at(const int index) { return static_cast<std::size_t>(index); }

// ---- the program -------------------------------------------------------------------------------

enum class Trouble { none, message, refused, delivery };

enum class Which { allreduce, iallreduce, bcast, ibcast, object };

struct Item {
  int comm = 0;
  std::uint64_t key = 0;
  std::string name;  // of the key, if it has one
  Which which = Which::allreduce;
  int parts = 1;
  std::array<int, 8> out{};
  std::array<int, 8> in{};
  int code = -1;  // what the call has returned
};
using Chain = std::vector<Item*>;  // of one task, one after the other

struct Program {
  std::deque<Item> items;
  std::vector<Chain> chains;
  std::array<Keys, comms> order;  // that rank 0 announces; of the first, any
};

Item& add_item(Program& program, Random& random) {
  Item& it = program.items.emplace_back();
  it.comm = below(random, comms);
  it.which = static_cast<Which>(below(random, 5));
  if (it.which == Which::object) it.parts = 1 + below(random, 4);
  const auto number = static_cast<int>(program.items.size());
  for (int& each : it.out) each = 100 * number + static_cast<int>(&each - it.out.data());
  return it;
}

Program make_program(Random& random) {
  Program program;
  const int alone = 10 + below(random, 20);
  for (int i = 0; i < alone; ++i) {
    Item& it = add_item(program, random);
    it.key = static_cast<std::uint64_t>(below(random, 4));
    program.chains.push_back({&it});
  }
  const int others = 3 + below(random, 8);
  for (int i = 0; i < others; ++i) {
    Chain& chain = program.chains.emplace_back();
    const int length = 1 + below(random, 6);
    for (int k = 0; k < length; ++k) {
      Item& it = add_item(program, random);
      const int key = 100 + 10 * i + below(random, 3);
      it.key = static_cast<std::uint64_t>(key);
      if (i % 3 == 0) {
        it.name = "key " + std::to_string(key);
        it.key = mpi::order::key_of(it.name);
      }
      chain.push_back(&it);
    }
  }
  // An order in which rank 0's tasks might reach them.
  std::vector<std::size_t> next(program.chains.size(), 0);
  for (std::size_t left = program.items.size(); left > 0;) {
    const std::size_t which = random() % program.chains.size();
    if (next[which] == program.chains[which].size()) continue;
    const Item& it = *program.chains[which][next[which]++];
    program.order[at(it.comm)].push_back(it.key);
    --left;
  }
  std::ranges::shuffle(program.chains, random);
  return program;
}

// ---- rank 0 of the other communicators ---------------------------------------------------------

class Announcer {
 public:
  Announcer(const Program& program, const std::array<MPI_Comm, comms>& of_program,
            const std::uint64_t seed, const bool fails)
      : program_(program), of_program_(of_program), random_(seed) {
    for (int comm = 1; comm < comms; ++comm) pace_[at(comm)] = static_cast<Pace>(below(random_, 3));
    if (fails) fails_at_ = below(random_, static_cast<int>(program.order[1].size()));
    thread_ = std::thread([this] { run(); });
  }
  ~Announcer() {
    stopping_.store(true);
    thread_.join();
  }
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  // A task has come.
  void come() { come_.fetch_add(1); }
  // Announces nothing on the second one until let_go().
  void hold() { held_.store(true); }
  void let_go() { held_.store(false); }
  // The number of keys of this communicator in messages before a message that fails; < 0: none
  // fails.
  [[nodiscard]] int good(const int comm) const { return comm == 1 ? fails_at_ : -1; }

 private:
  enum class Pace { at_once, any, late };

  void run() {
    while (!stopping_.load()) {
      for (int comm = 1; comm < comms; ++comm) announce(comm);
      for (int i = below(random_, 3); i > 0; --i) (void)fake_mpi::arrive_any();
      std::this_thread::yield();
    }
  }

  void announce(const int comm) {
    const Keys& all = program_.order[at(comm)];
    std::size_t& told = told_[at(comm)];
    if (told == all.size() || (comm == 1 && (held_.load() || has_failed_))) return;
    if (pace_[at(comm)] == Pace::late && come_.load() != program_.chains.size()) return;
    if (pace_[at(comm)] == Pace::any && below(random_, 3) != 0) return;
    const MPI_Comm to = fake_mpi::duplicate_named(of_program_[at(comm)], of_order);
    if (to == MPI_COMM_NULL) return;
    do {
      const bool is_short = below(random_, 3) != 0;
      const std::size_t most = told + at(1 + below(random_, is_short ? 3 : keys_most));
      std::size_t end = std::min(all.size(), most);
      if (comm == 1 && fails_at_ >= 0) {
        has_failed_ = told == at(fails_at_);
        if (!has_failed_) end = std::min(end, at(fails_at_));
      }
      send(to, std::span(all).subspan(told, end - told), comm == 1 && has_failed_);
      told = end;
      if (comm == 1 && has_failed_) return;
    } while (pace_[at(comm)] == Pace::at_once && told < all.size());
  }

  void send(MPI_Comm to, const std::span<const std::uint64_t> keys, const bool fails) {
    fake_mpi::Sending sending{.comm = to,
                              .source = 0,
                              .tag = 1,
                              .bytes = {},
                              .rounds = below(random_, 4)};
    sending.bytes.resize(keys.size_bytes());
    std::memcpy(sending.bytes.data(), keys.data(), keys.size_bytes());
    if (fails && below(random_, 2) == 0) {
      sending.bytes.resize((keys_most + 1) * sizeof(std::uint64_t));  // too long
    } else if (fails) {
      sending.error = MPI_ERR_OTHER;
    }
    fake_mpi::send(sending);
  }

  const Program& program_;
  const std::array<MPI_Comm, comms> of_program_;
  Random random_;
  std::array<Pace, comms> pace_{};
  std::array<std::size_t, comms> told_{};
  int fails_at_ = -1;
  bool has_failed_ = false;
  std::atomic<std::size_t> come_{0};
  std::atomic<bool> held_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// ---- this rank ---------------------------------------------------------------------------------

void begin(Item& it, MPI_Comm comm) {
  const auto count = static_cast<int>(it.in.size());
  MPI_Request request = MPI_REQUEST_NULL;
  int* const out = it.out.data();
  int* const in = it.in.data();
  switch (it.which) {
    case Which::allreduce:
      it.code = MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, comm);
      break;
    case Which::iallreduce:
      it.code = MPI_Iallreduce(out, in, count, MPI_INT, MPI_MAX, comm, &request);
      break;
    case Which::bcast: it.code = MPI_Bcast(in, count, MPI_INT, 2, comm); break;
    case Which::ibcast: it.code = MPI_Ibcast(in, count, MPI_INT, 2, comm, &request); break;
    case Which::object:
      try {
        const Collective object = allreduce({out, count, MPI_INT}, {in, count, MPI_INT}, MPI_MAX,
                                            comm, {.parts = it.parts});
        object.all().get();
        it.code = MPI_SUCCESS;
      } catch (const MpiError& error) {
        it.code = error.code();
      }
  }
  if (it.code == MPI_SUCCESS && request != MPI_REQUEST_NULL) {
    check(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a collective ends");
  }
}

void run_chain(const Chain& chain, const std::array<MPI_Comm, comms>& comm, Random random) {
  for (std::size_t i = 0; i < chain.size();) {
    if (below(random, 4) == 0) yield();
    const std::uint64_t key = chain[i]->key;
    const CollectiveOrder scope =
        chain[i]->name.empty() ? order_collectives(key)
                               : order_collectives(std::string_view(chain[i]->name));
    do {
      begin(*chain[i], comm[at(chain[i]->comm)]);
      ++i;
    } while (i < chain.size() && chain[i]->key == key && below(random, 2) == 0);
  }
}

bool somebody_waits(const std::string& name) {
  return std::ranges::any_of(mpi::order::describe_waiting(), [&](const std::string& line) {
    return line.find(name) != std::string::npos;
  });
}

// (4). The announcer holds the second communicator's order.
void try_to_free(MPI_Comm comm) {
  while (!somebody_waits(names[1])) yield();
  MPI_Comm copy = comm;
  check(MPI_Comm_free(&copy) == MPI_ERR_COMM, "a communicator with a start that waits stays");
  check(copy == comm, "its handle stays");
}

// ---- what must hold ----------------------------------------------------------------------------

bool is_within(const Keys& some, const Keys& all) {  // in that order
  std::size_t found = 0;
  for (const std::uint64_t key : all) {
    if (found < some.size() && some[found] == key) ++found;
  }
  return found == some.size();
}
bool is_beginning(const Keys& some, const Keys& all) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

// The keys of what has begun on each communicator, in order.
std::array<Keys, comms> begun(const Program& program) {
  std::array<Keys, comms> keys;
  std::array<const Item*, comms> last{};
  std::vector<int> times(program.items.size(), 0);
  for (const fake_mpi::Begun& one : fake_mpi::begun()) {
    check(!one.beside, "none begins beside another one");
    const auto found = std::ranges::find_if(program.items, [&](const Item& it) {
      return one.buffer >= it.in.data() && one.buffer < it.in.data() + it.in.size();
    });
    if (found == program.items.end()) continue;  // a duplicate
    const Item& it = *found;
    int& parts = times[static_cast<std::size_t>(found - program.items.begin())];
    const Item*& before = last[at(it.comm)];
    check(parts == 0 || before == &it, "what belongs to one begins together");
    if (parts++ == 0) keys[at(it.comm)].push_back(it.key);
    before = &it;
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Item& it = program.items[i];
    check(times[i] == (it.code == MPI_SUCCESS ? it.parts : 0),
          "what succeeds has begun once, and what fails has not");
  }
  return keys;
}

// The keys that rank 0 of the first communicator has announced to `rank`.
Keys announced_to(const int rank, MPI_Comm comm) {
  Keys all;
  for (const fake_mpi::Sent& it : fake_mpi::sent()) {
    if (it.destination != rank) continue;
    check(it.comm == comm && it.tag == 1, "nothing else is sent");
    check(!it.bytes.empty() && it.bytes.size() <= keys_most * sizeof(std::uint64_t) &&
              it.bytes.size() % sizeof(std::uint64_t) == 0,
          "an announcement has 1 to 32 keys");
    Keys keys(it.bytes.size() / sizeof(std::uint64_t));
    std::memcpy(keys.data(), it.bytes.data(), it.bytes.size());
    all.insert(all.end(), keys.begin(), keys.end());
  }
  return all;
}

void check_own(const Keys& begun, const std::size_t count, MPI_Comm duplicate,
               const Trouble trouble) {
  for (int rank = 1; rank < ranks; ++rank) {
    const Keys announced = announced_to(rank, duplicate);
    if (trouble == Trouble::delivery) {
      check(is_beginning(announced, begun) || is_beginning(begun, announced),
            "what is announced until an error is what begins");
    } else {
      check(announced.size() == count, "all ranks are told of all");
      check(is_within(begun, announced), "this rank begins what it has announced");
    }
  }
}

// `good`: of the keys announced before an error.
void check_other(const Keys& begun, const Keys& order, const int good) {
  if (good < 0) {
    check(is_within(begun, order), "this rank begins what rank 0 has announced");
  } else {
    check(begun.size() <= at(good) && is_beginning(begun, order),
          "until an error this rank begins what rank 0 has announced");
  }
}

// Returns how many calls have failed on a communicator.
long failed(const Program& program, const int comm) {
  return std::ranges::count_if(program.items, [&](const Item& it) {
    return it.comm == comm && it.code != MPI_SUCCESS;
  });
}

void check_codes(const Program& program, const Trouble trouble, const int refused) {
  const std::array<long, comms> failures{failed(program, 0), failed(program, 1),
                                         failed(program, 2)};
  const long all = failures[0] + failures[1] + failures[2];
  if (trouble == Trouble::none) check(all == 0, "without trouble all succeed");
  if (trouble == Trouble::message) check(all == failures[1], "an order fails alone");
  if (trouble == Trouble::delivery) check(all == failures[0], "an order fails alone");
  if (trouble == Trouble::refused) check(all == refused, "what MPI refuses fails, and no more");
}

// Returns the number of calls that shall fail. They fail one after the other, from the first on.
int refuse_some(const Program& program, Random& random) {
  const auto casts = std::ranges::count_if(program.items, [](const Item& it) {
    return it.which == Which::bcast || it.which == Which::ibcast;
  });
  const int count = std::min(static_cast<int>(casts), 1 + below(random, 4));
  for (int i = 0; i < count; ++i) fake_mpi::fail("Ibcast", 0, MPI_ERR_OTHER);
  return count;
}

bool run_all(const std::uint64_t seed) {
  constexpr std::array troubles{Trouble::none, Trouble::message, Trouble::refused,
                                Trouble::delivery};
  const Trouble trouble = troubles[seed % troubles.size()];
  MPI_Init(nullptr, nullptr);
  Random random(seed);
  Program program = make_program(random);
  {
    std::array<MPI_Comm, comms> comm{};
    for (int i = 0; i < comms; ++i) {
      MPI_Comm_split(MPI_COMM_WORLD, 0, rank_in[at(i)], &comm[at(i)]);
      MPI_Comm_set_name(comm[at(i)], names[at(i)]);
      MPI_Comm_set_errhandler(comm[at(i)], MPI_ERRORS_RETURN);
    }
    const int refused = trouble == Trouble::refused ? refuse_some(program, random) : 0;
    if (trouble == Trouble::delivery) fake_mpi::fail("Isend", below(random, 3), MPI_ERR_OTHER);
    Announcer announcer(program, comm, random(),
                        trouble == Trouble::message && !program.order[1].empty());
    const bool holds = below(random, 2) == 0 && !program.order[1].empty();
    if (holds) announcer.hold();
    finish([&] {
      for (const Chain& chain : program.chains) {
        const Random its(random());
        task("chain").priority(below(random, 3)).launch([&announcer, &comm, &chain, its] {
          announcer.come();
          run_chain(chain, comm, its);
        });
      }
      if (holds) {
        try_to_free(comm[1]);
        announcer.let_go();
      }
    });
    check_codes(program, trouble, refused);
    const std::array<Keys, comms> keys = begun(program);
    check_own(keys[0], program.order[0].size(), fake_mpi::duplicate_named(comm[0], of_order),
              trouble);
    for (int i = 1; i < comms; ++i) {
      check_other(keys[at(i)], program.order[at(i)], announcer.good(i));
    }
    for (MPI_Comm& each : comm) MPI_Comm_free(&each);
    MPI_Finalize();
  }
  return all_is_well();
}

// ---- processes ---------------------------------------------------------------------------------

void prepare(const std::uint64_t seed, const int workers, const std::string& policy) {
  set_environment(seed, workers, policy);
  fake_mpi::reset({.ranks = ranks, .seed = seed, .patience = 20, .yields = 20,
                   .late = seed % 2 == 0});
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, 4, &prepare, &run_all);
}
