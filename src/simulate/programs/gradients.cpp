// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients on the operator of 27 points: the tasks of apps/minife and apps/hpcg, variant
// `tasks`: loops over sub-blocks, exchanges of the layer around a brick, sums over ranks. The
// geometry is the applications' own code (apps/sparse/brick.hpp, apps/hpcg/level.hpp).
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "hpcg/level.hpp"
#include "imbrex/error.hpp"
#include "simulate/programs/programs.hpp"
#include "sparse/brick.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;
using sparse::Brick;

enum Kind : std::uint16_t { loop_kind, send_kind, receive_kind, sum_kind, round_kind, kinds };

constexpr int messages_first = 3;  // the priority of sends, receives and sums
constexpr int coarse_urgency = 2;

// Numbers that name the data of one rank.
class Names {
 public:
  [[nodiscard]] std::uint64_t take(const std::size_t count) noexcept {
    return std::exchange(next_, next_ + count);
  }

 private:
  std::uint64_t next_ = 1;
};

struct Field {
  Field(const Brick& brick, Names& names)
      : blocks(names.take(brick.blocks().size())),
        layers(names.take(brick.neighbours().size())) {}
  std::uint64_t blocks, layers;  // the first of each
};
struct Grid {
  Grid(const Brick& of, Names& names, const int its_tag)
      : brick(of),
        sends(names.take(of.neighbours().size())),
        receives(names.take(of.neighbours().size())),
        tag(its_tag) {}
  const Brick& brick;
  std::uint64_t sends, receives;
  int tag;  // messages of one neighbour follow each other, so one tag is enough
};
struct Sum {
  Sum(const Brick& brick, Names& names, const int its_tag)
      : parts(names.take(brick.blocks().size())),
        result(names.take(1)),
        rounds(names.take(2 * rounds_max)),
        tag(its_tag) {}
  static constexpr int rounds_max = 32;
  std::uint64_t parts, result, rounds;
  int tag;
};

// How often a body calls each kernel of the application.
using Calls = std::vector<int>;

struct Loop {
  using Near = std::vector<std::vector<int>>;
  const Brick& brick;
  Calls calls;
  std::vector<const Field*> reads = {};
  std::vector<const Field*> reads_around = {};
  std::vector<std::pair<const Field*, const Near*>> reads_near = {};
  std::vector<const Field*> writes = {};
  const Sum* parts = nullptr;
  const Sum* after = nullptr;
  int urgency = 1;
};

// What one rank creates, step by step of the algorithm.
class Steps {
 public:
  Steps(const int rank, const int ranks, const std::vector<Time>& times)
      : rank_(rank), ranks_(ranks), times_(times) {}
  virtual ~Steps() = default;
  // The tasks of iteration `number`; 0: what comes before the first.
  virtual void add(int number) = 0;
  void into(Batch& batch) noexcept { batch_ = &batch; }

