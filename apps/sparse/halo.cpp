// SPDX-License-Identifier: BSD-3-Clause
#include "halo.hpp"

#include "../raw_mpi.hpp"

#include <algorithm>
#include <thread>

namespace sparse {

void TestEach::wait(const MPI_Request request) {
  imbrex::Promise<void> event;
  {
    const std::lock_guard guard(lock_);
    waiting_.push_back({request, &event});
  }
  event.future().get();
}

void TestEach::poll() {
  std::vector<imbrex::Promise<void>*> complete;
  {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock()) return;
    tests_.fetch_add(static_cast<std::int64_t>(waiting_.size()), std::memory_order_relaxed);
    std::erase_if(waiting_, [&complete](Waiting& waiting) {
      int done = 0;
      MPI_Test(&waiting.request, &done, MPI_STATUS_IGNORE);
      if (done != 0) complete.push_back(waiting.event);
      return done != 0;
    });
  }
  for (imbrex::Promise<void>* const event : complete) event->set();
}

void TestEach::poll_during(const std::function<void()>& spawn) {
  std::atomic<bool> stop = false;
  imbrex::finish([&] {
    struct Stop {  // also when a task throws
      std::atomic<bool>& stop;
      ~Stop() { stop.store(true, std::memory_order_release); }
    } at_end{stop};
    imbrex::task("poll").launch([&] { poll_until(stop); });
    imbrex::finish(spawn);
  });
}

void TestEach::poll_until(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_acquire)) {
    poll();
    imbrex::yield();
    std::this_thread::yield();  // other ranks may share the processor
  }
}

Halo::Halo(const Brick& brick, const MPI_Comm communicator)
    : brick_(brick), communicator_(communicator) {
  for (const Neighbour& neighbour : brick.neighbours()) {
    out_.emplace_back(static_cast<std::size_t>(neighbour.send.count()));
    in_.emplace_back(static_cast<std::size_t>(neighbour.receive.count()));
  }
}

double Halo::exchange(std::vector<double>& vector) {
  const std::size_t count = out_.size();
  std::vector<MPI_Request> requests(2 * count, MPI_REQUEST_NULL);
  double start = MPI_Wtime();
  for (std::size_t n = 0; n < count; ++n) {
    RAW_MPI(Irecv)(in_[n].data(), static_cast<int>(in_[n].size()), MPI_DOUBLE,
              brick_.neighbours()[n].rank, 0, communicator_, &requests[n]);
  }
  double seconds = MPI_Wtime() - start;
  for (std::size_t n = 0; n < count; ++n) pack(vector, n);
  start = MPI_Wtime();
  for (std::size_t n = 0; n < count; ++n) {
    RAW_MPI(Isend)(out_[n].data(), static_cast<int>(out_[n].size()), MPI_DOUBLE,
              brick_.neighbours()[n].rank, 0, communicator_, &requests[count + n]);
  }
  RAW_MPI(Waitall)(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  seconds += MPI_Wtime() - start;
  for (std::size_t n = 0; n < count; ++n) unpack(vector, n);
  return seconds;
}

void Halo::send(const std::vector<double>& vector, const int neighbour, TestEach* const tests) {
  const auto n = static_cast<std::size_t>(neighbour);
  const auto count = static_cast<int>(out_[n].size());
  const int rank = brick_.neighbours()[n].rank;
  pack(vector, n);
  if (tests == nullptr) {
    MPI_Send(out_[n].data(), count, MPI_DOUBLE, rank, 0, communicator_);
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(out_[n].data(), count, MPI_DOUBLE, rank, 0, communicator_, &request);
  tests->wait(request);
}

void Halo::receive(std::vector<double>& vector, const int neighbour, TestEach* const tests) {
  const auto n = static_cast<std::size_t>(neighbour);
  const auto count = static_cast<int>(in_[n].size());
  const int rank = brick_.neighbours()[n].rank;
  if (tests == nullptr) {
    MPI_Recv(in_[n].data(), count, MPI_DOUBLE, rank, 0, communicator_, MPI_STATUS_IGNORE);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(in_[n].data(), count, MPI_DOUBLE, rank, 0, communicator_, &request);
    tests->wait(request);
  }
  unpack(vector, n);
}

std::int64_t Halo::bytes_sent() const noexcept {
  std::int64_t bytes = 0;
  for (const std::vector<double>& message : out_) {
    bytes += static_cast<std::int64_t>(message.size() * sizeof(double));
  }
  return bytes;
}

void Halo::pack(const std::vector<double>& vector, const std::size_t neighbour) {
  double* to = out_[neighbour].data();
  for_each_line(brick_, brick_.neighbours()[neighbour].send, [&](int first, int count) {
    to = std::copy_n(vector.data() + first, count, to);
  });
}

void Halo::unpack(std::vector<double>& vector, const std::size_t neighbour) const {
  const double* from = in_[neighbour].data();
  for_each_line(brick_, brick_.neighbours()[neighbour].receive, [&](int first, int count) {
    std::copy_n(from, count, vector.data() + first);
    from += count;
  });
}

double sum_over_ranks(const double mine, const MPI_Comm communicator, TestEach* const tests) {
  double sum = 0;
  if (tests == nullptr) {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator, &request);
    tests->wait(request);
  }
  return sum;
}

double sum_blocking(const double mine, const MPI_Comm communicator) {
  double sum = 0;
  RAW_MPI(Allreduce)(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, communicator);
  return sum;
}

}  // namespace sparse
