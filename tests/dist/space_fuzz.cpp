// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random sequences of insertions, the same on one to eight ranks of one process, each
// a thread of its own over a network of the test's, which delays and reorders between pairs. What
// the owners have at the end is what a sequential program leaves.
#include "dist/data/space/space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dist/stations.hpp"
#include "imbrex/dist/data_tasks.hpp"
#include "imbrex/event.hpp"
#include "imbrex/scope.hpp"

namespace imbrex::test {
namespace {

using Word = std::uint64_t;

class Rank {
 public:
  Rank(Network& network, const int rank, const dist::BroadcastOptions& options)
      : station_(network, rank), waves(station_.way(1)), broadcasts(station_.way(2), options) {
    station_.set_receiver(1, [this](int from, dist::Bytes bytes) { waves.receive(from, bytes); });
    station_.set_receiver(2,
                          [this](int from, dist::Bytes bytes) { broadcasts.receive(from, bytes); });
  }

 private:
  Station station_;

 public:
  dist::Waves waves;
  dist::Broadcasts broadcasts;
};

// What all ranks of a run agree on.
struct Plan {
  unsigned seed = 0;
  int ranks = 1;
  int data = 8;
  int operations = 200;
  bool trimmed = false;   // ranks leave out what does not concern them; only owners write
  bool moves = true;      // and reductions, discards, temporaries
  int fails = -1;         // this operation throws
};

// ---- the sequence ------------------------------------------------------------------------------

enum class What : std::uint8_t { task, reduce, flush, discard, move, finish };
struct Operation {
  What what = What::task;
  std::vector<int> reads, writes, updates;
  int datum = -1;
  int on = -1;
  int priority = 0;
};

// A datum as the sequential program has it.
struct Model {
  int owner = -1;
  bool temporary = false;
  std::optional<std::vector<Word>> value;
  bool failed = false;
};

struct Program {
  std::vector<std::size_t> counts;
  std::vector<int> owners;
  std::vector<bool> in_program;  // memory of the program's, with gaps
  std::vector<Operation> operations;
  std::vector<Model> models;  // after all
};

[[nodiscard]] Word mixed(const Word a, const Word b) noexcept {
  return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6))) * 0xff51afd7ed558ccdu;
}
[[nodiscard]] Word digest_of(const std::vector<Word>& value) {
  Word digest = value.size();
  for (const Word word : value) digest = mixed(digest, word);
  return digest;
}
void leave(std::vector<Word>& value, const Word digest) {
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = mixed(digest, i);
}
[[nodiscard]] Word added(const std::size_t operation, const std::size_t element) noexcept {
  return operation * 1000003 + element;
}

class Maker {
 public:
  explicit Maker(const Plan& plan) : plan_(plan), random_(plan.seed) {}

  [[nodiscard]] Program make() {
    for (int i = 0; i < plan_.data; ++i) {
      const bool temporary = plan_.moves && !plan_.trimmed && draw(6) == 0;
      static constexpr std::size_t counts[] = {0, 1, 7, 100, 1500};
      made_.counts.push_back(counts[draw(5)]);
      made_.owners.push_back(temporary ? -1 : static_cast<int>(draw(ranks())));
      made_.in_program.push_back(!temporary && draw(2) == 0);
      Model model{made_.owners.back(), temporary, std::nullopt, false};
      if (!temporary) model.value.emplace(made_.counts.back());
      made_.models.push_back(model);
    }
    while (made_.operations.size() < static_cast<std::size_t>(plan_.operations)) add();
    return made_;
  }

 private:
  [[nodiscard]] unsigned draw(const unsigned below) { return random_() % below; }
  [[nodiscard]] unsigned ranks() const { return static_cast<unsigned>(plan_.ranks); }
  [[nodiscard]] Model& model(const int datum) {
    return made_.models[static_cast<std::size_t>(datum)];
  }

