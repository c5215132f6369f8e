// SPDX-License-Identifier: BSD-3-Clause
// Tasks in a tree of places: where they run, what the tree looks like to the program, and that
// thieves keep to what is near.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>

#include <unistd.h>

#include "on_runtime.hpp"

namespace imbrex::test {

namespace {

// A file of places that is gone with the object.
class PlaceFile {
 public:
  explicit PlaceFile(const std::string& text)
      : name_(testing::TempDir() + "imbrex_places_" + std::to_string(getpid()) + ".xml") {
    std::ofstream(name_) << text;
  }
  ~PlaceFile() { (void)std::remove(name_.c_str()); }
  PlaceFile(const PlaceFile&) = delete;
  PlaceFile& operator=(const PlaceFile&) = delete;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  const std::string name_;
};

// Memory with a device and two caches, of which each has two, as far as the workers suffice.
std::string file_for(const int workers) {
  const auto count = [](const int number) { return "num=\"" + std::to_string(number) + "\""; };
  std::string text = "<HPT>\n<place type=\"mem\">\n<place type=\"nvgpu\"/>\n";
  if (workers % 4 == 0) {
    text += "<place " + count(2) + "><place " + count(2) + "><worker " + count(workers / 4) +
            "/></place></place>";
  } else {
    text += "<place " + count(workers) + "><worker/></place>";
  }
  return text + "</place>\n</HPT>\n";
}

class PlaceTreeTest : public OnRuntime {
 protected:
  void SetUp() override {
    const PlaceFile file(file_for(workers()));
    RuntimeOptions made = config(workers(), GetParam().policy);
    made.places = file.name();
    start(made);
    for (int index = 0; index < place_count(); ++index) {
      if (place(index).kind() <= PlaceKind::cache) places_.push_back(place(index));
    }
  }
  [[nodiscard]] static int workers() { return GetParam().workers; }

  // Returns whether the caller runs at that place, by the place of its worker.
  [[nodiscard]] static bool is_at(const Place& at) {
    if (current_place() != at || current_worker() < 0) return false;
    if (workers() == 1 || at == Place()) return true;
    Place here = local_place();
    while (here != at && here != Place()) here = here.parent();
    return here == at;
  }

  std::vector<Place> places_;  // where tasks can run
};

TEST_P(PlaceTreeTest, shows_the_program_its_parents_and_children) {
  const Place all;
  EXPECT_EQ(all.level(), 0);
  EXPECT_EQ(all.kind(), PlaceKind::memory);
  EXPECT_EQ(all.parent(), all);
  EXPECT_EQ(all.worker_count(), workers());
  const bool deep = workers() % 4 == 0;
  EXPECT_EQ(static_cast<int>(places_.size()), deep ? 6 : workers());
  int seen = 0, sum = 0;
  const auto visit = [&](auto&& self, const Place& at) -> void {
    for (const Place& child : at.children()) {
      EXPECT_EQ(child.parent(), at);
      EXPECT_EQ(child.level(), at.level() + 1);
      ++seen;
      if (child.children().empty()) sum += child.worker_count();
      self(self, child);
    }
  };
  visit(visit, all);
  EXPECT_EQ(seen, place_count());
  EXPECT_EQ(sum, workers());
  EXPECT_EQ(place(place_count() - 1).name(), "cache " + std::to_string(deep ? 3 : workers() - 1));
}

TEST_P(PlaceTreeTest, tasks_run_where_they_shall_and_hand_it_on) {
  std::atomic<int> astray{0}, ran{0};
  const auto look = [&](const Place& at) {
    if (!is_at(at)) astray.fetch_add(1);
  };
  const auto grow = [&](auto&& self, const int depth, const Place at, unsigned draw) -> void {
    look(at);
    ran.fetch_add(1);
    if (depth == 0) return;
    finish([&] {
      task("inherits").launch([&self, at, depth, draw] {
        self(self, depth - 1, at, draw * 5 + 1);
      });
      draw = draw * 2654435761u + 12345u;
      const std::size_t next = (draw >> 16) % (places_.size() + 1);
      const Place other = next == places_.size() ? Place() : places_[next];
      task("elsewhere").at(other).launch([&self, other, depth, draw] {
        self(self, depth - 1, other, draw);
      });
      task("outwards").at(parent_place()).launch([&self, at, depth, draw] {
        self(self, depth - 1, at.parent(), draw * 3 + 1);
      });
      if (draw % 4 == 0) yield();
    });
    look(at);
  };
  std::mt19937 random(3);
  for (int round = 0; round < scaled(10); ++round) {
    const unsigned draw = random();
    for (const Place& first : places_) {
      task("root").at(first).spawn([&, first] { grow(grow, 3, first, draw); }).get();
    }
  }
  EXPECT_EQ(astray.load(), 0);
  EXPECT_EQ(ran.load(), scaled(10) * 40 * static_cast<int>(places_.size()));
}

TEST_P(PlaceTreeTest, a_device_is_refused_with_its_name) {
  for (int index = 0; index < place_count(); ++index) {
    const Place device = place(index);
    if (device.kind() != PlaceKind::nvgpu) continue;
    EXPECT_EQ(device.worker_count(), 0);
    const auto object = std::make_shared<int>(1);
    try {
      task("kernel").at(device).in(*object).launch([object] { ADD_FAILURE(); });
      ADD_FAILURE() << "a task at a device";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("at nvgpu 0, which has no processors"),
                std::string::npos) << error.what();
    }
    EXPECT_EQ(object.use_count(), 1);
    return;
  }
  ADD_FAILURE() << "no device in the tree";
}

// A place whose queue never runs dry does not keep others from running, inwards and outwards.
TEST_P(PlaceTreeTest, the_places_of_a_worker_have_their_turns) {
  const Place inner = local_place();
  for (const auto& [first, second] : {std::pair(inner, Place()), std::pair(Place(), inner),
                                      std::pair(inner, inner.parent())}) {
    std::atomic<bool> over{false};
    const auto again = [&](auto&& self) -> void {
      if (!over.load()) task("again").launch([&self] { self(self); });
    };
    finish([&] {
      for (int copy = 0; copy < workers(); ++copy) {
        task("again").at(first).launch([&] { again(again); });
      }
      task("once").at(second).launch([&] { over.store(true); });
    });
    EXPECT_TRUE(over.load());
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlaceTreeTest, testing::ValuesIn(every_setup()), name_of);

// Two packages of two caches of two cores each.
class ThievesTest : public testing::TestWithParam<Setup> {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("HWLOC_SYNTHETIC", "pack:2 l3:2 core:2 pu:1", 1), 0);
    RuntimeOptions made = config(8, GetParam().policy);
    made.places = "tree";
    made.bind = 0;
    // Else who fills a queue runs some of it first, and has had enough before.
    made.tasks_ahead = 0;
    runtime_ = std::make_unique<Runtime>(made);
    ASSERT_EQ(unsetenv("HWLOC_SYNTHETIC"), 0);
  }
  // Main's thread is worker 0: it waits, and so is free.
  std::unique_ptr<Runtime> runtime_;
};

