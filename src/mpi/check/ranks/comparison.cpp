// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/ranks/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace imbrex::mpi::check {

std::string Comparison::begin(const int rank, const Begun& begun) {
  ++ends_[static_cast<std::size_t>(rank)].begun;
  if (has_finding_) return "";
  Round& round = rounds_[begun.number];
  round.all.push_back({rank, begun});
  const bool learns = begun.unordered && !round.unordered;
  round.unordered = round.unordered || begun.unordered;
  std::string finding = compare(round, learns ? 1 : round.all.size() - 1);
  if (finding.empty()) finding = look_for_end();
  if (!has_finding_) forget_old_rounds();
  return finding;
}

std::string Comparison::set_unordered(const std::uint64_t number) {
  if (has_finding_ || number < first_kept_) return "";
  Round& round = rounds_[number];
  round.unordered = true;
  return compare(round, 1);
}

std::string Comparison::end(const int rank, const End& end) {
  Report& report = ends_[static_cast<std::size_t>(rank)];
  report.is_known = true;
  report.total = end.total;
  report.freed = end.freed;
  return has_finding_ ? "" : look_for_end();
}

std::string Comparison::end_others() {
  for (Report& report : ends_) report.is_known = true;
  return has_finding_ ? "" : look_for_end();
}

bool Comparison::is_over() const noexcept {
  return std::ranges::all_of(
      ends_, [](const Report& it) { return it.is_known && it.begun == it.total; });
}

// Compares the entries from `first` on with the first one of the round: entries equal to it are
// equal.
std::string Comparison::compare(const Round& round, const std::size_t first) {
  for (std::size_t i = std::max<std::size_t>(first, 1); i < round.all.size(); ++i) {
    const One* one = &round.all.front();
    const One* other = &round.all[i];
    const std::string words = difference(one->begun, other->begun, round.unordered);
    if (words.empty()) continue;
    if (one->rank > other->rank) std::swap(one, other);
    return keep_finding(fmt::format(
        "ranks disagree on collective {} of {}:\n"
        "imbrex:   rank {}: {}\n"
        "imbrex:   rank {}: {}\n"
        "imbrex:   They differ in: {}. {}",
        one->begun.number, one->begun.comm, one->rank, describe(one->begun), other->rank,
        describe(other->begun), words, advise(one->begun, other->begun)));
  }
  return "";
}

// Finds a rank that begins no more, and has begun fewer than another.
std::string Comparison::look_for_end() {
  for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
    const Report& end = ends_[rank];
    if (!end.is_known) continue;
    const auto next = rounds_.upper_bound(end.total);
    if (next == rounds_.end() || next->second.all.empty()) continue;
    const One& one = next->second.all.front();
    return keep_finding(fmt::format(
        "a rank has begun fewer collectives than another rank on {}:\n"
        "imbrex:   rank {}: {}, its collective {}\n"
        "imbrex:   rank {}: {} in all, and it {}\n"
        "imbrex:   All ranks must call the same collectives: see that each rank comes to this one",
        one.begun.comm, one.rank, describe(one.begun), one.begun.number, rank, end.total,
        end.freed ? "has freed the communicator" : "is in MPI_Finalize"));
  }
  return "";
}

void Comparison::forget_old_rounds() {
  while (rounds_.size() > rounds_kept &&
         std::cmp_equal(rounds_.begin()->second.all.size(), size_)) {
    first_kept_ = rounds_.begin()->first + 1;
    rounds_.erase(rounds_.begin());
  }
}

std::string Comparison::keep_finding(std::string finding) {
  has_finding_ = true;
  rounds_.clear();
  return finding;
}

}  // namespace imbrex::mpi::check