  void add() {
    Operation operation;
    const unsigned kind = draw(20);
    operation.datum = static_cast<int>(draw(static_cast<unsigned>(plan_.data)));
    if (plan_.moves && kind == 0) {
      operation.what = What::flush;
      if (!model(operation.datum).value) return;
    } else if (plan_.moves && kind == 1) {
      operation.what = What::move;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (plan_.moves && kind == 2 && draw(3) == 0) {
      operation.what = What::discard;
    } else if (plan_.moves && kind <= 6) {
      operation.what = What::reduce;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (kind == 7 && draw(4) == 0) {
      operation.what = What::finish;
    } else if (!choose_accesses(operation)) {
      return;
    }
    apply(operation);
    made_.operations.push_back(operation);
  }

  [[nodiscard]] bool choose_accesses(Operation& operation) {
    std::vector<int> left(static_cast<std::size_t>(plan_.data));
    for (int i = 0; i < plan_.data; ++i) left[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(left, random_);
    const auto take = [&](const unsigned most, const bool needs_value, std::vector<int>& into) {
      for (unsigned count = draw(most + 1); count > 0 && !left.empty(); --count) {
        const int datum = left.back();
        left.pop_back();
        if (!needs_value || model(datum).value) into.push_back(datum);
      }
    };
    take(3, true, operation.reads);
    take(2, true, operation.updates);
    take(1, false, operation.writes);
    operation.priority = static_cast<int>(draw(3));
    int executor = -1;
    bool one_owner = true;
    for (const std::vector<int>* list : {&operation.writes, &operation.updates}) {
      for (const int datum : *list) {
        if (executor < 0) executor = model(datum).owner;
        one_owner = one_owner && model(datum).owner == executor;
      }
    }
    if (plan_.trimmed) {
      if (executor < 0 || !one_owner) return false;  // owners write
      return true;
    }
    if (executor < 0 || draw(5) == 0) operation.on = static_cast<int>(draw(ranks()));
    return true;
  }

  void apply(const Operation& operation) {
    const auto index = made_.operations.size();
    Model& one = model(operation.datum);
    switch (operation.what) {
      case What::task: return apply_task(operation, index);
      case What::reduce:
        if (!one.value) one.value.emplace(made_.counts[static_cast<std::size_t>(operation.datum)]);
        if (one.temporary && one.owner < 0) one.owner = operation.on;
        for (std::size_t i = 0; i < one.value->size(); ++i) (*one.value)[i] += added(index, i);
        return;
      case What::discard:
        one.value.reset();
        if (one.temporary) one.owner = -1;
        return;
      case What::move: one.owner = operation.on; return;
      case What::flush:
      case What::finish: return;
    }
  }

  void apply_task(const Operation& operation, const std::size_t index) {
    Word digest = index;
    bool failed = static_cast<int>(index) == plan_.fails;
    int executor = operation.on;
    for (const std::vector<int>* list : {&operation.reads, &operation.updates}) {
      for (const int datum : *list) {
        digest = mixed(digest, digest_of(*model(datum).value));
        failed = failed || model(datum).failed;
      }
    }
    for (const std::vector<int>* list : {&operation.updates, &operation.writes}) {
      for (const int datum : *list) {
        if (executor < 0) executor = model(datum).owner;
      }
    }
    for (const std::vector<int>* list : {&operation.updates, &operation.writes}) {
      for (const int datum : *list) {
        Model& one = model(datum);
        if (!one.value) one.value.emplace(made_.counts[static_cast<std::size_t>(datum)]);
        leave(*one.value, digest);
        one.failed = failed;
        if (one.owner < 0) one.owner = executor;
      }
    }
  }

  const Plan plan_;
  std::mt19937 random_;
  Program made_;
};

// ---- the same by a space -----------------------------------------------------------------------

using Datum = Data<Word>;

// Memory of the program's for one datum: a column of a few rows, with gaps, where that divides.
struct Memory {
  std::vector<Word> words;
  std::size_t rows, columns, leading;
};

class Player {
 public:
  Player(const Program& program, const Plan& plan, detail::SpaceBase& space, const unsigned seed)
      : program_(program), plan_(plan), space_(space), random_(seed) {
    for (std::size_t i = 0; i < program.counts.size(); ++i) make(i);
  }

  void play(const bool slow) {
    for (std::size_t i = 0; i < program_.operations.size(); ++i) {
      if (slow && random_() % 16 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 500));
      }
      insert(program_.operations[i], i);
    }
  }
  void flush_all() { space_.flush(); }
  void compare() {
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const Model& model = program_.models[i];
      if (!model.value) continue;
      ASSERT_EQ(data_[i].owner(), model.owner) << "datum " << i;
      if (model.owner != space_.rank()) continue;
      if (model.failed) {
        EXPECT_THROW((void)data_[i].view(), Error);
        continue;
      }
      const View<Word> view = data_[i].view();
      std::vector<Word> value;
      for (std::size_t column = 0; column < view.columns(); ++column) {
        for (std::size_t row = 0; row < view.rows(); ++row) value.push_back(view(row, column));
      }
      ASSERT_EQ(value, *model.value) << "datum " << i;
    }
  }

