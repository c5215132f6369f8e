// SPDX-License-Identifier: BSD-3-Clause
// What `imbrex explain` prints: the causes first, then the facts, rank by rank.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "base/text/json_text.hpp"
#include "base/text/ranges.hpp"
#include "explain/gathered.hpp"

namespace imbrex::explain {

namespace {

using base::text::json_text;
using detail::FlightEvent;

constexpr std::size_t ranks_shown = 64;
constexpr std::size_t waits_shown = 12;
constexpr std::size_t events_shown = 6;

std::string clock_text(const std::uint64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(seconds));
}

std::string seconds(const std::uint64_t tenths) {
  return fmt::format("{:.1f} s", static_cast<double>(tenths) / 10);
}

std::string message(const std::string& call, const char* const way, const int peer, const int tag) {
  std::string text = call;
  if (peer >= 0) text += fmt::format(" {} {}", way, peer);
  if (tag >= 0) text += fmt::format(", tag {}", tag);
  return text;
}

bool is_send(const std::string& call) {
  return call.find("send") != std::string::npos && call.find("recv") == std::string::npos;
}

std::string text_of(const ShownEvent& event) {
  const auto items = [&event] {
    return event.size == 0 ? std::string() : fmt::format(", {} items", event.size);
  };
  switch (event.kind) {
    case FlightEvent::none: return "";
    case FlightEvent::resumed:
      return fmt::format("went on after {}",
                         message(event.what, is_send(event.what) ? "to" : "from", event.peer,
                                 event.tag));
    case FlightEvent::sent:
      return fmt::format("began {}{}", message(event.what, "to", event.peer, event.tag), items());
    case FlightEvent::receive_posted:
      return fmt::format("began {}{}", message(event.what, "from", event.peer, event.tag), items());
    case FlightEvent::collective:
    case FlightEvent::locks: return fmt::format("began {}", event.what);
    case FlightEvent::phaser: return fmt::format("came to {} in phase {}", event.what, event.size);
    case FlightEvent::completed:
      return fmt::format("completed {}", message(event.what, is_send(event.what) ? "to" : "from",
                                                 event.peer, event.tag));
    case FlightEvent::task_begin: return fmt::format("began task \"{}\"", event.what);
    case FlightEvent::task_end: return fmt::format("ended task \"{}\"", event.what);
  }
  return "";
}

const char* text_of(const Life life) {
  switch (life) {
    case Life::runs: return "runs";
    case Life::gone: return "its process is gone";
    case Life::failed: return "it ended with an error";
    case Life::stuck: return "imbrex ended it, since no task could ever run again";
    case Life::unknown: return "on another host";
  }
  return "";
}

std::string heading(const Recording& it) {
  const std::string who = it.ranks == 0 ? "process" : fmt::format("rank {} of {}, process", it.rank,
                                                                  it.ranks);
  return fmt::format("{} {} on {}: {}", who, it.process, it.host, text_of(it.life));
}

void add_waits(const Recording& it, std::string& text) {
  std::size_t left = it.waits.size();
  for (const ShownWait& wait : it.waits) {
    if (it.waits.size() - left == waits_shown) break;
    --left;
    text += fmt::format("  {}, for {}: in {}\n", text_of(wait),
                        seconds(it.ago(wait.since)), wait.task.text);
  }
  if (left != 0) text += fmt::format("  ... and {} more waits\n", left);
}

void add_events(const Recording& it, const std::vector<ShownEvent>& events, std::string& text) {
  const std::size_t first = events.size() - std::min(events.size(), events_shown);
  for (std::size_t i = first; i < events.size(); ++i) {
    text += fmt::format("    {} ago: task {} {}\n",
                        seconds(it.ago(events[i].at)), events[i].task,
                        text_of(events[i]));
  }
}

void add_workers(const Recording& it, std::string& text) {
  for (std::size_t index = 0; index < it.workers.size(); ++index) {
    const ShownWorker& worker = it.workers[index];
    if (worker.all_events == 0 && worker.task.id == 0) continue;
    const std::string now = worker.task.id == 0 ? "nothing" : worker.task.text;
    text += fmt::format("  worker {} runs {}; {} tasks begun\n", index, now, worker.tasks);
    add_events(it, worker.events, text);
  }
  if (!it.completed.empty()) {
    text += "  operations of MPI that were waited for\n";
    add_events(it, it.completed, text);
  }
  if (it.resumed.empty()) return;
  text += "  waits of more than 0.1 s that are over\n";
  add_events(it, it.resumed, text);
}

}  // namespace

