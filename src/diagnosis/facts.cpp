// SPDX-License-Identifier: BSD-3-Clause
// The text form has one line for each item, whose fields are separated by tabs. The first field
// names the item. A field has no tab and no line end: these are written as \t and \n, and a
// backslash as two.
#include "diagnosis/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace imbrex::diagnosis {

namespace {

constexpr std::string_view heading = "imbrex facts 2";
constexpr std::array<std::string_view, 16> kind_words = {
    "receive", "send", "probe", "request", "collective", "part", "phaser", "future",
    "promise", "dependency", "finish", "lock", "window", "finalize", "asks", "other"};
constexpr std::array<std::string_view, 5> state_words = {"answers", "silent", "dead", "finalizes",
                                                         "ended"};

// ---- writing ---------------------------------------------------------------------------------

class Line {
 public:
  Line(std::string& text, const std::string_view item) : text_(text) { text_ += item; }
  ~Line() { text_ += '\n'; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Line& add(const std::string_view field) {
    text_ += '\t';
    for (const char letter : field) {
      if (letter == '\\') {
        text_ += "\\\\";
      } else if (letter == '\t') {
        text_ += "\\t";
      } else if (letter == '\n') {
        text_ += "\\n";
      } else {
        text_ += letter;
      }
    }
    return *this;
  }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Line& add(const Number number) {
    return add(std::string_view(fmt::format("{}", static_cast<std::int64_t>(number))));
  }

 private:
  std::string& text_;
};

// Ascending neighbours as first-last, since a communicator may have all ranks.
template <class Number>
std::string list(const std::vector<Number>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last] >= 0 &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    if (!text.empty()) text += ',';
    text += last == first ? fmt::format("{}", numbers[first])
                          : fmt::format("{}-{}", numbers[first], numbers[last]);
    first = last + 1;
  }
  return text;
}

void add(Line& line, const Communicator& comm) {
  line.add(comm.name).add(comm.id).add(list(comm.members)).add(comm.is_named);
}

// ---- reading ---------------------------------------------------------------------------------

// The fields of a line, one after the other. A missing or wrong one gives the value of an empty
// object.
class Fields {
 public:
  explicit Fields(const std::string_view line) : rest_(line) {}

  std::string text() {
    const std::string_view field = next();
    std::string text;
    for (std::size_t place = 0; place < field.size(); ++place) {
      if (field[place] != '\\' || place + 1 == field.size()) {
        text += field[place];
        continue;
      }
      const char letter = field[++place];
      text += letter == 't' ? '\t' : letter == 'n' ? '\n' : letter;
    }
    return text;
  }
  template <class Number>
  void take(Number& number) {
    const std::string_view field = next();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (field.empty() || error != std::errc() || end != field.data() + field.size()) return;
    if (std::in_range<Number>(value)) number = static_cast<Number>(value);
  }
  void take(std::uint64_t& number) {
    std::int64_t value = static_cast<std::int64_t>(number);
    take<std::int64_t>(value);
    number = static_cast<std::uint64_t>(value);
  }
  void take(bool& flag) {
    int value = flag ? 1 : 0;
    take(value);
    flag = value != 0;
  }
  template <class Number>
  void take(std::vector<Number>& numbers) {
    constexpr std::uint64_t numbers_max = 1 << 22;
    std::string_view field = next();
    while (!field.empty()) {
      const std::size_t comma = std::min(field.find(','), field.size());
      std::uint64_t first = 0;
      std::uint64_t last = 0;
      const bool is_good = read_range(field.substr(0, comma), first, last);
      field.remove_prefix(std::min(comma + 1, field.size()));
      if (!is_good || last < first || last - first >= numbers_max - numbers.size() ||
          last > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) {
        continue;
      }
      for (std::uint64_t number = first; number <= last; ++number) {
        numbers.push_back(static_cast<Number>(number));
      }
    }
  }

 private:
  std::string_view next() {
    const std::size_t tab = std::min(rest_.find('\t'), rest_.size());
    const std::string_view field = rest_.substr(0, tab);
    rest_.remove_prefix(std::min(tab + 1, rest_.size()));
    return field;
  }
  static bool read_range(const std::string_view text, std::uint64_t& first, std::uint64_t& last) {
    const char* const end = text.data() + text.size();
    auto [place, error] = std::from_chars(text.data(), end, first);
    last = first;
    if (error != std::errc()) return false;
    if (place == end) return last < UINT64_MAX;
    if (*place != '-') return false;
    std::tie(place, error) = [&] {
      const auto result = std::from_chars(place + 1, end, last);
      return std::pair(result.ptr, result.ec);
    }();
    return error == std::errc() && place == end && last < UINT64_MAX;
  }

