// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/active_transfers.hpp"

#include <memory>
#include <string>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/traffic.hpp"

namespace imbrex::mpi::active {

struct ActiveTransfers::Transfer : Operation {
  Transfer(ActiveTransfers& its_transfers, const char* const name, const int peer, const int tag,
           const std::size_t bytes, const Kind kind, const Ended its_ended, void* const its_context)
      : transfers(its_transfers), ended(its_ended), context(its_context) {
    call = {.name = name, .comm = its_transfers.wire_.comm, .peer = peer, .tag = tag,
            .count = static_cast<MPI_Count>(bytes), .type = MPI_BYTE, .kind = kind,
            .at_once = true, .throws = true};
    complete = [](Operation& self) noexcept {
      Transfer& it = static_cast<Transfer&>(self);
      it.transfers.end(it);
    };
  }
  [[nodiscard]] bool lands() const noexcept { return call.kind == Kind::receive; }

  // The engine owns the transfer from now on.
  static void hand_over(std::unique_ptr<Transfer> transfer) noexcept {
    engine().add(*transfer.release());
    detail::wake_poller();
  }

  ActiveTransfers& transfers;
  const Ended ended;
  void* const context;
  Transfer* next_ended = nullptr;
};

int ActiveTransfers::take_tag() {
  const std::lock_guard guard(tags_lock_);
  do {  // few are open
    last_tag_ = last_tag_ < wire_.tag_last ? last_tag_ + 1 : Wire::tag_of_packets + 1;
  } while (!tags_.insert(last_tag_).second);
  return last_tag_;
}

void ActiveTransfers::free_tag(const int tag) noexcept {
  const std::lock_guard guard(tags_lock_);
  tags_.erase(tag);
}

int ActiveTransfers::offer(const int from, const std::span<std::byte> memory, const Ended ended,
                           void* const context) {
  const int tag = take_tag();
  auto transfer = std::make_unique<Transfer>(*this, "active::offer", from, tag, memory.size(),
                                             Kind::receive, ended, context);
  const int code = PMPI_Irecv(memory.data(), static_cast<int>(memory.size()), MPI_BYTE, from, tag,
                              wire_.comm, &transfer->request);
  if (code != MPI_SUCCESS) {
    free_tag(tag);
    throw make_error("active::offer", code, detail::describe_current_task());
  }
  Transfer::hand_over(std::move(transfer));
  return tag;
}

void ActiveTransfers::deliver(const int to, const int tag, const std::span<const std::byte> data,
                              const Ended ended, void* const context) {
  auto transfer = std::make_unique<Transfer>(*this, "active::deliver", to, tag, data.size(),
                                             Kind::send, ended, context);
  traffic().sent.fetch_add(1, std::memory_order_relaxed);
  delivered_.fetch_add(1, std::memory_order_relaxed);
  work_.count(OpenWork::Kind::transfer);
  const int code = PMPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, tag,
                              wire_.comm, &transfer->request);
  if (code != MPI_SUCCESS) {
    traffic().sent.fetch_sub(1, std::memory_order_relaxed);
    delivered_.fetch_sub(1, std::memory_order_relaxed);
    work_.uncount(OpenWork::Kind::transfer);
    throw make_error("active::deliver", code, detail::describe_current_task());
  }
  Transfer::hand_over(std::move(transfer));
}

// Called by the engine; later in the same poll the holder calls the function.
void ActiveTransfers::end(Transfer& transfer) noexcept {
  if (transfer.lands()) {
    free_tag(transfer.call.tag);
    work_.count(OpenWork::Kind::transfer);
  }
  engine().want_polls();
  const std::lock_guard guard(ended_lock_);
  (first_ended_ == nullptr ? first_ended_ : last_ended_->next_ended) = &transfer;
  last_ended_ = &transfer;
}

int ActiveTransfers::take_ended() noexcept {
  Transfer* first = nullptr;
  {
    const std::lock_guard guard(ended_lock_);
    first = std::exchange(first_ended_, nullptr);
    last_ended_ = nullptr;
  }
  int count = 0;
  for (; first != nullptr; ++count) {
    const std::unique_ptr<Transfer> transfer(std::exchange(first, first->next_ended));
    std::exception_ptr error;
    if (transfer->code != MPI_SUCCESS) {
      const std::string name = std::string(transfer->call.name) +
                               (transfer->lands() ? " from rank " : " to rank ") +
                               std::to_string(transfer->call.peer);
      error = std::make_exception_ptr(
          make_error(name.c_str(), transfer->code, detail::describe(transfer->task)));
    }
    transfer->ended(transfer->context, error);
    if (transfer->lands()) {
      ++landed_;
      traffic().count_handled();
    }
    work_.end(OpenWork::Kind::transfer);
  }
  return count;
}

}  // namespace imbrex::mpi::active
