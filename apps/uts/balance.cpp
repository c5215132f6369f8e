// SPDX-License-Identifier: BSD-3-Clause
#include "balance.hpp"

#include <algorithm>

namespace uts {

Balance::Balance(MPI_Comm comm, const Settings& settings) : settings_(settings) {
  constexpr std::size_t half_max = 8192;  // nodes of an answer: 229 kB
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &ranks_);
  const auto chunk = static_cast<std::size_t>(settings.chunk);
  limit_ = settings.steal == Steal::half ? std::max(chunk, half_max) : chunk;
  answer_nodes_.resize(limit_);
  last_victim_ = rank_;
  random_.seed(static_cast<unsigned>(rank_) + 1);
  has_token_ = rank_ == 0;
  if (is_only_rank()) return;
  MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, request_tag, comm_, &request_);
  MPI_Irecv(&token_in_, 1, MPI_INT, (rank_ + ranks_ - 1) % ranks_, token_tag, comm_,
            &token_request_);
}

Balance::~Balance() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

std::size_t Balance::share_of(const std::size_t size, const std::size_t limit) const noexcept {
  const auto chunk = static_cast<std::size_t>(settings_.chunk);
  if (size < 2 * chunk) return 0;
  if (settings_.steal == Steal::chunk) return std::min(chunk, limit);
  return std::min(size / 2 / chunk * chunk, limit);
}

int Balance::next_request() {
  int arrived = 0;
  MPI_Status status;
  MPI_Test(&request_, &arrived, &status);
  if (arrived == 0 || status.MPI_SOURCE == MPI_ANY_SOURCE) return -1;
  MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, request_tag, comm_, &request_);
  return status.MPI_SOURCE;
}

std::vector<Node>& Balance::parcel() {
  forget_sent();
  return sent_.emplace_back().nodes;
}

void Balance::send_answer(const int to) {
  Sent& parcel = sent_.back();
  if (!parcel.nodes.empty()) black_ = true;
  MPI_Isend(parcel.nodes.data(), static_cast<int>(parcel.nodes.size() * sizeof(Node)), MPI_BYTE, to,
            answer_tag, comm_, &parcel.request);
}

void Balance::send_token(const int token) {
  forget_sent();
  Sent& sent = sent_.emplace_back();
  sent.token = token;
  MPI_Isend(&sent.token, 1, MPI_INT, (rank_ + 1) % ranks_, token_tag, comm_, &sent.request);
  has_token_ = false;
}

void Balance::forget_sent() {
  sent_.remove_if([](Sent& sent) {
    int done = 0;
    MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

void Balance::ask() {
  if (settings_.victims == Victims::random) {
    std::uniform_int_distribution<int> others(1, ranks_ - 1);
    victim_ = (rank_ + others(random_)) % ranks_;
  } else {
    victim_ = (last_victim_ + 1) % ranks_;
    if (victim_ == rank_) victim_ = (victim_ + 1) % ranks_;
  }
  last_victim_ = victim_;
  MPI_Irecv(answer_nodes_.data(), static_cast<int>(limit_ * sizeof(Node)), MPI_BYTE, victim_,
            answer_tag, comm_, &answer_);
  forget_sent();
  MPI_Isend(nullptr, 0, MPI_BYTE, victim_, request_tag, comm_, &sent_.emplace_back().request);
}

bool Balance::answered(std::vector<Node>& out) {
  int arrived = 0;
  MPI_Status status;
  MPI_Test(&answer_, &arrived, &status);
  if (arrived == 0) return false;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  out.assign(answer_nodes_.begin(),
             answer_nodes_.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(Node)));
  ++(out.empty() ? failed_ : steals_);
  victim_ = -1;
  return true;
}

bool Balance::ended() {
  if (is_only_rank()) return true;
  if (!has_token_) {
    int arrived = 0;
    MPI_Test(&token_request_, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) return false;
    has_token_ = true;
    token_ = token_in_;
    if (token_ == end) {
      if (rank_ != ranks_ - 1) send_token(end);
      return true;
    }
    MPI_Irecv(&token_in_, 1, MPI_INT, (rank_ + ranks_ - 1) % ranks_, token_tag, comm_,
              &token_request_);
  }
  if (rank_ == 0) {
    if (!first_round_ && token_ == white && !black_) {
      send_token(end);
      return true;
    }
    first_round_ = false;
    send_token(white);
  } else {
    send_token(black_ ? black : token_);
  }
  black_ = false;
  return false;
}

// Others may still ask, until the end has come to them: all stay until all have their answer.
void Balance::close() {
  if (is_only_rank()) return;
  const auto refuse = [](std::size_t, std::vector<Node>&) {};
  MPI_Request barrier = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &barrier);
  for (int done = 0; done == 0;) {
    answer(refuse);
    MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
  }
  for (Sent& sent : sent_) MPI_Wait(&sent.request, MPI_STATUS_IGNORE);
  sent_.clear();
  for (MPI_Request* const open : {&request_, &token_request_}) {
    if (*open == MPI_REQUEST_NULL) continue;
    MPI_Cancel(open);
    MPI_Wait(open, MPI_STATUS_IGNORE);
  }
}

}  // namespace uts
