// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../raw_mpi.hpp"

namespace stencil1d {
namespace {

constexpr int tag = 7;
constexpr int sender = 1;

double now_us() { return MPI_Wtime() * 1e6; }

constexpr char content = 'x';  // of each byte

void check(const std::vector<char>& buffer) {
  if (buffer.front() != content || buffer.back() != content) {
    throw std::runtime_error("stencil1d: a message arrived with wrong content");
  }
}

// ---- what rank 0 does --------------------------------------------------------------------------

void receive_and_compute(const Setting& setting, const Work& work, std::vector<char>& buffer) {
  RAW_MPI(Recv)(buffer.data(), setting.bytes, MPI_CHAR, sender, tag, setting.comm,
            MPI_STATUS_IGNORE);
  work.run(setting.compute_us);
}

void compute_between(const Setting& setting, const Work& work, std::vector<char>& buffer,
                     bool computes, bool tests) {
  MPI_Request request;
  RAW_MPI(Irecv)(buffer.data(), setting.bytes, MPI_CHAR, sender, tag, setting.comm, &request);
  if (tests) {
    int done = 0;
    work.run(setting.compute_us, setting.step_us, [&] {
      if (done == 0) RAW_MPI(Test)(&request, &done, MPI_STATUS_IGNORE);
    });
  } else if (computes) {
    work.run(setting.compute_us);
  }
  RAW_MPI(Wait)(&request, MPI_STATUS_IGNORE);
}

// The computing thread is there beforehand: its start is no part of the communication.
void compute_beside_a_tester(const Setting& setting, const Work& work, std::vector<char>& buffer,
                             double* start) {
  std::atomic<bool> begin{false};
  std::atomic<bool> ready{false};
  std::thread computes([&] {
    ready.store(true);
    while (!begin.load()) std::this_thread::yield();
    work.run(setting.compute_us);
  });
  while (!ready.load()) std::this_thread::yield();
  *start = now_us();
  begin.store(true);
  MPI_Request request;
  RAW_MPI(Irecv)(buffer.data(), setting.bytes, MPI_CHAR, sender, tag, setting.comm, &request);
  for (int done = 0; done == 0;) {
    RAW_MPI(Test)(&request, &done, MPI_STATUS_IGNORE);
    std::this_thread::yield();
  }
  computes.join();
}

void run_tasks(const Setting& setting, const Work& work, std::vector<char>& buffer) {
  imbrex::finish([&] {
    imbrex::task("receive").launch([&] {
      MPI_Recv(buffer.data(), setting.bytes, MPI_CHAR, sender, tag, setting.comm,
               MPI_STATUS_IGNORE);
    });
    imbrex::task("computation").launch([&] {
      const int parts = std::max(1, static_cast<int>(std::lround(setting.compute_us /
                                                                 setting.step_us)));
      char chain = 0;  // the parts one after the other: as long as in one thread
      for (int part = 0; part < parts; ++part) {
        imbrex::task("compute").inout(chain).launch(
            [&work, us = setting.compute_us / parts] { work.run(us); });
      }
      imbrex::taskwait();
    });
  });
}

double run_once(Way way, const Setting& setting, const Work& work, std::vector<char>& buffer) {
  double start = now_us();
  switch (way) {
    case Way::block: receive_and_compute(setting, work, buffer); break;
    case Way::iw: compute_between(setting, work, buffer, false, false); break;
    case Way::icw: compute_between(setting, work, buffer, true, false); break;
    case Way::itcw: compute_between(setting, work, buffer, true, true); break;
    case Way::tests: compute_beside_a_tester(setting, work, buffer, &start); break;
    case Way::tasks: run_tasks(setting, work, buffer); break;
  }
  return now_us() - start;
}

// The sender is in MPI all the time, so that its side is never in the way.
void send(const Setting& setting, std::vector<char>& buffer) {
  std::fill(buffer.begin(), buffer.end(), content);
  RAW_MPI(Barrier)(setting.comm);
  RAW_MPI(Send)(buffer.data(), setting.bytes, MPI_CHAR, 0, tag, setting.comm);
}

std::uint64_t churn(std::uint64_t rounds) {
  std::uint64_t value = rounds;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005u + 1442695040888963407u;  // Knuth's generator
    value ^= value >> 33;
  }
  return value;
}

std::atomic<std::uint64_t> kept{0};  // so that nothing is optimised away

}  // namespace

std::string_view name_of(Way way) noexcept {
  switch (way) {
    case Way::iw: return "IW";
    case Way::block: return "blocking";
    case Way::icw: return "ICW";
    case Way::itcw: return "ITCW";
    case Way::tests: return "tester";
    case Way::tasks: return "imbrex";
  }
  return "?";
}

Work::Work() {
  constexpr std::uint64_t rounds = 1'000'000;
  for (int trial = 0; trial < 12; ++trial) {  // the fastest: the others were disturbed
    const double start = now_us();
    kept.fetch_add(churn(rounds), std::memory_order_relaxed);
    rounds_per_us_ = std::max(rounds_per_us_, static_cast<double>(rounds) / (now_us() - start));
  }
}

void Work::run(double us) const {
  kept.fetch_add(churn(static_cast<std::uint64_t>(us * rounds_per_us_)),
                 std::memory_order_relaxed);
}

double measure(Way way, const Setting& setting, const Work& work) {
  int rank = 0;
  MPI_Comm_rank(setting.comm, &rank);
  std::vector<char> buffer(static_cast<std::size_t>(setting.bytes));
  // A network that limits its rate lets the first bytes after a rest pass at full speed: all ways
  // shall have that rest.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  if (rank == sender) {
    send(setting, buffer);
  } else {
    RAW_MPI(Barrier)(setting.comm);
  }
  if (rank != 0) return 0;
  const double time = run_once(way, setting, work, buffer);
  check(buffer);
  return time;
}

}  // namespace stencil1d
