// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/carried/broadcast.hpp"

#include <memory>
#include <span>
#include <vector>

#include "base/zeros.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "imbrex/error.hpp"
#include "simulate/carried/carriers.hpp"

namespace imbrex::simulate {

using distributed::Broadcasts;
using distributed::Buffer;
using distributed::Recipient;

namespace {

constexpr std::uint64_t the_space = 1;

class Broadcasting {
 public:
  Broadcasting(const BroadcastSetup& setup, const ClusterSetup& cluster)
      : setup_(setup),
        ranks_(cluster.ranks),
        links_(events_, cluster.network, cluster.ranks, cluster.per_node, cluster.seed),
        carriers_(events_, links_, cluster.ranks),
        data_(base::zeros<std::byte>(static_cast<std::size_t>(setup.bytes))) {
    distributed::BroadcastOptions options;
    options.kind = setup.tree;
    std::vector<int> nodes;
    for (int rank = 0; rank < ranks_; ++rank) nodes.push_back(rank / cluster.per_node);
    for (int rank = 0; rank < ranks_; ++rank) {
      Broadcasts& one = *all_.emplace_back(std::make_unique<Broadcasts>(
          carriers_.end(rank, Carriers::data_protocol), options));
      carriers_.handle(rank, Carriers::data_protocol,
                       {.receive = [](void* const its, const int from, const distributed::Bytes
                                          message) {
                          static_cast<Broadcasts*>(its)->receive(from, message);
                        },
                        .object = &one});
      one.open_space(the_space, "broadcast");
      one.set_nodes(the_space, nodes);
    }
  }

  Outcome run() {
    Outcome outcome;
    for (int round = 0; round < setup_.rounds; ++round) {
      start(round);
      while (events_.step()) {}
      if (left_ != 0) throw Error("imbrex simulate: a broadcast has not ended");
    }
    outcome.time_ns = all_of_them_;
    outcome.messages = carriers_.messages();
    outcome.messages_received = carriers_.messages_handled();
    outcome.bytes = links_.bytes_sent();
    outcome.bytes_received = links_.bytes_arrived();
    outcome.sums.overhead_ns = carriers_.overhead();
    outcome.events = events_.count();
    return outcome;
  }

 private:
  void start(const int round) {
    left_ = ranks_;
    begun_ = last_ = events_.now();
    const distributed::DatumName datum{the_space, static_cast<std::uint64_t>(round)};
    const auto bytes = static_cast<std::size_t>(setup_.bytes);
    std::vector<Recipient> to;
    for (int rank = 1; rank < ranks_; ++rank) {
      to.push_back({rank, 0, 0});
      all_[static_cast<std::size_t>(rank)]->expect(
          datum, 0, 0, bytes,
          {[](void* const its, Buffer* const buffer, std::exception_ptr) noexcept {
             auto& here = *static_cast<Broadcasting*>(its);
             here.last_ = here.events_.now();
             if (buffer != nullptr) buffer->release();
           },
           [](void* const its) noexcept { static_cast<Broadcasting*>(its)->ended(); }, this});
    }
    if (to.empty()) return ended();
    all_[0]->send(datum, to, std::span(data_.get(), bytes),
                  [](void* const its, std::exception_ptr) noexcept {
                    static_cast<Broadcasting*>(its)->ended();
                  },
                  this);
  }
  // A rank has no more to do with this broadcast.
  void ended() noexcept {
    if (--left_ == 0) all_of_them_ += last_ - begun_;
  }

  const BroadcastSetup setup_;
  const int ranks_;
  EventQueue events_;
  Links links_;
  Carriers carriers_;
  const base::Zeros<std::byte> data_;  // which nobody reads, unless they go within a message
  std::vector<std::unique_ptr<Broadcasts>> all_;
  int left_ = 0;              // ranks that have not ended this broadcast
  Time begun_ = 0;
  Time last_ = 0;             // when data have arrived last
  Time all_of_them_ = 0;      // all broadcasts, one after the other
};

}  // namespace

Outcome simulate_broadcast(const BroadcastSetup& setup, const ClusterSetup& cluster) {
  return Broadcasting(setup, cluster).run();
}

}  // namespace imbrex::simulate
