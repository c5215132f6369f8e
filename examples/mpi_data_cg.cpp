// SPDX-License-Identifier: BSD-3-Clause
// A conjugate gradient over data with owners: a loop that is planned once, with sums over all
// ranks, until it has converged. Each rank has a part of each vector. The matrix has 2.1 on its
// diagonal and -1 beside it, in a ring.
#include "imbrex/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "imbrex/imbrex.hpp"

using Values = imbrex::Data<double>;
using In = imbrex::View<const double>;
using Out = imbrex::View<double>;
constexpr std::size_t points = 50;  // of a rank

double right_side(int rank, std::size_t k) { return double((rank * points + k) % 7); }

// One element of the matrix times `v`; both neighbours have left the ends of their parts.
double product(In left, In right, In v, std::size_t k) {
  const double before = k > 0 ? v[k - 1] : left[1];
  const double after = k + 1 < points ? v[k + 1] : right[0];
  return 2.1 * v[k] - before - after;
}
void keep_ends(Out v, Out ends) {
  ends[0] = v[0];
  ends[1] = v[points - 1];
}

class Solver {
 public:
  explicit Solver(imbrex::Space& its_space) : space(its_space) {
    for (int rank = 0; rank < space.size(); ++rank) {
      for (auto* const vector : {&x, &r, &p, &q}) {
        vector->push_back(space.data<double>(rank, points));
      }
      ends.push_back(space.data<double>(rank, 2));
    }
    for (auto* const number : {&rr, &next_rr, &pq, &error}) *number = space.data<double>(0, 1);
  }

  void begin() {
    for (int i = 0; i < space.size(); ++i) {
      space.task("begin").out(r[of(i)], p[of(i)], ends[of(i)]).reduce(rr, imbrex::op::sum).launch(
          [i](Out residual, Out direction, Out its_ends, Out sum) {
            for (std::size_t k = 0; k < points; ++k) {
              residual[k] = direction[k] = right_side(i, k);
              sum[0] += residual[k] * residual[k];
            }
            keep_ends(direction, its_ends);
          });
    }
  }

  void solve() {
    space.iterate(1000, [&](std::int64_t) {
      space.task("clear").out(pq, next_rr).launch([](Out a, Out b) { a[0] = b[0] = 0; });
      for (int i = 0; i < space.size(); ++i) {
        space.task("multiply").in(ends[of(i - 1)], ends[of(i + 1)], p[of(i)]).out(q[of(i)])
            .reduce(pq, imbrex::op::sum).launch([](In left, In right, In v, Out to, Out sum) {
              for (std::size_t k = 0; k < points; ++k) {
                to[k] = product(left, right, v, k);
                sum[0] += v[k] * to[k];
              }
            });
      }
      for (int i = 0; i < space.size(); ++i) {
        space.task("step").in(rr, pq, p[of(i)], q[of(i)]).inout(x[of(i)], r[of(i)])
            .reduce(next_rr, imbrex::op::sum).launch(
                [](In old, In slope, In v, In change, Out solution, Out residual, Out sum) {
                  const double length = old[0] / slope[0];
                  for (std::size_t k = 0; k < points; ++k) {
                    solution[k] += length * v[k];
                    residual[k] -= length * change[k];
                    sum[0] += residual[k] * residual[k];
                  }
                });
      }
      space.task("test").in(next_rr).on(0).decides().launch([this](std::int64_t i, In now) {
        iterations = i + 1;
        if (now[0] < 1e-20) imbrex::stop_iterating();  // on all ranks
      });
      for (int i = 0; i < space.size(); ++i) {
        space.task("turn").in(next_rr, rr, r[of(i)]).inout(p[of(i)]).out(ends[of(i)]).launch(
            [](In now, In old, In residual, Out v, Out its_ends) {
              for (std::size_t k = 0; k < points; ++k) {
                v[k] = residual[k] + now[0] / old[0] * v[k];
              }
              keep_ends(v, its_ends);
            });
      }
      space.task("keep").in(next_rr).out(rr).launch([](In now, Out old) { old[0] = now[0]; });
    });
  }

  // The largest difference to the right side comes to rank 0.
  void check() {
    for (int i = 0; i < space.size(); ++i) {
      space.task("ends").inout(x[of(i)]).out(ends[of(i)]).launch(keep_ends);
    }
    for (int i = 0; i < space.size(); ++i) {
      space.task("check").in(ends[of(i - 1)], ends[of(i + 1)], x[of(i)])
          .reduce(error, imbrex::op::max).on(i).launch([i](In left, In right, In v, Out most) {
            for (std::size_t k = 0; k < points; ++k) {
              const double wrong = std::abs(product(left, right, v, k) - right_side(i, k));
              most[0] = std::max(most[0], wrong);
            }
          });
    }
    space.flush(error);
    space.finish();
  }

  std::int64_t iterations = 0;  // rank 0
  Values error;

 private:
  std::size_t of(int rank) const { return std::size_t((rank + space.size()) % space.size()); }

  imbrex::Space& space;
  std::vector<Values> x, r, p, q, ends;
  Values rr, next_rr, pq;
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = true;
  {
    imbrex::Space space(MPI_COMM_WORLD);
    Solver solver(space);
    solver.begin();
    solver.solve();
    solver.check();
    if (space.rank() == 0) {
      right = solver.iterations < 1000 && solver.error.view()[0] < 1e-8;
      std::printf("%s after %d iterations\n", right ? "solved" : "wrong", int(solver.iterations));
    }
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
