// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/team_of_one.hpp"

#include <memory>
#include <utility>

#include "omp/region/share.hpp"

namespace imbrex::omp {

namespace {

struct TeamOfOne : Implicit {
  Team of_one;
  Context* before = nullptr;  // the Context included around in the code outside of all regions
};

}  // namespace

void begin_team_of_one(const Region& region, const Prepare prepare, void* const argument) {
  Context& around = caller();
  auto one = std::make_unique<TeamOfOne>();
  Team& of_one = one->of_one;
  of_one.level = around.team->level + 1;
  of_one.active_level = around.team->active_level;
  of_one.outer = around.team;
  of_one.outer_number = around.number;
  of_one.busy = around.team->busy;
  of_one.members = {{one.get()}};
  if (const Seat seat = seat_of(around); seat.place >= 0) of_one.seats = {seat};
  if (prepare != nullptr) prepare(of_one, argument);
  one->team = &of_one;
  one->variables = inner_variables(around, region.flags);
  one->taskgroup = of_one.taskgroup;
  one->share = new Share;
  one->share->following.store(region.first, std::memory_order_relaxed);
  if (region.first != nullptr) (void)go_on(*one);
  Initial& outside = initial();
  one->before = std::exchange(outside.included, one.get());
  (void)one.release();  // end_team_of_one() finds it in the chain
}

void end_team_of_one(Context& context) {
  const std::unique_ptr<TeamOfOne> one(&static_cast<TeamOfOne&>(context));
  initial().included = one->before;
  pass_all(*one);
}

}  // namespace imbrex::omp
