// SPDX-License-Identifier: BSD-3-Clause
#include "base/threads/quota.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace imbrex::base {

namespace {

std::string text_of_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

bool lists(const std::string_view list, const std::string_view one) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == one) return true;
    begin = end + 1;
  }
  return false;
}

std::optional<long long> number_in(const std::string_view word) {
  long long number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// 0: no limit.
double ratio(const std::optional<long long> quota, const std::optional<long long> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// The limit of one group, whose files lie in `folder`.
double quota_of_group(const std::string& folder, const bool is_unified) {
  const auto number_of = [&](const char* const name) {
    const std::vector<std::string> words = words_of(text_of_file(folder + name));
    return words.size() == 1 ? number_in(words[0]) : std::nullopt;
  };
  if (!is_unified) return ratio(number_of("/cpu.cfs_quota_us"), number_of("/cpu.cfs_period_us"));
  // "max 100000", or a number and the period; the kernel always writes both.
  const std::vector<std::string> words = words_of(text_of_file(folder + "/cpu.max"));
  return words.size() == 2 ? ratio(number_in(words[0]), number_in(words[1])) : 0;
}

// A hierarchy of groups that may limit processors.
struct Hierarchy {
  bool is_unified;         // version 2
  std::string mount;       // where its files are
  std::string mount_root;  // the group that is there
};

// A space in a path of mountinfo is written as \040, and so are tabs, line ends and backslashes.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digit = [&](const std::size_t next) {
      return next < text.size() && text[next] >= '0' && text[next] <= '7' ? text[next] - '0' : -1;
    };
    if (text[at] == '\\' && digit(at + 1) >= 0 && digit(at + 2) >= 0 && digit(at + 3) >= 0) {
      plain += static_cast<char>(digit(at + 1) * 64 + digit(at + 2) * 8 + digit(at + 3));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

// A line of mountinfo: number, parent, device, root, mount point, options, more options, "-", type,
// source, options of the hierarchy (proc(5)).
std::vector<Hierarchy> hierarchies(const std::string& mounts) {
  std::vector<Hierarchy> found;
  std::istringstream stream(mounts);
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 7 || words.end() - dash < 4 || dash - words.begin() < 6) continue;
    const bool is_unified = dash[1] == "cgroup2";
    if (!is_unified && !(dash[1] == "cgroup" && lists(dash[3], "cpu"))) continue;
    found.push_back({is_unified, unescaped(words[4]), unescaped(words[3])});
  }
  return found;
}

// A line of /proc/PID/cgroup: "0::/path" for version 2, else number, controllers and path.
std::optional<std::string> group_of_process(const std::string& groups, const bool is_unified) {
  std::istringstream stream(groups);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    const bool is_it = is_unified ? line.starts_with("0:") && controllers.empty()
                                  : lists(controllers, "cpu");
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The path of the group below the mount point. A container may see the path on the host, or one
// outside of what is mounted: then the mount point is its group.
std::string below_mount(const std::string& group, const std::string& mount_root) {
  const std::string root = mount_root == "/" ? "" : mount_root;
  const bool is_inside = group.starts_with(root) &&
                         (group.size() == root.size() || group[root.size()] == '/') &&
                         group.find("/..") == std::string::npos;
  std::string path = is_inside ? group.substr(root.size()) : "";
  while (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

double processor_quota(const std::string& root) {
  double least = 0;
  const std::string groups = text_of_file(root + "/proc/self/cgroup");
  for (const Hierarchy& it : hierarchies(text_of_file(root + "/proc/self/mountinfo"))) {
    const std::optional<std::string> group = group_of_process(groups, it.is_unified);
    if (!group) continue;
    std::string path = below_mount(*group, it.mount_root);
    for (;;) {
      const double quota = quota_of_group(root + it.mount + path, it.is_unified);
      if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
  return least;
}

int threads_for(const double quota) noexcept {
  return static_cast<int>(std::clamp(std::ceil(quota), 1.0, static_cast<double>(INT_MAX)));
}

int part_of(const int threads, const int index, const int count) noexcept {
  const auto up_to = [&](const int end) { return static_cast<long long>(threads) * end / count; };
  return std::max(1, static_cast<int>(up_to(index + 1) - up_to(index)));
}

}  // namespace imbrex::base
