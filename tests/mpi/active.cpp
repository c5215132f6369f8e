// SPDX-License-Identifier: BSD-3-Clause
// A plug-in that uses active messages and knows no MPI: compiled once, linked and run with every
// MPI.
#include "mpi/active/active.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/imbrex.hpp"

#ifdef MPI_VERSION
#error "the interface must not bring mpi.h along"
#endif

extern "C" void run_active();
extern "C" int run_active_outside();
extern "C" void finish_active();
extern "C" void hang_active();
extern "C" void flood_active();

namespace {

namespace active = imbrex::mpi::active;
using active::Id;

[[maybe_unused]] const bool wanted = (active::want(), true);

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
T value_of(std::span<const std::byte> message) {
  T value{};
  if (message.size() >= sizeof value) std::memcpy(&value, message.data(), sizeof value);
  return value;
}

constexpr Id id(const int number) {
  return static_cast<Id>(static_cast<int>(Id::first_free) + number);
}

// All other ranks by one message each; ends when theirs have come.
class Meeting {
 public:
  explicit Meeting(const Id number) : number_(number) {
    active::set_handler(number, &Meeting::arrived, this);
  }
  void meet() {
    const active::Expecting expecting;
    for (int to = 0; to < active::ranks(); ++to) active::send(to, number_, {});
    const int wanted_count = active::ranks() * ++round_;
    while (count_.load(std::memory_order_acquire) < wanted_count) imbrex::yield();
  }

 private:
  static void arrived(void* self, int, std::span<const std::byte>) noexcept {
    static_cast<Meeting*>(self)->count_.fetch_add(1, std::memory_order_release);
  }
  Id number_;
  int round_ = 0;
  std::atomic<int> count_{0};
};

// ---- order -----------------------------------------------------------------------------------

// Messages of all sizes, from several tasks: each task's come in order, and whole.
struct Ordered {
  int sender;
  int number;
  int bytes;
};
constexpr int senders = 4;

struct Order {
  std::vector<std::array<int, senders>> next;
  std::atomic<int> arrived{0};
  std::atomic<bool> wrong{false};

  static void take(void* self, int from, std::span<const std::byte> message) noexcept {
    auto& mine = *static_cast<Order*>(self);
    const auto head = value_of<Ordered>(message);
    bool well = reinterpret_cast<std::uintptr_t>(message.data()) % alignof(std::max_align_t) == 0;
    well = well && message.size() == sizeof head + static_cast<std::size_t>(head.bytes);
    int& next = mine.next[static_cast<std::size_t>(from)][static_cast<std::size_t>(head.sender)];
    well = well && head.number == next++;
    for (std::size_t i = sizeof head; well && i < message.size(); ++i) {
      well = message[i] == static_cast<std::byte>(head.number);
    }
    if (!well) mine.wrong.store(true);
    mine.arrived.fetch_add(1, std::memory_order_release);
  }
};

void check_order(Order& order, const Id number) {
  constexpr int messages = 400;
  const active::Expecting expecting;
  imbrex::finish([&] {
    for (int sender = 0; sender < senders; ++sender) {
      imbrex::task("sends").spawn([=] {
        for (int i = 0; i < messages; ++i) {
          const int bytes = i % 16 == 0 ? static_cast<int>(active::message_bytes_max -
                                                           sizeof(Ordered)) : i * 7 % 300;
          const std::vector<std::byte> body(static_cast<std::size_t>(bytes),
                                            static_cast<std::byte>(i));
          const Ordered head{sender, i, bytes};
          for (int to = 0; to < active::ranks(); ++to) {
            active::send(to, number, bytes_of(head), body);
          }
          if (i % 50 == 0) imbrex::yield();
        }
      });
    }
  });
  const int all = messages * senders * active::ranks();
  while (order.arrived.load(std::memory_order_acquire) < all) imbrex::yield();
  require(!order.wrong.load(), "messages come whole, aligned, and in order");
}

// ---- handlers that send, and a task that suspends ----------------------------------------------

struct Ball {
  int left;
  int home;
};
struct Game {
  std::vector<imbrex::detail::EventWord> ends = std::vector<imbrex::detail::EventWord>(64);
  Id number{};