std::string text_of(const ShownWait& wait) {
  if (wait.kind != detail::WaitKind::mpi) return wait.call;
  std::string text = message(wait.call, is_send(wait.call) ? "to" : "from", wait.peer, wait.tag);
  if (wait.peer >= 0) text += fmt::format(", {} bytes", wait.bytes);
  if (wait.on_world) text += ", on MPI_COMM_WORLD";
  return text;
}

std::string text_of(const Gathered& it) {
  std::string text;
  for (const diagnosis::Finding& finding : it.findings) {
    text += fmt::format("cause: {}. {}.\n", finding.text(), finding.advice);
  }
  if (it.findings.empty()) {
    const bool lives = std::ranges::any_of(
        it.all, [](const Recording& one) { return one.life == Life::runs; });
    text += lives ? "no cause is known: nothing here is stuck for certain. Look again in some "
                    "seconds, or at the facts below.\n"
                  : "no cause is known from these files; what each rank did last stands below.\n";
  }
  const Recording& first = it.all.front();
  std::uint64_t last = 0;
  for (const Recording& one : it.all) last = std::max(last, one.last_ns());
  text += fmt::format("{}, job {}: {} of {} ranks have a file, the last sign of life is of {}\n",
                      first.program, first.job, it.all.size(), it.all.size() + it.missing.size(),
                      clock_text(last));
  if (!it.missing.empty()) {
    text += fmt::format("no file of rank{} {}: they have ended well, or their files lie on another "
                        "node (name that folder, too)\n",
                        it.missing.size() == 1 ? "" : "s", base::text::ranges(it.missing));
  }
  for (const std::string& file : it.left_out) text += fmt::format("left out: {}\n", file);
  for (std::size_t index = 0; index < it.all.size() && index < ranks_shown; ++index) {
    text += fmt::format("\n{}\n", heading(it.all[index]));
    add_waits(it.all[index], text);
    for (const std::string& one : it.facts[index].failures) text += fmt::format("  {}\n", one);
    add_workers(it.all[index], text);
  }
  if (it.all.size() > ranks_shown) {
    text += fmt::format("\n... and {} more ranks (--json has all)\n", it.all.size() - ranks_shown);
  }
  return text;
}

std::string json_of(const Gathered& it) {
  std::string text = "{\"findings\": [";
  const char* comma = "";
  for (const diagnosis::Finding& finding : it.findings) {
    text += fmt::format("{}{{\"certain\": {}, \"cause\": {}, \"advice\": {}, \"ranks\": [{}]}}",
                        comma, finding.is_certain, json_text(finding.sentence),
                        json_text(finding.advice), fmt::join(finding.ranks, ", "));
    comma = ", ";
  }
  text += fmt::format("], \"missing\": [{}], \"ranks\": [", fmt::join(it.missing, ", "));
  comma = "";
  for (const Recording& one : it.all) {
    text += fmt::format("{}{{\"rank\": {}, \"process\": {}, \"host\": {}, \"state\": {}, "
                        "\"waits\": [",
                        comma, one.rank, one.process, json_text(one.host),
                        json_text(text_of(one.life)));
    comma = "";
    for (const ShownWait& wait : one.waits) {
      text += fmt::format("{}{{\"task\": {}, \"wait\": {}, \"peer\": {}, \"seconds\": {:.1f}}}",
                          comma, json_text(wait.task.text), json_text(text_of(wait)), wait.peer,
                          static_cast<double>(one.ago(wait.since)) / 10);
      comma = ", ";
    }
    text += "], \"running\": [";
    comma = "";
    for (const ShownWorker& worker : one.workers) {
      if (worker.task.id == 0) continue;
      text += fmt::format("{}{}", comma, json_text(worker.task.text));
      comma = ", ";
    }
    text += "]}";
    comma = ", ";
  }
  return text + "]}\n";
}

}  // namespace imbrex::explain
