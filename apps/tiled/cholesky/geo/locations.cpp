// SPDX-License-Identifier: BSD-3-Clause
#include "locations.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <sstream>

namespace cholesky {
namespace {

[[noreturn]] void fail(int line, const std::string& what) {
  throw FileError(fmt::format("line {}: {}", line, what));
}

// One line, cut at the commas that are not in quotes.
std::vector<std::string> split(std::string_view line, int number) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) {
        fields.back() += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) fail(number, "a quoted field has no end");
  return fields;
}

struct Columns {
  std::size_t count, latitude, longitude, value;
};

std::size_t find_column(const std::vector<std::string>& names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  fail(1, fmt::format("no column is called \"{}\"; there are: {}", name, all));
}

Columns read_header(std::string_view line, std::string_view value_column) {
  const std::vector<std::string> names = split(line, 1);
  return {names.size(), find_column(names, "lat"), find_column(names, "lon"),
          find_column(names, value_column)};
}

double number(const std::string& field, std::string_view name, int line) {
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [rest, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value)) {
    fail(line, fmt::format("{} is \"{}\", which is not a number", name, field));
  }
  return value;
}

double angle(const std::string& field, std::string_view name, double limit, int line) {
  const double degrees = number(field, name, line);
  if (std::abs(degrees) > limit) {
    fail(line, fmt::format("{} is {}, outside -{} to {} degrees", name, field, limit, limit));
  }
  return degrees;
}

}  // namespace

std::vector<Site> parse_sites(std::string_view text, std::string_view value_column) {
  std::vector<Site> sites;
  Columns columns{};
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = text.find('\n');
    std::string_view row = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    if (line == 1) {
      columns = read_header(row, value_column);
      continue;
    }
    if (row.empty()) continue;
    const std::vector<std::string> fields = split(row, line);
    if (fields.size() != columns.count) {
      fail(line, fmt::format("{} fields, but the first line names {} columns", fields.size(),
                             columns.count));
    }
    sites.push_back({angle(fields[columns.latitude], "lat", 90, line),
                     angle(fields[columns.longitude], "lon", 180, line),
                     number(fields[columns.value], value_column, line), line});
  }
  if (line == 0) throw FileError("the file is empty");
  if (sites.empty()) throw FileError("the file has a first line, but no data");
  return sites;
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw FileError(std::strerror(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad() || (text.fail() && text.tellp() > 0)) throw FileError(std::strerror(errno));
  return std::move(text).str();
}

}  // namespace cholesky
