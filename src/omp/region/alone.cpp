// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/alone.hpp"

#include <memory>
#include <utility>

#include "omp/region/share.hpp"

namespace imbrex::omp {

namespace {

struct Alone : Implicit {
  Team of_one;
  Context* before = nullptr;  // the Context included around in the code outside of all regions
};

}  // namespace

void begin_alone(const Region& region, const Prepare prepare, void* const argument) {
  Context& around = caller();
  auto alone = std::make_unique<Alone>();
  Team& of_one = alone->of_one;
  of_one.level = around.team->level + 1;
  of_one.active_level = around.team->active_level;
  of_one.outer = around.team;
  of_one.outer_number = around.number;
  of_one.busy = around.team->busy;
  of_one.members = {{alone.get()}};
  if (const Seat seat = seat_of(around); seat.place >= 0) of_one.seats = {seat};
  if (prepare != nullptr) prepare(of_one, argument);
  alone->team = &of_one;
  alone->variables = inner_variables(around, region.flags);
  alone->taskgroup = of_one.taskgroup;
  alone->share = new Share;
  alone->share->following.store(region.first, std::memory_order_relaxed);
  if (region.first != nullptr) (void)go_on(*alone);
  Initial& outside = initial();
  alone->before = std::exchange(outside.included, alone.get());
  (void)alone.release();  // end_alone() finds it in the chain
}

void end_alone(Context& context) {
  const std::unique_ptr<Alone> alone(&static_cast<Alone&>(context));
  initial().included = alone->before;
  pass_all(*alone);
}

}  // namespace imbrex::omp
