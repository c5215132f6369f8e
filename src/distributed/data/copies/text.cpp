// SPDX-License-Identifier: BSD-3-Clause
// The operations in flight, as text: trees as far as this rank knows them, and the waits.
#include <fmt/format.h>

#include <iterator>

#include "distributed/carrier/errors.hpp"
#include "distributed/data/copies/protocol.hpp"

namespace imbrex::distributed {

std::string what_of(const std::exception_ptr& error) {
  constexpr std::string_view prefix = "imbrex: ";
  std::string text = detail::thrown_text(error);
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

namespace {

// Adds lines up to a limit.
class Lines {
 public:
  Lines(std::string& text, const std::size_t most) noexcept : text_(text), left_(most) {}
  template <class... Values>
  void add(const fmt::format_string<Values...> format, Values&&... values) {
    if (left_ == 0) return;
    --left_;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

 private:
  std::string& text_;
  std::size_t left_;
};

[[nodiscard]] std::string state_of(const Child& child) {
  const std::size_t all = child.passing.segments;
  switch (child.state) {
    case Child::State::waits:
      return "waits until fewer copies are in flight to it";
    case Child::State::offered:
      return "has not answered yet";
    case Child::State::postponed:
      return "has inserted no reader yet, and had no room: the sender has taken the list back";
    case Child::State::accepted:
      return fmt::format("{} of {} segments have left{}", child.sent, all,
                         child.started < child.passing.here || child.passing.here == all
                             ? "" : ", the next has not arrived here");
    case Child::State::failing:
    case Child::State::stopping:
      return "has failed";
    case Child::State::done:
      return "has left";
  }
  return "";
}

// Draws the recipients of a rank, each level indented further.
void draw(const TreeKind kind, const std::span<const Stop> list, const std::string& margin,
          Lines& lines) {
  for (const Branch& one : branches(kind, list)) {
    lines.add("{}`- rank {}", margin, std::uint32_t{one.to.rank});
    draw(kind, one.rest, margin + "   ", lines);
  }
}

void draw(const Passing& passing, Lines& lines) {
  for (const auto& child : passing.children) {
    lines.add("    `- rank {}: {}", child->rank(), state_of(*child));
    if (child->state != Child::State::postponed) {
      draw(passing.kind, child->list, "       ", lines);
    }
  }
}

[[nodiscard]] std::string bytes_text(const Passing& passing) {
  return passing.segments == 1
             ? fmt::format("{} bytes", passing.bytes)
             : fmt::format("{} bytes in {} segments", passing.bytes, passing.segments);
}

}  // namespace

std::string Broadcasts::Protocol::text_of(const DatumName& datum) const {
  const std::string text = datum.datum == decision_datum ? "datum \"decision\""
                                                         : fmt::format("datum {}", datum.datum);
  const auto found = spaces_.find(datum.space);
  if (found == spaces_.end() || found->second.name.empty()) {
    return fmt::format("{} of space {:#x}", text, datum.space);
  }
  return fmt::format("{} of space \"{}\"", text, found->second.name);
}

std::string Broadcasts::Protocol::text_of(const Arrival& arrival) const {
  const Passing& passing = arrival.passing;
  const std::string from =
      fmt::format("{} from rank {} (transfer {})", text_of(arrival.name.datum), arrival.name.root,
                  arrival.name.ticket);
  const int own = transfers_.rank();
  const char* const without_reader =
      arrival.has_reader ? "" : ", where no reader has been inserted";
  switch (arrival.stage) {
    case Arrival::Stage::awaited:
      return fmt::format("rank {} waits for {}: nothing has arrived", own, from);
    case Arrival::Stage::postponed:
      return fmt::format("{} waits on rank {} for a reader on rank {}", from, arrival.parent, own);
    case Arrival::Stage::landing:
      return fmt::format("{}: {} of {} segments have arrived from rank {} on rank {}{}", from,
                         passing.here, passing.segments, arrival.parent, own, without_reader);
    case Arrival::Stage::here:
      return fmt::format("{} has arrived on rank {}{}", from, own, without_reader);
    case Arrival::Stage::failed:
      return fmt::format("{} cannot arrive on rank {}: {}", from, own, passing.why);
  }
  return from;
}

template <class Wanted>
void Broadcasts::Protocol::describe_those(const std::size_t lines_max, std::string& text,
                                          const Wanted wanted) const {
  Lines lines(text, lines_max);
  for (const Passing* const one : roots_) {
    if (!wanted(one->datum.space)) continue;
    lines.add("  rank {} sends {}, {}, to a tree ({}):", one->root, text_of(one->datum),
              bytes_text(*one), name_of(one->kind));
    draw(*one, lines);
  }
  for (const auto& [name, arrival] : arrivals_) {
    if (!wanted(name.datum.space)) continue;
    lines.add("  {}", text_of(*arrival));
    draw(arrival->passing, lines);
  }
}

void Broadcasts::Protocol::describe_locked(const std::uint64_t space, const std::size_t lines_max,
                                           std::string& text) const {
  describe_those(lines_max, text, [space](const std::uint64_t one) { return one == space; });
}

// The text of a space has two spaces before each line; the report has its own margin.
void Broadcasts::Protocol::describe(const std::size_t lines_max, std::string& text) const {
  std::string all;
  if (const std::lock_guard guard(mutex_); true) {
    describe_those(lines_max, all, [this](const std::uint64_t one) IMBREX_LOCKS_NOT_SEEN {
      const auto found = spaces_.find(one);
      return found != spaces_.end() && found->second.state == Space::State::open;
    });
  }
  constexpr std::size_t margin = 2;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = all.find('\n', at) + 1;
    text.append(all, at + margin, end - at - margin);
    at = end;
  }
}

void Broadcasts::Protocol::describe(const std::uint64_t space, const std::size_t lines_max,
                                    std::string& text) const {
  const std::lock_guard guard(mutex_);
  describe_locked(space, lines_max, text);
}

}  // namespace imbrex::distributed
