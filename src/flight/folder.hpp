// SPDX-License-Identifier: BSD-3-Clause
// The folder of the flight recorder: $IMBREX_FLIGHT_DIR, else $TMPDIR/imbrex-UID/JOB. It is the
// user's alone, and holds few files: those of dead processes go, the oldest first.
#pragma once

#include <string>

namespace imbrex::flight {

struct Folder {
  std::string path;     // empty: there is none
  std::string problem;  // why
  std::string job;
};

// Makes the folder, and makes room in it. `own`: the user's choice, or empty.
[[nodiscard]] Folder make_folder(const std::string& own);
// The name of this process's file: its host and its number.
[[nodiscard]] std::string file_name();

[[nodiscard]] std::string host_name();

}  // namespace imbrex::flight
