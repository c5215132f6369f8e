// SPDX-License-Identifier: BSD-3-Clause
#include "trace/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.hpp"
#include "base/guarded.hpp"
#include "base/options.hpp"
#include "base/spin_lock.hpp"
#include "base/text/json_text.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "trace/happens_before.hpp"
#include "trace/symbols.hpp"

namespace imbrex::trace {

namespace {

using base::text::json_text;

// The text of a name, or its place only, that is to be looked up.
struct Code {
  std::uint64_t name;
  const void* address;
  bool has_text;
};
struct Names {
  base::LastingLock<base::SpinLock> lock;
  std::map<std::pair<const char*, std::uint32_t>, std::uint64_t> index IMBREX_GUARDED_BY(lock);
  std::vector<std::pair<std::string, std::string>> texts IMBREX_GUARDED_BY(lock);
  std::vector<Code> codes IMBREX_GUARDED_BY(lock);
};
Names& names() {
  static Names& table = *new Names;  // used after static destructors have run
  return table;
}
[[maybe_unused]] const Names& names_at_load = names();

// The operations that have no records, by kind.
struct Unrecorded {
  base::SpinLock lock;
  std::map<std::string_view, std::uint64_t> counts IMBREX_GUARDED_BY(lock);
};
Unrecorded& unrecorded() {
  static Unrecorded& all = *new Unrecorded;  // used after static destructors have run
  return all;
}

// As a list in JSON.
std::string list_unrecorded() {
  Unrecorded& all = unrecorded();
  const std::lock_guard guard(all.lock);
  std::string text = "[";
  for (const auto& [what, count] : all.counts) {
    text += fmt::format("{}{{\"what\": {}, \"count\": {}}}", text.size() == 1 ? "" : ", ",
                        json_text(what), count);
  }
  return text + "]";
}

// The program's command line as a list in JSON; bytes beyond 4,000 are left out.
std::string command_line() {
  std::string text(4000, '\0');
  std::FILE* const file = std::fopen("/proc/self/cmdline", "rb");
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file));
  if (file != nullptr) std::fclose(file);
  std::string out = "[";
  for (std::size_t at = 0; at < text.size();) {
    const std::string argument = text.c_str() + at;
    out += (at == 0 ? "" : ", ") + json_text(argument);
    at += argument.size() + 1;
  }
  return out + ']';
}

// A file that is removed unless finish() has given it its final name.
class File {
 public:
  explicit File(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail("open", errno);
  }
  ~File() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    std::remove(part_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Appends `bytes`. Returns 0, or the errno of the failure; a part of the bytes may then be
  // written.
  [[nodiscard]] int add(const std::string_view bytes) noexcept {
    return base::write_all(descriptor_, bytes, &size_);
  }
  void write(const std::string_view bytes) {
    if (const int error = add(bytes)) fail("write", error);
  }
  // Overwrites bytes, which takes no more room on the disk.
  void overwrite(const std::size_t begin, const std::string_view bytes) {
    if (::lseek(descriptor_, static_cast<off_t>(begin), SEEK_SET) < 0) fail("write", errno);
    std::size_t written = 0;
    if (const int error = base::write_all(descriptor_, bytes, &written)) fail("write", error);
  }
  // Cuts the file to whole items of that size.
  void cut_to_whole(const std::size_t item) {
    size_ -= size_ % item;
    if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) fail("cut", errno);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void finish() {
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed == 0 && std::rename(part_.c_str(), path_.c_str()) == 0) return;
    const int error = errno;
    std::remove(part_.c_str());
    fail("finish", error);
  }

 private:
  [[noreturn]] void fail(const char* const what, const int error) const {
    throw Error(fmt::format("cannot {} {}: {}", what, path_, std::strerror(error)));
  }
  std::string path_, part_;
  int descriptor_;
  std::size_t size_ = 0;
};

}  // namespace

std::uint64_t intern(const char* const text, const std::source_location* const where) {
  Names& table = names();
  const std::lock_guard guard(table.lock);
  const auto key = std::pair{text, where == nullptr ? 0 : where->line()};
  const auto [entry, is_new] = table.index.try_emplace(key, table.texts.size());
  if (is_new) {
    table.texts.emplace_back(
        text, where == nullptr ? "" : detail::text_of(*where));
  }
  return entry->second;
}

