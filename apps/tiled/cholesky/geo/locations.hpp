// SPDX-License-Identifier: BSD-3-Clause
// Reads places and what was measured there from a comma-separated file. Knows nothing of MPI.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cholesky {

struct Site {
  double latitude;   // degrees
  double longitude;  // degrees
  double value;
  int line;  // of the file
};

// what() names the line and what is wrong with it.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The first line names the columns, of which `lat`, `lon` and `value_column` are used. Fields may
// stand in double quotes, a quote within doubled (RFC 4180), but may not contain line ends.
// Throws FileError.
[[nodiscard]] std::vector<Site> parse_sites(std::string_view text, std::string_view value_column);

// The whole file. Throws FileError with the system's reason.
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace cholesky
