// SPDX-License-Identifier: BSD-3-Clause
// The protocols of this process on its active messages: one of each, made at its first use.
#include "dist/pool/pools.hpp"
#include "dist/waves.hpp"
#include "mpi/plugin/active.hpp"

namespace imbrex::dist {
namespace {

namespace active = mpi::active;

static_assert(message_bytes_max == active::message_bytes_max);

class ByMessages final : public Carrier {
 public:
  explicit ByMessages(const active::Id id) noexcept : id_(id) {}
  [[nodiscard]] int rank() const noexcept override { return active::rank(); }
  void send(const int to, const Bytes head, const Bytes body) override {
    active::send(to, id_, head, body);
  }
  void flush() noexcept override { active::flush(); }

 private:
  const active::Id id_;
};

template <class Protocol>
struct OnMessages {
  ByMessages carrier;
  Protocol protocol{carrier};

  explicit OnMessages(const active::Id id) : carrier(id) {
    active::set_handler(
        id,
        [](void* const context, const int from, const Bytes message) noexcept {
          static_cast<Protocol*>(context)->receive(from, message);
        },
        &protocol);
  }
};

}  // namespace

Waves& waves() {
  // Never destroyed: at exit() a worker may still be in a handler.
  static auto& on_messages = *new OnMessages<Waves>(active::Id::waves);
  return on_messages.protocol;
}

Pools& pools() {
  static auto& on_messages = *new OnMessages<Pools>(active::Id::pools);
  return on_messages.protocol;
}

}  // namespace imbrex::dist