 private:
  void make(const std::size_t i) {
    const std::size_t count = program_.counts[i];
    const int owner = program_.owners[i];
    if (owner < 0) {
      data_.push_back(space_.temporary<Word>(count));
      return;
    }
    const std::size_t rows = count % 4 == 0 ? count / 4 : count;
    const std::size_t columns = rows == 0 ? 1 : count / rows;
    Word* memory = nullptr;
    if (program_.in_program[i]) {
      memory_.push_back(std::make_unique<std::vector<Word>>((rows + 3) * columns + 1));
      memory = memory_.back()->data();
    }
    data_.push_back(space_.matrix<Word>(owner, rows, columns, memory, rows + 3));
  }

  [[nodiscard]] std::vector<Datum> of(const std::vector<int>& numbers) const {
    std::vector<Datum> all;
    for (const int number : numbers) all.push_back(data_[static_cast<std::size_t>(number)]);
    return all;
  }

  template <class T>
  static void mix_in(Word& digest, const Views<T>& views) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::vector<Word> value;
      for (std::size_t column = 0; column < views[i].columns(); ++column) {
        for (std::size_t row = 0; row < views[i].rows(); ++row) {
          value.push_back(views[i](row, column));
        }
      }
      digest = mixed(digest, digest_of(value));
    }
  }
  static void leave_in(const Views<Word>& views, const Word digest) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      std::size_t element = 0;
      for (std::size_t column = 0; column < views[i].columns(); ++column) {
        for (std::size_t row = 0; row < views[i].rows(); ++row) {
          views[i](row, column) = mixed(digest, element++);
        }
      }
    }
  }

  void insert(const Operation& operation, const std::size_t index) {
    const auto datum = [&] { return data_[static_cast<std::size_t>(operation.datum)]; };
    switch (operation.what) {
      case What::task: return insert_task(operation, index);
      case What::reduce: {
        auto task = space_.task("reduce").reduce(datum(), Sum()).on(operation.on);
        if (plan_.trimmed && !task.concerns()) return;
        return std::move(task).insert([index](View<Word> part) {
          std::size_t element = 0;
          for (std::size_t column = 0; column < part.columns(); ++column) {
            for (std::size_t row = 0; row < part.rows(); ++row) {
              part(row, column) += added(index, element++);
            }
          }
        });
      }
      case What::flush: return space_.flush(datum());
      case What::discard: return space_.discard(datum());
      case What::move: return space_.move(datum(), operation.on);
      case What::finish:
        if (plan_.fails >= 0) return;
        return space_.finish();
    }
  }

  void insert_task(const Operation& operation, const std::size_t index) {
    auto task = space_.task("task")
                    .priority(operation.priority)
                    .read(of(operation.reads))
                    .update(of(operation.updates))
                    .write(of(operation.writes));
    if (operation.on >= 0) static_cast<void>(std::move(task).on(operation.on));
    if (plan_.trimmed && !task.concerns()) return;
    const bool fails = static_cast<int>(index) == plan_.fails;
    std::move(task).insert([index, fails](const Views<const Word> reads, const Views<Word> updates,
                                          const Views<Word> writes) {
      if (fails) throw std::runtime_error("as planned");
      Word digest = index;
      mix_in(digest, reads);
      mix_in(digest, updates);
      leave_in(updates, digest);
      leave_in(writes, digest);
    });
  }

  const Program& program_;
  const Plan& plan_;
  detail::SpaceBase& space_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<std::vector<Word>>> memory_;
  std::vector<Datum> data_;
};

