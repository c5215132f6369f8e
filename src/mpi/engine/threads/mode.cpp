// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/mode.hpp"

#include <array>
#include <string>

namespace imbrex::mpi::threads {

namespace {

struct Names {
  Mode mode;
  std::string_view plain;
  std::string_view paper;
};
constexpr std::array<Names, 6> table{{{Mode::automatic, "auto", "auto"},
                                      {Mode::poll, "poll", "EV-PO"},
                                      {Mode::callback, "callback", "CB-SW"},
                                      {Mode::shared_thread, "shared-thread", "CT-SH"},
                                      {Mode::dedicated_thread, "dedicated-thread", "CT-DE"},
                                      {Mode::monitor_thread, "monitor-thread", "CB-HW"}}};

}  // namespace

Choice choose(const Mode asked, const Obstacles& obstacles) {
  Choice choice{asked, asked, ""};
  const auto fall_back = [&choice](const Mode to, const std::string& obstacle) {
    choice.runs = to;
    choice.why += (choice.why.empty() ? "" : "; ") + obstacle;
  };
  if (has_callback(asked) && !obstacles.callback.empty()) {
    fall_back(asked == Mode::callback ? Mode::poll : Mode::dedicated_thread, obstacles.callback);
  }
  if (has_own_processor(choice.runs) && !obstacles.own_processor.empty()) {
    fall_back(Mode::shared_thread, obstacles.own_processor);
  }
  return choice;
}

std::string why_none_to_spare(const Standing& standing) {
  if (standing.started) {
    return "the runtime ran before MPI_Init: start no task, and make no imbrex::Runtime, before "
           "MPI_Init";
  }
  if (standing.of_machine == 1) return "this machine has one processor";
  if (standing.processors == 1) {
    return "this rank is bound to 1 of " + std::to_string(standing.of_machine) +
           " processors: give it two or more, as by mpirun --map-by :PE=2";
  }
  return std::to_string(standing.ranks) + " ranks share " + std::to_string(standing.processors) +
         " processors, and each needs two: start fewer ranks on a machine";
}

std::string describe(const Choice& choice) {
  std::string text(name_of(choice.runs));
  if (choice.why.empty()) return text;
  return text + " (" + std::string(name_of(choice.asked)) + " was asked for, but " + choice.why +
         ")";
}

std::string_view name_of(const Mode mode) noexcept {
  return table[static_cast<std::size_t>(mode)].plain;
}

Mode mode_of(const std::string_view option) noexcept {
  for (const Names& names : table) {
    if (option == names.plain || option == names.paper) return names.mode;
  }
  return Mode::automatic;
}

bool has_callback(const Mode mode) noexcept {
  return mode == Mode::callback || mode == Mode::monitor_thread;
}

bool has_own_processor(const Mode mode) noexcept {
  return mode == Mode::dedicated_thread || mode == Mode::monitor_thread;
}

bool workers_poll(const Mode mode) noexcept {
  return mode == Mode::automatic || mode == Mode::poll || mode == Mode::callback;
}

}  // namespace imbrex::mpi::threads
