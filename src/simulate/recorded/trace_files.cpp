// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/recorded/trace_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <sstream>

#include "imbrex/error.hpp"

namespace imbrex::simulate {

namespace {

constexpr std::uint32_t no_worker = std::numeric_limits<std::uint32_t>::max();

[[noreturn]] void fail_heads(const std::string& path) {
  throw Error(fmt::format("{}: not the heads of a trace: start the simulation by `imbrex simulate "
                          "--trace`",
                          path));
}

[[nodiscard]] bool is_known(const trace::Kind kind) noexcept {
  switch (kind) {
#define IMBREX_EVENT(name, number) case trace::Kind::name:
#include "trace/events.def"
#undef IMBREX_EVENT
    return true;
  }
  return false;
}

// Whether field `a` is the number of a name.
[[nodiscard]] bool is_named(const trace::Kind kind) noexcept {
  using trace::Kind;
  static constexpr std::array named = {
      Kind::task_begin,       Kind::task_suspend,   Kind::task_create, Kind::collective_begin,
      Kind::collective_end,   Kind::datum_named,    Kind::future_set,  Kind::collective_posted,
      Kind::request_awaited};
  return std::ranges::find(named, kind) != named.end();
}

void check(const TraceHead& head, const PlacedRecord& placed) {
  const Record& record = placed.record;
  const auto fail = [&](const std::string& what) {
    throw Error(fmt::format("{}: record {}: {}", head.path, placed.position, what));
  };
  if (!is_known(record.kind)) {
    fail(fmt::format("unknown kind {}", static_cast<std::uint32_t>(record.kind)));
  }
  if (record.worker != no_worker && record.worker >= static_cast<std::uint32_t>(head.workers)) {
    fail(fmt::format("worker {}, but the rank has {}, numbered from 0", record.worker,
                     head.workers));
  }
  if (is_named(record.kind) && record.a >= head.names.size()) {
    fail(fmt::format("name {}, but the file has {}, numbered from 0", record.a,
                     head.names.size()));
  }
}

}  // namespace

namespace {

// A time that is off by days is no time of the run.
void check_span(const TraceHead& head, const std::vector<PlacedRecord>& records) {
  constexpr std::uint64_t span_max_ns = std::uint64_t{1} << 53;
  for (const PlacedRecord& placed : records) {
    const std::uint64_t first = records.front().record.time;
    const std::uint64_t time = placed.record.time;
    if (std::max(first, time) - std::min(first, time) <= span_max_ns) continue;
    throw Error(fmt::format("{}: record {}: its time, {} ns, is more than 100 days from that of "
                            "the first record",
                            head.path, placed.position, time));
  }
}

}  // namespace

std::vector<TraceHead> read_heads(const std::string& path) {
  std::ifstream file(path);
  std::vector<TraceHead> heads;
  std::string line;
  while (std::getline(file, line)) {
    TraceHead head;
    std::size_t names = 0;
    std::istringstream words(line);
    if (!(words >> head.rank >> head.workers >> head.events >> names) || head.workers < 1 ||
        head.rank != static_cast<int>(heads.size())) {
      fail_heads(path);
    }
    if (!std::getline(file, head.path)) fail_heads(path);
    for (std::size_t i = 0; i < names; ++i) {
      if (!std::getline(file, line)) fail_heads(path);
      const std::size_t blank = line.find(' ');
      std::istringstream number(line.substr(0, blank));
      Time time = -1;
      if (blank == std::string::npos || !(number >> time)) fail_heads(path);
      head.times.push_back(time);
      head.names.push_back(line.substr(blank + 1));
    }
    heads.push_back(std::move(head));
  }
  if (heads.empty()) fail_heads(path);
  return heads;
}

std::vector<PlacedRecord> read_records(const TraceHead& head) {
  std::ifstream file(head.path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(fmt::format("{}: cannot be read", head.path));
  const auto bytes = static_cast<std::uint64_t>(file.tellg());
  if (bytes % sizeof(Record) != 0 || bytes / sizeof(Record) != head.events) {
    throw Error(fmt::format("{}: {}: {} bytes, not the {} of its {} records", head.path,
                            bytes / sizeof(Record) < head.events ? "truncated" : "too long", bytes,
                            head.events * sizeof(Record), head.events));
  }
  file.seekg(0);
  std::vector<PlacedRecord> records(head.events);
  for (std::uint64_t i = 0; i < head.events; ++i) {
    PlacedRecord& placed = records[i];
    file.read(reinterpret_cast<char*>(&placed.record), sizeof(Record));
    if (!file) throw Error(fmt::format("{}: record {}: cannot be read", head.path, i));
    placed.position = i;
    check(head, placed);
  }
  check_span(head, records);
  // Stable: each worker's own order stays.
  std::ranges::stable_sort(records, {}, [](const PlacedRecord& one) { return one.record.time; });
  return records;
}

}  // namespace imbrex::simulate
