// SPDX-License-Identifier: BSD-3-Clause
// The league of a host teams construct, whose teams run one after the other; places, of which there
// are none; and the directive error.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "omp/context.hpp"
#include "omp/fatal.hpp"

namespace imbrex::omp {

namespace {

// The value of a conversion: its letter, or its long name.
std::string field_text(const std::string_view type) {
  const Context& context = current();
  const auto is = [type](const std::string_view letter, const std::string_view name) {
    return type == letter || type == name;
  };
  if (is("t", "team_num")) return std::to_string(context.variables.team_number);
  if (is("T", "num_teams")) return std::to_string(context.variables.teams);
  if (is("L", "nesting_level")) return std::to_string(context.team->level);
  if (is("n", "thread_num")) return std::to_string(context.number);
  if (is("N", "num_threads")) return std::to_string(context.team->size);
  if (is("a", "ancestor_tnum")) {
    return std::to_string(context.team->outer == nullptr ? -1 : context.team->outer_number);
  }
  if (is("P", "process_id")) return std::to_string(getpid());
  if (is("i", "native_thread_id")) return std::to_string(gettid());
  if (is("A", "thread_affinity")) return "0-" + std::to_string(settings().processors - 1);
  if (is("H", "host")) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
  }
  return "undefined";
}

// Takes one field, behind its %: [0][.][width]letter or [0][.][width]{name}. With a dot it stands
// at the right, with 0 and a dot zeros fill it.
std::string take_field(std::string_view& format) {
  const auto skip = [&format](const char wanted) {
    const bool found = format.starts_with(wanted);
    if (found) format.remove_prefix(1);
    return found;
  };
  const bool zeros = skip('0');
  const bool right = skip('.');
  std::size_t width = 0;
  while (!format.empty() && std::isdigit(static_cast<unsigned char>(format.front()))) {
    const auto digit = static_cast<std::size_t>(format.front() - '0');
    width = std::min<std::size_t>(width * 10 + digit, 4096);
    format.remove_prefix(1);
  }
  std::string_view type = format.substr(0, 1);
  std::size_t taken = type.size();
  if (const std::size_t end = format.find('}'); type == "{" && end != std::string_view::npos) {
    type = format.substr(1, end - 1);
    taken = end + 1;
  }
  std::string text = field_text(type);
  format.remove_prefix(taken);
  if (text.size() < width) {
    text.insert(right ? 0 : text.size(), width - text.size(), right && zeros ? '0' : ' ');
  }
  return text;
}

std::string affinity_text(std::string_view format) {
  std::string text;
  while (!format.empty()) {
    const char first = format.front();
    format.remove_prefix(1);
    if (first == '%' && !format.starts_with('%')) {
      text += take_field(format);
      continue;
    }
    if (first == '%') format.remove_prefix(1);
    text += first;
  }
  return text;
}

std::string fortran_text(const char* const text, const std::size_t length) {
  std::string_view trimmed(text, length);
  while (trimmed.ends_with(' ')) trimmed.remove_suffix(1);
  return std::string(trimmed);
}

// As much of it as there is room for, in C or Fortran; its whole length.
std::size_t give_text(const std::string& text, char* const to, const std::size_t room,
                      const bool fortran) {
  if (room == 0) return text.size();
  const std::size_t copied = std::min(text.size(), fortran ? room : room - 1);
  std::memcpy(to, text.data(), copied);
  if (fortran) {
    std::memset(to + copied, ' ', room - copied);
  } else {
    to[copied] = '\0';
  }
  return text.size();
}

std::string chosen_format(const std::string& given) {
  return affinity_text(given.empty() ? settings().affinity_format : given);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;
using Function = imbrex::omp::Function;

void GOMP_teams_reg(Function function, void* data, unsigned teams, unsigned thread_limit,
                    unsigned) {
  Context& context = current();
  const Variables before = context.variables;
  if (thread_limit == 0) thread_limit = static_cast<unsigned>(settings().teams_thread_limit);
  if (thread_limit != 0) {
    context.variables.thread_limit =
        static_cast<int>(std::min<unsigned>(thread_limit, INT32_MAX));
  }
  constexpr int by_default = 3;  // as libgomp
  const int wanted = teams != 0 ? static_cast<int>(teams) : settings().teams_max;
  context.variables.teams = wanted != 0 ? wanted : by_default;
  for (int team = 0; team < context.variables.teams; ++team) {
    context.variables.team_number = team;
    function(data);
  }
  context.variables.teams = before.teams;
  context.variables.team_number = before.team_number;
  context.variables.thread_limit = before.thread_limit;
}

// Of a target region: called at the beginning of each team, with `first` for the first.
bool GOMP_teams4(unsigned least, unsigned, unsigned thread_limit, bool first) {
  Variables& variables = current().variables;
  if (!first) {
    if (variables.team_number + 1 >= variables.teams) return false;
    ++variables.team_number;
    return true;
  }
  if (thread_limit != 0) {
    variables.thread_limit = static_cast<int>(std::min<unsigned>(thread_limit, INT32_MAX));
  }
  variables.teams = static_cast<int>(std::max(least, 1u));
  variables.team_number = 0;
  return true;
}
void GOMP_teams(unsigned, unsigned thread_limit) { (void)GOMP_teams4(1, 1, thread_limit, true); }

#define IMBREX_OMP_ASK(name, expression) \
  int name() { return expression; }      \
  int name##_() { return expression; }

IMBREX_OMP_ASK(omp_get_num_teams, current().variables.teams)
IMBREX_OMP_ASK(omp_get_team_num, current().variables.team_number)
IMBREX_OMP_ASK(omp_get_max_teams, settings().teams_max)
IMBREX_OMP_ASK(omp_get_teams_thread_limit, settings().teams_thread_limit)
IMBREX_OMP_ASK(omp_get_num_places, 0)
IMBREX_OMP_ASK(omp_get_place_num, -1)
IMBREX_OMP_ASK(omp_get_partition_num_places, 0)

void omp_set_num_teams(int teams) {
  if (teams >= 0) settings().teams_max = teams;
}
void omp_set_num_teams_(const std::int32_t* teams) { omp_set_num_teams(*teams); }
void omp_set_num_teams_8_(const std::int64_t* teams) {
  omp_set_num_teams(static_cast<int>(*teams));
}
void omp_set_teams_thread_limit(int limit) {
  if (limit >= 0) settings().teams_thread_limit = limit;
}
void omp_set_teams_thread_limit_(const std::int32_t* limit) { omp_set_teams_thread_limit(*limit); }
void omp_set_teams_thread_limit_8_(const std::int64_t* limit) {
  omp_set_teams_thread_limit(static_cast<int>(*limit));
}

int omp_get_place_num_procs(int) { return 0; }
std::int32_t omp_get_place_num_procs_(const std::int32_t*) { return 0; }
std::int32_t omp_get_place_num_procs_8_(const std::int64_t*) { return 0; }
void omp_get_place_proc_ids(int, int*) {}
void omp_get_place_proc_ids_(const std::int32_t*, std::int32_t*) {}
void omp_get_place_proc_ids_8_(const std::int64_t*, std::int64_t*) {}
void omp_get_partition_place_nums(int*) {}
void omp_get_partition_place_nums_(std::int32_t*) {}
void omp_get_partition_place_nums_8_(std::int64_t*) {}

void omp_set_affinity_format(const char* format) { settings().affinity_format = format; }
void omp_set_affinity_format_(const char* format, std::size_t length) {
  settings().affinity_format = fortran_text(format, length);
}
std::size_t omp_get_affinity_format(char* to, std::size_t room) {
  return give_text(settings().affinity_format, to, room, false);
}
std::int32_t omp_get_affinity_format_(char* to, std::size_t room) {
  return static_cast<std::int32_t>(give_text(settings().affinity_format, to, room, true));
}
std::size_t omp_capture_affinity(char* to, std::size_t room, const char* format) {
  return give_text(chosen_format(format == nullptr ? "" : format), to, room, false);
}
std::int32_t omp_capture_affinity_(char* to, const char* format, std::size_t room,
                                   std::size_t length) {
  return static_cast<std::int32_t>(
      give_text(chosen_format(fortran_text(format, length)), to, room, true));
}
void omp_display_affinity(const char* format) {
  std::fprintf(stdout, "%s\n", chosen_format(format == nullptr ? "" : format).c_str());
}
void omp_display_affinity_(const char* format, std::size_t length) {
  std::fprintf(stdout, "%s\n", chosen_format(fortran_text(format, length)).c_str());
}

void GOMP_warning(const char* text, std::size_t length) {
  if (text == nullptr) return warn("error directive encountered");
  warn("error directive encountered: %.*s",
       static_cast<int>(length == SIZE_MAX ? std::strlen(text) : length), text);
}
void GOMP_error(const char* text, std::size_t length) {
  if (text == nullptr) fatal("fatal error: error directive encountered");
  fatal("fatal error: error directive encountered: %.*s",
        static_cast<int>(length == SIZE_MAX ? std::strlen(text) : length), text);
}

}
#pragma GCC visibility pop
