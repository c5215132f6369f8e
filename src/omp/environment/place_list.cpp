// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/place_list.hpp"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

namespace imbrex::omp {

namespace {

constexpr long places_max = 65536;

// Takes tokens from the front of a text; spaces may stand before each.
class Reader {
 public:
  explicit Reader(const std::string_view text) noexcept : rest_(text) {}

  [[nodiscard]] bool at_end() noexcept {
    skip_spaces();
    return rest_.empty();
  }
  [[nodiscard]] bool take(const char wanted) noexcept {
    skip_spaces();
    const bool found = rest_.starts_with(wanted);
    if (found) rest_.remove_prefix(1);
    return found;
  }
  [[nodiscard]] bool take_word(const std::string_view word) noexcept {
    skip_spaces();
    const bool found = rest_.size() >= word.size() &&
                       strncasecmp(rest_.data(), word.data(), word.size()) == 0;
    if (found) rest_.remove_prefix(word.size());
    return found;
  }
  // Decimal, or in C's notation if `any_base`.
  [[nodiscard]] std::optional<long> take_number(const bool any_base) noexcept {
    skip_spaces();
    if (rest_.starts_with('+')) rest_.remove_prefix(1);
    int base = 10;
    if (any_base && rest_.starts_with('0') && rest_.size() > 1) {
      const bool hexadecimal = rest_[1] == 'x' || rest_[1] == 'X';
      base = hexadecimal ? 16 : 8;
      if (hexadecimal) rest_.remove_prefix(2);
    }
    long number = 0;
    const auto parsed = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number, base);
    if (parsed.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest_.data()));
    return number;
  }

 private:
  void skip_spaces() noexcept {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) {
      rest_.remove_prefix(1);
    }
  }
  std::string_view rest_;
};

// "first[:length[:stride]]", without its first part.
struct Interval {
  long length = 1;
  long stride = 1;
};
std::optional<Interval> take_interval(Reader& reader) noexcept {
  Interval interval;
  if (!reader.take(':')) return interval;
  const auto length = reader.take_number(false);
  if (!length || *length <= 0) return std::nullopt;
  interval.length = *length;
  if (!reader.take(':')) return interval;
  const auto stride = reader.take_number(false);
  if (!stride || *stride < -places_max || *stride > places_max) return std::nullopt;
  interval.stride = *stride;
  return interval;
}

class PlacesParser {
 public:
  PlacesParser(const std::string_view text, const int processors_max, Complaints& complaints)
      : reader_(text), processors_max_(processors_max), complaints_(complaints) {}

  std::optional<PlacesText> parse() {
    if (reader_.at_end()) return std::nullopt;
    PlacesText result;
    static constexpr std::pair<std::string_view, Unit> names[] = {
        {"threads", Unit::threads},     {"cores", Unit::cores},
        {"sockets", Unit::sockets},     {"ll_caches", Unit::ll_caches},
        {"numa_domains", Unit::numa_domains}};
    for (const auto& [name, unit] : names) {
      if (!reader_.take_word(name)) continue;
      result.unit = unit;
      return take_most(result.most) ? std::optional(result) : std::nullopt;
    }
    do {
      if (!take_places(result.list)) return std::nullopt;
    } while (reader_.take(','));
    if (!reader_.at_end()) return std::nullopt;
    if (result.list.empty()) {
      complaints_.emplace_back("All places have been removed");
      return std::nullopt;
    }
    return result;
  }

 private:
  // "" or "(number)", and the end.
  bool take_most(std::size_t& most) {
    if (reader_.at_end()) return true;
    if (!reader_.take('(')) return false;
    const auto number = reader_.take_number(false);
    if (!number || *number < 0 || !reader_.take(')') || !reader_.at_end()) return false;
    most = static_cast<std::size_t>(*number);
    return true;
  }

  bool out_of_range(const std::string& processor) {
    complaints_.push_back("Logical CPU number " + processor + " out of range");
    return false;
  }

  bool add(Place& place, long processor, const Interval& interval) {
    // Without a stride the processor would repeat.
    const long length = interval.stride == 0 ? 1 : interval.length;
    for (long index = 0; index < length; ++index, processor += interval.stride) {
      if (processor < 0) {
        return out_of_range(std::to_string(processor - interval.stride) + "+" +
                            std::to_string(interval.stride));
      }
      if (processor >= processors_max_) return out_of_range(std::to_string(processor));
      place.push_back(static_cast<int>(processor));
    }
    return true;
  }

  // "{...}" or one processor. An exclusion in the braces holds wherever it stands.
  bool take_place(Place& place) {
    if (!reader_.take('{')) {
      const auto processor = reader_.take_number(false);
      return processor && *processor >= 0 && add(place, *processor, {});
    }
    std::vector<long> excluded;
    do {
      const bool excludes = reader_.take('!');
      const auto processor = reader_.take_number(false);
      if (!processor || *processor < 0) return false;
      if (excludes) {
        excluded.push_back(*processor);
        continue;
      }
      const auto interval = take_interval(reader_);
      if (!interval || !add(place, *processor, *interval)) return false;
    } while (reader_.take(','));
    if (!reader_.take('}')) return false;
    std::ranges::sort(place);
    place.erase(std::ranges::unique(place).begin(), place.end());
    return std::ranges::all_of(excluded, [&](const long out) { return remove(place, out); });
  }