[[nodiscard]] detail::DataSpace* open(Rank& rank, const int own, const Plan& plan,
                                      const std::int64_t window) {
  detail::SpaceRanks ranks;
  ranks.id = plan.seed;
  for (int i = 0; i < plan.ranks; ++i) {
    ranks.world.push_back(i);
    ranks.nodes.push_back(plan.seed % 3 == 0 ? i / 2 : i);
  }
  SpaceOptions options;
  options.window = window;
  options.name = "fuzz";
  return new detail::DataSpace({rank.broadcasts, rank.waves, own}, ranks, options);
}

void run(const Plan& plan) {
  SCOPED_TRACE("seed " + std::to_string(plan.seed) + ", ranks " + std::to_string(plan.ranks));
  const Program program = Maker(plan).make();
  std::mt19937 random(plan.seed);
  dist::BroadcastOptions options;
  options.kind = std::array{dist::TreeKind::automatic, dist::TreeKind::star,
                            dist::TreeKind::binomial, dist::TreeKind::chain,
                            dist::TreeKind::binary}[random() % 5];
  options.chain_from = 4096;
  options.segment = 2048;
  options.inline_max = random() % 2 == 0 ? 3000 : 16;
  const std::int64_t window = std::array{1, 2, 5, 30, 0}[random() % 5];
  std::vector<std::unique_ptr<Rank>> all;
  Network network(plan.ranks, plan.seed, 2);
  for (int i = 0; i < plan.ranks; ++i) {
    all.push_back(std::make_unique<Rank>(network, i, options));
  }
  std::vector<std::thread> mains;
  std::atomic<int> left{plan.ranks};
  Event all_have_ended;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    mains.emplace_back([&, rank] {
      const unsigned own = plan.seed * 8 + static_cast<unsigned>(rank);
      if (own % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // late
      const struct Leave {
        std::atomic<int>& ranks_left;
        Event& all_ended;
        ~Leave() {
          if (ranks_left.fetch_sub(1) == 1) all_ended.fire();
        }
      } leave_at_the_end{left, all_have_ended};
      detail::SpaceBase space(open(*all[static_cast<std::size_t>(rank)], rank, plan, window));
      Player player(program, plan, space, own);
      player.play(own % 3 == 0);
      player.flush_all();
      if (plan.fails >= 0) {
        EXPECT_ANY_THROW(space.finish());
      } else {
        space.finish();
      }
      player.compare();
    });
  }
  await(all_have_ended);  // a join would block this thread, which is a worker
  for (std::thread& one : mains) one.join();
}

constexpr unsigned rounds = 40 / IMBREX_TEST_SCALE;

TEST(SpaceFuzz, readers_and_writers_leave_what_a_sequential_program_leaves) {
  finish([] {});  // the runtime runs
  for (unsigned seed = 1; seed <= rounds; ++seed) {
    run({.seed = seed, .ranks = 1 + static_cast<int>(seed % 8), .moves = false});
  }
}

TEST(SpaceFuzz, moves_flushes_discards_and_reductions_do_too) {
  finish([] {});
  for (unsigned seed = 1001; seed <= 1000 + rounds; ++seed) {
    run({.seed = seed, .ranks = 1 + static_cast<int>(seed % 8)});
  }
}

TEST(SpaceFuzz, loops_that_leave_out_what_does_not_concern_a_rank_do_too) {
  finish([] {});
  for (unsigned seed = 2001; seed <= 2000 + rounds; ++seed) {
    run({.seed = seed, .ranks = 1 + static_cast<int>(seed % 8), .trimmed = true,
         .moves = seed % 2 == 0});
  }
}

TEST(SpaceFuzz, what_needs_a_failed_task_has_failed_and_the_rest_is_right) {
  finish([] {});
  for (unsigned seed = 3001; seed <= 3000 + rounds; ++seed) {
    Plan plan{.seed = seed, .ranks = 1 + static_cast<int>(seed % 8), .moves = false};
    const Program program = Maker(plan).make();
    for (std::size_t i = seed % 50; i < program.operations.size(); ++i) {
      if (program.operations[i].what != What::task) continue;
      plan.fails = static_cast<int>(i);
      break;
    }
    if (plan.fails >= 0) run(plan);
  }
}

}  // namespace
}  // namespace imbrex::test
