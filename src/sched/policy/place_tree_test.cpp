// SPDX-License-Identifier: BSD-3-Clause
// Trees of places, of a described machine and of files, and the order in which thieves go by them.
#include "sched/policy/place_tree.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "imbrex/error.hpp"
#include "sched/policy/place_file.hpp"

namespace imbrex::sched {
namespace {

using Ints = std::vector<int>;

Ints first_numbers(const int count) {
  Ints numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Division tree_of(const char* const machine, const int workers) {
  EXPECT_EQ(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
  base::Topology topology;
  Division division = divide("tree", topology.described(Ints(static_cast<std::size_t>(workers))),
                             topology);
  EXPECT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
  return division;
}

Division tree_of_text(const std::string& text, const std::size_t workers) {
  return make_tree(parse_places(text, "t.xml", workers), workers);
}

// A line for each place, in their order.
std::string text_of(const Division& division) {
  std::string text;
  for (const PlannedPlace& place : division.places) {
    const bool memory = place.kind == PlaceKind::memory;
    text += place.name + " " + std::to_string(place.level) + " in " + std::to_string(place.parent) +
            (memory ? " m:" : place.kind == PlaceKind::cache ? " c:" : ":");
    for (const int worker : place.workers) text += " " + std::to_string(worker);
    text += "\n";
  }
  return text;
}

// What holds for every tree: see Division.
void check(const Division& division) {
  EXPECT_TRUE(division.tree);
  EXPECT_FALSE(division.places.empty());
  const auto& places = division.places;
  for (std::size_t self = 0; self < places.size(); ++self) {
    const PlannedPlace& place = places[self];
    if (place.parent < 0) {
      EXPECT_EQ(place.level, 1);
      continue;
    }
    ASSERT_GT(place.parent, static_cast<int>(self));
    const PlannedPlace& parent = places[static_cast<std::size_t>(place.parent)];
    EXPECT_EQ(place.level, parent.level + 1);
    EXPECT_TRUE(std::ranges::includes(parent.workers, place.workers));
    if (self != 0) {
      EXPECT_LE(place.level, places[self - 1].level);
    }
  }
}

TEST(PlaceTree, a_machine_gives_parts_with_equal_workers_once_and_the_whole_not) {
  EXPECT_EQ(text_of(tree_of("pack:2 numa:1 l3:2 l2:2 core:1 pu:1", 8)),
            "L2 cache 0 3 in 8 c: 0\nL2 cache 1 3 in 8 c: 1\nL2 cache 2 3 in 9 c: 2\n"
            "L2 cache 3 3 in 9 c: 3\nL2 cache 4 3 in 10 c: 4\nL2 cache 5 3 in 10 c: 5\n"
            "L2 cache 6 3 in 11 c: 6\nL2 cache 7 3 in 11 c: 7\n"
            "L3 cache 0 2 in 12 c: 0 1\nL3 cache 1 2 in 12 c: 2 3\nL3 cache 2 2 in 13 c: 4 5\n"
            "L3 cache 3 2 in 13 c: 6 7\n"
            "NUMA node 0 1 in -1 m: 0 1 2 3\nNUMA node 1 1 in -1 m: 4 5 6 7\n");
  EXPECT_EQ(text_of(tree_of("pack:2 core:1 pu:2", 4)),
            "core 0 1 in -1 c: 0 1\ncore 1 1 in -1 c: 2 3\n");
  // One worker more than processors: the first one has two.
  EXPECT_EQ(text_of(tree_of("core:2 pu:1", 3)), "core 0 1 in -1 c: 0 2\ncore 1 1 in -1 c: 1\n");
  EXPECT_EQ(text_of(tree_of("pu:1", 4)), "machine 1 in -1 m: 0 1 2 3\n");
  EXPECT_EQ(text_of(tree_of("pack:2 core:2 pu:1", 1)), "machine 1 in -1 m: 0\n");
}

TEST(PlaceTree, machines_of_many_kinds_give_one_tree) {
  for (const char* const machine :
       {"pack:2 numa:2 l3:2 core:2 pu:2", "numa:4 core:3 pu:1", "pack:1 l2:4 l1:2 core:1 pu:1",
        "group:2 numa:1 pack:2 numa:2 core:2 pu:1", "numa:2 l3:1 core:16 pu:2"}) {
    SCOPED_TRACE(machine);
    for (const int workers : {2, 3, 5, 8, 17, 64}) check(tree_of(machine, workers));
  }
}

TEST(PlaceTree, a_file_of_hclib_is_read) {
  const std::string machine =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE HPT SYSTEM \"hpt.dtd\">\n"
      "<HPT version=\"0.1\" info=\"2 sockets\">\n"
      "<place num=\"1\" type=\"mem\"><place num=\"2\" type=\"cache\">\n"
      "<place num=\"2\"><worker num=\"1\"/></place> <worker/>\n"
      "</place><place type=\"nvgpu\" info=\"K20c\"></place></place></HPT>\n";
  const Division division = tree_of_text(machine, 6);
  check(division);
  EXPECT_EQ(text_of(division),
            "cache 1 2 in 4 c: 0\ncache 2 2 in 4 c: 1\ncache 4 2 in 5 c: 3\ncache 5 2 in 5 c: 4\n"
            "cache 0 1 in -1 c: 0 1 2\ncache 3 1 in -1 c: 3 4 5\nnvgpu 0 1 in -1:\n");
  EXPECT_EQ(text_of(tree_of_text("<HPT><place type='mem'><worker num='2'/></place></HPT>", 2)),
            "mem 0 1 in -1 m: 0 1\n") << "a place at least";
  EXPECT_EQ(text_of(tree_of_text("<HPT><place type='mem' num='2'><worker/></place></HPT>", 2)),
            "mem 0 1 in -1 m: 0\nmem 1 1 in -1 m: 1\n");
  EXPECT_EQ(text_of(tree_of_text("<HPT><place num='2'><worker num='3'/></place></HPT>", 1)),
            "cache 0 1 in -1 c: 0\ncache 1 1 in -1 c: 0\n") << "one worker is all";
}

TEST(PlaceTree, wrong_files_are_refused_by_name_and_line) {
  const auto nested = [](const int depth) {
    std::string text = "<HPT>\n";
    for (int level = 0; level < depth; ++level) text += "<place>";
    text += "<worker num='4'/>";
    for (int level = 0; level < depth; ++level) text += "</place>";
    return text + "</HPT>";
  };
  const auto in_place = [](const std::string& inside) {
    return "<HPT>\n<place>\n" + inside + "</place></HPT>";
  };
  struct Case {
    std::string text;
    int line;
    const char* what;
  };
  for (const Case& each : std::vector<Case>{
           {"", 1, "no element found"},
           {"\n\nx", 3, "syntax error"},
           {"<HPT>\n<place>\n</HPT>", 3, "mismatched tag"},
           {"<HPT>\n<place><worker/>", 2, "no element found"},
           {std::string("<HPT>\n\0</HPT>", 13), 2, "not well-formed"},
           {"<place/>", 1, "<place> is not possible here"},
           {"<HPT>\n<worker/></HPT>", 2, "<worker> is not possible here"},
           {"<HPT>\n<HPT/></HPT>", 2, "<HPT> is not possible here"},
           {in_place("<worker>\n<place/></worker>"), 4, "<place> is not possible here"},
           {in_place("<socket/>"), 3, "<socket> is not possible here"},
           {in_place("<place\ntype='disk'/>"), 3, "type=\"disk\" of a place: valid: mem, "},
           {in_place("<worker type='gpu'/>"), 3, "type=\"gpu\" of a worker"},
           {in_place("<worker num='0'/>"), 3, "num=\"0\""},
           {in_place("<worker num='-1'/>"), 3, "num=\"-1\""},
           {in_place("<worker num='two'/>"), 3, "num=\"two\""},
           {in_place("<worker num=''/>"), 3, "num=\"\""},
           {in_place("<worker num='4097'/>"), 3, "num=\"4097\""},
           {in_place("<worker num='99999999999999999999'/>"), 3, "1 to 4096"},
           {in_place("<worker nun='2'/>"), 3, "no attribute \"nun\""},
           {in_place("\n<place type='fpga'><worker/></place>"), 4, "a worker must be in a place"},
           {in_place("<worker num='3'/>"), 1, "<HPT> has 3 workers in all, and the runtime has 4"},
           {in_place("<worker num='5'/>"), 1, "<HPT> has 5 workers in all, and the runtime has 4"},
           {in_place(""), 1, "<HPT> has 0 workers in all"},
           {"<HPT/>", 1, "<HPT> has 0 workers in all"},
           {in_place("\n<place num='2000'><worker/></place>"), 4, "more than 1024 places"},
           {"<HPT><place num='64'><place num='64'><worker num='4000'/></place></place></HPT>", 1,
            "more than 4096 workers"},
           {nested(33), 2, "at most 32 deep"},
           {nested(100'000), 2, "at most 32 deep"}}) {
    try {
      (void)parse_places(each.text, "t.xml", 4);
      ADD_FAILURE() << each.text;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("imbrex: IMBREX_PLACES=t.xml, line " +
                                   std::to_string(each.line) + ": ")) << text << "\n" << each.text;
      EXPECT_NE(text.find(each.what), std::string::npos) << text << "\n" << each.text;
    }
  }
  EXPECT_NO_THROW(check(tree_of_text(nested(32), 4)));
  const std::string folder = testing::TempDir() + "imbrex_folder.xml";
  std::filesystem::create_directory(folder);
  base::Topology topology;
  for (const std::string& none : {std::string("/nowhere/places.xml"), folder}) {
    EXPECT_THROW((void)divide(none, first_numbers(4), topology), Error) << none;
  }
  std::filesystem::remove(folder);
}

// Methodology: random trees; nearness is asked of each pair anew, by the places that have both.
TEST(PlaceTree, nearness_is_the_depth_of_what_two_workers_have_in_common) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    int workers = 0;
    const auto grow = [&](auto&& self, const int depth) -> std::string {
      std::string text = "<place>";
      for (unsigned child = 0; depth < 4 && child < random() % 3; ++child) {
        text += self(self, depth + 1);
      }
      const int count = static_cast<int>(random() % 3);
      if (count != 0) text += "<worker num='" + std::to_string(count) + "'/>";
      workers += count;
      return text + "</place>";
    };
    const std::string text = "<HPT>" + grow(grow, 0) + grow(grow, 0) + "</HPT>";
    if (workers < 2) continue;
    const Division division = tree_of_text(text, static_cast<std::size_t>(workers));
    check(division);
    PolicySetup setup{.workers = workers, .nearest = {}, .domain = {}, .wake = nullptr,
                      .wake_context = nullptr};
    for (int self = 0; self < workers; ++self) {
      setup.nearest.push_back(first_numbers(workers));
      setup.nearest.back().erase(setup.nearest.back().begin() + self);
    }
    keep_near(setup, division.places);
    const auto level = [&](const int first, const int second) {
      int deepest = 0;
      for (const PlannedPlace& place : division.places) {
        const bool both = std::ranges::count(place.workers, first) != 0 &&
                          std::ranges::count(place.workers, second) != 0;
        if (both) deepest = std::max(deepest, place.level);
      }
      return deepest;
    };
    for (int self = 0; self < workers; ++self) {
      const Ints& nearest = setup.nearest[static_cast<std::size_t>(self)];
      const Ints& within = setup.within[static_cast<std::size_t>(self)];
      const int innermost = level(self, self);
      ASSERT_EQ(static_cast<int>(within.size()), innermost + 1);
      for (int each = 0; each + 1 < workers; ++each) {
        int distance = 0;
        while (within[static_cast<std::size_t>(distance)] <= each) ++distance;
        EXPECT_EQ(innermost - distance, level(self, nearest[static_cast<std::size_t>(each)]))
            << text << ": worker " << self;
      }
    }
  }
}

// Methodology: random queues of 8 workers of a tree; each theft is compared with what a look at all
// queues says is nearest.
TEST(PlaceTree, no_thief_goes_far_while_the_near_ones_have_work) {
  constexpr int workers = 8;
  const Division division = tree_of("pack:2 l3:2 core:2 pu:1", workers);
  PolicySetup setup{.workers = workers, .nearest = {}, .domain = Ints(workers), .wake = nullptr,
                    .wake_context = nullptr};
  for (int self = 0; self < workers; ++self) {
    Ints& others = setup.nearest.emplace_back();
    for (int step = 1; step < workers; ++step) others.push_back((self + step) % workers);
  }
  keep_near(setup, division.places);
  // 1: the same core, of which there is none other; 2: cache; 3: package; 4: the machine.
  const auto distance = [](const int a, const int b) { return a / 2 == b / 2 ? 1
                                                            : a / 4 == b / 4 ? 2 : 3; };
  std::mt19937 random(11);
  for (const bool graph_order : {false, true}) {
    for (int round = 0; round < 200; ++round) {
      const auto policy = make_stealing(setup, graph_order);
      std::deque<Task> tasks;
      Ints left(workers), owner;
      for (unsigned made = 0; made < random() % 60; ++made) {
        const int at = static_cast<int>(random() % workers);
        Task& task = tasks.emplace_back();
        task.id = tasks.size();
        owner.push_back(at);
        ++left[static_cast<std::size_t>(at)];
        policy->push(task, {.worker = at}, random() % 2 == 0 ? Origin::forked : Origin::released);
      }
      std::uint64_t far = 0;
      const auto nearest_of = [&](const int thief) {
        int nearest = 9;
        for (int other = 0; other < workers; ++other) {
          if (other != thief && left[static_cast<std::size_t>(other)] != 0) {
            nearest = std::min(nearest, distance(thief, other));
          }
        }
        return nearest;
      };
      for (int thefts = 0; thefts < 200; ++thefts) {
        const int thief = static_cast<int>(random() % workers);
        if (left[static_cast<std::size_t>(thief)] != 0) {  // one steals when it has nothing
          --left[static_cast<std::size_t>(owner[policy->pop(thief).task->id - 1])];
          continue;
        }
        const bool eager = random() % 4 != 0;
        const Entry entry = policy->steal(thief, eager);
        const int nearest = nearest_of(thief);
        if (!entry) {
          EXPECT_TRUE(!eager || nearest == 9);
          continue;
        }
        const int from = owner[entry.task->id - 1];
        EXPECT_EQ(distance(thief, from), nearest);
        if (nearest > 1) ++far;
        --left[static_cast<std::size_t>(from)];
        while (const Entry more = policy->pop(thief)) {  // what came with it
          EXPECT_EQ(owner[more.task->id - 1], from);
          --left[static_cast<std::size_t>(from)];
        }
      }
      EXPECT_EQ(policy->far_steals(), far);
    }
  }
}

}  // namespace
}  // namespace imbrex::sched