  bool remove(Place& place, const long processor) {
    if (processor >= processors_max_) return out_of_range(std::to_string(processor));
    if (std::erase(place, static_cast<int>(processor)) != 0) return true;
    complaints_.push_back("Logical CPU " + std::to_string(processor) +
                          " to be removed is not in the set");
    return false;
  }

  bool shift(Place& place, const long stride) {
    for (int& processor : place) {
      const long moved = processor + stride;
      if (moved < 0 || moved >= processors_max_) {
        return out_of_range(std::to_string(processor) + "+" + std::to_string(stride));
      }
      processor = static_cast<int>(moved);
    }
    return true;
  }

  // "[!]place[:length[:stride]]"
  bool take_places(std::vector<Place>& list) {
    const bool excludes = reader_.take('!');
    Place place;
    if (!take_place(place)) return false;
    if (excludes) {
      const auto found = std::ranges::find(list, place);
      if (found == list.end()) {
        complaints_.emplace_back("Trying to remove a non-existing place from list of places");
        return false;
      }
      list.erase(found);
      return true;
    }
    const auto interval = take_interval(reader_);
    if (!interval || interval->length >= places_max ||
        static_cast<long>(list.size()) + interval->length > places_max) {
      return false;
    }
    list.push_back(place);
    for (long index = 1; index < interval->length; ++index) {
      if (!shift(place, interval->stride)) return false;
      list.push_back(place);
    }
    return true;
  }

  Reader reader_;
  const int processors_max_;
  Complaints& complaints_;
};

}  // namespace

std::optional<PlacesText> parse_places(const std::string_view text, const int processors_max,
                                       Complaints& complaints) {
  return PlacesParser(text, processors_max, complaints).parse();
}

// Items are "first[-last[:stride]]", between spaces or commas.
std::optional<std::vector<Place>> parse_cpu_affinity(const std::string_view text) {
  std::vector<Place> places;
  Reader reader(text);
  do {
    const auto first = reader.take_number(true);
    if (!first || *first < 0 || *first >= places_max) return std::nullopt;
    long last = *first;
    long stride = 1;
    if (reader.take('-')) {
      last = reader.take_number(true).value_or(-1);
      if (last < *first || last >= places_max) return std::nullopt;
      if (reader.take(':')) stride = reader.take_number(true).value_or(0);
      if (stride <= 0 || stride >= places_max) return std::nullopt;
    }
    for (long processor = *first; processor <= last; processor += stride) {
      places.push_back({static_cast<int>(processor)});
    }
  } while (reader.take(',') || !reader.at_end());
  return places;
}

std::vector<int> parse_binding(const std::string_view text) {
  static constexpr std::pair<std::string_view, int> names[] = {
      {"false", 0}, {"true", 1}, {"master", 2}, {"primary", 2}, {"close", 3}, {"spread", 4}};
  std::vector<int> levels;
  Reader reader(text);
  do {
    const auto* const found = std::ranges::find_if(
        names, [&reader](const auto& name) { return reader.take_word(name.first); });
    if (found == std::end(names)) return {};
    levels.push_back(found->second);
  } while (reader.take(','));
  const bool nested = levels.size() > 1;
  if (!reader.at_end() || (nested && std::ranges::min(levels) < 2)) return {};
  return levels;
}

std::vector<std::string> words_of_affinity(const std::string_view text) {
  std::vector<std::string> words(1);
  int brackets = 0;
  for (const char letter : text) {
    if (letter == '[' || letter == '{') ++brackets;
    if (letter == ']' || letter == '}') --brackets;
    if (letter == ',' && brackets <= 0) {
      words.emplace_back();
    } else if (std::isspace(static_cast<unsigned char>(letter)) == 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return words;
}

std::vector<Place> usable(const std::vector<Place>& places, const std::vector<int>& allowed,
                          Complaints& complaints) {
  std::vector<Place> kept;
  for (const Place& place : places) {
    Place reduced;
    std::ranges::set_intersection(place, allowed, std::back_inserter(reduced));
    if (!reduced.empty()) kept.push_back(std::move(reduced));
  }
  if (kept.empty()) {
    complaints.emplace_back("None of the places contain usable logical CPUs");
  } else if (kept.size() < places.size()) {
    complaints.push_back("Number of places reduced from " + std::to_string(places.size()) + " to " +
                         std::to_string(kept.size()) +
                         " because some places didn't contain any usable logical CPUs");
  }
  return kept;
}

namespace {

// Runs of consecutive processors: the first, and after a colon their number, or after a dash the
// last.
std::string runs_of(const Place& place, const char mark) {
  std::string text;
  for (std::size_t begin = 0; begin < place.size();) {
    std::size_t end = begin + 1;
    while (end < place.size() && place[end] == place[end - 1] + 1) ++end;
    if (begin != 0) text += ',';
    text += std::to_string(place[begin]);
    const std::size_t length = end - begin;
    if (length > 1) {
      text += mark;
      text += mark == '-' ? std::to_string(place[end - 1]) : std::to_string(length);
    }
    begin = end;
  }
  return text;
}

}  // namespace

std::string text_of(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    if (!text.empty()) text += ',';
    text.append("{").append(runs_of(place, ':')).append("}");
  }
  return text;
}

std::string ranges_of(const Place& place) { return runs_of(place, '-'); }

}  // namespace imbrex::omp
