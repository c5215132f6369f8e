// SPDX-License-Identifier: BSD-3-Clause
// active_fuzz [--seed N] [--count N] [--workers N] [--policy P]: random programs of
// active messages and transfers against scripted ranks in fake_mpi.
//
// Methodology: tasks, and a thread that imbrex does not know, send messages of random sizes to all
// ranks, this one included. A thread plays the other ranks: it reads what has been sent there, as
// packets, and answers each message; how many answers go into a packet, when credit is returned,
// and when packets in flight arrive is drawn. Some of the messages ask for a transfer, in either
// direction. Both sides require 1. that messages of one sender come in order, whole, and once,
//   2. that never more packets are under way than there is credit for,
//   3. that handlers do not overlap,
//   4. that fake_mpi has seen no breach of MPI's rules, and nothing is left at MPI_Finalize.
// Each program runs in a process of its own. At the end a call of MPI's fails: then the process
// must end with a message that names the rank.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "fuzz/on_fake_mpi.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/active/active.hpp"
#include "mpi/active/post/packet.hpp"

namespace imbrex::test {
namespace {

namespace active = mpi::active;
using active::Landing;
using active::Packet;

[[maybe_unused]] const bool wanted = (active::want(), true);

constexpr int ranks = 3;
constexpr int window = 64;  // of three ranks: 64 MiB would be more
constexpr int senders = 5;  // the last one is a thread
constexpr int messages_each = 150;
constexpr active::Id numbered{20};
constexpr active::Id asks_for_data{21};  // carries a landing
constexpr std::size_t data_bytes = 10'000;

struct Head {
  int sender;
  int number;
  int bytes;   // that follow, each the number
  int origin;  // the rank that sent it first
};

void check(const bool condition, const char* const text) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  expect(condition, text);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
T value_of(const std::span<const std::byte> bytes) {
  T value{};
  if (bytes.size() >= sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool is_whole(const std::span<const std::byte> message) {
  const auto head = value_of<Head>(message);
  if (message.size() != sizeof head + static_cast<std::size_t>(head.bytes)) return false;
  for (const std::byte one : message.subspan(sizeof head)) {
    if (one != static_cast<std::byte>(head.number)) return false;
  }
  return true;
}

// ---- the other ranks ---------------------------------------------------------------------------

std::atomic<std::int64_t> others_sent{0};
std::atomic<std::int64_t> others_handled{0};
std::array<std::int64_t, 2> sums_of_others() { return {others_sent.load(), others_handled.load()}; }

// Thread safety: one thread's.
class Side {
 public:
  Side(const int rank, std::mt19937_64& random) : rank_(rank), random_(random) {}

  // Takes the packets that rank 0 has sent here.
  void take(const fake_mpi::Sent& sent) {
    comm_ = sent.comm;
    ++others_handled;
    if (sent.tag != 0) {
      check(sent.bytes == std::vector<std::byte>(data_bytes, std::byte{7}), "data from rank 0");
      return;
    }
    const active::PacketHead head = active::head_of(sent.bytes);
    credit_ += static_cast<int>(head.credit);
    if (head.messages != 0) {
      ++owed_;
      check(++under_way_ <= window, "no more packets than there is credit for");
    }
    const auto take_one = [this](const std::uint32_t id,
                                 const std::span<const std::byte> message) {
      answer(id, message);
    };
    check(active::for_each_message(std::span<const std::byte>(sent.bytes), take_one), "a packet");
  }

  // Sometimes sends a packet of some answers, sometimes returns credit only.
  void act() {
    const bool must_return = owed_ >= window / 2 && below(20) == 0;
    if (!queue_.empty() && credit_ > 0 && below(3) != 0) {
      Packet packet;
      for (int most = 1 + below(40); most > 0 && !queue_.empty(); --most) {
        const Answer& next = queue_.front();
        if (!packet.has_room(next.bytes.size())) break;
        packet.append(next.id, next.bytes, {});
        queue_.pop_front();
      }
      --credit_;
      send(packet);
    } else if (must_return) {
      Packet packet;
      send(packet);
    }
  }
  [[nodiscard]] bool is_idle() const noexcept { return queue_.empty(); }

 private:
  struct Answer {
    std::uint32_t id;
    std::vector<std::byte> bytes;
  };

  int below(const int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  void answer(const std::uint32_t id, const std::span<const std::byte> message) {
    if (id == static_cast<std::uint32_t>(active::Id::paths)) return;  // of policy ga
    if (id == static_cast<std::uint32_t>(asks_for_data)) {
      const auto landing = value_of<Landing>(message);
      ++others_sent;
      fake_mpi::send({.comm = comm_, .source = rank_, .tag = landing.tag,
                      .bytes = std::vector<std::byte>(landing.bytes, std::byte{9}),
                      .rounds = below(3)});
      return;
    }
    const auto head = value_of<Head>(message);
    check(is_whole(message), "a message comes whole");
    check(head.number == next_[static_cast<std::size_t>(head.sender)]++, "in order");
    queue_.push_back({id, {message.begin(), message.end()}});
    if (head.number % 50 == 49) {  // this rank wants data, too
      const Landing landing{1'000 + tag_++, rank_, data_bytes};
      const auto bytes = bytes_of(landing);
      queue_.push_back({static_cast<std::uint32_t>(asks_for_data), {bytes.begin(), bytes.end()}});
    }
  }

  void send(Packet& packet) {
    const auto bytes = packet.seal(static_cast<std::uint32_t>(owed_));
    under_way_ -= owed_;
    owed_ = 0;
    ++others_sent;
    fake_mpi::send({.comm = comm_, .source = rank_, .tag = 0,
                    .bytes = {bytes.begin(), bytes.end()}, .rounds = below(2)});
  }

  int rank_;
  std::mt19937_64& random_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int credit_ = window;  // packets that may go to rank 0
  int owed_ = 0;
  int under_way_ = 0;    // from rank 0, as it must see it
  int tag_ = 0;
  std::array<int, senders> next_{};
  std::deque<Answer> queue_;
};

// Plays all other ranks until it is stopped.
class Others {
 public:
  explicit Others(const std::uint64_t seed)
      : random_(seed), sides_{Side(1, random_), Side(2, random_)}, thread_([this] { run(); }) {}
  ~Others() {
    stopping_.store(true);
    thread_.join();
  }

 private:
  void run() {
    std::size_t seen = 0;
    while (!stopping_.load()) {
      const std::vector<fake_mpi::Sent> sent = fake_mpi::sent(seen);
      for (const fake_mpi::Sent& one : sent) {
        const int to = one.destination;
        if (to >= 1 && to < ranks) sides_[static_cast<std::size_t>(to - 1)].take(one);
      }
      seen += sent.size();
      for (Side& side : sides_) side.act();
      for (auto most = random_() % 8; most > 2 && fake_mpi::arrive_any(); --most) {
      }
      // A yield would get the processor back only after a time slice of all computing threads.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  std::mt19937_64 random_;
  std::array<Side, ranks - 1> sides_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// ---- this rank ---------------------------------------------------------------------------------

struct Rank0 {
  std::atomic<bool> in_handler{false};
  std::atomic<int> handled{0};
  std::atomic<int> landed{0};
  std::atomic<int> delivered{0};
  std::atomic<int> left{0};  // of all three together
  Promise<void> all_done{"answers and transfers"};
  void count(std::atomic<int>& one) {
    one.fetch_add(1);
    if (left.fetch_sub(1) == 1) all_done.set();
  }
  int next[ranks][senders] = {};  // the handler's
  std::vector<std::byte> to_deliver = std::vector<std::byte>(data_bytes, std::byte{7});
};

class InHandler {
 public:
  explicit InHandler(Rank0& rank) : rank_(rank) {
    check(!rank_.in_handler.exchange(true), "handlers do not overlap");
  }
  ~InHandler() { rank_.in_handler.store(false); }
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;

 private:
  Rank0& rank_;
};

void take_numbered(void* const self, const int from,
                   const std::span<const std::byte> message) noexcept {
  auto& mine = *static_cast<Rank0*>(self);
  const InHandler inside(mine);
  const auto head = value_of<Head>(message);
  check(is_whole(message), "an answer comes whole");
  check(reinterpret_cast<std::uintptr_t>(message.data()) % 16 == 0, "aligned");
  check(head.number == mine.next[from][head.sender]++, "answers come in order");
  // Some lead to a task; it counts when it runs.
  if (head.number % 8 == 0) {
    imbrex::task("counts").spawn([&mine] { mine.count(mine.handled); });
  } else {
    mine.count(mine.handled);
  }
}

void take_request(void* const self, int, const std::span<const std::byte> message) noexcept {
  auto& mine = *static_cast<Rank0*>(self);
  const InHandler inside(mine);
  const auto ended = [](void* const rank, const std::exception_ptr error) noexcept {
    const InHandler within(*static_cast<Rank0*>(rank));
    check(error == nullptr, "a delivery succeeds");
    static_cast<Rank0*>(rank)->count(static_cast<Rank0*>(rank)->delivered);
  };
  active::deliver(value_of<Landing>(message), mine.to_deliver, ended, self);
}

struct Place {
  Rank0* rank;
  std::vector<std::byte> memory = std::vector<std::byte>(data_bytes);
};
void has_landed(void* const self, const std::exception_ptr error) noexcept {
  auto* const place = static_cast<Place*>(self);
  const InHandler inside(*place->rank);
  check(error == nullptr, "a landing succeeds");
  check(place->memory == std::vector<std::byte>(data_bytes, std::byte{9}), "what has landed");
  place->rank->count(place->rank->landed);
  delete place;
}

void send_all(Rank0& mine, const int sender, const std::uint64_t seed) {
  std::mt19937_64 random(seed * 31 + static_cast<std::uint64_t>(sender));
  for (int i = 0; i < messages_each; ++i) {
    const int bytes = static_cast<int>(random() % (i % 3 == 0 ? 3'900 : 60));
    const std::vector<std::byte> body(static_cast<std::size_t>(bytes), static_cast<std::byte>(i));
    for (int to = 0; to < ranks; ++to) {
      active::send(to, numbered, bytes_of(Head{sender, i, bytes, 0}), body);
    }
    if (i % 40 == 39) {
      auto* const place = new Place{&mine};
      const int to = 1 + i % 2;
      const Landing landing = active::offer(to, place->memory, &has_landed, place);
      active::send(to, asks_for_data, bytes_of(landing));
    }
    if (random() % 16 == 0) active::flush();
    if (random() % 16 == 0) imbrex::yield();
  }
}

bool run_all(const std::uint64_t seed) {
  MPI_Init(nullptr, nullptr);
  fake_mpi::set_others(&sums_of_others);
  {
    Rank0 mine;
    active::set_handler(numbered, &take_numbered, &mine);
    active::set_handler(asks_for_data, &take_request, &mine);
    const Others others(seed);
    constexpr int all = ranks * senders * messages_each;
    constexpr int landings = senders * (messages_each / 40);
    constexpr int deliveries = (ranks - 1) * senders * (messages_each / 50);
    mine.left.store(all + landings + deliveries);
    const Future<void> done = mine.all_done.future();
    {
      const active::Expecting expecting;
      std::thread outside([&mine, seed] { send_all(mine, senders - 1, seed); });
      imbrex::finish([&] {
        for (int sender = 0; sender < senders - 1; ++sender) {
          imbrex::task("sends").spawn([&mine, sender, seed] { send_all(mine, sender, seed); });
        }
      });
      outside.join();
      done.wait();
      check(mine.handled.load() == all && mine.landed.load() == landings &&
                mine.delivered.load() == deliveries,
            "each once");
    }
    MPI_Finalize();
  }
  return all_is_well();
}

// ---- processes ---------------------------------------------------------------------------------

void prepare(const std::uint64_t seed, const int workers, const std::string& policy) {
  set_environment(seed, workers, policy);
  fake_mpi::reset({.ranks = ranks, .seed = seed, .patience = 20, .yields = 5,
                   .late = seed % 2 == 0});
}

bool run_seed(const std::uint64_t seed, const int workers, const std::string& policy) {
  return run_in_process(seed, workers, policy, &prepare, &run_all);
}

// A rank that cannot be reached is named, and the process ends.
bool names_the_lost() {
  constexpr const char* text = "MPI_Isend to rank 2";
  int ends[2] = {};
  if (pipe(ends) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    prepare(1, 2, "default");
    MPI_Init(nullptr, nullptr);
    fake_mpi::fail("Isend", 3, MPI_ERR_OTHER);
    for (;;) {
      active::send(2, numbered, bytes_of(Head{}));
      active::flush();
    }
  }
  close(ends[1]);
  std::string output;
  char buffer[512];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    output.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool well = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT &&
                    output.find(text) != std::string::npos;
  if (!well) std::printf("failed: no \"%s\" in: %s\n", text, output.c_str());
  return well;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  Campaign campaign = campaign_of(5);
  if (!read_campaign(argc, argv, campaign)) return 2;
  const bool names = names_the_lost();
  const int code = campaign.each(&run_seed);
  return names ? code : 1;
}