std::uint64_t intern_code(const void* const code, const char* const otherwise) {
  constexpr std::uint32_t no_line = UINT32_MAX;  // keeps addresses of code apart from addresses of
                                                 // texts
  Names& table = names();
  const std::lock_guard guard(table.lock);
  const auto [entry, is_new] = table.index.try_emplace({static_cast<const char*>(code), no_line},
                                                       table.texts.size());
  if (is_new) {
    table.texts.emplace_back(otherwise, "");
    table.codes.push_back({entry->second, code, false});
  }
  return entry->second;
}

std::uint64_t intern_at(const char* const text, const void* const code) {
  // Two bodies of tasks with one text are told apart by their addresses; no text has so many lines.
  const auto key = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(code)) | 1u << 31;
  Names& table = names();
  const std::lock_guard guard(table.lock);
  const auto [entry, is_new] = table.index.try_emplace({text, key}, table.texts.size());
  if (is_new) {
    table.texts.emplace_back(text, "");
    table.codes.push_back({entry->second, code, true});
  }
  return entry->second;
}

void count_unrecorded(const char* const what) noexcept {
  Unrecorded& all = unrecorded();
  const std::lock_guard guard(all.lock);
  ++all.counts[what];
}

void Recorder::enable(const bool timing, const bool tracing, const std::uint32_t worker) noexcept {
  timing_ = timing || tracing;
  notes_switches_ = timing_;
  tracing_ = tracing;
  watched_ = tracing || happens_before::is_kept();
  worker_ = worker;
  since_ = base::ticks();
}

// In the trace a worker without a processor is idle.
void Recorder::enter_slow(const Activity activity) noexcept {
  const auto is_idle = [](const Activity one) {
    return one == Activity::idle || one == Activity::away;
  };
  if (activity == activity_) return;
  const std::uint64_t now = base::ticks();
  spent_[static_cast<std::size_t>(activity_)].add(now - since_);
  since_ = now;
  if (tracing_ && is_idle(activity) != is_idle(activity_)) {
    record(is_idle(activity) ? Kind::idle_begin : Kind::idle_end, 0, 0, 0, 0);
  }
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

void Records::add(const Record& record) noexcept {
  const std::uint64_t count = count_.load(std::memory_order_relaxed);  // its own
  const std::uint64_t place = count % chunk_records;
  if (place == 0) {
    auto* const chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    chunk->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = chunk;
    last_ = chunk;
  }
  last_->records[place] = record;
  count_.store(count + 1, std::memory_order_release);  // pairs with for_each()
}

// Writes records, until a record finds no room.
class Writer {
 public:
  Writer(File& file, const TimeBase& time, const std::uint64_t until) noexcept
      : file_(file), time_(time), until_(until) {}

  void write(const Recorder& recorder) {
    recorder.records_.for_each([this](const std::span<const Record> records) { write(records); });
    lost_ += recorder.records_.lost();
  }
  // Returns how many records are in the file.
  [[nodiscard]] std::uint64_t finish() {
    file_.cut_to_whole(sizeof(Record));
    const std::uint64_t kept = file_.size() / sizeof(Record);
    lost_ += tried_ - kept;
    return kept;
  }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  [[nodiscard]] std::string why_lost() const {
    return lost_ == 0 ? "" : std::strerror(error_ != 0 ? error_ : ENOMEM);
  }

 private:
  void write(const std::span<const Record> records) {
    some_.assign(records.begin(), records.end());
    std::erase_if(some_, [this](const Record& record) { return record.time > until_; });
    for (Record& record : some_) record.time = time_.wall_ns(record.time);
    tried_ += some_.size();
    if (error_ != 0) return;
    const auto* const bytes = reinterpret_cast<const char*>(some_.data());
    error_ = file_.add({bytes, some_.size() * sizeof(Record)});
  }

  File& file_;
  const TimeBase& time_;
  const std::uint64_t until_;
  std::vector<Record> some_;
  std::uint64_t tried_ = 0;
  std::uint64_t lost_ = 0;
  int error_ = 0;
};

namespace {

// "main:9" tells constructs of one function apart.
std::string name_with_line(const Symbol& symbol) {
  const std::size_t line = symbol.place.rfind(':');
  return line == std::string::npos ? symbol.name : symbol.name + symbol.place.substr(line);
}

// Fills in the texts of names from intern_code(), and the places of names from intern_at(). No
// thread waits for the lock meanwhile.
void look_up_codes() {
  Names& table = names();
  std::vector<Code> codes;
  {
    const std::lock_guard guard(table.lock);
    codes.swap(table.codes);
  }
  std::map<std::string, int> constructs;  // of each function
  for (const Code& code : codes) {
    if (!code.has_text) ++constructs[symbol_of(code.address).name];
  }
  ++constructs["main"];  // main's own code has that name, too
  for (const Code& code : codes) {
    const Symbol& symbol = symbol_of(code.address);
    if (symbol.name.empty()) continue;
    const std::string text = constructs[symbol.name] > 1 ? name_with_line(symbol) : symbol.name;
    const std::lock_guard guard(table.lock);
    auto& [name, place] = table.texts[code.name];
    if (!code.has_text) name = text;
    place = symbol.place;
  }
}

}  // namespace

bool prepare_directory(const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed.value() == ENOSPC || failed.value() == EDQUOT) {
    base::report(fmt::format("there will be no trace: IMBREX_TRACE={}: cannot make that directory: "
                             "{}",
                             directory, failed.message()));
    return false;
  }
  if (failed || access(directory.c_str(), W_OK | X_OK) != 0) {
    throw base::OptionError(
        fmt::format("imbrex: IMBREX_TRACE={}: cannot write into that directory: {}", directory,
                    failed ? failed.message() : std::strerror(errno)));
  }
  return true;
}

