// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/place_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "imbrex/error.hpp"
#include "sched/policy/expat.hpp"

namespace imbrex::sched {

namespace {

constexpr std::size_t bytes_max = 1 << 20;  // more than all places and workers that can be need
constexpr std::size_t depth_max = 32;       // of places in places
constexpr int workers_max = 4096;

constexpr std::array<std::string_view, 6> kinds{"mem", "cache", "nvgpu", "amgpu", "fpga", "pgas"};

// An element of the file. Of one that stands for several there is one.
struct Element {
  PlaceKind kind = PlaceKind::cache;
  bool worker = false;
  int count = 1;
  unsigned long line = 0;
  std::vector<std::size_t> children;  // positions
};

// A text of the file, as long as it is readable in a message.
std::string_view shown(const std::string_view text) noexcept { return text.substr(0, 40); }

// What has been parsed, and the first thing that is wrong. No exception passes through the library.
class Parsed {
 public:
  explicit Parsed(const Expat& expat) : expat_(expat), parser_(expat.ParserCreate(nullptr)) {
    if (parser_ == nullptr) throw std::bad_alloc();
    expat.SetUserData(parser_, this);
    expat.SetElementHandler(parser_, &begin, &end);
    expat.SetCharacterDataHandler(parser_, &text);
    expat.SetEntityDeclHandler(parser_, &entity);
  }
  ~Parsed() { expat_.ParserFree(parser_); }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  // What is wrong; empty: nothing.
  [[nodiscard]] std::string parse(const std::string_view content) {
    if (expat_.Parse(parser_, content.data(), static_cast<int>(content.size()), 1) ==
            XML_STATUS_ERROR &&
        wrong_.empty()) {
      fail(expat_.ErrorString(expat_.GetErrorCode(parser_)));
    }
    return std::move(wrong_);
  }
  [[nodiscard]] unsigned long line_of_error() const noexcept { return line_; }
  // The first one is HPT.
  [[nodiscard]] const std::vector<Element>& elements() const noexcept { return elements_; }

 private:
  static void begin(void* const self, const char* const name, const char** const attributes) {
    static_cast<Parsed*>(self)->begin_element(name, attributes);
  }
  static void end(void* const self, const char*) { static_cast<Parsed*>(self)->open_.pop_back(); }
  static void text(void* const self, const char* const begin, const int length) {
    const std::string_view said(begin, static_cast<std::size_t>(length));
    if (said.find_first_not_of(" \t\r\n") == said.npos) return;
    static_cast<Parsed*>(self)->fail(
        fmt::format("\"{}\" stands between elements: leave it out", shown(said)));
  }
  static void entity(void* const self, const char* const name, int, const char*, int, const char*,
                     const char*, const char*, const char*) {
    static_cast<Parsed*>(self)->fail(
        fmt::format("it declares an entity, \"{}\": write out what it stands for", shown(name)));
  }

  void begin_element(const std::string_view name, const char** const attributes) {
    if (!wrong_.empty()) return open_.push_back(0);  // the library is about to stop
    Element element{.worker = name == "worker",
                    .line = expat_.GetCurrentLineNumber(parser_),
                    .children = {}};
    if (const char* const why = misplaced(name)) {
      fail(fmt::format("<{}> cannot stand here: {}", shown(name), why));
    } else if (!open_.empty()) {
      for (const char** each = attributes; *each != nullptr; each += 2) {
        read_attribute(element, each[0], each[1]);
      }
      if (element.worker && elements_[open_.back()].kind > PlaceKind::cache) {
        fail(fmt::format("a worker in a place of type {}: workers are threads of processors, and "
                         "stand in places of type mem or cache",
                         kinds[static_cast<std::size_t>(elements_[open_.back()].kind)]));
      }
      elements_[open_.back()].children.push_back(elements_.size());
    }
    open_.push_back(elements_.size());
    elements_.push_back(std::move(element));
    if (elements_.size() > places_max + workers_max) fail("it has too many elements");
  }

  // Why an element of that name is wrong in what is open; null if it is right.
  [[nodiscard]] const char* misplaced(const std::string_view name) const noexcept {
    if (open_.empty()) return name == "HPT" ? nullptr : "the outermost element is <HPT>";
    if (elements_[open_.back()].worker) return "a <worker> has nothing in it";
    if (name == "worker") return open_.size() > 1 ? nullptr : "workers stand in a <place>";
    if (name != "place") return "<HPT> has <place>, and that has <place> and <worker>";
    return open_.size() > depth_max ? "places are at most 32 deep" : nullptr;
  }

