// SPDX-License-Identifier: BSD-3-Clause
// The OMP_* variables. A malformed value is reported in libgomp's words, and ignored.
#include "omp/environment/settings.hpp"

#include <sched.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/environment/machine.hpp"

namespace imbrex::omp {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

bool is(const std::string_view text, const std::string_view word) {
  return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
}

// The variable's value, null if it is not set.
std::optional<std::string_view> value_of(const char* const name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return trimmed(value);
}

std::optional<long long> number_in(const std::string_view text) {
  long long number = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const auto end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// LLVM's runtime takes the least valid number for a smaller one.
bool is_too_small(const char* const name, const std::optional<long long> number,
                  const long long least) {
  if (!is_llvm() || !number || *number < 0 || *number >= least) return false;
  warn("%s: %lld is too small; %lld is used", name, *number, least);
  return true;
}

void read_number(const char* const name, int& number, const long long least) {
  const auto value = value_of(name);
  if (!value) return;
  const auto parsed = number_in(*value);
  if (is_too_small(name, parsed, least)) {
    number = static_cast<int>(least);
    return;
  }
  if (!parsed || *parsed < least || *parsed > INT32_MAX) return refuse_variable(name);
  number = static_cast<int>(*parsed);
}

// LLVM's runtime takes more words.
std::optional<bool> boolean_in(const std::string_view text) {
  const auto is_one_of = [text](const auto& words) {
    return std::ranges::any_of(words, [text](const char* const word) { return is(text, word); });
  };
  if (is(text, "true")) return true;
  if (is(text, "false")) return false;
  if (!is_llvm()) return std::nullopt;
  static constexpr const char* yes[] = {"1", "yes", "on", ".true.", "enabled"};
  static constexpr const char* no[] = {"0", "no", "off", ".false.", "disabled"};
  if (is_one_of(yes)) return true;
  if (is_one_of(no)) return false;
  return std::nullopt;
}

void read_boolean(const char* const name, bool& flag) {
  const auto value = value_of(name);
  if (!value) return;
  const auto parsed = boolean_in(*value);
  if (!parsed) return refuse_variable(name);
  flag = *parsed;
}

// Items between commas, each parsed by `parse`; empty if an item is malformed.
template <class Parse>
std::vector<int> list_in(std::string_view text, Parse parse) {
  std::vector<int> items;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::optional<int> item = parse(trimmed(text.substr(0, comma)));
    if (!item) return {};
    items.push_back(*item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

// LLVM's runtime takes a comma at the end.
void read_threads(Settings& now) {
  constexpr const char* name = "OMP_NUM_THREADS";
  auto value = value_of(name);
  if (!value) return;
  if (is_llvm() && value->size() > 1 && value->ends_with(',')) value->remove_suffix(1);
  if (is_too_small(name, number_in(*value), 1)) {
    now.threads_by_level = {1};
  } else {
    now.threads_by_level = list_in(*value, [](const std::string_view item) -> std::optional<int> {
      const auto number = number_in(item);
      if (!number || *number < 1 || *number > INT32_MAX) return std::nullopt;
      return static_cast<int>(*number);
    });
  }
  if (now.threads_by_level.empty()) return refuse_variable(name);
  now.initial.threads = now.threads_by_level.front();
}

std::optional<Schedule> kind_in(const std::string_view text) {
  if (is(text, "static")) return Schedule::by_blocks;
  if (is(text, "dynamic")) return Schedule::dynamic;
  if (is(text, "guided")) return Schedule::guided;
  if (is(text, "auto")) return Schedule::automatic;
  if (!is_llvm()) return std::nullopt;
  if (is(text, "trapezoidal")) return Schedule::trapezoidal;
  if (is(text, "static_steal")) return Schedule::dynamic;  // as LLVM's runtime answers, too
  return std::nullopt;
}

// A value of OMP_SCHEDULE: "[modifier:]kind[,chunk]".
struct ScheduleText {
  std::string_view modifier;
  std::string_view kind;
  std::optional<std::string_view> chunk;
};
ScheduleText split_schedule(std::string_view text) {
  ScheduleText parts;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    parts.modifier = trimmed(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  const std::size_t comma = text.find(',');
  parts.kind = trimmed(text.substr(0, comma));
  if (comma != std::string_view::npos) parts.chunk = trimmed(text.substr(comma + 1));
  return parts;
}

// LLVM's runtime ignores the whole value if the chunk is no number, but takes 1 for 0, and has no
// chunks in "auto".
void read_schedule(Variables& initial) {
  const auto value = value_of("OMP_SCHEDULE");
  if (!value) return;
  const ScheduleText text = split_schedule(*value);
  const auto kind = kind_in(text.kind);
  const auto chunk = text.chunk ? number_in(*text.chunk) : 0;
  const bool has_modifier = value->find(':') != std::string_view::npos;
  const bool is_monotonic = is(text.modifier, "monotonic");
  const bool is_known =
      kind && (!has_modifier || is_monotonic || is(text.modifier, "nonmonotonic"));
  const bool is_chunk = chunk && *chunk >= 0 && *chunk <= INT32_MAX;
  if (is_llvm() && (!is_known || !is_chunk)) return refuse_variable("OMP_SCHEDULE");
  if (!is_known) return warn("Unknown value for environment variable OMP_SCHEDULE");
  initial.schedule = *kind;
  initial.monotonic =
      is_monotonic || (*kind == Schedule::by_blocks && !has_modifier && !is_llvm());
  initial.chunk = *kind == Schedule::by_blocks ? 0 : 1;
  if (!is_chunk) {
    return warn("Invalid value for chunk size in environment variable OMP_SCHEDULE");
  }
  if (is_llvm() && text.chunk && (*chunk == 0 || *kind == Schedule::automatic)) {
    return warn("OMP_SCHEDULE: the chunk size %lld is ignored", *chunk);
  }
  if (*chunk != 0) initial.chunk = static_cast<int>(*chunk);
}

// Kilobytes, if no unit says otherwise.
std::optional<std::size_t> bytes_in(const std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = number_in(text.substr(0, digits));
  const std::string_view unit = trimmed(text.substr(digits));
  int shift = 10;
  if (unit.size() == 1) {
    const auto at = std::string_view("bkmg").find(
        static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
    shift = at == std::string_view::npos ? -1 : static_cast<int>(10 * at);
  }
  if (!number || unit.size() > 1 || shift < 0 || (*number << shift) >> shift != *number) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(*number) << shift;
}

// 0: the system's default. Calls refused(name) for a malformed value.
std::size_t read_stack_bytes(void (*const refused)(const char* name)) {
  for (const char* const name : {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"}) {
    const auto value = value_of(name);
    if (!value) continue;
    if (const auto bytes = bytes_in(*value)) return *bytes;
    refused(name);
  }
  return 0;
}

// The allowed nesting depth of active regions: as given, or as other variables need it.
void read_levels(Settings& now) {
  int levels = -1;
  read_number("OMP_MAX_ACTIVE_LEVELS", levels, 0);
  if (levels >= 0) {
    now.initial.active_levels_max =
        static_cast<std::uint8_t>(std::min(levels, active_levels_supported));
    return;
  }
  bool nested = now.threads_by_level.size() > 1 || now.bind_by_level.size() > 1;
  read_boolean("OMP_NESTED", nested);
  if (nested) now.initial.active_levels_max = active_levels_supported;
}

void read_wait_policy(Settings& now) {
  const auto value = value_of("OMP_WAIT_POLICY");
  if (!value) return;
  if (is(*value, "active")) {
    now.wait_policy = 1;
  } else if (is(*value, "passive")) {
    now.wait_policy = 0;
  } else {
    refuse_variable("OMP_WAIT_POLICY");
  }
}

constexpr std::string_view allocator_names[] = {
    "omp_default_mem_alloc",  "omp_large_cap_mem_alloc", "omp_const_mem_alloc",
    "omp_high_bw_mem_alloc",  "omp_low_lat_mem_alloc",   "omp_cgroup_mem_alloc",
    "omp_pteam_mem_alloc",    "omp_thread_mem_alloc"};

void read_allocator(Variables& initial) {
  const auto value = value_of("OMP_ALLOCATOR");
  if (!value) return;
  for (std::uintptr_t index = 0; index < std::size(allocator_names); ++index) {
    if (is(*value, allocator_names[index])) {
      initial.allocator = index + 1;
      return;
    }
  }
  refuse_variable("OMP_ALLOCATOR");
}

// The host is the only device: regions run there, whatever the variable says.
void read_offload(Settings& now) {
  const auto value = value_of("OMP_TARGET_OFFLOAD");
  if (!value) return;
  const char* const named = offload_named(*value);
  if (named == nullptr) return refuse_variable("OMP_TARGET_OFFLOAD");
  now.offload.store(named, std::memory_order_relaxed);
}

// The number of polls of a waiting thread before it sleeps; a number with k, m, g or t, or
// "infinite".
void read_spin_count(Settings& now) {
  constexpr long long by_default = 3200, active = 300'000, most = 1'000'000'000'000;
  now.spin_count = now.wait_policy > 0 ? active : now.wait_policy == 0 ? 0 : by_default;
  const auto value = value_of("GOMP_SPINCOUNT");
  if (!value) return;
  if (is(*value, "infinite") || is(*value, "infinity")) {
    now.spin_count = most;
    return;
  }
  const std::size_t digits = std::min(value->find_first_not_of("0123456789"), value->size());
  const auto number = number_in(value->substr(0, digits));
  const std::string_view unit = trimmed(value->substr(digits));
  static constexpr long long units[] = {1000, 1'000'000, 1'000'000'000, 1'000'000'000'000};
  const std::size_t at = unit.size() == 1 ? std::string_view("kmgt").find(static_cast<char>(
                                                std::tolower(static_cast<unsigned char>(unit[0]))))
                                          : std::string_view::npos;
  const bool valid = number && (unit.empty() || at != std::string_view::npos);
  if (!valid) return refuse_variable("GOMP_SPINCOUNT");
  const long long factor = unit.empty() ? 1 : units[at];
  now.spin_count = *number > most / factor ? most : *number * factor;
}

// Variables of LLVM's runtime, for programs that need it.

// Milliseconds for which a waiting thread looks for work: only "none" and "for ever" have a
// counterpart here, as OMP_WAIT_POLICY.
void read_block_time(Settings& now) {
  if (now.wait_policy >= 0) now.block_time_ms = now.wait_policy > 0 ? INT32_MAX : 0;
  const auto value = value_of("KMP_BLOCKTIME");
  if (!value) return;
  const std::size_t digits = std::min(value->find_first_not_of("0123456789"), value->size());
  const auto number = number_in(value->substr(0, digits));
  const std::string_view unit = trimmed(value->substr(digits));
  if (is(*value, "infinite")) {
    now.block_time_ms = INT32_MAX;
  } else if (number && (unit.empty() || is(unit, "ms") || is(unit, "us"))) {
    now.block_time_ms = static_cast<int>(std::min<long long>(*number, INT32_MAX));
    if (is(unit, "us")) now.block_time_ms /= 1000;
  } else {
    return refuse_variable("KMP_BLOCKTIME");
  }
  if (now.wait_policy < 0 && now.block_time_ms == INT32_MAX) now.wait_policy = 1;
  if (now.wait_policy < 0 && now.block_time_ms == 0) now.wait_policy = 0;
}

// One line for all variables that are set and not read.
void name_unread() {
  static constexpr std::string_view read[] = {"KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_STACKSIZE",
                                              "KMP_WARNINGS", "KMP_SETTINGS"};
  if (!warns_of_unread()) return;
  std::string names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("KMP_") || std::ranges::find(read, name) != std::end(read)) continue;
    names.append(names.empty() ? "" : ", ").append(name);
  }
  if (!names.empty()) warn("imbrex does not read %s", names.c_str());
}

constexpr const char* schedule_names[] = {"RUNTIME", "STATIC",     "DYNAMIC", "GUIDED",
                                           "AUTO",    "TRAPEZOIDAL"};
constexpr const char* bind_names[] = {"FALSE", "TRUE", "MASTER", "CLOSE", "SPREAD"};

void print_list(const char* const name, const std::string& first, const std::string& rest) {
  std::fprintf(stderr, "  %s = '%s%s'\n", name, first.c_str(), rest.c_str());
}

std::string schedule_text(const Variables& initial) {
  std::string text;
  const bool blocks = initial.schedule == Schedule::by_blocks;
  if (initial.monotonic && !blocks) text = "MONOTONIC:";
  const bool says_both = !is_llvm();  // LLVM's: one modifier only
  if (!initial.monotonic && blocks && says_both) text = "NONMONOTONIC:";
  text += schedule_names[static_cast<int>(initial.schedule)];
  if (initial.chunk != (blocks ? 0 : 1)) text.append(",").append(std::to_string(initial.chunk));
  return text;
}

void display(const Settings& now, const bool verbose) {
  const Variables& initial = now.initial;
  const auto boolean = [](const bool value) { return value ? "TRUE" : "FALSE"; };
  const auto print = [](const char* const name, const std::string& value) {
    print_list(name, value, "");
  };
  std::fputs("\nOPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n", stderr);
  print("OMP_DYNAMIC", boolean(initial.dynamic));
  print("OMP_NESTED", boolean(initial.active_levels_max > 1));
  std::string rest;
  for (std::size_t level = 1; level < now.threads_by_level.size(); ++level) {
    rest.append(",").append(std::to_string(now.threads_by_level[level]));
  }
  print_list("OMP_NUM_THREADS", std::to_string(initial.threads), rest);
  print("OMP_SCHEDULE", schedule_text(initial));
  rest.clear();
  for (std::size_t level = 1; level < now.bind_by_level.size(); ++level) {
    rest.append(",").append(bind_names[now.bind_by_level[level]]);
  }
  print_list("OMP_PROC_BIND", bind_names[initial.bind], rest);
  print("OMP_PLACES", text_of(now.places));
  print("OMP_STACKSIZE", std::to_string(now.stack_bytes));
  print("OMP_WAIT_POLICY", now.wait_policy > 0 ? "ACTIVE" : "PASSIVE");
  const bool limited = initial.thread_limit != INT32_MAX;
  print("OMP_THREAD_LIMIT", std::to_string(limited ? static_cast<unsigned>(initial.thread_limit)
                                                   : UINT32_MAX));
  print("OMP_MAX_ACTIVE_LEVELS", std::to_string(initial.active_levels_max));
  print("OMP_NUM_TEAMS", std::to_string(now.teams_max));
  print("OMP_TEAMS_THREAD_LIMIT", std::to_string(now.teams_thread_limit));
  print("OMP_CANCELLATION", boolean(now.cancellation));
  print("OMP_DEFAULT_DEVICE", std::to_string(initial.device));
  print("OMP_MAX_TASK_PRIORITY", std::to_string(now.priority_max));
  print("OMP_DISPLAY_AFFINITY", boolean(now.display_affinity));
  print("OMP_AFFINITY_FORMAT", now.affinity_format);
  print("OMP_ALLOCATOR", std::string(allocator_names[initial.allocator - 1]));
  print("OMP_TARGET_OFFLOAD", now.offload.load(std::memory_order_relaxed));
  if (verbose) {
    print("GOMP_CPU_AFFINITY", "");
    print("GOMP_STACKSIZE", std::to_string(now.stack_bytes));
    print("GOMP_SPINCOUNT", std::to_string(now.spin_count));
  }
  std::fputs("OPENMP DISPLAY ENVIRONMENT END\n", stderr);
}

// Displays the settings if OMP_DISPLAY_ENV asks for it.
void display_if_requested(const Settings& now) {
  const auto wanted = value_of("OMP_DISPLAY_ENV");
  if (!wanted) return;
  if (is(*wanted, "true") || is(*wanted, "1")) {
    display(now, false);
  } else if (is(*wanted, "verbose")) {
    display(now, true);
  } else if (!is(*wanted, "false") && !is(*wanted, "0")) {
    refuse_variable("OMP_DISPLAY_ENV");
  }
}

}  // namespace

const char* offload_named(const std::string_view text) noexcept {
  for (const char* const name : {"DEFAULT", "MANDATORY", "DISABLED"}) {
    if (is(text, name)) return name;
  }
  return nullptr;
}

int processors_granted(const int allowed) {
  return std::max(1, std::min(allowed, detail::threads_by_quota()));
}

void read_settings(Settings& now) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(processor, &mask)) now.allowed.push_back(processor);
    }
  }
  now.processors = processors_granted(static_cast<int>(now.allowed.size()));
  now.initial.threads = now.processors;
  now.initial.chunk = 1;
  if (is_llvm()) {  // each library's own default
    now.initial.schedule = Schedule::by_blocks;
    now.initial.chunk = 0;
    now.affinity_format = "OMP: pid %P tid %i thread %n bound to OS proc set {%A}";
  } else {
    now.affinity_format = "level %L thread %i affinity %A";
  }
  read_boolean("OMP_DYNAMIC", now.initial.dynamic);
  read_boolean("OMP_CANCELLATION", now.cancellation);
  read_boolean("OMP_DISPLAY_AFFINITY", now.display_affinity);
  read_number("OMP_DEFAULT_DEVICE", now.initial.device, 0);
  read_number("OMP_MAX_TASK_PRIORITY", now.priority_max, 0);
  read_number("OMP_THREAD_LIMIT", now.initial.thread_limit, 1);
  read_threads(now);
  read_number("OMP_NUM_TEAMS", now.teams_max, 1);
  read_number("OMP_TEAMS_THREAD_LIMIT", now.teams_thread_limit, 1);
  read_places(now);
  read_levels(now);
  read_schedule(now.initial);
  read_wait_policy(now);
  if (is_llvm()) {
    read_block_time(now);
    name_unread();
  }
  read_spin_count(now);
  read_offload(now);
  read_allocator(now.initial);
  if (const auto format = value_of("OMP_AFFINITY_FORMAT")) now.affinity_format = *format;
  now.stack_bytes = read_stack_bytes(&refuse_variable);
}

Settings& settings() noexcept {
  static Settings* const never_destroyed = [] {
    auto* const now = new Settings;
    read_settings(*now);
    display_if_requested(*now);
    return now;
  }();
  return *never_destroyed;
}

void display_settings(const bool verbose) { display(settings(), verbose); }

bool warns_of_unread() {
  const auto warnings = value_of("KMP_WARNINGS");
  return !warnings || boolean_in(*warnings) != false;
}

Suspending suspending() {
  static const Suspending where = [] {
    const std::string value = detail::text_option("OMP_SUSPEND");
    if (value == "explicit") return Suspending::explicit_tasks;
    return value == "never" ? Suspending::nowhere : Suspending::everywhere;
  }();
  return where;
}

std::size_t task_stack_bytes() noexcept {
  std::size_t bytes = read_stack_bytes([](const char*) {});
  rlimit limit{};
  if (bytes == 0 && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = limit.rlim_cur;
  }
  constexpr std::size_t by_default = std::size_t{8} << 20;
  return std::clamp(bytes != 0 ? bytes : by_default, std::size_t{16} << 10, std::size_t{1} << 30);
}

}  // namespace imbrex::omp
