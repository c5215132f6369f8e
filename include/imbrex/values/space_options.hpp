// SPDX-License-Identifier: BSD-3-Clause
// The settings of a space of data, and what it counts. Included by data.hpp.
#pragma once

#include <cstdint>
#include <string>

namespace imbrex {

/// Settings of a Space. Thread safety: a value.
struct SpaceOptions {
  // The number of tasks of this rank that are launched and have not ended, above which launch()
  // waits. 0: any number. By default it is large enough to find the broadcasts of a factorisation,
  // and small beside the memory of its tasks.
  std::int64_t tasks_ahead = 4096;
  std::string name = "space";  // for messages
};

/// Counts of one rank since the space was made, and bytes. Thread safety: a value.
struct SpaceCounters {
  std::uint64_t tasks = 0;            // that ran here
  std::uint64_t inserted = 0;         // inserted here, wherever they ran
  std::uint64_t versions_sent = 0;    // as root: versions that went to another rank
  std::uint64_t broadcasts = 0;       // versions that went to more than one rank, at once or not
  std::uint64_t broadcasts_full = 0;  // broadcasts with one list that held all receiving ranks
  std::uint64_t copies_from_root = 0;   // messages with data that this rank sent as the root
  std::uint64_t copies_from_relay = 0;  // messages with data that this rank sent as a relay
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t copies_bytes_peak = 0;  // the most memory that copies used at once
};

}  // namespace imbrex
