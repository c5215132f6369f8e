// SPDX-License-Identifier: BSD-3-Clause
#include "trace/trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/error.hpp"
#include "trace/symbols.hpp"

namespace imbrex::trace {

namespace {

struct Names {
  base::SpinLock lock;
  std::map<std::pair<const char*, std::uint32_t>, std::uint64_t> index IMBREX_GUARDED_BY(lock);
  std::vector<std::pair<std::string, std::string>> texts IMBREX_GUARDED_BY(lock);
  std::vector<std::pair<std::uint64_t, const void*>> codes IMBREX_GUARDED_BY(lock);  // to look up
};
Names& names() {
  static Names& table = *new Names;  // written out when static destructors have run
  return table;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(character));
    } else {
      out += character;
    }
  }
  return out + '"';
}

// The program's command line as a list in JSON; what exceeds 4,000 bytes is left out.
std::string command_line() {
  std::string text(4000, '\0');
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rb");
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file));
  if (file != nullptr) std::fclose(file);
  std::string out = "[";
  for (std::size_t at = 0; at < text.size();) {
    const std::string argument = text.c_str() + at;
    out += (at == 0 ? "" : ", ") + quoted(argument);
    at += argument.size() + 1;
  }
  return out + ']';
}

// A file that disappears unless it was written to its end.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    file_ = std::fopen(part_.c_str(), "wb");
    if (file_ == nullptr) fail("open");
  }
  ~File() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(part_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void write(const void* data, const std::size_t bytes) {
    if (bytes != 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail("write");
  }
  void finish() {
    std::FILE* const file = std::exchange(file_, nullptr);
    if (std::fclose(file) != 0 || std::rename(part_.c_str(), path_.c_str()) != 0) fail("finish");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(fmt::format("imbrex: cannot {} the trace file {}: {}", what, path_,
                            std::strerror(errno)));
  }
  std::string path_, part_;
  std::FILE* file_;
};

}  // namespace

std::uint64_t intern(const char* const text, const std::source_location* const where) {
  Names& table = names();
  const std::lock_guard guard(table.lock);
  const auto key = std::pair{text, where == nullptr ? 0 : where->line()};
  const auto [entry, is_new] = table.index.try_emplace(key, table.texts.size());
  if (is_new) {
    table.texts.emplace_back(
        text, where == nullptr ? "" : fmt::format("{}:{}", where->file_name(), where->line()));
  }
  return entry->second;
}

std::uint64_t intern_code(const void* const code, const char* const otherwise) {
  constexpr std::uint32_t no_line = UINT32_MAX;  // keeps addresses of code apart from texts
  Names& table = names();
  const std::lock_guard guard(table.lock);
  const auto [entry, is_new] = table.index.try_emplace({static_cast<const char*>(code), no_line},
                                                       table.texts.size());
  if (is_new) {
    table.texts.emplace_back(otherwise, "");
    table.codes.emplace_back(entry->second, code);
  }
  return entry->second;
}

void Recorder::enable(const bool timing, const bool tracing, const std::uint32_t worker) noexcept {
  timing_ = timing || tracing;
  tracing_ = tracing;
  watched_ = tracing;
  worker_ = worker;
  since_ = base::ticks();
}

void Recorder::enter_slow(const Activity activity) noexcept {
  if (activity == activity_) return;
  const std::uint64_t now = base::ticks();
  spent_[static_cast<std::size_t>(activity_)].add(now - since_);
  since_ = now;
  if (tracing_ && activity == Activity::idle) record(Kind::idle_begin, 0, 0, 0, 0);
  if (tracing_ && activity_ == Activity::idle) record(Kind::idle_end, 0, 0, 0, 0);
  activity_ = activity;
}

void Recorder::record(const Kind kind, const std::uint64_t task, const std::uint64_t a,
                      const std::uint64_t b, const std::uint64_t c) {
  records_.add({base::ticks(), task, worker_, kind, a, b, c});
}

void TimeBase::start() noexcept {
  const base::Moment now = base::read_clocks(CLOCK_REALTIME);
  start_ticks_ = now.ticks;
  start_ns_ = now.ns;
}

void TimeBase::stop() noexcept {
  const base::Moment now = base::read_clocks(CLOCK_REALTIME);
  end_ticks_ = now.ticks;
  end_ns_ = now.ns;
}

