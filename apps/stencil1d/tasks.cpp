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

// Names what a task reads and writes: one byte for each part of each copy, and each ghost layer.
struct Names {
  explicit Names(std::size_t parts) : cells{std::vector<char>(parts), std::vector<char>(parts)} {}
  std::vector<char> cells[2];  // by copy, by part
  char ghosts[2][2] = {};      // by copy, by Side
};

class Graph {
 public:
  Graph(const Domain& domain, Field& field)
      : domain_(domain), field_(field), parts_(parts_of(domain)), names_(parts_.size()),
        border_(domain.priorities == Priorities::borders ? 100 : 0),
        core_(domain.priorities == Priorities::borders ? 1 : 0),
        send_(domain.priorities == Priorities::none ? 0 : 100) {}

  void spawn_step(int step) {
    const int copy = step & 1;
    for (const Side side : {left, right}) {
      if (domain_.has(side)) spawn_messages(step, side);
    }
    const std::size_t last = parts_.size() - 1;
    spawn_part(step, 0, names_.ghosts[copy][left], names_.cells[copy][1], border_);
    spawn_part(step, last, names_.ghosts[copy][right], names_.cells[copy][last - 1],
               border_);
    for (std::size_t core = 1; core < last; ++core) {
      spawn_part(step, core, names_.cells[copy][core - 1], names_.cells[copy][core + 1],
                 core_);
    }
  }

 private:
  void spawn_messages(int step, Side side) {
    const int copy = step & 1;
    const auto count = static_cast<int>(domain_.ghost);
    imbrex::task("receive").out(names_.ghosts[copy][side]).priority(border_).launch([=, this] {
      MPI_Recv(field_.ghosts(step, side), count, MPI_DOUBLE, domain_.neighbour[side],
               tag_of(step, side), domain_.comm, MPI_STATUS_IGNORE);
    });
    const std::size_t border = side == left ? 0 : parts_.size() - 1;
    imbrex::task("send").in(names_.cells[copy][border]).priority(send_).launch([=, this] {
      MPI_Send(field_.border(step, side), count, MPI_DOUBLE, domain_.neighbour[side],
               tag_of(step, other(side)), domain_.comm);
    });
  }

  // `before` and `after` name what is read on both sides of the part.
  void spawn_part(int step, std::size_t part, const char& before, const char& after,
                  int priority) {
    const int copy = step & 1;
    imbrex::task("sweep")
        .in(before, names_.cells[copy][part], after)
        .out(names_.cells[1 - copy][part])
        .priority(priority)
        .launch([=, this] {
          sweep(domain_, field_.cells(step), field_.cells(step + 1), parts_[part]);
        });
  }

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