namespace {

// A text of constant width. It is written before the records, while there is room, and written
// again once the number of saved records is known.
std::string counts(const std::uint64_t events, const std::uint64_t lost, const std::string& why) {
  return fmt::format("\"events\": {:<20}, \"lost\": {:<20}, \"why_lost\": {:<80}", events, lost,
                     json_text(why.substr(0, 70)));
}

struct Head {
  std::string text;
  std::size_t counts_at;
};
Head head_of(const Header& header, const TimeBase& time) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  Head head{fmt::format(
                "{{\"version\": {}, \"rank\": {}, \"ranks\": {}, \"workers\": {}, \"policy\": {}, "
                "\"host\": {}, \"start_ns\": {}, \"end_ns\": {}, \"cut\": {},\n \"command\": {}, "
                "\"processors\": [{}], \"spare_workers\": [{}], \"unrecorded\": {},\n ",
                format_version, header.rank, header.ranks, header.workers, json_text(header.policy),
                json_text(host), time.start_ns(), time.end_ns(), json_text(header.cut),
                command_line(), fmt::join(header.processors, ", "),
                fmt::join(header.spare_workers, ", "), list_unrecorded()),
            0};
  look_up_codes();
  head.counts_at = head.text.size();
  head.text += counts(0, 0, "") + ",\n \"names\": [";
  Names& table = names();
  const std::lock_guard guard(table.lock);
  for (std::size_t index = 0; index < table.texts.size(); ++index) {
    const auto& [name, where] = table.texts[index];
    head.text += fmt::format("{}\n  {{\"name\": {}, \"where\": {}}}", index == 0 ? "" : ",",
                             json_text(name), json_text(where));
  }
  head.text += "]}\n";
  return head;
}

// write_files(), but throws Error if nothing can be saved.
std::string write_what_fits(const std::string& directory, const Header& header,
                            const TimeBase& time, const std::vector<Recorder*>& recorders) {
  std::filesystem::create_directories(directory);  // the directory was there at the start
  const Head head = head_of(header, time);
  File json(fmt::format("{}/rank-{}.json", directory, header.rank));
  json.write(head.text);
  File events(fmt::format("{}/rank-{}.events", directory, header.rank));
  Writer writer(events, time, header.until);
  for (const Recorder* const recorder : recorders) writer.write(*recorder);
  const std::uint64_t kept = writer.finish();
  json.overwrite(head.counts_at, counts(kept, writer.lost(), writer.why_lost()));
  events.finish();
  json.finish();
  if (writer.lost() == 0) return "";
  return fmt::format("the trace of rank {} in {} has {} records and lacks {}, for which there was "
                     "no room ({}); `imbrex report` reads the records that are there",
                     header.rank, directory, kept, writer.lost(), writer.why_lost());
}

}  // namespace

std::string write_files(const std::string& directory, const Header& header, const TimeBase& time,
                        const std::vector<Recorder*>& recorders) {
  try {
    return write_what_fits(directory, header, time, recorders);
  } catch (const std::exception& error) {
    return fmt::format("there is no trace of rank {}: {}", header.rank, error.what());
  }
}

}  // namespace imbrex::trace