double TimeBase::seconds(const std::uint64_t ticks) const noexcept {
  const double rate = static_cast<double>(end_ticks_ - start_ticks_) /
                      static_cast<double>(end_ns_ - start_ns_ + 1);
  return rate > 0 ? static_cast<double>(ticks) / rate * 1e-9 : 0;
}

std::uint64_t TimeBase::wall_ns(const std::uint64_t ticks) const noexcept {
  if (ticks < start_ticks_) return start_ns_;
  return start_ns_ + static_cast<std::uint64_t>(seconds(ticks - start_ticks_) * 1e9);
}

Records::~Records() {
  for (Chunk* chunk = first_; chunk != nullptr;) delete std::exchange(chunk, chunk->next);
}

void Records::add(const Record& record) {
  const std::uint64_t count = count_.load(std::memory_order_relaxed);  // its own
  const std::uint64_t place = count % chunk_records;
  if (place == 0) {
    auto* const chunk = new Chunk;
    chunk->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = chunk;
    last_ = chunk;
  }
  last_->records[place] = record;
  count_.store(count + 1, std::memory_order_release);  // pairs with for_each()
}

class Writer {
 public:
  static std::uint64_t write(File& file, const Recorder& recorder, const TimeBase& time,
                             const std::uint64_t until) {
    std::uint64_t written = 0;
    std::vector<Record> some;
    recorder.records_.for_each([&](const std::span<const Record> records) {
      some.assign(records.begin(), records.end());
      std::erase_if(some, [&](const Record& record) { return record.time > until; });
      for (Record& record : some) record.time = time.wall_ns(record.time);
      file.write(some.data(), some.size() * sizeof(Record));
      written += some.size();
    });
    return written;
  }
};

namespace {

// Gives the names of intern_code() their texts. Nobody waits for the lock meanwhile.
void look_up_codes() {
  Names& table = names();
  std::vector<std::pair<std::uint64_t, const void*>> codes;
  {
    const std::lock_guard guard(table.lock);
    codes.swap(table.codes);
  }
  for (const auto& [index, code] : codes) {
    const Symbol& symbol = symbol_of(code);
    if (symbol.name.empty()) continue;
    const std::lock_guard guard(table.lock);
    table.texts[index] = {symbol.name, symbol.place};
  }
}

}  // namespace

void prepare_directory(const std::string& directory) {
  if ((mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) ||
      access(directory.c_str(), W_OK | X_OK) != 0) {
    throw Error(fmt::format("imbrex: IMBREX_TRACE={}: cannot write into that directory: {}",
                            directory, std::strerror(errno)));
  }
}

void write_files(const std::string& directory, const Header& header, const TimeBase& time,
                 const std::vector<Recorder*> recorders) {
  prepare_directory(directory);
  File events(fmt::format("{}/rank-{}.events", directory, header.rank));
  std::uint64_t count = 0;
  for (const Recorder* const recorder : recorders) {
    count += Writer::write(events, *recorder, time, header.until);
  }
  events.finish();

  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string text = fmt::format(
      "{{\"version\": {}, \"rank\": {}, \"ranks\": {}, \"workers\": {}, \"policy\": {}, "
      "\"host\": {}, \"start_ns\": {}, \"end_ns\": {}, \"events\": {}, \"cut\": {},\n "
      "\"command\": {}, \"processors\": [{}],\n \"names\": [",
      format_version, header.rank, header.ranks, header.workers, quoted(header.policy),
      quoted(host), time.start_ns(), time.end_ns(), count, quoted(header.cut), command_line(),
      fmt::join(header.processors, ", "));
  look_up_codes();
  Names& table = names();
  const std::lock_guard guard(table.lock);
  for (std::size_t index = 0; index < table.texts.size(); ++index) {
    text += fmt::format("{}\n  {{\"name\": {}, \"where\": {}}}", index == 0 ? "" : ",",
                        quoted(table.texts[index].first), quoted(table.texts[index].second));
  }
  text += "]}\n";
  File json(fmt::format("{}/rank-{}.json", directory, header.rank));
  json.write(text.data(), text.size());
  json.finish();
}

}  // namespace imbrex::trace
