// SPDX-License-Identifier: BSD-3-Clause
// Compute, all-to-all by blocks, compute: the tasks and messages of the two-dimensional transform
// of apps/fft, variants `messages` and `partial-receive` (overlapped.cpp), `blocking` and
// `partial-blocks` (blocking.cpp).
#include <fmt/format.h>

#include <vector>

#include "fft/parts.hpp"
#include "imbrex/error.hpp"
#include "simulate/programs/programs.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;
using fft::Range;

enum Kind : std::uint16_t { lines_kind, leave_kind, receive_kind };

class Exchange final : public Program {
 public:
  Exchange(const ExchangeSetup& setup, const DurationOf& duration_of)
      : setup_(setup),
        line_ns_(duration_of("line")),
        joined_(fft::joined_share(setup.n, setup.ranks)),
        chunks_(fft::cut(setup.n / setup.ranks, setup.chunks)),
        groups_(fft::cut(setup.n / setup.ranks, setup.parts)),
        sent_chunks_(setup.variant == ExchangeVariant::messages ? chunks_ : whole()),
        sent_groups_(by_groups() ? groups_ : whole()),
        steps_(static_cast<std::size_t>(setup.ranks), 0) {
    if (setup.n % setup.ranks != 0) {
      throw Error(fmt::format("n = {} is not a multiple of the {} ranks", setup.n, setup.ranks));
    }
    check_messages(static_cast<double>(sent_groups_.size()) *
                   static_cast<double>(sent_chunks_.size()));
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  // One call for the receives of each group that is sent, one for the computation before the
  // exchange, one for the sends of each group, and one for the computation after it.
  bool next(const int rank, Batch& batch) override {
    std::size_t& step = steps_[static_cast<std::size_t>(rank)];
    const std::size_t groups = sent_groups_.size();
    if (step < groups) {
      add_receives(step, batch);
    } else if (step == groups) {
      for (std::size_t k = 0; k < chunks_.size(); ++k) {
        add_lines(lines_ns(chunks_[k]), batch).out(computed(k));
      }
    } else if (step <= 2 * groups) {
      add_sends(rank, step - groups - 1, batch);
    } else if (setup_.variant == ExchangeVariant::partial_blocks) {
      add_pieces(batch);
    } else {
      for (std::size_t l = 0; l < groups_.size(); ++l) {
        add_lines(lines_ns(groups_[l]), batch).in(arrived(by_groups() ? l : 0));
      }
    }
    return ++step <= 2 * groups + 1;
  }

 private:
  [[nodiscard]] static std::uint64_t computed(const std::size_t chunk) noexcept {
    return 4 * chunk + 1;
  }
  // `number` is that of a group, in variant partial-blocks that of a rank.
  [[nodiscard]] static std::uint64_t arrived(const std::size_t number) noexcept {
    return 4 * number + 2;
  }
  // The lines of a group, as far as they come from a rank.
  [[nodiscard]] std::uint64_t piece(const std::size_t group, const int from) const noexcept {
    return 4 * (group * static_cast<std::size_t>(setup_.ranks) + static_cast<std::size_t>(from)) +
           3;
  }
  [[nodiscard]] std::vector<Range> whole() const { return {{0, setup_.n / setup_.ranks}}; }
  // Whether a group of lines can be computed as soon as its own points are here.
  [[nodiscard]] bool by_groups() const noexcept {
    return setup_.variant == ExchangeVariant::messages ||
           setup_.variant == ExchangeVariant::partial_receive;
  }
  [[nodiscard]] Time lines_ns(const Range& lines) const {
    return time_of(static_cast<double>(lines.size()) * static_cast<double>(line_ns_));
  }
  [[nodiscard]] static Builder add_lines(const Time duration, Batch& batch) {
    return Builder(batch, {.kernel = lines_kind, .duration = duration});
  }
  // All messages but the sends of variant messages belong to the library: MPI_Irecv and when(), or
  // the parts of a collective.
  [[nodiscard]] TaskPlan message(const Role role, const int peer, const std::size_t l,
                                 const std::size_t k) const {
    return {.kernel = role == Role::send ? leave_kind : receive_kind,
            .role = role,
            .by_library =
                role == Role::receive || setup_.variant != ExchangeVariant::messages,
            .priority = role == Role::send ? static_cast<int>(sent_groups_.size() - l) : 0,
            .peer = peer,
            .tag = static_cast<int>(l * sent_chunks_.size() + k),
            .bytes = sent_groups_[l].size() * sent_chunks_[k].size() * 16};
  }
  // Receives of a group come from all ranks at once: they are a set that no order binds.
  void add_receives(const std::size_t l, Batch& batch) const {
    const bool by_blocks = setup_.variant == ExchangeVariant::partial_blocks;
    for (std::size_t k = 0; k < sent_chunks_.size(); ++k) {
      for (int from = 0; from < setup_.ranks; ++from) {
        batch.add(message(Role::receive, from, l, k));
        batch.access(arrived(by_blocks ? static_cast<std::size_t>(from) : l),
                     AccessKind::inoutset);
      }
    }
  }
  void add_sends(const int rank, const std::size_t l, Batch& batch) const {
    for (std::size_t k = 0; k < sent_chunks_.size(); ++k) {
      for (int step = 1; step <= setup_.ranks; ++step) {
        Builder send(batch, message(Role::send, (rank + step) % setup_.ranks, l, k));
        const bool all = setup_.variant != ExchangeVariant::messages;
        for (std::size_t c = all ? 0 : k; c < (all ? chunks_.size() : k + 1); ++c) {
          send.in(computed(c));
        }
      }
    }
  }
  // The block of a rank is computed when it is here, group by group; what needs all blocks follows.
  void add_pieces(Batch& batch) const {
    for (std::size_t l = 0; l < groups_.size(); ++l) {
      const auto group_ns = static_cast<double>(lines_ns(groups_[l]));
      for (int from = 0; from < setup_.ranks; ++from) {
        add_lines(time_of((1 - joined_) * group_ns / setup_.ranks), batch)
            .in(arrived(static_cast<std::size_t>(from)))
            .out(piece(l, from));
      }
      Builder join = add_lines(time_of(joined_ * group_ns), batch).priority(1);
      for (int from = 0; from < setup_.ranks; ++from) join.in(piece(l, from));
    }
  }

  const ExchangeSetup setup_;
  const Time line_ns_;
  const double joined_;
  const std::vector<Range> chunks_, groups_;            // of lines
  const std::vector<Range> sent_chunks_, sent_groups_;  // in one message
  std::vector<Kernel> kernels_{{"lines", 0}, {"leave", 0}, {"receive", 0}};
  std::vector<std::size_t> steps_;          // of each rank: the next call
};

}  // namespace

std::unique_ptr<Program> make_exchange(const ExchangeSetup& setup, const DurationOf& duration_of) {
  return std::make_unique<Exchange>(setup, duration_of);
}

}  // namespace imbrex::simulate
