// SPDX-License-Identifier: BSD-3-Clause
// The file of one process, read: what the flight recorder (flight/format.hpp) has of it. The
// process may run, or have died while it wrote: a text that is missing is shown as its address, and
// a number that cannot be is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::explain {

enum class Life : std::uint8_t {
  runs,
  gone,     // without having ended as programs do
  failed,   // it has ended with an error
  stuck,    // imbrex has ended it, since no task could ever run again
  unknown   // it was on another host
};

struct ShownTask {
  std::uint64_t id = 0;  // 0: none
  std::string text = {};  // `"name" (file:line)`
};

struct ShownWait {
  ShownTask task = {};
  detail::WaitKind kind = detail::WaitKind::event;
  std::string call = {};
  int peer = -1;
  int tag = -1;
  std::uint64_t bytes = 0;
  bool on_world = false;  // its communicator is MPI_COMM_WORLD
  std::uint64_t since = 0;  // tenths of a second of the recording
};

struct ShownEvent {
  detail::FlightEvent kind = detail::FlightEvent::none;
  std::uint64_t task = 0;
  std::string what = {};
  int peer = -1;
  int tag = -1;
  std::uint64_t size = 0;
  std::uint64_t at = 0;  // tenths
};

struct ShownWorker {
  ShownTask task = {};
  std::uint64_t tasks = 0, steals = 0, suspensions = 0, polls = 0;
  std::uint64_t in_task = 0, idle = 0, overhead = 0;  // looks
  std::uint64_t all_events = 0;
  std::vector<ShownEvent> events = {};  // the last ones, in their order
};

struct Recording {
  std::string path = {};
  int rank = 0;
  int ranks = 0;  // 0: without MPI
  int process = 0;
  std::string host = {}, job = {}, program = {};
  Life life = Life::unknown;
  std::uint64_t begun_ns = 0;  // since 1970
  std::uint64_t tenths = 0;    // since then, at the last sign of life
  std::uint64_t ready = 0;     // tasks
  std::uint64_t in_flight = 0;  // operations of MPI
  std::vector<ShownWait> waits = {};
  std::vector<ShownWorker> workers = {};
  std::vector<ShownEvent> completed = {};  // the last operations of MPI
  std::vector<ShownEvent> resumed = {};    // the last waits that took longer than a moment
  // What the process itself knew, as a text of diagnosis/; empty if something has happened since.
  std::string facts = {};

  // Tenths of a second between `then` and the last sign of life.
  [[nodiscard]] std::uint64_t ago(const std::uint64_t then) const noexcept {
    return tenths > then ? tenths - then : 0;
  }
  [[nodiscard]] std::uint64_t last_ns() const noexcept { return begun_ns + tenths * 100'000'000; }
};

// Throws Error, which names the file, if this is no file of this version.
[[nodiscard]] Recording read_recording(const std::string& path);

// The files of the folders; a path may also be a file. Throws Error if there is none.
[[nodiscard]] std::vector<std::string> find_files(const std::vector<std::string>& paths);

// From now on the process of the file shows more of itself, for some seconds.
void watch(const std::string& path) noexcept;

}  // namespace imbrex::explain