// Methodology: four workers, one of each cache, fill their queues while their neighbours are held.
// Then the neighbours go on, and no worker may steal from afar until each has run a good part of
// the tasks nearby.
TEST_P(ThievesTest, take_nothing_far_while_their_neighbours_have_work) {
  constexpr int tasks = 600, enough = 400;
  std::atomic<int> held{0}, filled{0}, done[4]{}, satisfied{0};
  std::uint64_t steals = 0, far_steals = 1;
  const auto wait_for = [](const auto condition) {
    while (!condition()) std::this_thread::yield();
  };
  const auto near_task = [&] {
    const int pair = current_worker() / 2;
    const int count = done[pair].fetch_add(1) + 1;
    if (count == enough) satisfied.fetch_add(1);
    if (count >= enough) wait_for([&] { return satisfied.load() >= 5; });
  };
  finish([&] {
    for (int core = 0; core < 8; ++core) {
      ASSERT_EQ(place(core).worker_count(), 1);
      if (core % 2 == 1) {
        task("held").at(place(core)).launch([&] {
          held.fetch_add(1);
          wait_for([&] { return filled.load() == 4; });
        });
        continue;
      }
      task("fills").at(place(core)).launch([&, core] {
        wait_for([&] { return held.load() == 4; });
        for (int number = 0; number < tasks; ++number) {
          const Place at = number % 3 == 0 ? Place() : place(core).parent().parent();
          task("near").at(number % 3 == 1 ? place(core).parent() : at).launch(near_task);
        }
        filled.fetch_add(1);
        wait_for([&] { return satisfied.load() >= 4; });
        if (core == 0) {
          steals = statistics().steals;
          far_steals = statistics().far_steals;
          satisfied.fetch_add(1);
        }
      });
    }
  });
  EXPECT_EQ(far_steals, 0u);
  EXPECT_GE(steals, 4u * enough / 16);
  EXPECT_EQ(done[0] + done[1] + done[2] + done[3], 4 * tasks);
}

// Methodology: each task keeps its worker until five have one. The worker of the queue has none.
TEST_P(ThievesTest, go_far_when_there_is_nothing_near) {
  std::atomic<unsigned> workers{0};
  const auto five_work = [&workers] { return __builtin_popcount(workers.load()) >= 5; };
  finish([&] {
    task("fills").at(place(6)).launch([&] {
      for (int number = 0; number < 100; ++number) {
        task("any").at(Place()).launch([&] {
          workers.fetch_or(1u << current_worker());
          EXPECT_TRUE(comes_true(five_work));
        });
      }
      EXPECT_TRUE(comes_true(five_work));
    });
  });
  EXPECT_GT(statistics().far_steals, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, ThievesTest, testing::ValuesIn(setups({8}, {"", "steal"})), name_of);

TEST(FlatTest, places_are_children_of_all_workers) {
  RuntimeOptions made = config(4, "");
  made.places = "0-1/2-3";
  const Runtime runtime(made);
  EXPECT_EQ(Place().children(), (std::vector<Place>{place(0), place(1)}));
  EXPECT_EQ(place(1).parent(), Place());
  EXPECT_EQ(place(1).level(), 1);
  EXPECT_TRUE(place(1).children().empty());
  EXPECT_EQ(statistics().far_steals, 0u);
}

TEST(FileTest, is_refused_where_it_is_wrong) {
  const PlaceFile file("<HPT>\n<place type=\"memory\"/></HPT>");
  RuntimeOptions made = config(2, "");
  for (const std::string& name : {file.name(), file.name() + ".xml"}) {
    made.places = name;
    try {
      const Runtime runtime(made);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("imbrex: IMBREX_PLACES=" + name))
          << error.what();
    }
  }
}

}  // namespace

}  // namespace imbrex::test