  void read_attribute(Element& element, const std::string_view name, const std::string_view value) {
    if (name == "num") {
      const char* const last = value.data() + value.size();
      const auto [end, error] = std::from_chars(value.data(), last, element.count);
      if (error != std::errc() || end != last || element.count < 1 || element.count > workers_max) {
        fail(fmt::format("num=\"{}\": how many there are: 1 to {}", shown(value), workers_max));
      }
    } else if (name == "type" && element.worker) {
      if (value != "cpu") {
        fail(fmt::format("type=\"{}\" of a worker: only \"cpu\" is possible", shown(value)));
      }
    } else if (name == "type") {
      const auto* const kind = std::ranges::find(kinds, value);
      if (kind == kinds.end()) {
        return fail(fmt::format("type=\"{}\" of a place: valid: {}", shown(value),
                                fmt::join(kinds, ", ")));
      }
      element.kind = static_cast<PlaceKind>(kind - kinds.begin());
    } else if (name != "did" && name != "size" && name != "unitSize" && name != "info") {
      fail(fmt::format("there is no attribute \"{}\": valid: num, type, did, size, unitSize, info",
                       shown(name)));
    }
  }

  void fail(std::string what) {
    if (!wrong_.empty()) return;
    wrong_ = std::move(what);
    line_ = expat_.GetCurrentLineNumber(parser_);
    (void)expat_.StopParser(parser_, XML_FALSE);
  }

  const Expat& expat_;
  XML_Parser parser_;
  std::vector<Element> elements_;
  std::vector<std::size_t> open_;  // positions; the innermost last
  std::string wrong_;
  unsigned long line_ = 0;
};

// The places that elements stand for.
class Places {
 public:
  Places(const std::vector<Element>& elements, const std::string& file, const std::size_t workers)
      : elements_(elements), file_(file), only_worker_(workers == 1) {}

  [[nodiscard]] Sketch make(const std::size_t workers) {
    for (const std::size_t child : elements_[0].children) add(elements_[child], -1);
    if (workers_ != workers && (!only_worker_ || workers_ == 0)) {
      refuse(elements_[0].line,
             fmt::format("<HPT> has {} workers in all, and the runtime has {}: set IMBREX_WORKERS "
                         "(or Config::workers) to the number of the file, or change the file",
                         workers_, workers));
    }
    return std::move(places_);
  }
  [[noreturn]] void refuse(const unsigned long line, const std::string& why) const {
    throw Error(fmt::format("imbrex: IMBREX_PLACES={}, line {}: {}", file_, line, why));
  }

 private:
  void add(const Element& element, const int parent) {
    for (int copy = 0; copy < element.count; ++copy) {
      if (element.worker) {
        add_worker(element, parent);
        continue;
      }
      if (places_.size() == places_max) {
        refuse(element.line, fmt::format("there are more than {} places", places_max));
      }
      const int self = static_cast<int>(places_.size());
      const auto kind = static_cast<std::size_t>(element.kind);
      places_.push_back({.name = fmt::format("{} {}", kinds[kind], numbers_[kind]++),
                         .workers = {},
                         .kind = element.kind,
                         .parent = parent});
      for (const std::size_t child : element.children) add(elements_[child], self);
    }
  }
  // To the place and all that it is a part of.
  void add_worker(const Element& element, const int place) {
    if (workers_ == workers_max) {
      refuse(element.line, fmt::format("there are more than {} workers", workers_max));
    }
    const int worker = only_worker_ ? 0 : static_cast<int>(workers_);
    ++workers_;
    for (int each = place; each >= 0; each = places_[static_cast<std::size_t>(each)].parent) {
      std::vector<int>& workers = places_[static_cast<std::size_t>(each)].workers;
      if (!only_worker_ || workers.empty()) workers.push_back(worker);
    }
  }

  const std::vector<Element>& elements_;
  const std::string& file_;
  const bool only_worker_;
  Sketch places_;
  std::size_t workers_ = 0;
  std::array<int, kinds.size()> numbers_{};
};

std::string read_file(const std::string& path) {
  const auto fail = [&path](const int code) {
    char here[PATH_MAX] = "?";
    (void)getcwd(here, sizeof here);
    throw Error(fmt::format("imbrex: IMBREX_PLACES={}: the file cannot be read: {}; a name without "
                            "a leading / is looked for from {} on",
                            path, std::strerror(code), here));
  };
  const auto close = [](std::FILE* const file) { (void)std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "re"), close);
  if (file == nullptr) fail(errno);
  std::string content(bytes_max + 1, '\0');
  content.resize(std::fread(content.data(), 1, content.size(), file.get()));
  if (std::ferror(file.get()) != 0) fail(errno);
  if (content.size() > bytes_max) {
    throw Error(fmt::format("imbrex: IMBREX_PLACES={}: the file is larger than {} bytes: say num "
                            "instead of the same place again and again",
                            path, bytes_max));
  }
  return content;
}

}  // namespace

Sketch read_place_file(const std::string& path, const std::size_t workers) {
  return parse_places(read_file(path), path, workers);
}

Sketch parse_places(const std::string_view text, const std::string& name,
                    const std::size_t workers) {
  const Expat expat(name);
  Parsed parsed(expat);
  const std::string wrong = parsed.parse(text);
  Places places(parsed.elements(), name, workers);
  if (!wrong.empty()) places.refuse(parsed.line_of_error(), wrong);
  return places.make(workers);
}

}  // namespace imbrex::sched
