// SPDX-License-Identifier: BSD-3-Clause
// check_trace <directory>: checks the files of one process against docs/design/trace-format.md.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Record {
  std::uint64_t time;
  std::uint64_t task;
  std::uint32_t worker;
  std::uint32_t kind;
  std::uint64_t a, b, c;
};
static_assert(sizeof(Record) == 48);

enum Kind : std::uint32_t {
  task_begin = 1,
  task_end,
  task_suspend,
  task_resume,
  idle_begin,
  idle_end,
  task_create = 9,
  last_kind = 32
};

int failures = 0;
void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILS: %s\n", what.c_str());
  ++failures;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  expect(file.good(), "cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number that follows a key of the top level; all others of the file are in strings.
std::uint64_t number_of(const std::string& text, const std::string& key) {
  std::smatch found;
  const std::regex pattern("\"" + key + "\"\\s*:\\s*(\\d+)");
  expect(std::regex_search(text, found, pattern), "no number \"" + key + "\"");
  return found.empty() ? 0 : std::strtoull(found[1].str().c_str(), nullptr, 10);
}

std::size_t names_of(const std::string& text) {
  const std::regex pattern("\\{\\s*\"name\"\\s*:\\s*\"(\\\\.|[^\"\\\\])*\"\\s*,\\s*\"where\"\\s*:");
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), {}));
}

void check_events(const std::vector<Record>& records, std::size_t names, std::uint64_t workers) {
  std::uint64_t root = 0;
  std::map<std::uint64_t, int> made;
  std::set<std::uint64_t> makers;
  std::map<std::uint64_t, int> begun;
  std::map<std::uint64_t, int> ended;
  std::map<std::uint64_t, int> asleep;
  std::map<std::uint32_t, std::uint64_t> last;
  std::map<std::uint32_t, int> idle;
  for (const Record& record : records) {
    expect(record.kind >= 1 && record.kind <= last_kind, "kind " + std::to_string(record.kind));
    expect(record.worker < workers || record.worker == 0xffffffff, "no such worker");
    expect(record.time >= last[record.worker], "times of a worker are not in order");
    last[record.worker] = record.time;
    if (record.kind == task_create) {
      ++made[record.task];
      expect(record.a < names, "a task made with no name of the list");
      makers.insert(record.c);
    }
    if (record.kind == task_begin) {
      ++begun[record.task];
      if (record.c == 0) root = record.task;
      expect(record.a < names, "a task with no name of the list");
    }
    if (record.kind == task_end) ++ended[record.task];
    if (record.kind == task_suspend) ++asleep[record.task];
    if (record.kind == task_resume) --asleep[record.task];
    if (record.kind == idle_begin) ++idle[record.worker];
    if (record.kind == idle_end) expect(--idle[record.worker] >= 0, "idle_end without a begin");
  }
  for (const std::uint64_t maker : makers) expect(begun[maker] == 1, "a maker that has not begun");
  for (const auto& [id, times] : begun) {
    expect(times == 1, "task " + std::to_string(id) + " begins more than once");
    expect(id == root || made[id] == 1, "task " + std::to_string(id) + " is not made once");
    expect(ended[id] == 1, "task " + std::to_string(id) + " does not end once");
    expect(asleep[id] == 0, "task " + std::to_string(id) + " is not resumed as often as suspended");
  }
  expect(begun.size() >= 102, "only " + std::to_string(begun.size()) + " tasks begin");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string directory = argv[1];
  const std::string text = read(directory + "/rank-0.json");
  const std::string bytes = read(directory + "/rank-0.events");
  expect(number_of(text, "version") == 3, "version");
  expect(number_of(text, "ranks") == 1, "ranks");
  expect(number_of(text, "rank") == 0, "rank");
  expect(number_of(text, "start_ns") < number_of(text, "end_ns"), "start_ns is not before end_ns");
  const std::uint64_t count = number_of(text, "events");
  expect(count > 0 && bytes.size() == count * sizeof(Record), "size of the file of events");
  std::vector<Record> records(bytes.size() / sizeof(Record));
  std::memcpy(records.data(), bytes.data(), records.size() * sizeof(Record));
  check_events(records, names_of(text), number_of(text, "workers"));
  for (const Record& record : records) {
    const bool within = record.time >= number_of(text, "start_ns") &&
                        record.time <= number_of(text, "end_ns");
    if (!within) {
      expect(false, "an event outside the time of the run");
      break;
    }
  }
  if (failures == 0) std::printf("the trace is sound: %zu events\n", records.size());
  return failures == 0 ? 0 : 1;
}