 protected:
  void loop(const Loop& loop) const {
    const std::vector<bool> border = loop.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      batch_->add({.kernel = loop_kind,
                   .priority = border[block] ? loop.urgency : 0,
                   .duration = duration(loop, block)});
      declare(loop, block);
    }
  }
  void exchange(const Grid& grid, const Field& field) const {
    const auto& neighbours = grid.brick.neighbours();
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      TaskPlan plan{.kernel = receive_kind,
                    .role = Role::receive,
                    .priority = messages_first,
                    .peer = neighbours[n].rank,
                    .tag = grid.tag,
                    .bytes = neighbours[n].receive.count() * 8};
      batch_->add(plan);
      batch_->access(grid.receives + n, AccessKind::inout);
      batch_->access(field.layers + n, AccessKind::out);
      plan.kernel = send_kind;
      plan.role = Role::send;
      plan.bytes = neighbours[n].send.count() * 8;
      batch_->add(plan);
      batch_->access(grid.sends + n, AccessKind::inout);
      for (const int block : neighbours[n].touched) {
        batch_->access(field.blocks + static_cast<std::uint64_t>(block), AccessKind::in);
      }
    }
  }
  // A task, and the messages of its MPI_Allreduce: in round k each rank sends to the rank 2^k
  // behind it (dissemination, Hensgen, Finkel and Manber, 1988).
  void sum(const Sum& sum, const Brick& brick) const {
    batch_->add({.kernel = sum_kind, .priority = messages_first, .duration = 0});
    for (std::size_t block = 0; block < brick.blocks().size(); ++block) {
      batch_->access(sum.parts + block, AccessKind::in);
    }
    batch_->access(ranks_ == 1 ? sum.result : sum.rounds, AccessKind::out);
    std::uint64_t from = sum.rounds;
    for (std::int64_t step = 1; step < ranks_; step *= 2, from += 2) {
      const auto distance = static_cast<int>(step);
      TaskPlan plan{.kernel = round_kind,
                    .role = Role::receive,
                    .by_library = true,
                    .peer = (rank_ - distance + ranks_) % ranks_,
                    .tag = sum.tag + static_cast<int>(from - sum.rounds),
                    .bytes = 8};
      batch_->add(plan);
      batch_->access(from + 1, AccessKind::out);
      plan.role = Role::send;
      plan.peer = (rank_ + distance) % ranks_;
      batch_->add(plan);
      batch_->access(from, AccessKind::in);
      batch_->add({.kernel = round_kind, .by_library = true});
      batch_->access(from, AccessKind::in);
      batch_->access(from + 1, AccessKind::in);
      batch_->access(2 * step < ranks_ ? from + 2 : sum.result, AccessKind::out);
    }
  }

 private:
  [[nodiscard]] Time duration(const Loop& loop, const std::size_t block) const {
    double ns = 0;
    for (std::size_t kernel = 0; kernel < loop.calls.size(); ++kernel) {
      ns += static_cast<double>(times_[kernel]) * loop.calls[kernel];
    }
    // The times are those of all points of the finest brick.
    return time_of(ns * static_cast<double>(loop.brick.blocks()[block].count()) / points_);
  }
  void declare(const Loop& loop, const std::size_t block) const {
    const auto number = static_cast<int>(block);
    for (const Field* const field : loop.reads) in(field->blocks + block);
    for (const Field* const field : loop.reads_around) {
      for (const int other : loop.brick.around(number)) in(field->blocks + index(other));
      for (const int layer : loop.brick.awaited(number)) in(field->layers + index(layer));
    }
    for (const auto& [field, near] : loop.reads_near) {
      for (const int other : (*near)[block]) in(field->blocks + index(other));
    }
    for (const Field* const field : loop.writes) {
      batch_->access(field->blocks + block, AccessKind::inout);
    }
    if (loop.parts != nullptr) batch_->access(loop.parts->parts + block, AccessKind::out);
    if (loop.after != nullptr) in(loop.after->result);
  }
  void in(const std::uint64_t datum) const { batch_->access(datum, AccessKind::in); }
  [[nodiscard]] static std::uint64_t index(const int number) noexcept {
    return static_cast<std::uint64_t>(number);
  }

  const int rank_;
  const int ranks_;
  const std::vector<Time>& times_;
  Batch* batch_ = nullptr;

 protected:
  double points_ = 1;  // of the finest brick
};

// apps/minife/solve.cpp
class MiniFe final : public Steps {
 public:
  MiniFe(const GradientsSetup& setup, const int rank, const std::vector<Time>& times)
      : Steps(rank, setup.ranks, times), brick_(shape(setup), rank) {
    points_ = static_cast<double>(brick_.owned().count());
  }
  void add(const int number) override {
    if (number == 0) {
      loop({.brick = brick_, .calls = {0, 0, 1}, .reads = {&r_}, .parts = &first_});
      sum(first_, brick_);
      return add_turn(first_);
    }
    exchange(grid_, p_);
    loop({.brick = brick_, .calls = {1, 0, 1}, .reads_around = {&p_}, .writes = {&ap_},
          .parts = &alpha_, .urgency = 0});
    sum(alpha_, brick_);
    loop({.brick = brick_, .calls = {0, 1, 1}, .reads = {&ap_}, .writes = {&r_}, .parts = &beta_,
          .after = &alpha_});
    loop({.brick = brick_, .calls = {0, 1, 0}, .reads = {&p_}, .writes = {&x_}, .after = &alpha_,
          .urgency = 0});
    sum(beta_, brick_);
    add_turn(beta_);
  }

