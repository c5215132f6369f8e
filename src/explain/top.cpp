// SPDX-License-Identifier: BSD-3-Clause
#include "explain/top.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "explain/gathered.hpp"
#include "imbrex/error.hpp"

namespace imbrex::explain {

namespace {

const ShownWorker* find(const std::vector<Recording>& all, const Recording& it,
                        const std::size_t worker) {
  for (const Recording& one : all) {
    if (one.path == it.path && worker < one.workers.size()) return &one.workers[worker];
  }
  return nullptr;
}

struct Shares {
  double in_task = 0, idle = 0, overhead = 0;  // per cent
  std::uint64_t tasks = 0;                     // begun since the last look
};

Shares shares_of(const ShownWorker* const before, const ShownWorker& now) {
  static const ShownWorker none;
  const ShownWorker& since = before != nullptr ? *before : none;
  Shares shares;
  const double looks = static_cast<double>((now.in_task - since.in_task) + (now.idle - since.idle) +
                                           (now.overhead - since.overhead));
  shares.tasks = now.tasks - since.tasks;
  if (looks <= 0) return shares;
  shares.in_task = 100.0 * static_cast<double>(now.in_task - since.in_task) / looks;
  shares.idle = 100.0 * static_cast<double>(now.idle - since.idle) / looks;
  shares.overhead = 100.0 * static_cast<double>(now.overhead - since.overhead) / looks;
  return shares;
}

// "2 MPI_Recv, 1 finish": what the tasks of a rank wait for, the most frequent first.
std::string waits_of(const Recording& it) {
  std::map<std::string, int> counts;
  for (const ShownWait& wait : it.waits) {
    std::string what = wait.call;
    if (wait.peer >= 0) what += fmt::format(" ({})", wait.peer);
    ++counts[what];
  }
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [what, count] : counts) order.emplace_back(-count, what);
  std::ranges::sort(order);
  std::string text;
  for (const auto& [count, what] : order) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", -count, what);
  }
  return text;
}

std::string cut(std::string line, const std::size_t columns) {
  if (line.size() > columns) line.resize(columns);
  return line + "\n";
}

std::vector<Recording> read_living(const std::vector<std::string>& paths) {
  std::vector<Recording> all;
  for (const std::string& file : find_files(paths)) {
    try {
      watch(file);
      Recording one = read_recording(file);
      if (one.life == Life::runs || one.life == Life::unknown) all.push_back(std::move(one));
    } catch (const Error&) {  // it has just ended
    }
  }
  std::ranges::sort(all, {}, &Recording::rank);
  return all;
}

}  // namespace

std::string table_of(const std::vector<Recording>& before, const std::vector<Recording>& now,
                     const std::size_t rows, const std::size_t columns) {
  if (now.empty()) return "";
  std::vector<std::string> lines;
  for (const Recording& it : now) {
    const std::string waits = waits_of(it);
    lines.push_back(fmt::format("rank {:<5} process {:<8} {} tasks ready, {} operations in flight, "
                                "{} waits{}{}",
                                it.rank, it.process, it.ready, it.in_flight, it.waits.size(),
                                waits.empty() ? "" : ": ", waits));
    for (std::size_t index = 0; index < it.workers.size(); ++index) {
      const ShownWorker& worker = it.workers[index];
      const Shares shares = shares_of(find(before, it, index), worker);
      lines.push_back(fmt::format("  worker {:<4} {:>5.0f} {:>5.0f} {:>8.0f} {:>9}  {}", index,
                                  shares.in_task, shares.idle, shares.overhead, shares.tasks,
                                  worker.task.text));
    }
  }
  std::string text =
      cut(fmt::format("{}, job {}: {} ranks, {:.0f} s", now.front().program, now.front().job,
                      now.size(), static_cast<double>(now.front().tenths) / 10),
          columns) +
      cut("               task%  idle% overhead%   tasks/s  runs", columns);
  const std::size_t shown = std::min(lines.size(), rows > 3 ? rows - 3 : 1);
  for (std::size_t i = 0; i < shown; ++i) text += cut(lines[i], columns);
  if (shown < lines.size()) text += fmt::format("... and {} more lines\n", lines.size() - shown);
  return text;
}

void run_top(const std::vector<std::string>& paths, const int looks) {
  const bool in_place = isatty(STDOUT_FILENO) != 0;
  std::vector<Recording> before = read_living(paths);
  if (before.empty()) {
    throw Error("none of these processes runs any more: imbrex explain says what they did last");
  }
  for (int look = 0; looks == 0 || look < looks; ++look) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::vector<Recording> now;
    try {
      now = read_living(paths);
    } catch (const Error&) {  // the files are gone: all have ended well
    }
    if (now.empty()) return;
    winsize window{};
    const bool known = in_place && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 &&
                       window.ws_row != 0 && window.ws_col != 0;
    if (in_place) fmt::print("\x1b[H\x1b[2J");
    fmt::print("{}", table_of(before, now, known ? window.ws_row : 1000,
                              known ? window.ws_col : 200));
    std::fflush(stdout);
    before = std::move(now);
  }
}

}  // namespace imbrex::explain
