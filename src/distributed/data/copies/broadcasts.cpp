// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/copies/broadcasts.hpp"

#include "distributed/data/copies/departures.hpp"
#include "distributed/data/copies/protocol.hpp"

namespace imbrex::distributed {

Broadcasts::Broadcasts(Transfers& transfers, const BroadcastOptions& options)
    : departures_(std::make_unique<Departures>(transfers)),
      protocol_(std::make_unique<Protocol>(*departures_, options)) {}

Broadcasts::~Broadcasts() = default;

void Broadcasts::open_space(const std::uint64_t space, const std::string_view name) {
  protocol_->open_space(space, name);
  departures_->begin(space);
}

std::exception_ptr Broadcasts::close_space(const std::uint64_t space) noexcept {
  departures_->end(space);
  return protocol_->close_space(space);
}

void Broadcasts::give_up_space(const std::uint64_t space, const std::string_view why) {
  protocol_->give_up_space(space, why);
}

void Broadcasts::leave_space(const std::uint64_t space, const std::span<const int> ranks,
                             const std::string_view why) {
  protocol_->leave_space(space, ranks, why);
}

void Broadcasts::set_nodes(const std::uint64_t space, const std::vector<int> node_of_rank) {
  protocol_->set_nodes(space, node_of_rank);
}

void Broadcasts::send(const DatumName& datum, const std::vector<Recipient> to, const Bytes data,
                      const Ended ended, void* const context) {
  protocol_->send(datum, to, data, ended, context);
}

void Broadcasts::send_failure(const DatumName& datum, const std::vector<Recipient> to,
                              const std::string_view why) {
  protocol_->send_failure(datum, to, std::string(why));
}

void Broadcasts::expect(const DatumName& datum, const int source, const std::uint32_t ticket,
                        const std::size_t bytes, const Incoming& incoming) {
  protocol_->expect({datum, source, ticket}, bytes, incoming);
}

void Broadcasts::receive(const int from, const Bytes message) noexcept {
  protocol_->receive(from, message);
}

Broadcasts::Counters Broadcasts::counters() const noexcept { return protocol_->counters(); }

Broadcasts::SpaceCopies Broadcasts::copies(const std::uint64_t space) const noexcept {
  return departures_->copies(space);
}

std::size_t Broadcasts::under_way(const std::uint64_t space) const noexcept {
  return protocol_->under_way(space);
}

void Broadcasts::describe(const std::uint64_t space, const std::size_t lines_max,
                          std::string& text) const {
  protocol_->describe(space, lines_max, text);
}

void Broadcasts::describe(const std::size_t lines_max, std::string& text) const {
  protocol_->describe(lines_max, text);
}

}  // namespace imbrex::distributed
