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

}  // namespace imbrex::distributed
