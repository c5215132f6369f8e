// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/place_file.hpp"

#include <dlfcn.h>
#include <expat.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "imbrex/error.hpp"

// A function of libexpat. The library is loaded only for a file of places, and privately: few
// programs need it, and a program with a copy of its own shall go on to call that copy.
#define IMBREX_EXPAT(name) reinterpret_cast<decltype(&XML_##name)>(symbol("XML_" #name))

namespace imbrex::sched {
namespace {

constexpr std::size_t depth_max = 32;  // of places in places
constexpr std::size_t workers_max = 4096;
constexpr std::array<std::string_view, 5> passed_over{"type", "did", "size", "unitSize", "info"};
constexpr std::array<std::string_view, 6> kinds{"mem", "cache", "nvgpu", "amgpu", "fpga", "pgas"};


// Throws, if at all, before any other function is called.
void* symbol(const char* const name) {
  void* const library = dlopen("libexpat.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : dlsym(library, name);
  if (function != nullptr) return function;
  throw Error(fmt::format("imbrex: IMBREX_PLACES: files of places are read by libexpat.so.1, which "
                          "cannot be used: {}; install it (Debian: libexpat1), or choose tree, "
                          "numa, package, l3, core or worker", dlerror()));
}

// An element that has begun: its place (-1 for HPT and for a worker), and its number of copies.
struct Open {
  int place, count;
};

// The parsed places, and the first error. No exception passes through the library.
struct Parsed {
  XML_Parser parser = IMBREX_EXPAT(ParserCreate)(nullptr);
  Sketch places;  // without names; a place comes before all places in it
  std::size_t workers = 0;
  std::vector<Open> open;  // the innermost element last
  std::string wrong;
  unsigned long line = 0;  // line of the error; else of HPT

  void parse(const std::string_view text) {
    IMBREX_EXPAT(SetUserData)(parser, this);
    IMBREX_EXPAT(SetElementHandler)(
        parser, [](void* to, const char* name, const char** all) {
          static_cast<Parsed*>(to)->begin(name, all);
        }, [](void* to, const char*) { static_cast<Parsed*>(to)->end(); });
    const int size = static_cast<int>(text.size());
    if (IMBREX_EXPAT(Parse)(parser, text.data(), size, 1) == XML_STATUS_ERROR) {
      fail(IMBREX_EXPAT(ErrorString)(IMBREX_EXPAT(GetErrorCode)(parser)));
    }
    IMBREX_EXPAT(ParserFree)(parser);
  }
  void fail(std::string what) {
    if (!wrong.empty()) return;
    wrong = std::move(what);
    line = IMBREX_EXPAT(GetCurrentLineNumber)(parser);
    (void)IMBREX_EXPAT(StopParser)(parser, XML_FALSE);
  }
  PlannedPlace& at(const int place) { return places[static_cast<std::size_t>(place)]; }

  void begin(const std::string_view name, const char** const attributes) {
    const int outer = open.empty() ? -1 : open.back().place;
    open.push_back({-1, 1});
    if (!wrong.empty()) return;  // the library is about to stop
    if (open.size() == 1 && name == "HPT") {
      line = IMBREX_EXPAT(GetCurrentLineNumber)(parser);
    } else if (name == "place" && (outer >= 0 || open.size() == 2)) {
      PlannedPlace place{.name = {}, .workers = {}, .kind = PlaceKind::cache, .parent = outer};
      open.back() = {static_cast<int>(places.size()), read(attributes, &place.kind)};
      add(std::move(place));
      if (open.size() > depth_max + 1) fail("places are at most 32 deep");
    } else if (name == "worker" && outer >= 0) {
      add_workers(outer, read(attributes, nullptr));
      if (at(outer).kind > PlaceKind::cache) {
        fail("a worker must be in a place of type mem or cache: other places have no processors");
      }
    } else {
      fail(fmt::format("<{:.40}> is not possible here: <HPT> contains <place>, which contains "
                       "<place> and <worker>", name));
    }
  }
  // Makes as many copies of a place, with everything in it, as the file says.
  void end() {
    const auto [first, count] = open.back();
    open.pop_back();
    if (first < 0) return;
    const int size = static_cast<int>(places.size()) - first;
    const int inside = static_cast<int>(at(first).workers.size());
    for (int copy = 1; copy < count && wrong.empty(); ++copy) {
      for (int each = first; each < first + size; ++each) {
        PlannedPlace place = at(each);
        if (each > first) place.parent += copy * size;
        for (int& worker : place.workers) worker += copy * inside;
        add(std::move(place));
      }
      add_workers(at(first).parent, inside);
    }
  }
  void add(PlannedPlace place) {
    places.push_back(std::move(place));
    if (places.size() > places_max) fail("there are more than 1024 places");
  }
  // Adds workers to the place and to all places around it.
  void add_workers(const int place, const int count) {
    for (int each = 0; each < count && wrong.empty(); ++each, ++workers) {
      if (workers == workers_max) fail("there are more than 4096 workers");
      for (int to = place; to >= 0; to = at(to).parent) {
        at(to).workers.push_back(static_cast<int>(workers));
      }
    }
  }

  // The number of copies of the element. `kind`: the kind of a place; null: the element is a
  // worker.
  int read(const char** attributes, PlaceKind* const kind) {
    int count = 1;
    for (; *attributes != nullptr; attributes += 2) {
      const std::string_view name = attributes[0];
      const std::string_view value = attributes[1];
      const auto* const found = std::ranges::find(kinds, value);
      if (name == "num") {
        const auto [end, error] = std::from_chars(value.begin(), value.end(), count);
        const bool whole = error == std::errc() && end == value.end();
        if (whole && count > 0 && count <= static_cast<int>(workers_max)) continue;
        fail(fmt::format("num=\"{:.40}\": valid: 1 to {}", value, workers_max));
      } else if (name == "type" && kind == nullptr && value != "cpu") {
        fail(fmt::format("type=\"{:.40}\" of a worker: only \"cpu\" is possible", value));
      } else if (name == "type" && kind != nullptr && found == kinds.end()) {
        fail(fmt::format("type=\"{:.40}\" of a place: valid: {}", value, fmt::join(kinds, ", ")));
      } else if (name == "type" && kind != nullptr) {
        *kind = static_cast<PlaceKind>(found - kinds.begin());
      } else if (std::ranges::find(passed_over, name) == passed_over.end()) {
        fail(fmt::format("there is no attribute \"{:.40}\": valid: num, {}", name,
                         fmt::join(passed_over, ", ")));
      }
    }
    return count;
  }
};

}  // namespace

Sketch parse_places(const std::string_view text, const std::string& name,
                    const std::size_t workers) {
  Parsed parsed;
  parsed.parse(text);
  if (parsed.wrong.empty() && parsed.workers != workers && (workers != 1 || parsed.workers == 0)) {
    parsed.wrong = fmt::format("<HPT> has {} workers in all, and the runtime has {}: set "
                               "IMBREX_WORKERS (or RuntimeOptions::workers) to the number of the "
                               "file, or change the file", parsed.workers, workers);
  }
  if (!parsed.wrong.empty()) {
    throw Error(fmt::format("imbrex: IMBREX_PLACES={}, line {}: {}", name, parsed.line,
                            parsed.wrong));
  }
  std::array<int, kinds.size()> numbers{};
  for (PlannedPlace& place : parsed.places) {
    const auto kind = static_cast<std::size_t>(place.kind);
    place.name = fmt::format("{} {}", kinds[kind], numbers[kind]++);
    if (workers == 1 && !place.workers.empty()) place.workers = {0};  // the only worker
  }
  return std::move(parsed.places);
}

}  // namespace imbrex::sched
