// SPDX-License-Identifier: BSD-3-Clause
// Transfers by active messages, and a protocol on them. Used for the protocols of this process, and
// by tests and benchmarks with a protocol of their own.
#pragma once

#include <mutex>
#include <optional>

#include "base/guarded.hpp"
#include "distributed/carrier/transfers.hpp"
#include "mpi/active/active.hpp"

namespace imbrex::distributed {

class ByMessages final : public Transfers {
 public:
  explicit ByMessages(const mpi::active::Id id) noexcept : id_(id) {}
  [[nodiscard]] int rank() const noexcept override { return mpi::active::rank(); }
  void send(const int to, const Bytes head, const Bytes body) override {
    mpi::active::send(to, id_, head, body);
  }
  void flush() noexcept override { mpi::active::flush(); }
  [[nodiscard]] Landing offer(const int from, const std::span<std::byte> memory, const Ended ended,
                              void* const context) override {
    return mpi::active::offer(from, memory, ended, context);
  }
  void deliver(const Landing& landing, const Bytes data, const Ended ended,
               void* const context) override {
    mpi::active::deliver(landing, data, ended, context);
  }
  void expect() override {
    const std::lock_guard guard(mutex_);
    if (expecting_++ == 0) expectation_.emplace();
  }
  void expect_no_more() noexcept override {
    const std::lock_guard guard(mutex_);
    if (--expecting_ == 0) expectation_.reset();
  }

 private:
  const mpi::active::Id id_;
  std::mutex mutex_;
  int expecting_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::optional<mpi::active::Expecting> expectation_ IMBREX_GUARDED_BY(mutex_);
};

// Receives the messages of one number. It is never destroyed: at exit() a worker may still be in a
// handler.
template <class Protocol>
struct OnMessages {
  ByMessages carrier;
  Protocol protocol;

  template <class... More>
  explicit OnMessages(const mpi::active::Id id, More&... more)
      : carrier(id), protocol(carrier, more...) {
    mpi::active::set_handler(
        id,
        [](void* const context, const int from, const Bytes message) noexcept {
          static_cast<Protocol*>(context)->receive(from, message);
        },
        &protocol);
  }
};

}  // namespace imbrex::distributed
