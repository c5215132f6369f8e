// SPDX-License-Identifier: BSD-3-Clause
// The functions that ask for places, and the format in which threads print their affinity.
#include "omp/region/affinity.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/arch.hpp"
#include "omp/region/context.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/environment/machine.hpp"
#include "omp/environment/place_list.hpp"

namespace imbrex::omp {

namespace {

int place_count() noexcept { return static_cast<int>(settings().places.size()); }

const Place& place_at(const int place) noexcept {
  static const Place nowhere;
  if (place < 0 || place >= place_count()) return nowhere;
  return settings().places[static_cast<std::size_t>(place)];
}

// The seat of the calling thread, which is bound now if it was not bound before.
Seat own_seat() {
  const Context& context = caller();
  if (place_count() != 0 && context.team->seats.empty()) take_first_seat(initial());
  return seat_of(context);
}

template <class Number>
void give_partition(Number* const places) {
  const Seat seat = own_seat();
  for (int index = 0; index < seat.count; ++index) places[index] = seat.first + index;
}

// The value of a conversion: its letter, or its long name.
std::string field_text(const std::string_view type) {
  const Context& context = caller();
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
  if (is("i", "native_thread_id")) {
    if (is_llvm()) return std::to_string(base::kernel_thread_id());
    char text[20];
    std::snprintf(text, sizeof text, "0x%lx", static_cast<unsigned long>(base::this_thread()));
    return text;
  }
  if (is("A", "thread_affinity")) {
    const Seat seat = seat_of(context);
    return ranges_of(seat.place < 0 ? settings().allowed : place_at(seat.place));
  }
  if (is("H", "host")) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return name;
  }
  if (is_llvm()) return "undefined";  // as libomp
  if (type.size() > 1) {
    fatal("unsupported long type name '%.*s' in affinity format", static_cast<int>(type.size()),
          type.data());
  }
  fatal("unsupported type %.*s in affinity format", static_cast<int>(type.size()), type.data());
}

// Fills up to `width` with zeros after a sign, or after the 0x of a thread's number.
std::string with_zeros(const std::string& text, const std::size_t width) {
  const std::size_t prefix = text.starts_with('-') ? 1 : text.starts_with("0x") ? 2 : 0;
  const std::size_t zeros = text.size() < width ? width - text.size() : 0;
  return text.substr(0, prefix) + std::string(zeros, '0') + text.substr(prefix);
}

// Takes one field, after its %: [0][.][width]letter or [0][.][width]{name}. With a dot the text is
// right-aligned; with 0 and a dot a number is filled with zeros.
std::string take_field(std::string_view& format) {
  const auto skip = [&format](const char wanted) {
    const bool found = format.starts_with(wanted);
    if (found) format.remove_prefix(1);
    return found;
  };
  const bool zeros = skip('0');
  const bool right = skip('.');
  const bool is_strict = !is_llvm();  // libomp refuses nothing
  if (is_strict && zeros && !right) fatal("leading zero not followed by dot in affinity format");
  std::size_t width = 0;
  while (!format.empty() && std::isdigit(static_cast<unsigned char>(format.front()))) {
    const auto digit = static_cast<std::size_t>(format.front() - '0');
    width = std::min<std::size_t>(width * 10 + digit, 4096);
    format.remove_prefix(1);
  }
  if (is_strict && right && width == 0) {
    fatal("leading zero or right justification in affinity format requires size");
  }
  std::string_view type = format.substr(0, 1);
  std::size_t taken = type.size();
  if (type == "{") {
    const std::size_t end = format.find('}');
    if (is_strict && end == std::string_view::npos) {
      fatal("unterminated long type name '%s' in affinity format",
            std::string(format.substr(1)).c_str());
    }
    type = format.substr(1, std::min(end, format.size()) - 1);
    taken = std::min(end, format.size() - 1) + 1;
  }
  const bool is_text = type == "A" || type == "thread_affinity" || type == "H" || type == "host";
  std::string text = field_text(type);
  format.remove_prefix(taken);
  if (zeros && !is_text) return with_zeros(text, width);
  if (text.size() < width) text.insert(right ? 0 : text.size(), width - text.size(), ' ');
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

// Copies as much of the text as there is room for, in C or Fortran. Returns its full length.
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

// libgomp writes to standard error, libomp to standard output.
void display_line(const std::string& line) {
  std::fprintf(is_llvm() ? stdout : stderr, "%s\n", line.c_str());
}

std::string chosen_format(const std::string& given) {
  return affinity_text(given.empty() ? settings().affinity_format : given);
}

}  // namespace

void display_affinity() { display_line(affinity_text(settings().affinity_format)); }

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

int omp_get_num_places() { return place_count(); }
int omp_get_num_places_() { return place_count(); }
int omp_get_place_num() { return own_seat().place; }
int omp_get_place_num_() { return own_seat().place; }
int omp_get_partition_num_places() { return own_seat().count; }
int omp_get_partition_num_places_() { return own_seat().count; }

int omp_get_place_num_procs(int place) { return static_cast<int>(place_at(place).size()); }
std::int32_t omp_get_place_num_procs_(const std::int32_t* place) {
  return omp_get_place_num_procs(*place);
}
std::int32_t omp_get_place_num_procs_8_(const std::int64_t* place) {
  return *place > INT32_MAX ? 0 : omp_get_place_num_procs(static_cast<int>(*place));
}
void omp_get_place_proc_ids(int place, int* ids) { std::ranges::copy(place_at(place), ids); }
void omp_get_place_proc_ids_(const std::int32_t* place, std::int32_t* ids) {
  omp_get_place_proc_ids(*place, ids);
}
void omp_get_place_proc_ids_8_(const std::int64_t* place, std::int64_t* ids) {
  if (*place <= INT32_MAX) std::ranges::copy(place_at(static_cast<int>(*place)), ids);
}
void omp_get_partition_place_nums(int* places) { give_partition(places); }
void omp_get_partition_place_nums_(std::int32_t* places) { give_partition(places); }
void omp_get_partition_place_nums_8_(std::int64_t* places) { give_partition(places); }

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
  display_line(chosen_format(format == nullptr ? "" : format));
}
void omp_display_affinity_(const char* format, std::size_t length) {
  display_line(chosen_format(fortran_text(format, length)));
}

}
#pragma GCC visibility pop
