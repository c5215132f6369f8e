// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/phasers/phase_exchange.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "imbrex/detail/observation.hpp"

namespace imbrex::mpi::phasers {

namespace {

constexpr std::size_t alignment = alignof(std::max_align_t);

unsigned rounds_of(const int ranks) noexcept {  // the logarithm, rounded up
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(ranks) - 1));
}

}  // namespace

Exchange::Exchange(const int rank, const int size, detail::AccumulatorBase* const accumulators)
    : rank_(rank), size_(size) {
  for (detail::AccumulatorBase* one = accumulators; one != nullptr; one = one->following) {
    one->rank = rank;
    parts_.push_back({one, bytes_});
    bytes_ += (one->message_bytes() + alignment - 1) / alignment * alignment;
  }
  if (parts_.empty()) {
    rounds_ = rounds_of(size);
    return;
  }
  folded_ = size - static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  rounds_ = rounds_of(size - folded_) + (folded_ != 0 ? 2 : 0);
  mine_.reset(new std::byte[bytes_]());
  theirs_.reset(new std::byte[bytes_]());
}

std::uint64_t Exchange::signature() const noexcept {
  std::uint64_t signature = 1;
  for (const Part& part : parts_) {
    signature = signature * 1'000'003 + 2 * part.accumulator->message_bytes() +
                (part.accumulator->ordered ? 1 : 0);
  }
  return signature;
}

void Exchange::collect(const std::uint64_t phase) noexcept {
  for (const Part& part : parts_) part.accumulator->collect(phase, mine_.get() + part.at);
}

void Exchange::bring_nothing() noexcept { std::fill_n(mine_.get(), bytes_, std::byte{}); }

Exchange::Partners Exchange::partners(const std::size_t round) const noexcept {
  if (parts_.empty()) {
    const int step = 1 << round;
    return {(rank_ + step) % size_, (rank_ - step + size_) % size_};
  }
  // The even ones of the first 2 * folded_ ranks are folded into the odd ones.
  const bool in_pair = rank_ < 2 * folded_;
  const bool is_folded = in_pair && rank_ % 2 == 0;
  if (folded_ != 0 && (round == 0 || round == rounds_ - 1)) {
    if (!in_pair) return {};
    if (round == 0) return is_folded ? Partners{rank_ + 1, -1} : Partners{-1, rank_ - 1, true};
    return is_folded ? Partners{-1, rank_ + 1} : Partners{rank_ - 1, -1};
  }
  if (is_folded) return {};
  const int place = in_pair ? rank_ / 2 : rank_ - folded_;
  const int other = place ^ (1 << (folded_ != 0 ? round - 1 : round));
  const int partner = other < folded_ ? 2 * other + 1 : other + folded_;
  return {partner, partner, true};
}

int Exchange::start(const std::size_t round, const MPI_Comm comm) noexcept {
  if (round == 0) detail::trace_unrecorded("phases of phasers across ranks");
  const Partners with = partners(round);
  const int bytes = static_cast<int>(bytes_);
  const int tag = static_cast<int>(round);
  int code = MPI_SUCCESS;
  if (with.from >= 0) {
    code = PMPI_Irecv(theirs_.get(), bytes, MPI_BYTE, with.from, tag, comm, &received_);
  }
  if (code == MPI_SUCCESS && with.to >= 0) {
    code = PMPI_Isend(mine_.get(), bytes, MPI_BYTE, with.to, tag, comm, &sent_);
  }
  return code;
}

Outcome Exchange::ask(const std::size_t round, int& done) noexcept {
  done = 0;
  for (MPI_Request* const request : {&received_, &sent_}) {
    if (*request == MPI_REQUEST_NULL) continue;
    int over = 0;
    const Outcome outcome = completion::Test(true, request, &over, MPI_STATUS_IGNORE);
    if (outcome.code != MPI_SUCCESS || over == 0) return outcome;
  }
  done = 1;
  put_together(partners(round));
  return MPI_SUCCESS;
}

void Exchange::put_together(const Partners& with) noexcept {
  if (with.from < 0 || parts_.empty()) return;
  if (with.combines && with.from < rank_) {
    for (const Part& part : parts_) {
      part.accumulator->combine(theirs_.get() + part.at, mine_.get() + part.at);
    }
    return;
  }
  if (with.combines) {
    for (const Part& part : parts_) {
      part.accumulator->combine(mine_.get() + part.at, theirs_.get() + part.at);
    }
  }
  mine_.swap(theirs_);
}

void Exchange::publish(const std::uint64_t phase, const bool over) noexcept {
  for (const Part& part : parts_) {
    part.accumulator->publish(phase, mine_.get() + part.at, over);
  }
}

void Exchange::fail(const std::uint64_t phase, const std::exception_ptr& error) noexcept {
  for (const Part& part : parts_) part.accumulator->fail(phase, error);
}

// A message may be on its way into the memory, which is never reused.
void Exchange::abandon() noexcept {
  if (received_ != MPI_REQUEST_NULL) {
    PMPI_Cancel(&received_);
    PMPI_Request_free(&received_);
    (void)theirs_.release();
    theirs_.reset(new std::byte[bytes_]());
  }
  if (sent_ != MPI_REQUEST_NULL) {
    PMPI_Request_free(&sent_);
    (void)mine_.release();
    mine_.reset(new std::byte[bytes_]());
  }
}

}  // namespace imbrex::mpi::phasers
