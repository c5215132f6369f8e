// SPDX-License-Identifier: BSD-3-Clause
// Compute, all-to-all by blocks, compute: the tasks and messages of the two-dimensional transform
// of apps/fft, variant `messages` (overlapped.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/programs/programs.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;

enum Kind : std::uint16_t { lines_kind, leave_kind, receive_kind };

// The lengths of `count` lines in at most `parts` ranges, as cut() of apps/fft.
[[nodiscard]] std::vector<std::int64_t> cut(const std::int64_t count, const int parts) {
  const std::int64_t number = std::min<std::int64_t>(count, parts);
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < number; ++i) {
    lengths.push_back(count * (i + 1) / number - count * i / number);
  }
  return lengths;
}

class Exchange final : public Program {
 public:
  Exchange(const ExchangeSetup& setup, const DurationOf& duration_of)
      : setup_(setup),
        line_ns_(duration_of("line")),
        chunks_(cut(setup.n / setup.ranks, setup.chunks)),
        groups_(cut(setup.n / setup.ranks, setup.parts)),
        steps_(static_cast<std::size_t>(setup.ranks), 0) {
    if (setup.n % setup.ranks != 0) {
      throw Error(fmt::format("n = {} is not a multiple of the {} ranks", setup.n, setup.ranks));
    }
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  // One call for the receives of each group, one for the computation before the exchange, one for
  // the sends of each group, and one for the computation after it.
  bool next(const int rank, Batch& batch) override {
    std::size_t& step = steps_[static_cast<std::size_t>(rank)];
    const std::size_t groups = groups_.size();
    if (step < groups) {
      add_receives(step, batch);
    } else if (step == groups) {
      for (std::size_t k = 0; k < chunks_.size(); ++k) {
        add_lines(chunks_[k], batch);
        batch.access(computed(k), AccessKind::out);
      }
    } else if (step <= 2 * groups) {
      add_sends(rank, step - groups - 1, batch);
    } else {
      for (std::size_t l = 0; l < groups; ++l) {
        add_lines(groups_[l], batch);
        batch.access(arrived(l), AccessKind::in);
      }
    }
    return ++step <= 2 * groups + 1;
  }

 private:
  [[nodiscard]] static std::uint64_t computed(const std::size_t chunk) noexcept {
    return 2 * chunk + 1;
  }
  [[nodiscard]] static std::uint64_t arrived(const std::size_t group) noexcept {
    return 2 * group + 2;
  }
  void add_lines(const std::int64_t lines, Batch& batch) const {
    batch.add({.kernel = lines_kind, .duration = lines * line_ns_});
  }
  [[nodiscard]] TaskPlan message(const Role role, const int peer, const std::size_t l,
                                 const std::size_t k) const {
    return {.kernel = role == Role::send ? leave_kind : receive_kind,
            .role = role,
            .by_library = role == Role::receive,  // MPI_Irecv and when()
            .priority = role == Role::send ? static_cast<int>(groups_.size() - l) : 0,
            .peer = peer,
            .tag = static_cast<int>(l * chunks_.size() + k),
            .bytes = groups_[l] * chunks_[k] * 16};
  }
  // Receives of a group come from all ranks at once: they are a set that no order binds.
  void add_receives(const std::size_t l, Batch& batch) const {
    for (std::size_t k = 0; k < chunks_.size(); ++k) {
      for (int from = 0; from < setup_.ranks; ++from) {
        batch.add(message(Role::receive, from, l, k));
        batch.access(arrived(l), AccessKind::inoutset);
      }
    }
  }
  void add_sends(const int rank, const std::size_t l, Batch& batch) const {
    for (std::size_t k = 0; k < chunks_.size(); ++k) {
      for (int step = 1; step <= setup_.ranks; ++step) {
        batch.add(message(Role::send, (rank + step) % setup_.ranks, l, k));
        batch.access(computed(k), AccessKind::in);
      }
    }
  }

  const ExchangeSetup setup_;
  const Time line_ns_;
  const std::vector<std::int64_t> chunks_;  // lines of each
  const std::vector<std::int64_t> groups_;
  std::vector<Kernel> kernels_{{"lines", 0}, {"leave", 0}, {"receive", 0}};
  std::vector<std::size_t> steps_;          // of each rank: the next call
};

}  // namespace

std::unique_ptr<Program> make_exchange(const ExchangeSetup& setup, const DurationOf& duration_of) {
  return std::make_unique<Exchange>(setup, duration_of);
}

}  // namespace imbrex::simulate
