// SPDX-License-Identifier: BSD-3-Clause
// The variants that are tasks: with yields, and with accesses and priorities.
#include <imbrex/imbrex.hpp>

#include <vector>

#include "variants.hpp"

namespace stencil1d {

void run_yield(const Domain& domain, Field& field, const int steps) {
  const std::vector<Part> parts = parts_of(domain);
  for (int step = 0; step < steps; ++step) {
    const double* const from = field.cells(step);
    double* const to = field.cells(step + 1);
    Messages messages(domain, field, step);
    imbrex::finish([&] {
      for (const Side side : {left, right}) {
        const Part& border = side == left ? parts.front() : parts.back();
        imbrex::task("border").priority(100).launch([&, from, to, side] {
          for (int arrived = domain.has(side) ? 0 : 1; arrived == 0;) {
            MPI_Test(&messages.receive[side], &arrived, MPI_STATUS_IGNORE);
            if (arrived == 0) imbrex::yield();
          }
          sweep(domain, from, to, border);
        });
      }
      for (std::size_t core = 1; core + 1 < parts.size(); ++core) {
        imbrex::task("core").priority(1).launch([=, &parts, &domain] {
          sweep(domain, from, to, parts[core]);
        });
      }
    });
    MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
  }
}

namespace {

class Graph {
 public:
  Graph(const Domain& domain, Field& field)
      : domain_(domain), field_(field), parts_(parts_of(domain)), names_(parts_.size()),
        border_(domain.priorities == Priorities::borders ? 100 : 0),
        core_(domain.priorities == Priorities::borders ? 1 : 0),
        send_(domain.priorities == Priorities::none ? 0 : 100) {}

  void spawn_step(int step) { in_step(domain_, step, names_, *this); }

  // Functions that in_step() calls: each spawns a task.
  void receive(int step, Side side, char& written) {
    imbrex::task("receive").out(written).priority(border_).launch([=, this] {
      MPI_Recv(field_.ghosts(step, side), count(), MPI_DOUBLE, domain_.neighbour(side),
               tag_of(step, side), domain_.comm, MPI_STATUS_IGNORE);
    });
  }
  void send(int step, Side side, const char& read) {
    imbrex::task("send").in(read).priority(send_).launch([=, this] {
      MPI_Send(field_.border(step, side), count(), MPI_DOUBLE, domain_.neighbour(side),
               tag_of(step, other(side)), domain_.comm);
    });
  }
  void sweep(int step, std::size_t part, const char& before, const char& here, const char& after,
             char& written) {
    const bool is_border = part == 0 || part + 1 == parts_.size();
    imbrex::task("sweep")
        .in(before, here, after)
        .out(written)
        .priority(is_border ? border_ : core_)
        .launch([=, this] {
          stencil1d::sweep(domain_, field_.cells(step), field_.cells(step + 1), parts_[part]);
        });
  }

 private:
  [[nodiscard]] int count() const noexcept { return static_cast<int>(domain_.ghost); }

  const Domain& domain_;
  Field& field_;
  const std::vector<Part> parts_;
  Names names_;
  const int border_;  // priorities
  const int core_;
  const int send_;
};

}  // namespace

void run_tasks(const Domain& domain, Field& field, const int steps) {
  Graph graph(domain, field);
  imbrex::finish([&] {
    for (int step = 0; step < steps; ++step) graph.spawn_step(step);
  });
}

}  // namespace stencil1d