  std::string_view rest_;
};

template <class Enum, std::size_t size>
void take_word(Fields& fields, const std::array<std::string_view, size>& words, Enum& value) {
  const auto found = std::ranges::find(words, fields.text());
  if (found != words.end()) value = static_cast<Enum>(found - words.begin());
}

void take(Fields& fields, Communicator& comm) {
  comm.name = fields.text();
  fields.take(comm.id);
  fields.take(comm.members);
  fields.take(comm.is_named);
}

Wait read_wait(Fields& fields) {
  Wait wait;
  fields.take(wait.task);
  wait.task_text = fields.text();
  wait.kind = kind_of(fields.text());
  wait.call = fields.text();
  take(fields, wait.comm);
  fields.take(wait.peer);
  fields.take(wait.peer_in_comm);
  fields.take(wait.tag);
  fields.take(wait.bytes);
  fields.take(wait.tasks);
  wait.object = fields.text();
  return wait;
}

Message read_message(Fields& fields) {
  Message message;
  take(fields, message.comm);
  fields.take(message.source);
  fields.take(message.source_in_comm);
  fields.take(message.tag);
  fields.take(message.bytes);
  return message;
}

WindowLock read_lock(Fields& fields) {
  WindowLock lock;
  fields.take(lock.task);
  lock.task_text = fields.text();
  take(fields, lock.window);
  fields.take(lock.target);
  fields.take(lock.is_exclusive);
  return lock;
}

void read_rank(Fields& fields, RankFacts& facts) {
  fields.take(facts.rank);
  fields.take(facts.ranks);
  facts.host = fields.text();
  fields.take(facts.process);
  take_word(fields, state_words, facts.state);
  fields.take(facts.still_ms);
  fields.take(facts.may_continue);
  fields.take(facts.has_left_out);
}

}  // namespace

std::string_view word_of(const WaitKind kind) noexcept {
  return kind_words[static_cast<std::size_t>(kind)];
}

WaitKind kind_of(const std::string_view word) noexcept {
  const auto found = std::ranges::find(kind_words, word);
  return found == kind_words.end() ? WaitKind::other
                                   : static_cast<WaitKind>(found - kind_words.begin());
}

std::string write(const RankFacts& facts) {
  std::string text(heading);
  text += '\n';
  Line(text, "rank").add(facts.rank).add(facts.ranks).add(facts.host).add(facts.process)
      .add(state_words[static_cast<std::size_t>(facts.state)]).add(facts.still_ms)
      .add(facts.may_continue).add(facts.has_left_out);
  for (const std::string& task : facts.running) Line(text, "runs").add(task);
  for (const Wait& wait : facts.waits) {
    Line line(text, "wait");
    line.add(wait.task).add(wait.task_text).add(word_of(wait.kind)).add(wait.call);
    add(line, wait.comm);
    line.add(wait.peer).add(wait.peer_in_comm).add(wait.tag).add(wait.bytes)
        .add(list(wait.tasks)).add(wait.object);
  }
  for (const Message& message : facts.messages) {
    Line line(text, "message");
    add(line, message.comm);
    line.add(message.source).add(message.source_in_comm).add(message.tag).add(message.bytes);
  }
  for (const WindowLock& lock : facts.locks) {
    Line line(text, "lock");
    line.add(lock.task).add(lock.task_text);
    add(line, lock.window);
    line.add(lock.target).add(lock.is_exclusive);
  }
  for (const std::string& failure : facts.failures) Line(text, "failure").add(failure);
  return text;
}

std::optional<RankFacts> read(std::string_view text) {
  RankFacts facts;
  bool is_headed = false;
  bool has_rank = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_headed) {
      if (line != heading) return std::nullopt;
      is_headed = true;
      continue;
    }
    Fields fields(line);
    const std::string item = fields.text();
    if (item == "rank") {
      read_rank(fields, facts);
      has_rank = true;
    } else if (item == "runs") {
      facts.running.push_back(fields.text());
    } else if (item == "wait") {
      facts.waits.push_back(read_wait(fields));
    } else if (item == "message") {
      facts.messages.push_back(read_message(fields));
    } else if (item == "lock") {
      facts.locks.push_back(read_lock(fields));
    } else if (item == "failure") {
      facts.failures.push_back(fields.text());
    }
  }
  if (!has_rank || facts.rank < 0 || facts.rank >= facts.ranks) return std::nullopt;
  return facts;
}

}  // namespace imbrex::diagnosis
