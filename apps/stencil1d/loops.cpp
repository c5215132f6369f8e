// SPDX-License-Identifier: BSD-3-Clause
// The variants that are loops: blocking, bulk-synchronous, and split.
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

#include "variants.hpp"

namespace stencil1d {

Messages::Messages(const Domain& domain, Field& field, const int step) {
  const auto count = static_cast<int>(domain.ghost);
  for (const Side side : {left, right}) {
    if (!domain.has(side)) continue;
    MPI_Irecv(field.ghosts(step, side), count, MPI_DOUBLE, domain.neighbour(side),
              tag_of(step, side), domain.comm, &receive[side]);
  }
  for (const Side side : {left, right}) {
    if (!domain.has(side)) continue;
    MPI_Isend(field.border(step, side), count, MPI_DOUBLE, domain.neighbour(side),
              tag_of(step, other(side)), domain.comm, &send[side]);
  }
}

void run_messages(const Domain& domain, Field& field, const int steps) {
  for (int step = 0; step < steps; ++step) {
    Messages messages(domain, field, step);
    MPI_Waitall(2, messages.receive, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
  }
}

void run_block(const Domain& domain, Field& field, const int steps) {
  const std::vector<Part> parts = parts_of(domain);
  for (int step = 0; step < steps; ++step) {
    const double* const from = field.cells(step);
    double* const to = field.cells(step + 1);
    Messages messages(domain, field, step);
    MPI_Waitall(2, messages.receive, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
    imbrex::finish([&] {
      for (const Part& part : parts) {
        imbrex::task("part").launch([=, &part, &domain] { sweep(domain, from, to, part); });
      }
    });
  }
}

void run_bulk(const Domain& domain, Field& field, const int steps) {
  const std::vector<Part> parts = parts_of(domain);
  for (int step = 0; step < steps; ++step) {
    const double* const from = field.cells(step);
    double* const to = field.cells(step + 1);
    Messages messages(domain, field, step);
    imbrex::finish([&] {
      for (std::size_t core = 1; core + 1 < parts.size(); ++core) {
        imbrex::task("core").launch([=, &parts, &domain] {
          sweep(domain, from, to, parts[core]);
        });
      }
    });
    MPI_Waitall(2, messages.receive, MPI_STATUSES_IGNORE);
    imbrex::finish([&] {
      for (const Part* const border : {&parts.front(), &parts.back()}) {
        imbrex::task("border").launch([=, &domain] { sweep(domain, from, to, *border); });
      }
    });
    MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
  }
}

#ifndef IMBREX_SERIAL
namespace {

// The rest of one step. Thread safety: any task.
class Step {
 public:
  Step(const Domain& domain, Messages& messages, std::size_t parts)
      : domain_(domain), messages_(messages), last_(parts - 1) {}

  static constexpr std::size_t nothing = SIZE_MAX;

  // The next part to compute; `nothing`: ask again, or, if over(), it was the last.
  [[nodiscard]] std::size_t pick() {
    const std::lock_guard guard(lock_);
    for (const Side side : {left, right}) {
      if (!border_open_[side]) continue;
      int arrived = 1;
      if (domain_.has(side)) {
        MPI_Test(&messages_.receive[side], &arrived, MPI_STATUS_IGNORE);  // never suspends
      }
      if (arrived == 0) continue;
      border_open_[side] = false;
      return side == left ? 0 : last_;
    }
    return next_ < last_ ? next_++ : nothing;
  }
  [[nodiscard]] bool over() {
    const std::lock_guard guard(lock_);
    return next_ == last_ && !border_open_[left] && !border_open_[right];
  }

 private:
  const Domain& domain_;
  Messages& messages_;
  const std::size_t last_;
  std::mutex lock_;  // guards the two below, and the requests
  std::size_t next_ = 1;
  bool border_open_[2] = {true, true};
};

}  // namespace

void run_split(const Domain& domain, Field& field, const int steps) {
  const std::vector<Part> parts = parts_of(domain);
  for (int step = 0; step < steps; ++step) {
    const double* const from = field.cells(step);
    double* const to = field.cells(step + 1);
    Messages messages(domain, field, step);
    Step work(domain, messages, parts.size());
    imbrex::finish([&] {
      for (int worker = 0; worker < std::max(1, imbrex::worker_count()); ++worker) {
        imbrex::task("share of the loop").launch([&, from, to] {
          while (!work.over()) {
            const std::size_t part = work.pick();
            if (part != Step::nothing) sweep(domain, from, to, parts[part]);
          }
        });
      }
    });
    MPI_Waitall(2, messages.send, MPI_STATUSES_IGNORE);
  }
}
#endif

}  // namespace stencil1d