  static void take(void* self, int, std::span<const std::byte> message) noexcept {
    auto& mine = *static_cast<Game*>(self);
    Ball ball = value_of<Ball>(message);
    if (ball.left == 0 && ball.home == active::rank()) {
      imbrex::detail::fire(mine.ends[0]);
      return;
    }
    if (ball.left > 0) --ball.left;
    const int to = ball.left == 0 ? ball.home : (active::rank() + 1) % active::ranks();
    active::send(to, mine.number, bytes_of(ball));
  }
};

// The task suspends: idle workers poll, as long as it expects something.
void play(Game& game) {
  const active::Expecting expecting;
  const Ball ball{200, active::rank()};
  active::send((active::rank() + 1) % active::ranks(), game.number, bytes_of(ball));
  imbrex::detail::await(game.ends[0], {.kind = imbrex::detail::WaitKind::mpi, .what = "a ball"});
}

// ---- a flood ---------------------------------------------------------------------------------

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

struct Count {
  std::atomic<std::uint64_t> messages{0};
  static void take(void* self, int, std::span<const std::byte>) noexcept {
    static_cast<Count*>(self)->messages.fetch_add(1, std::memory_order_release);
  }
};

// All send to rank 0, which does not look for a while: they wait, and its memory stays bounded.
void flood(Count& count, Meeting& meeting, const Id number) {
  constexpr std::uint64_t messages = 4000;
  const std::vector<std::byte> body(2000);
  const active::Expecting expecting;
  const std::size_t before = resident_bytes();
  std::size_t most = before;
  if (active::rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto all = messages * static_cast<std::uint64_t>(active::ranks() - 1);
    while (count.messages.load(std::memory_order_acquire) < all) {
      imbrex::yield();
      most = std::max(most, resident_bytes());
    }
  } else {
    for (std::uint64_t i = 0; i < messages; ++i) active::send(0, number, body);
    most = std::max(most, resident_bytes());
  }
  require(most - before < (std::size_t{80} << 20), "the memory of a flood is bounded");
  meeting.meet();
}

// ---- threads that imbrex does not know ---------------------------------------------------------

void send_from_threads(Count& count, const Id number) {
  constexpr int threads = 3;
  constexpr int messages = 3000;
  const active::Expecting expecting;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([number] {
      const std::vector<std::byte> body(100);
      for (int sent = 0; sent < messages; ++sent) {
        active::send(sent % active::ranks(), number, body);
      }
      active::flush();
    });
  }
  for (std::thread& thread : running) thread.join();
  const auto to_each = [](const int rank) {
    return static_cast<std::uint64_t>(messages / active::ranks() +
                                      (rank < messages % active::ranks() ? 1 : 0));
  };
  const std::uint64_t all = threads * to_each(active::rank()) *
                            static_cast<std::uint64_t>(active::ranks());
  while (count.messages.load(std::memory_order_acquire) < all) imbrex::yield();
}

// ---- transfers -------------------------------------------------------------------------------

struct Transfers {
  Id number{};
  std::vector<std::byte> data;
  std::atomic<int> landed{0};
  std::atomic<int> sent{0};
  std::atomic<bool> failed{false};

  // Called at the side that has the data.
  static void asked(void* self, int, std::span<const std::byte> message) noexcept {
    auto& mine = *static_cast<Transfers*>(self);
    const auto landing = value_of<active::Landing>(message);
    active::deliver(landing, std::span(mine.data).first(landing.bytes), &Transfers::has_sent, self);
  }
  static void has_sent(void* self, std::exception_ptr error) noexcept {
    auto& mine = *static_cast<Transfers*>(self);
    if (error != nullptr) mine.failed.store(true);
    mine.sent.fetch_add(1, std::memory_order_release);
  }
  static void has_landed(void* self, std::exception_ptr error) noexcept {
    auto& mine = *static_cast<Transfers*>(self);
    if (error != nullptr) mine.failed.store(true);
    mine.landed.fetch_add(1, std::memory_order_release);
  }
};

void transfer(Transfers& mine, Meeting& meeting) {
  const active::Expecting expecting;
  constexpr std::size_t bytes = std::size_t{3} << 20;
  mine.data.assign(bytes, static_cast<std::byte>(active::rank() + 1));
  meeting.meet();  // all have data
  std::vector<std::vector<std::byte>> got;
  for (int from = 0; from < active::ranks(); ++from) {
    got.emplace_back(from % 2 == 0 ? bytes : 8);
    const active::Landing landing =
        active::offer(from, got.back(), &Transfers::has_landed, &mine);
    active::send(from, mine.number, bytes_of(landing));
  }
  while (mine.landed.load(std::memory_order_acquire) < active::ranks() ||
         mine.sent.load(std::memory_order_acquire) < active::ranks()) {
    imbrex::yield();
  }
  for (int from = 0; from < active::ranks(); ++from) {
    const auto& data = got[static_cast<std::size_t>(from)];
    require(std::ranges::count(data, static_cast<std::byte>(from + 1)) == std::ssize(data),
            "the data that has landed");
  }
  require(!mine.failed.load(), "transfers succeed");
  meeting.meet();
}

// ---- misuse ----------------------------------------------------------------------------------

template <class F>
void require_error(const char* text, F call) {
  try {
    call();
  } catch (const imbrex::Error& error) {
    if (std::string(error.what()).find(text) == std::string::npos) throw;
    return;
  }
  throw std::runtime_error(std::string("no error: ") + text);
}

