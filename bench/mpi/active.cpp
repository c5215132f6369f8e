// SPDX-License-Identifier: BSD-3-Clause
// Active messages beside MPI_Send and MPI_Recv in the same run, between two ranks, by turns; the
// best of 15 rounds each:
//   latency    one way, 8 bytes: half of the time for a message and the answer of its handler
//   rate       messages of 8 bytes, sent by one task of rank 0 and handled by rank 1
//   bandwidth  8 MiB into memory that has been offered
//
//   mpirun -n 2 active_messages [workers]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "imbrex/detail/waist.hpp"
#include "mpi/active/active.hpp"
#include "pair.hpp"
#include "raw_mpi.hpp"

namespace {

namespace active = imbrex::mpi::active;
using pair::Best;
using pair::rounds;

[[maybe_unused]] const bool wanted = (active::want(), true);

constexpr active::Id ball{16};
constexpr active::Id counted{17};
constexpr active::Id offered{18};
constexpr active::Id done{19};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::atomic<long> balls_left{0};
imbrex::detail::EventWord* game_over = nullptr;
bool answers_all = false;  // rank 1 sends the last one too
std::atomic<long> count{0};
std::atomic<long> answers{0};
std::atomic<int> transfers{0};
std::vector<std::byte> data(8 << 20);

void raw_send(const void* buffer, const int bytes, const int to) {
  RAW_MPI(Send)(buffer, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}
void raw_receive(void* buffer, const int bytes, const int from) {
  RAW_MPI(Recv)(buffer, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void wait_until(const std::atomic<long>& value, const long least) {
  while (value.load(std::memory_order_acquire) < least) imbrex::yield();
}

// ---- handlers --------------------------------------------------------------------------------

void take_ball(void*, int from, std::span<const std::byte> message) noexcept {
  const long left = balls_left.load(std::memory_order_relaxed) - 1;
  balls_left.store(left, std::memory_order_release);
  if (left > 0 || answers_all) active::send(from, ball, message);
  if (left == 0) imbrex::detail::fire(*game_over);
}
void take_counted(void*, int, std::span<const std::byte>) noexcept {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}
void take_offer(void*, int, std::span<const std::byte> message) noexcept {
  active::Landing landing;
  std::memcpy(&landing, message.data(), sizeof landing);
  active::deliver(landing, data, [](void*, std::exception_ptr) noexcept {}, nullptr);
}
void take_done(void*, int, std::span<const std::byte>) noexcept {
  answers.fetch_add(1, std::memory_order_release);
}
void landed(void*, std::exception_ptr) noexcept {
  transfers.fetch_add(1, std::memory_order_release);
}

// ---- measurements ----------------------------------------------------------------------------

// The task has suspended, and the workers idle.
Best measure_latency(const int rank) {
  constexpr long trips = 2000;
  Best best;
  long value = 0;
  for (int round = 0; round < rounds; ++round) {
    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    double start = now_ns();
    for (long i = 0; i < trips; ++i) {
      if (rank == 0) raw_send(&value, sizeof value, 1);
      raw_receive(&value, sizeof value, 1 - rank);
      if (rank == 1) raw_send(&value, sizeof value, 0);
    }
    best.raw = std::min(best.raw, (now_ns() - start) / (2.0 * trips));

    imbrex::detail::EventWord event;
    game_over = &event;
    answers_all = rank == 1;
    balls_left.store(trips, std::memory_order_release);
    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    start = now_ns();
    if (rank == 0) active::send(1, ball, bytes_of(value));
    imbrex::detail::await(event, {.kind = imbrex::detail::WaitKind::mpi, .what = "a game"});
    best.ours = std::min(best.ours, (now_ns() - start) / (2.0 * trips));
  }
  return best;
}

Best measure_rate(const int rank) {
  constexpr long messages = 200'000;
  Best best;
  long value = 0;
  const long before = answers.load();
  for (int round = 0; round < rounds; ++round) {
    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    double start = now_ns();
    constexpr long raw_messages = messages / 10;
    for (long i = 0; i < raw_messages; ++i) {
      if (rank == 0) {
        raw_send(&value, sizeof value, 1);
      } else {
        raw_receive(&value, sizeof value, 0);
      }
    }
    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    best.raw = std::min(best.raw, (now_ns() - start) / raw_messages);

    start = now_ns();
    if (rank == 0) {
      for (long i = 0; i < messages; ++i) active::send(1, counted, bytes_of(i));
      active::flush();
      wait_until(answers, before + round + 1);
    } else {
      wait_until(count, (round + 1) * messages);
      active::send(0, done, {});
      active::flush();
    }
    best.ours = std::min(best.ours, (now_ns() - start) / messages);
  }
  return best;
}

Best measure_bandwidth(const int rank) {
  Best best;
  const int bytes = static_cast<int>(data.size());
  for (int round = 0; round < rounds; ++round) {
    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    double start = now_ns();
    if (rank == 0) raw_receive(data.data(), bytes, 1);
    if (rank == 1) raw_send(data.data(), bytes, 0);
    best.raw = std::min(best.raw, (now_ns() - start) / bytes);

    RAW_MPI(Barrier)(MPI_COMM_WORLD);
    start = now_ns();
    if (rank == 0) {
      const active::Landing landing = active::offer(1, data, &landed, nullptr);
      active::send(1, offered, bytes_of(landing));
      active::flush();
      while (transfers.load(std::memory_order_acquire) <= round) imbrex::yield();
      active::send(1, done, {});
      active::flush();
      best.ours = std::min(best.ours, (now_ns() - start) / bytes);
    } else {
      wait_until(answers, round + 1);
    }
  }
  return best;
}

void measure(const int rank) {
  active::set_handler(ball, &take_ball, nullptr);
  active::set_handler(counted, &take_counted, nullptr);
  active::set_handler(offered, &take_offer, nullptr);
  active::set_handler(done, &take_done, nullptr);
  const active::Expecting expecting;
  const Best latency = measure_latency(rank);
  const Best bandwidth = measure_bandwidth(rank);
  const Best rate = measure_rate(rank);
  if (rank != 0) return;
  pair::print_ns({"active_latency", "active"}, latency);
  pair::print_rate({"active_rate", "active"}, "per_s", rate);
  pair::print_rate({"active_bandwidth", "active"}, "bytes_per_s", bandwidth);
}

}  // namespace

int main(int argc, char** argv) {
  pair::run(argc, argv, argc > 1 ? argv[1] : nullptr, &measure);
}
