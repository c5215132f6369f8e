// SPDX-License-Identifier: BSD-3-Clause
// Tests of fft, run on 1, 2 and 4 ranks. Methodology: every rank runs the same tests in the same
// order; each variant's spectrum is compared with FFTW's transform of the whole field, on every
// grid of ranks.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>

#include "../../harness/program.hpp"
#include "../field.hpp"
#include "../variants.hpp"

namespace fft {
namespace {

struct Variant {
  const char* name;
  void (*run)(const Work& work);
};
constexpr Variant variants[] = {
    {"blocking", [](const Work& work) { (void)run_blocking(work); }},
    {"packed",
     [](const Work& work) {
       Work packed = work;
       packed.pack = true;
       (void)run_blocking(packed);
     }},
    {"test", &run_test},
    {"scatters", &run_scatters},
    {"partial-receive", &run_partial_receive},
    {"messages", &run_messages},
    {"partial", &run_partial},
};

// The memory of a transform.
struct Memory {
  explicit Memory(const Pipeline& pipeline) {
    for (int i = 0; i < pipeline.steps() + 2; ++i) all.push_back(allocate(pipeline.points()));
  }
  // The first two for packing.
  [[nodiscard]] Work work(Pipeline& pipeline, const Lines& lines) const {
    Work work{pipeline, lines, {}, false, {all[0].get(), all[1].get()}};
    for (std::size_t i = 2; i < all.size(); ++i) work.steps.push_back(all[i].get());
    return work;
  }
  std::vector<Points> all;
};

// visit(team, field) for each grid in each number of dimensions, n as small as can be and larger.
template <class Visit>
void on_every_grid(Visit&& visit) {
  const int ranks = apps::ranks_of_all();
  for (int rows = 1; rows <= ranks; ++rows) {
    if (ranks % rows != 0) continue;
    const tiled::Team team({rows, ranks / rows});
    for (const int dims : {2, 3}) {
      if (dims == 2 && rows != 1) continue;
      for (const std::int64_t n : {ranks, 3 * ranks, 8 * ranks}) {
        SCOPED_TRACE(testing::Message() << dims << "-D, n " << n << ", rows of ranks " << rows);
        visit(team, Field{Field::Kind::random, dims, n, 5});
      }
    }
  }
}

TEST(pipeline, every_point_is_on_one_rank_and_every_line_in_one_part) {
  on_every_grid([](const tiled::Team& team, const Field& field) {
    const Pipeline pipeline(team, field.dims, field.n, {.parts = 5, .chunks = 3}, false);
    for (const Layout* layout : {&pipeline.input(), &pipeline.output()}) {
      double sums[2] = {};  // of points, of their numbers
      for_each_point(*layout, [&](std::int64_t, std::int64_t x, std::int64_t y, std::int64_t z) {
        sums[0] += 1;
        sums[1] += static_cast<double>((z * field.n + y) * field.n + x);
      });
      MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      EXPECT_EQ(sums[0], field.points());
      EXPECT_EQ(sums[1], field.points() * (field.points() - 1) / 2);
    }
    for (int step = 0; step < pipeline.steps(); ++step) {
      std::int64_t next = 0;
      for (const Part& part : pipeline.parts(step)) {
        EXPECT_EQ(part.lines.first, next);
        EXPECT_GT(part.lines.size(), 0);
        next = part.lines.last;
      }
      EXPECT_EQ(next, pipeline.lines());
    }
  });
}

TEST(variants, find_the_spectrum_of_the_whole_and_the_way_back) {
  on_every_grid([](const tiled::Team& team, const Field& field) {
    Progress silent(0, "lines", 0);
    const Lines lines(field.n, Planning::estimate, 0, silent);
    for (const Cuts& cuts : {Cuts{1, 1}, Cuts{3, 2}, Cuts{64, 64}}) {
      Pipeline pipeline(team, field.dims, field.n, cuts, false);
      Pipeline back(team, field.dims, field.n, cuts, true);
      const Memory memory(pipeline);
      const Work work = memory.work(pipeline, lines);
      for (const Variant& variant : variants) {
        SCOPED_TRACE(testing::Message() << variant.name << ", " << cuts.parts << " parts");
        fill(field, pipeline.input(), work.steps.front());
        variant.run(work);
        const Errors errors = check(field, pipeline.output(), work.steps.back(), false);
        ASSERT_TRUE(errors.whole.has_value());
        EXPECT_LT(errors.largest(), error_limit);

        Complex* const spectrum = work.steps.back();
        for (std::int64_t i = 0; i < pipeline.points(); ++i) spectrum[i] = std::conj(spectrum[i]);
        Work return_work{back, lines, {work.steps.rbegin(), work.steps.rend()}, false, work.packed};
        variant.run(return_work);
        EXPECT_LT(check_round_trip(field, pipeline.input(), return_work.steps.back()), error_limit);
      }
    }
  });
}

TEST(variants, move_each_point_to_its_place_while_lines_sleep) {
  on_every_grid([](const tiled::Team& team, Field field) {
    field.kind = Field::Kind::numbers;
    Progress silent(0, "lines", 0);
    const Lines lines(field.n, Planning::estimate, 1e-6, silent);
    Pipeline pipeline(team, field.dims, field.n, {.parts = 4, .chunks = 4}, false);
    const Memory memory(pipeline);
    const Work work = memory.work(pipeline, lines);
    for (const Variant& variant : variants) {
      SCOPED_TRACE(variant.name);
      fill(field, pipeline.input(), work.steps.front());
      variant.run(work);
      EXPECT_EQ(check(field, pipeline.output(), work.steps.back(), true).moved, 0);
    }
  });
}

TEST(pieces, joined_are_the_spectrum_of_the_whole) {
  on_every_grid([](const tiled::Team& team, const Field& field) {
    if (field.dims != 2) return;
    Progress silent(0, "lines", 0);
    const Lines lines(field.n, Planning::estimate, 0, silent);
    const Pieces pieces(field.n, apps::ranks_of_all(), Planning::estimate, 0, silent);
    for (const int parts : {1, 3, 64}) {
      Pipeline pipeline(team, 2, field.n, {.parts = parts, .chunks = 1}, false);
      const Memory memory(pipeline);
      const Work work = memory.work(pipeline, lines);
      fill(field, pipeline.dealt_input(), work.steps.front());
      run_partial_blocks(work, pieces);
      EXPECT_LT(check(field, pipeline.output(), work.steps.back(), false).largest(), error_limit);
    }
  });
}

TEST(pieces, move_each_point_to_its_place_while_lines_sleep) {
  const tiled::Team team({1, apps::ranks_of_all()});
  const Field field{Field::Kind::numbers, 2, 8 * apps::ranks_of_all(), 1};
  Progress silent(0, "lines", 0);
  const Lines lines(field.n, Planning::estimate, 1e-6, silent);
  const Pieces pieces(field.n, apps::ranks_of_all(), Planning::estimate, 1e-6, silent);
  Pipeline pipeline(team, 2, field.n, {.parts = 4, .chunks = 4}, false);
  const Memory memory(pipeline);
  const Work work = memory.work(pipeline, lines);
  fill(field, pipeline.input(), work.steps.front());
  run_partial_blocks(work, pieces);
  EXPECT_EQ(check(field, pipeline.output(), work.steps.back(), true).moved, 0);
}

TEST(checks, see_a_wrong_point) {
  const tiled::Team team({1, apps::ranks_of_all()});
  for (const Field::Kind kind : {Field::Kind::random, Field::Kind::wave}) {
    const Field field{kind, 2, 16 * apps::ranks_of_all(), 1};
    Progress silent(0, "lines", 0);
    const Lines lines(field.n, Planning::estimate, 0, silent);
    Pipeline pipeline(team, 2, field.n, {}, false);
    const Memory memory(pipeline);
    const Work work = memory.work(pipeline, lines);
    fill(field, pipeline.input(), work.steps.front());
    run_messages(work);
    EXPECT_LT(check(field, pipeline.output(), work.steps.back(), false).largest(), error_limit);
    const double typical = field.points();
    if (team.rank() == apps::ranks_of_all() - 1) work.steps.back()[1] += 1e-6 * typical;
    const Errors errors = check(field, pipeline.output(), work.steps.back(), false);
    EXPECT_GT(*errors.whole, error_limit);
    EXPECT_EQ(errors.wave.has_value(), kind == Field::Kind::wave);
    if (errors.wave) {
      EXPECT_GT(*errors.wave, error_limit);
    }
    work.steps.back()[1] = std::nan("");
    EXPECT_FALSE(check(field, pipeline.output(), work.steps.back(), false).largest() <=
                 error_limit);
  }
}

TEST(library, finds_the_spectrum_of_the_whole) {
  if (!Library::is_there()) GTEST_SKIP() << "built without FFTW's library for MPI";
  for (const int dims : {2, 3}) {
    const Field field{Field::Kind::random, dims, 4 * apps::ranks_of_all(), 2};
    Library library(dims, field.n, Planning::estimate);
    fill(field, library.input(), library.points());
    library.run();
    EXPECT_LT(check(field, library.output(), library.points(), false).largest(), error_limit);
  }
}

TEST(check, knows_the_spectrum_of_a_wave) {
  const tiled::Team team({1, apps::ranks_of_all()});
  const Field field{Field::Kind::wave, 2, 8 * apps::ranks_of_all(), 1};
  Progress silent(0, "lines", 0);
  const Lines lines(field.n, Planning::estimate, 0, silent);
  Pipeline pipeline(team, 2, field.n, {}, false);
  const Memory memory(pipeline);
  const Work work = memory.work(pipeline, lines);
  fill(field, pipeline.input(), work.steps.front());
  run_messages(work);
  const Errors errors = check(field, pipeline.output(), work.steps.back(), false);
  ASSERT_TRUE(errors.wave.has_value());
  EXPECT_LT(*errors.wave, error_limit);
}

}  // namespace
}  // namespace fft