 private:
  [[nodiscard]] static sparse::BrickShape shape(const GradientsSetup& setup) {
    sparse::BrickShape shape{{}, sparse::nearly_cubic(setup.ranks), setup.blocks};
    for (std::size_t d = 0; d < 3; ++d) shape.points[d] = setup.n * shape.ranks[d] + 1;
    return shape;
  }
  void add_turn(const Sum& after) {
    loop({.brick = brick_, .calls = {0, 1, 0}, .reads = {&r_}, .writes = {&p_}, .after = &after});
  }

  const Brick brick_;
  Names names_;
  const Grid grid_{brick_, names_, 0};
  const Field x_{brick_, names_}, r_{brick_, names_}, p_{brick_, names_}, ap_{brick_, names_};
  const Sum first_{brick_, names_, 100}, alpha_{brick_, names_, 200}, beta_{brick_, names_, 300};
};

// apps/hpcg/solve.cpp
class Hpcg final : public Steps {
 public:
  Hpcg(const GradientsSetup& setup, const int rank, const std::vector<Time>& times)
      : Steps(rank, setup.ranks, times), levels_(hpcg::make_levels(shape(setup), rank, false)) {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      stages_.push_back(
          std::make_unique<Stage>(*levels_[l], names_, static_cast<int>(l)));
    }
    points_ = static_cast<double>(brick_.owned().count());
  }
  void add(const int number) override {
    if (number == 0) return add_squares();
    add_cycle(0);
    loop({.brick = brick_, .calls = dot_once, .reads = {&r(), &z()}, .parts = &rz_});
    sum(rz_, brick_);
    loop({.brick = brick_, .calls = add_once, .reads = {&z()}, .writes = {&p_}, .after = &rz_});
    exchange(stages_[0]->grid, p_);
    loop({.brick = brick_, .calls = {0, 1, 0, 1, 0}, .reads_around = {&p_}, .writes = {&ap_},
          .parts = &pap_});
    sum(pap_, brick_);
    loop({.brick = brick_, .calls = add_once, .reads = {&p_}, .writes = {&x_}, .after = &pap_,
          .urgency = 0});
    loop({.brick = brick_, .calls = add_once, .reads = {&ap_}, .writes = {&r()}, .after = &pap_});
    add_squares();
  }

 private:
  struct Stage {
    Stage(const hpcg::Level& of, Names& names, const int tag)
        : level(of), grid(of.brick, names, tag), side(of.brick, names), even(of.brick, names),
          odd(of.brick, names), product(of.brick, names) {}
    const hpcg::Level& level;
    Grid grid;
    Field side, even, odd, product;
  };
  inline static const Calls add_once{0, 0, 1, 0, 0};
  inline static const Calls dot_once{0, 0, 0, 1, 0};

  [[nodiscard]] static sparse::BrickShape shape(const GradientsSetup& setup) {
    if (setup.n % hpcg::divisor != 0) {
      throw Error(fmt::format("n = {} is not a multiple of {}", setup.n, hpcg::divisor));
    }
    sparse::BrickShape shape{{}, sparse::nearly_cubic(setup.ranks), setup.blocks};
    for (std::size_t d = 0; d < 3; ++d) shape.points[d] = setup.n * shape.ranks[d];
    return shape;
  }
  [[nodiscard]] const Field& r() const noexcept { return stages_[0]->side; }
  [[nodiscard]] const Field& z() const noexcept { return stages_[0]->even; }

  void add_cycle(const std::size_t number) {
    const Stage& stage = *stages_[number];
    const int urgency = number == 0 ? 1 : coarse_urgency;
    loop({.brick = stage.level.brick, .calls = {0, 0, 0, 0, 1}, .writes = {&stage.even},
          .urgency = urgency});
    add_smooth(stage, stage.even, stage.odd, urgency);
    if (number + 1 == stages_.size()) return;
    const Stage& coarse = *stages_[number + 1];
    exchange(stage.grid, stage.odd);
    loop({.brick = stage.level.brick, .calls = {0, 1, 0, 0, 0}, .reads_around = {&stage.odd},
          .writes = {&stage.product}, .urgency = coarse_urgency});
    const Loop::Near& near = coarse.level.finer;
    loop({.brick = coarse.level.brick, .calls = {0, 0, 0, 0, 1},
          .reads_near = {{&stage.side, &near}, {&stage.product, &near}}, .writes = {&coarse.side},
          .urgency = coarse_urgency});
    add_cycle(number + 1);
    const Field& correction = number + 2 == stages_.size() ? coarse.odd : coarse.even;
    loop({.brick = stage.level.brick, .calls = {0, 0, 0, 0, 1},
          .reads_near = {{&correction, &stage.level.coarser}}, .writes = {&stage.odd},
          .urgency = coarse_urgency});
    add_smooth(stage, stage.odd, stage.even, urgency);
  }
  void add_smooth(const Stage& stage, const Field& from, const Field& to, const int urgency) {
    exchange(stage.grid, from);
    loop({.brick = stage.level.brick, .calls = {1, 0, 0, 0, 0}, .reads = {&stage.side},
          .reads_around = {&from}, .writes = {&to}, .urgency = urgency});
  }
  void add_squares() {
    loop({.brick = brick_, .calls = dot_once, .reads = {&r()}, .parts = &rr_, .urgency = 0});
    sum(rr_, brick_);
  }

  const std::vector<std::unique_ptr<hpcg::Level>> levels_;  // the finest first
  const Brick& brick_ = levels_.front()->brick;
  Names names_;
  std::vector<std::unique_ptr<Stage>> stages_;
  const Field x_{brick_, names_}, p_{brick_, names_}, ap_{brick_, names_};
  const Sum rz_{brick_, names_, 100}, pap_{brick_, names_, 200}, rr_{brick_, names_, 300};
};

