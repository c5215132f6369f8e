// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/recorded/trace_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <limits>
#include <queue>
#include <sstream>
#include <unordered_map>
#include <utility>

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

// Puts the records of all threads into one order. Clocks of two processors may differ a little, and
// a processor may read its clock before instructions that stand earlier. So a thread's records wait
// where they name a task whose creation comes later in the order of time.
class Merge {
 public:
  explicit Merge(const std::vector<PlacedRecord>& file) : file_(file) {
    for (std::size_t i = 0; i < file.size(); ++i) {
      const Record& record = file[i].record;
      if (record.kind == trace::Kind::task_create) is_created_.try_emplace(record.task, false);
      if (i == 0 || begins_stream(file[i - 1].record, record)) streams_.push_back({i, i});
      streams_.back().end = i + 1;
    }
    for (std::size_t stream = 0; stream < streams_.size(); ++stream) queue(stream);
  }
  [[nodiscard]] std::vector<PlacedRecord> run() {
    merged_.reserve(file_.size());
    while (merged_.size() < file_.size()) {
      if (heads_.empty()) release_all();
      const std::size_t stream = heads_.top().second;
      heads_.pop();
      take(stream);
    }
    return std::move(merged_);
  }

 private:
  // The records of one thread that are not merged yet.
  struct Stream {
    std::size_t next;
    std::size_t end;
  };
  using Head = std::pair<std::uint64_t, std::size_t>;  // time of its next record, stream

  // Threads that are no workers have one number together.
  [[nodiscard]] static bool begins_stream(const Record& before, const Record& record) noexcept {
    return record.worker != before.worker ||
           (record.worker == no_worker && record.time < before.time);
  }
  [[nodiscard]] static bool belongs_to_creation(const Record& record) noexcept {
    return record.kind == trace::Kind::task_access || record.kind == trace::Kind::task_bound;
  }
  void queue(const std::size_t stream) {
    const Stream& its = streams_[stream];
    if (its.next < its.end) heads_.emplace(file_[its.next].record.time, stream);
  }
  // The next record of the stream; a creation with all that belongs to it.
  void take(const std::size_t stream) {
    Stream& its = streams_[stream];
    const Record& record = file_[its.next].record;
    const bool creates = record.kind == trace::Kind::task_create;
    const std::uint64_t named = creates ? record.c : record.task;
    const auto found = is_created_.find(named);
    if (waits_ && found != is_created_.end() && !found->second) {
      waiting_[named].push_back(stream);
      return;
    }
    merged_.push_back(file_[its.next++]);
    while (creates && its.next < its.end && belongs_to_creation(file_[its.next].record) &&
           file_[its.next].record.task == record.task) {
      merged_.push_back(file_[its.next++]);
    }
    queue(stream);
    if (!creates) return;
    is_created_[record.task] = true;
    for (const std::size_t other : waiting_[record.task]) queue(other);
    waiting_.erase(record.task);
  }
  // Tasks that create each other: the file is damaged. The rest has the order of time.
  void release_all() {
    waits_ = false;
    for (const auto& [task, streams] : waiting_) {
      for (const std::size_t stream : streams) queue(stream);
    }
    waiting_.clear();
  }

  const std::vector<PlacedRecord>& file_;
  std::vector<Stream> streams_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  std::unordered_map<std::uint64_t, bool> is_created_;  // by task: merged_ has its creation
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> waiting_;  // streams, by task
  bool waits_ = true;
  std::vector<PlacedRecord> merged_;
};

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
  return Merge(records).run();
}

}  // namespace imbrex::simulate
