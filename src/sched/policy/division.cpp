// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/division.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include "imbrex/error.hpp"
#include "sched/policy/place_file.hpp"
#include "sched/policy/place_tree.hpp"

namespace imbrex::sched {

namespace {

[[noreturn]] void refuse(const std::string_view text, const std::string& why) {
  throw Error(fmt::format("imbrex: IMBREX_PLACES={}: {}; valid: numa, package, l3, core, worker, "
                          "tree, the name of a file that ends in .xml, or a list of workers for "
                          "each place, such as 0-3/4-7 or 0,2/1,3",
                          text, why));
}

[[noreturn]] void refuse_number(const std::string_view text) {
  refuse(text, fmt::format("more than {} places", places_max));
}

// Reads lists of workers from left to right.
class Lists {
 public:
  Lists(const std::string_view text, const int workers)
      : text_(text), rest_(text), workers_(workers) {}

  std::vector<PlannedPlace> read() {
    std::vector<PlannedPlace> places;
    do {
      if (places.size() == places_max) refuse_number(text_);
      const std::string_view begin = rest_;
      PlannedPlace place;
      read_place(place.workers);
      const std::string_view list = begin.substr(0, begin.size() - rest_.size());
      const bool several = list.find_first_of(",-") != list.npos;
      place.name = fmt::format("{} {}", several ? "workers" : "worker", list);
      if (workers_ == 1) place.workers = {0};
      places.push_back(std::move(place));
    } while (take('/'));
    if (!rest_.empty()) refuse(text_, fmt::format("\"{}\" cannot be read", rest_));
    return places;
  }

 private:
  void read_place(std::vector<int>& workers) {
    do {
      const int first = number();
      const int last = take('-') ? number() : first;
      if (last < first) refuse(text_, fmt::format("the range {}-{} is empty", first, last));
      for (int worker = first; worker <= last; ++worker) add(workers, worker);
    } while (take(','));
  }
  void add(std::vector<int>& workers, const int worker) const {
    if (worker >= workers_ && workers_ > 1) {
      refuse(text_, fmt::format("there is no worker {}: valid: 0 to {}", worker, workers_ - 1));
    }
    if (std::ranges::find(workers, worker) != workers.end()) {
      refuse(text_, fmt::format("worker {} is given twice for one place", worker));
    }
    workers.push_back(worker);
  }
  // At most the largest number of workers of a runtime, so that a range of them ends.
  int number() {
    constexpr int most = 4095;
    int value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc() && value > most) refuse(text_, fmt::format("no worker {}", value));
    if (error != std::errc() || value < 0) {
      refuse(text_, rest_.empty() ? "the number of a worker is missing at the end"
                                  : fmt::format("\"{}\" does not begin with the number of a "
                                                "worker", rest_));
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  bool take(const char character) noexcept {
    if (!rest_.starts_with(character)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  const std::string_view text_;
  std::string_view rest_;
  const int workers_;
};

std::optional<base::Level> level_of(const std::string_view text) noexcept {
  if (text == "numa") return base::Level::numa;
  if (text == "package") return base::Level::package;
  if (text == "l3") return base::Level::l3;
  if (text == "core") return base::Level::core;
  return std::nullopt;
}

// The name of the place that `worker` belongs to.
std::string name_of(const std::optional<base::Level> level, const std::size_t worker,
                    const std::vector<int>& processors, base::Topology& topology) {
  // With one worker the topology is not loaded, which would take milliseconds.
  if (!level || processors.size() == 1) return fmt::format("worker {}", worker);
  return topology.part_of(*level, processors[worker]);
}

// One place for each part of the machine of that kind; or for each worker.
std::vector<PlannedPlace> parts(const std::string_view text, const std::optional<base::Level> level,
                                const std::vector<int>& processors, base::Topology& topology) {
  const bool cache = level == base::Level::l3 || level == base::Level::core;
  std::vector<PlannedPlace> places;
  for (std::size_t worker = 0; worker < processors.size(); ++worker) {
    const std::string name = name_of(level, worker, processors, topology);
    auto place = std::ranges::find(places, name, &PlannedPlace::name);
    if (place == places.end()) {
      if (places.size() == places_max) refuse_number(text);
      place = places.insert(places.end(), PlannedPlace{.name = name, .workers = {}});
      if (cache) place->kind = PlaceKind::cache;
    }
    place->workers.push_back(static_cast<int>(worker));
  }
  return places;
}

// The content of a file of places. A MiB is more than any such file needs; a longer file is cut
// before the end of its last element.
std::string content_of(const std::string_view path) {
  std::ifstream file{std::string(path), std::ios::binary};
  std::string content(1 << 20, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (file.is_open() && !file.bad()) return content;
  refuse(path, fmt::format("the file cannot be read: {}", std::strerror(errno)));
}

}  // namespace

Division divide(const std::string_view text, const std::vector<int>& processors,
                base::Topology& topology) {
  const std::size_t workers = processors.size();
  if (text == "tree") return make_tree(parts_of_machine(processors, topology), workers);
  if (text.ends_with(".xml")) {
    return make_tree(parse_places(content_of(text), std::string(text), workers), workers);
  }
  const std::optional<base::Level> level = level_of(text);
  if (level || text == "worker") return {.places = parts(text, level, processors, topology)};
  return {.places = Lists(text, static_cast<int>(workers)).read()};
}

void add_spare_workers(Division& division, const std::string_view text,
                       const std::vector<int>& processors, const std::size_t first,
                       base::Topology& topology) {
  const std::optional<base::Level> level = level_of(text);
  if (!level) return;
  for (std::size_t spare = first; spare < processors.size(); ++spare) {
    const std::string part = topology.part_of(*level, processors[spare]);
    const auto place = std::ranges::find_if(division.places, [&](const PlannedPlace& one) {
      const auto worker = static_cast<std::size_t>(one.workers.front());
      return topology.part_of(*level, processors[worker]) == part;
    });
    if (place != division.places.end()) place->workers.push_back(static_cast<int>(spare));
  }
}

}  // namespace imbrex::sched