class Gradients final : public Program {
 public:
  Gradients(const GradientsSetup& setup, const DurationOf& duration_of)
      : iterations_(setup.iterations), done_(static_cast<std::size_t>(setup.ranks), 0) {
    static constexpr std::array minife{"multiply", "add", "dot"};
    static constexpr std::array hpcg{"smooth", "multiply", "add", "dot", "fill"};
    if (setup.multigrid) {
      for (const char* const name : hpcg) times_.push_back(duration_of(name));
    } else {
      for (const char* const name : minife) times_.push_back(duration_of(name));
    }
    for (int rank = 0; rank < setup.ranks; ++rank) {
      if (setup.multigrid) {
        steps_.push_back(std::make_unique<Hpcg>(setup, rank, times_));
      } else {
        steps_.push_back(std::make_unique<MiniFe>(setup, rank, times_));
      }
    }
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    const auto index = static_cast<std::size_t>(rank);
    steps_[index]->into(batch);
    steps_[index]->add(done_[index]);
    return ++done_[index] <= iterations_;
  }

 private:
  const int iterations_;
  std::vector<Time> times_;
  std::vector<Kernel> kernels_{{"loop", 0}, {"send", 0}, {"receive", 0}, {"sum", 0}, {"round", 0}};
  std::vector<std::unique_ptr<Steps>> steps_;  // of each rank
  std::vector<int> done_;                      // calls of each rank
};

}  // namespace

std::unique_ptr<Program> make_gradients(const GradientsSetup& setup,
                                        const DurationOf& duration_of) {
  return std::make_unique<Gradients>(setup, duration_of);
}

}  // namespace imbrex::simulate
