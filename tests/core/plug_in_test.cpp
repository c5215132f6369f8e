// SPDX-License-Identifier: BSD-3-Clause
// What the waist offers to plug-ins that bring work from elsewhere.
#include <atomic>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "on_runtime.hpp"

namespace imbrex::test {

namespace {

class PlugInTest : public OnRuntime {};

detail::ScopeMemory& innermost() { return *detail::innermost_scope(); }

TEST_P(PlugInTest, a_scope_counts_what_is_left_of_it_with_all_descendants) {
  Event events[3];
  finish([&] {
    detail::ScopeMemory& scope = innermost();
    EXPECT_EQ(detail::live_in_scope(scope), 0u);
    for (Event& event : events) {
      task("parent").launch([&event] { task("child").launch([&event] { await(event); }); });
    }
    task("none").spawn([] {}).get();
    taskwait();  // the parents are complete, their children are not
    EXPECT_EQ(detail::live_in_scope(scope), 3u);
    for (std::uint32_t left = 3; left != 0; --left) {
      events[left - 1].fire();
      while (detail::live_in_scope(scope) != left - 1) yield();
    }
    for (int number = 0; number < scaled(2000); ++number) task("many").launch([] {});
    taskwait();
    while (detail::live_in_scope(scope) != 0) yield();
  });
}

TEST_P(PlugInTest, others_count_a_scope_whose_owner_waits) {
  Event go_on, waits;
  std::atomic<detail::ScopeMemory*> scope{nullptr};
  auto owner = task("owner").spawn([&] {
    finish([&] {
      task("first").launch([&] { await(go_on); });
      task("second").launch([&] { await(go_on); });
      scope.store(&innermost());
      await(waits);  // open
    });
  });
  while (scope.load() == nullptr) yield();
  let_others_run();
  EXPECT_EQ(detail::live_in_scope(*scope.load()), 2u);
  waits.fire();
  let_others_run();  // it waits in the end of finish() now
  EXPECT_EQ(detail::live_in_scope(*scope.load()), 2u);
  go_on.fire();
  owner.get();
}

INSTANTIATE_TEST_SUITE_P(All, PlugInTest, testing::ValuesIn(every_setup()), name_of);

}  // namespace

}  // namespace imbrex::test
