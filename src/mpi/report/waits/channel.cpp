// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/channel.hpp"

#include <utility>

#include "mpi/abi/completion_calls.hpp"

namespace imbrex::mpi::report {

Channel::Channel(const char* const name) {
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  PMPI_Comm_set_name(comm_, name);
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &ranks_);
  sent_.resize(static_cast<std::size_t>(ranks_));
}

Channel::~Channel() {
  take_arrived();  // letters that came too late
  static auto& never_taken = *new std::list<Transfer>;  // MPI may read them until the process ends
  for (std::list<Transfer>* const list : {&sending_, &receiving_}) {
    std::erase_if(*list, [](Transfer& it) { return completion::has_ended(it.request); });
    for (Transfer& transfer : *list) PMPI_Request_free(&transfer.request);
    never_taken.splice(never_taken.end(), *list);
  }
  PMPI_Comm_free(&comm_);
}

void Channel::send(const int to, const Letter letter, std::string text) {
  sending_.push_back({MPI_REQUEST_NULL, {letter, to, std::move(text)}});
  Transfer& transfer = sending_.back();
  ++sent_[static_cast<std::size_t>(to)];
  PMPI_Isend(transfer.mail.text.data(), static_cast<int>(transfer.mail.text.size()), MPI_CHAR, to,
             static_cast<int>(letter), comm_, &transfer.request);
}

std::optional<Mail> Channel::receive() {
  forget_sent();
  take_arrived();
  for (auto transfer = receiving_.begin(); transfer != receiving_.end(); ++transfer) {
    if (!completion::has_ended(transfer->request)) continue;
    Mail mail = std::move(transfer->mail);
    receiving_.erase(transfer);
    ++received_;
    return mail;
  }
  return std::nullopt;
}

void Channel::forget_sent() {
  std::erase_if(sending_, [](Transfer& it) { return completion::has_ended(it.request); });
}

void Channel::take_arrived() {
  for (;;) {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    if (PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, &message, &status) !=
            MPI_SUCCESS ||
        there == 0) {
      return;
    }
    int bytes = 0;
    PMPI_Get_count(&status, MPI_CHAR, &bytes);
    receiving_.push_back({MPI_REQUEST_NULL,
                          {static_cast<Letter>(status.MPI_TAG), status.MPI_SOURCE,
                           std::string(static_cast<std::size_t>(bytes), '\0')}});
    Transfer& transfer = receiving_.back();
    PMPI_Imrecv(transfer.mail.text.data(), bytes, MPI_CHAR, &message, &transfer.request);
  }
}

void Channel::begin_end() { PMPI_Ibarrier(comm_, &end_); }

bool Channel::all_end() { return completion::has_ended(end_); }

void Channel::begin_count() {
  counts_.resize(sent_.size() * sent_.size());
  PMPI_Iallgather(sent_.data(), ranks_, MPI_INT, counts_.data(), ranks_, MPI_INT, comm_, &count_);
}

bool Channel::has_all() {
  if (!completion::has_ended(count_)) return false;
  std::int64_t sent_here = 0;
  for (auto i = static_cast<std::size_t>(rank_); i < counts_.size(); i += sent_.size()) {
    sent_here += counts_[i];
  }
  return received_ >= sent_here;
}

}  // namespace imbrex::mpi::report