void misuse() {
  const auto nothing = [](void*, int, std::span<const std::byte>) noexcept {};
  const auto ended = [](void*, std::exception_ptr) noexcept {};
  const std::vector<std::byte> large(active::message_bytes_max + 1);
  require_error("3968 are possible", [&] { active::send(0, id(0), large); });
  require_error("3968 are possible", [&] {
    active::send(0, id(0), bytes_of('x'), std::span(large).subspan(1));
  });
  require_error("there is no rank", [] { active::send(-1, id(0), {}); });
  require_error("there is no rank", [] { active::send(active::ranks(), id(0), {}); });
  require_error("is set already", [&] { active::set_handler(id(0), nothing, nullptr); });
  require_error("without a function", [] { active::set_handler(id(40), nullptr, nullptr); });
  require_error("there is no handler", [&] { active::set_handler(Id{64}, nothing, nullptr); });
  require_error("there is no handler", [] { active::send(0, Id{64}, {}); });
  require_error("no rank has offered", [&] { active::deliver({}, {}, ended, nullptr); });
  require_error("to a landing of", [&] { active::deliver({1, 0, 3}, large, ended, nullptr); });
}

// ---- after the last task -----------------------------------------------------------------------

// A chain that goes on in MPI_Finalize, through handlers and tasks.
struct Chain {
  Id number{};
  std::atomic<int> handled{0};

  static void take(void* self, int, std::span<const std::byte> message) noexcept {
    auto& mine = *static_cast<Chain*>(self);
    mine.handled.fetch_add(1);
    const int left = value_of<int>(message);
    if (left == 0) return;
    imbrex::task("goes on").spawn([&mine, left] {
      active::send((active::rank() + 1) % active::ranks(), mine.number, bytes_of(left - 1));
    });
  }
};
Chain& chain() {
  static Chain& the_chain = *new Chain;
  return the_chain;
}

}  // namespace

int run_active_outside() {
  int errors = 0;
  const auto refused = [&errors](auto call) {
    try {
      call();
      ++errors;
    } catch (const imbrex::Error&) {
    }
  };
  refused([] { (void)active::rank(); });
  refused([] { active::send(0, id(0), {}); });
  active::flush();
  if (active::is_open()) ++errors;
  if (errors != 0) std::fprintf(stderr, "active messages outside of MPI: %d errors\n", errors);
  return errors;
}

void run_active() {
  require(active::is_open(), "one who wants them has them");
  static Meeting& meeting = *new Meeting(id(0));
  meeting.meet();
  misuse();

  static Order& order = *new Order;
  order.next.resize(static_cast<std::size_t>(active::ranks()));
  if (active::rank() % 2 == 0) active::set_handler(id(1), &Order::take, &order);
  imbrex::task("sets a handler late").spawn([] {
    imbrex::yield();
    if (active::rank() % 2 != 0) active::set_handler(id(1), &Order::take, &order);
  });
  check_order(order, id(1));

  static Game& game = *new Game;
  game.number = id(2);
  active::set_handler(id(2), &Game::take, &game);
  imbrex::task("plays").spawn([] { play(game); }).get();

  static Count& in_flood = *new Count;
  active::set_handler(id(3), &Count::take, &in_flood);
  flood(in_flood, meeting, id(3));

  static Count& of_threads = *new Count;
  active::set_handler(id(4), &Count::take, &of_threads);
  send_from_threads(of_threads, id(4));
  meeting.meet();

  static Transfers& transfers = *new Transfers;
  transfers.number = id(5);
  active::set_handler(id(5), &Transfers::asked, &transfers);
  transfer(transfers, meeting);

  chain().number = id(6);
  active::set_handler(id(6), &Chain::take, &chain());
  if (active::rank() == 0) active::send(active::ranks() - 1, id(6), bytes_of(50));
}

// No rank sends the expected message: only an unrelated message comes.
void hang_active() {
  active::set_handler(id(0), [](void*, int, std::span<const std::byte>) noexcept {}, nullptr);
  active::send((active::rank() + 1) % active::ranks(), id(0), {});
  imbrex::task("expects").spawn([] {
    const active::Expecting expecting;
    imbrex::detail::EventWord never;
    imbrex::detail::await(never, {.kind = imbrex::detail::WaitKind::mpi, .what = "a value"});
  }).get();
}

// Many tasks suspend for room, and go on in other threads, while these hold the flag.
void flood_active() {
  constexpr int tasks = 16;
  constexpr int messages = 150;
  static Count& count = *new Count;
  active::set_handler(id(0), &Count::take, &count);
  const std::vector<std::byte> body(1900);
  const active::Expecting expecting;
  imbrex::finish([&] {
    for (int i = 0; i < tasks; ++i) {
      imbrex::task("sends").spawn([&body] {
        for (int sent = 0; sent < messages; ++sent) {
          for (int to = 0; to < active::ranks(); ++to) active::send(to, id(0), body);
        }
      });
    }
  });
  const auto all = static_cast<std::uint64_t>(tasks * messages * active::ranks());
  while (count.messages.load(std::memory_order_acquire) < all) imbrex::yield();
}

void finish_active() {
  const active::Counts counts = active::counts();
  if (active::is_open()) std::fprintf(stderr, "active messages are open after the end\n");
  std::printf("active: %llu sent, %llu handled\n", static_cast<unsigned long long>(counts.sent),
              static_cast<unsigned long long>(counts.handled));
}
