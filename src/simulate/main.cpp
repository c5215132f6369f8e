// SPDX-License-Identifier: BSD-3-Clause
// imbrex-simulate: one simulation. `imbrex simulate` (tools/imbrex_simulate.py) reads the command
// line and the files of its user, and calls this program with one word NAME=VALUE for each setting.
// Prints one line of JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/brief.hpp"
#include "imbrex/error.hpp"
#include "simulate/engine/cluster.hpp"
#include "simulate/take_simulation.hpp"
#include "simulate/setting_words.hpp"

namespace imbrex::simulate {

namespace {

// The most of a setting; a sum or product of two stays far below time_most.
constexpr Time setting_ns_most = 1'000'000'000'000'000;  // ten days
constexpr double network_ns_most = 1e12;
constexpr double ns_per_byte_most = 1e6;
constexpr std::int64_t bytes_most = 1'000'000'000'000;
constexpr int ranks_most = 1 << 20;
constexpr int workers_most = 4096;

[[nodiscard]] NetworkParameters take_network(Settings& settings) {
  NetworkParameters network;
  network.latency_ns = settings.take("latency_ns", 0.0, network_ns_most);
  network.overhead_ns = settings.take("overhead_ns", 0.0, network_ns_most);
  network.gap_ns = settings.take("gap_ns", 0.0, network_ns_most);
  network.ns_per_byte = settings.take("ns_per_byte", 0.0, ns_per_byte_most);
  network.copy_ns_per_byte = settings.take("copy_ns_per_byte", 0.0, ns_per_byte_most);
  network.eager_bytes = settings.take("eager_bytes", std::int64_t{0}, bytes_most);
  network.sender_answers = settings.take("sender_answers", 0, 1) != 0;
  network.node_latency_ns = settings.take("node_latency_ns", 0.0, network_ns_most);
  network.node_ns_per_byte = settings.take("node_ns_per_byte", 0.0, ns_per_byte_most);
  network.noise = settings.take("noise", 0.0, 100.0);
  return network;
}

[[nodiscard]] Progress take_progress(Settings& settings) {
  const std::string text = settings.take_text("progress");
  if (text == "auto") return Progress::automatic;
  if (text == "poll" || text == "callback") return Progress::poll;
  if (text == "dedicated-thread") return Progress::dedicated_thread;
  throw Error(fmt::format("progress={}: valid: auto, poll, callback, dedicated-thread",
                          base::text::brief(text)));
}

void print_progress(const std::int64_t ended, const Time now) {
  const double seconds = static_cast<double>(now) * 1e-9;
  fmt::print(stderr, "\rimbrex simulate: {} tasks, {:.3f} s ", ended, seconds);
  std::fflush(stderr);
}

[[nodiscard]] ClusterSetup take_cluster(Settings& settings) {
  ClusterSetup setup;
  setup.ranks = settings.take("ranks", 1, ranks_most);
  setup.per_node = settings.take("per_node", 1, ranks_most);
  setup.lends = settings.take("lend", 0, 1) != 0;
  setup.rank.workers = settings.take("workers", 1, workers_most);
  setup.rank.policy = settings.take_text("policy");
  setup.rank.window = settings.take("tasks_ahead", std::uint32_t{0}, std::uint32_t{1'000'000'000});
  setup.rank.creator_ns = settings.take("creator_ns", Time{0}, setting_ns_most);
  setup.rank.task_ns = settings.take("task_ns", Time{0}, setting_ns_most);
  setup.rank.progress = take_progress(settings);
  setup.rank.thread_gap_ns = settings.take("poll_gap_ns", Time{1000}, setting_ns_most);
  setup.network = take_network(settings);
  setup.slow_rank = settings.take("slow_rank", -1, setup.ranks - 1);
  setup.slowness = settings.take("slowness", 0.01, 100.0);
  setup.seed = settings.take("seed", std::uint64_t{0});
  if (settings.take("shows_progress", 0, 1) != 0) setup.progress = &print_progress;
  return setup;
}

// With a comma before it; nothing for programs without data with owners.
[[nodiscard]] std::string text_of(const std::vector<DataCounters>& data) {
  if (data.empty()) return "";
  std::string text;
  for (const DataCounters& one : data) {
    text += fmt::format(
        "{}{{\"tasks\": {}, \"versions_sent\": {}, \"broadcasts\": {}, \"broadcasts_full\": {}, "
        "\"copies_from_root\": {}, \"copies_from_relay\": {}, \"bytes_sent\": {}, "
        "\"bytes_received\": {}}}",
        text.empty() ? "" : ", ", one.tasks, one.versions_sent, one.broadcasts,
        one.broadcasts_full, one.copies_from_root, one.copies_from_relay, one.bytes_sent,
        one.bytes_received);
  }
  return fmt::format(", \"data\": [{}]", text);
}

void print(const ClusterSetup& setup, const Outcome& outcome) {
  const double seconds = static_cast<double>(outcome.time_ns) * 1e-9;
  const double all = seconds * setup.ranks * setup.rank.workers;
  // Parts of the time of all workers. A program may take no time.
  const auto part = [all](const double time_ns) { return all > 0 ? time_ns * 1e-9 / all : 0; };
  const double in_task = part(outcome.sums.in_task_ns);
  const double overhead = part(outcome.sums.overhead_ns);
  // Not below 0 by rounding.
  const double idle = all > 0 ? std::max(1 - (in_task + overhead), 0.0) : 0;
  fmt::print(
      "{{\"policy\": \"{}\", \"ranks\": {}, \"workers\": {}, \"seconds\": {:.9f}, "
      "\"in_task\": {:.6f}, \"idle\": {:.6f}, \"overhead\": {:.6f}, \"tasks\": {}, "
      "\"messages\": {}, \"bytes\": {}, \"events\": {}, \"live_tasks\": {}, "
      "\"borrowed\": {:.6f}{}}}\n",
      setup.rank.policy, setup.ranks, setup.rank.workers, seconds, in_task, idle, overhead,
      outcome.sums.tasks, outcome.messages,
      outcome.bytes, outcome.events, outcome.sums.live_most, part(outcome.sums.borrowed_ns),
      text_of(outcome.data));
}

int run(const int count, char** const words) {
  Settings settings(count, words);
  const ClusterSetup setup = take_cluster(settings);
  const Simulation simulation = take_simulation(settings, setup);
  settings.refuse_rest();
  const Outcome outcome = simulation();
  if (setup.progress != nullptr) fmt::print(stderr, "\r{:60}\r", "");
  print(setup, outcome);
  return 0;
}

// Prints the exception that has ended the simulation, in one line.
void print_failure() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    static constexpr std::string_view line =
        "imbrex simulate: there is no memory for a simulation of this size: reduce ranks, workers, "
        "or sizes of the program\n";
    std::fwrite(line.data(), 1, line.size(), stderr);  // needs no memory
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    const std::string_view name = "imbrex simulate: ";
    fmt::print(stderr, "{}{}\n", text.starts_with(name) ? "" : name, text);
  }
}

// The library's code is noexcept where it may be out of memory: a runtime could not go on there.
[[noreturn]] void end_in_noexcept() noexcept {
  if (std::current_exception() == nullptr) std::abort();
  print_failure();
  std::fflush(stderr);
  std::_Exit(1);
}

}  // namespace

}  // namespace imbrex::simulate

int main(const int count, char** const words) {
  std::set_terminate(&imbrex::simulate::end_in_noexcept);
  try {
    return imbrex::simulate::run(count, words);
  } catch (...) {
    imbrex::simulate::print_failure();
    return 1;
  }
}
