// SPDX-License-Identifier: BSD-3-Clause
// The league of a host teams construct, whose teams run one after the other; and the directive
// error.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "omp/region/context.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

[[gnu::cold, gnu::noinline]] void tell_error(const bool is_fatal, const char* const text,
                                             const std::size_t length) {
  if (text == nullptr) return tools::error(is_fatal, "");
  const std::size_t bytes = length == SIZE_MAX ? std::strlen(text) : length;
  tools::error(is_fatal, std::string(text, bytes).c_str());
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

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

// For a target region: called at the beginning of each team, with `first` for the first.
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

IMBREX_OMP_ASK(omp_get_num_teams, caller().variables.teams)
IMBREX_OMP_ASK(omp_get_team_num, caller().variables.team_number)
IMBREX_OMP_ASK(omp_get_max_teams, settings().teams_max)
IMBREX_OMP_ASK(omp_get_teams_thread_limit, settings().teams_thread_limit)

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

void GOMP_warning(const char* text, std::size_t length) {
  tools::entered();
  if (tools::on()) [[unlikely]] tell_error(false, text, length);
  if (text == nullptr) return warn("error directive encountered");
  warn("error directive encountered: %.*s",
       static_cast<int>(length == SIZE_MAX ? std::strlen(text) : length), text);
}
void GOMP_error(const char* text, std::size_t length) {
  tools::entered();
  if (tools::on()) [[unlikely]] tell_error(true, text, length);
  if (text == nullptr) fatal("fatal error: error directive encountered");
  fatal("fatal error: error directive encountered: %.*s",
        static_cast<int>(length == SIZE_MAX ? std::strlen(text) : length), text);
}

}
#pragma GCC visibility pop
