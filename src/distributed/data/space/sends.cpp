// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/space/sends.hpp"

#include <utility>

#include "distributed/data/space/space.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::distributed {

void VersionSend::send() noexcept {
  detail::about_to_send();  // policies that learn sends run predecessors of this task first
  DataSpace& space = datum_.space;
  std::vector<Recipient> list = close();
  const DatumName name{space.id(), datum_.number};
  try {
    if (copy_.trouble != nullptr) {
      space.broadcasts().send_failure(name, std::move(list), copy_.trouble->cause);
      return end();
    }
    const std::byte* const data = copy_.packed(scratch_);
    if (scratch_ == nullptr) detail::release_after(left_);
    space.broadcasts().send(name, std::move(list), {data, copy_.bytes()}, ended, this);
  } catch (...) {
    space.send_failed(std::current_exception());
    end();
  }
}

void VersionSend::ended(void* const context, const std::exception_ptr error) noexcept {
  auto& self = *static_cast<VersionSend*>(context);
  if (error != nullptr) self.datum_.space.send_failed(error);
  self.end();
}

void VersionSend::end() noexcept {
  DataSpace& space = datum_.space;
  if (scratch_ != nullptr) scratch_->release();
  copy_.release();
  detail::fire(left_);
  release();
  space.pending.end(Pending::step);
}

// ---- leads -----------------------------------------------------------------------------------

Leads& Leads::operator=(const Leads& other) {
  if (this == &other) return *this;
  clear();
  leads_ = other.leads_;
  for (const Lead& one : leads_) one.list->retain();
  return *this;
}

void Leads::clear() noexcept {
  for (const Lead& one : leads_) one.list->release();
  leads_.clear();
}

void Leads::add(VersionSend& list, const int rank) { add(list, rank, 1); }

void Leads::add(const Leads& earlier) {
  for (const Lead& one : earlier.leads_) add(*one.list, one.rank, one.steps + 1);
}

void Leads::add(VersionSend& list, const int rank, const int steps) {
  if (!list.is_open()) return;
  list.retain();
  const auto known = std::ranges::find_if(leads_, [&](const Lead& one) {
    return one.list == &list && one.rank == rank;
  });
  const int nearest = known == leads_.end() ? steps : std::min(steps, known->steps);
  if (known != leads_.end()) {
    list.release();
    leads_.erase(known);
  }
  leads_.insert(std::ranges::upper_bound(leads_, nearest, {}, &Lead::steps),
                {&list, rank, nearest});
  if (leads_.size() <= most) return;
  leads_.back().list->release();
  leads_.pop_back();
}

void Leads::raise(const int rank) {
  if (leads_.empty()) return;
  const detail::SendWorth send = detail::worth_of_sending_to(rank);
  for (const Lead& one : leads_) {
    const int its = detail::worth_of_sending_to(one.rank).of_rank;
    one.list->raise(one.rank, send.any + send.of_rank + its - one.steps * send.step);
  }
}

}  // namespace imbrex::distributed
