// SPDX-License-Identifier: BSD-3-Clause
#include "explain/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/job.hpp"
#include "flight/folder.hpp"
#include "flight/format.hpp"
#include "imbrex/error.hpp"

namespace imbrex::explain {

namespace {

namespace fs = std::filesystem;
using flight::Head;
using flight::Layout;

constexpr std::uint32_t most = 1 << 20;  // of anything that a file counts

// A file in memory, as long as this lives.
class Mapping {
 public:
  Mapping(const std::string& path, const bool writes) {
    const int file = ::open(path.c_str(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    struct stat state{};
    if (file < 0 || fstat(file, &state) != 0) {
      const std::string why = std::strerror(errno);
      if (file >= 0) ::close(file);
      throw Error(fmt::format("cannot open {} ({})", path, why));
    }
    bytes_ = static_cast<std::size_t>(state.st_size);
    void* const memory = bytes_ < sizeof(Head) ? MAP_FAILED
                                               : mmap(nullptr, bytes_,
                                                      PROT_READ | (writes ? PROT_WRITE : 0),
                                                      MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw Error(path + " is no file of the flight recorder");
    head_ = static_cast<Head*>(memory);
  }
  ~Mapping() { munmap(head_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] Head& head() const noexcept { return *head_; }
  template <class T>
  [[nodiscard]] const T* at(const std::size_t offset) const noexcept {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(head_) + offset);
  }
  // Throws Error unless all areas lie within the file.
  void check(const std::string& path) const {
    const Head& head = *head_;
    const flight::Sizes& it = head.sizes;
    if (head.magic != flight::magic) throw Error(path + " is no file of the flight recorder");
    if (head.version != flight::version) {
      throw Error(fmt::format("{} is of version {}, and this imbrex reads version {}: use the "
                              "imbrex that ran the program",
                              path, head.version, flight::version));
    }
    const bool fits = it.workers < most && it.events < most && it.waits < most &&
                      it.names < most && (it.events & (it.events - 1)) == 0 && it.events != 0 &&
                      (it.names & (it.names - 1)) == 0 && it.names != 0 &&
                      it.pool_bytes < 1u << 30 && it.facts_bytes < 1u << 30 &&
                      Layout(it).end <= bytes_;
    if (!fits) throw Error(path + " is damaged: its areas do not lie within it");
  }

 private:
  Head* head_ = nullptr;
  std::size_t bytes_ = 0;
};

std::uint64_t load(const flight::Word& word) noexcept {
  return word.load(std::memory_order_relaxed);
}

std::string literal(const char* const text, const std::size_t room) {
  return {text, strnlen(text, room)};
}

// Texts by their addresses.
class Names {
 public:
  explicit Names(const Mapping& file)
      : names_(file.at<flight::Name>(Layout(file.head().sizes).names)),
        pool_(file.at<char>(Layout(file.head().sizes).pool)),
        count_(file.head().sizes.names),
        bytes_(file.head().sizes.pool_bytes) {}

  [[nodiscard]] std::string text(const std::uint64_t address) const {
    if (address == 0) return "";
    for (std::size_t place = flight::place_of(address, count_), step = 0; step < 16;
         ++step, place = (place + 1) & (count_ - 1)) {
      if (names_[place].address.load(std::memory_order_acquire) != address) continue;
      const std::uint64_t text = load(names_[place].text);
      if ((text >> 16) + (text & 0xffff) > bytes_) break;
      return {pool_ + (text >> 16), text & 0xffff};
    }
    return fmt::format("(a text at {:#x})", address);
  }

 private:
  const flight::Name* names_;
  const char* pool_;
  std::size_t count_, bytes_;
};

ShownTask task_of(const Names& names, const std::uint64_t id, const std::uint64_t name,
                  const std::uint64_t file, const std::uint64_t line) {
  if (id == 0) return {};
  std::string where = names.text(file);
  where = where.substr(where.rfind('/') + 1);
  if (!where.empty() && line != 0) where += fmt::format(":{}", line);
  const std::string called = names.text(name);
  return {id, fmt::format("\"{}\"{}", called, where.empty() ? "" : fmt::format(" ({})", where))};
}

std::vector<ShownWait> read_waits(const Mapping& file, const Names& names) {
  const Head& head = file.head();
  const flight::Wait* const waits = file.at<flight::Wait>(Layout(head.sizes).waits);
  std::vector<ShownWait> shown;
  const std::uint64_t used = std::min<std::uint64_t>(load(head.waits_used), head.sizes.waits);
  for (std::uint64_t i = 0; i < used; ++i) {
    const flight::Wait& wait = waits[i];
    const std::uint64_t task = wait.task.load(std::memory_order_acquire);
    if (task == 0) continue;
    const std::uint64_t since = load(wait.since), where = load(wait.where);
    const auto kind = static_cast<std::uint8_t>(since >> 32 & 0xff);
    if (kind > static_cast<std::uint8_t>(detail::WaitKind::mpi)) continue;
    const std::uint64_t comm = load(wait.comm);
    shown.push_back({.task = task_of(names, task, load(wait.name), load(wait.file), since >> 40),
                     .kind = static_cast<detail::WaitKind>(kind),
                     .call = names.text(load(wait.what)),
                     .peer = static_cast<std::int32_t>(where >> 32),
                     .tag = static_cast<std::int32_t>(where),
                     .bytes = load(wait.bytes),
                     .on_world = comm != 0 && comm == load(head.world),
                     .since = since & 0xffffffff});
    if (wait.task.load(std::memory_order_acquire) != task) shown.pop_back();  // it went on
  }
  std::ranges::stable_sort(shown, {}, [](const ShownWait& one) { return one.task.id; });
  return shown;
}

// The clock of events has 24 bits: an event is at most so much older than the file's clock.
std::uint64_t time_of(const std::uint64_t bits, const std::uint64_t now) noexcept {
  const std::uint64_t ago = (now - bits) & 0xffffff;
  return now > ago ? now - ago : 0;
}

std::vector<ShownEvent> read_events(const Mapping& file, const Names& names, const int worker,
                                    const std::uint64_t count, const std::size_t last) {
  const Head& head = file.head();
  const auto* const events = file.at<flight::Event>(Layout(head.sizes).rings) +
                             static_cast<std::size_t>(worker) * head.sizes.events;
  std::vector<ShownEvent> shown;
  const std::uint64_t here = std::min<std::uint64_t>({count, head.sizes.events, last});
  for (std::uint64_t i = count - here; i < count; ++i) {
    const flight::Event& event = events[i & (head.sizes.events - 1)];
    const std::uint64_t rest = load(event.rest), where = load(event.where);
    const auto kind = static_cast<std::uint8_t>(rest & 0xff);
    if (kind == 0 || kind > static_cast<std::uint8_t>(detail::FlightEvent::task_end)) continue;
    shown.push_back({.kind = static_cast<detail::FlightEvent>(kind),
                     .task = load(event.task),
                     .what = names.text(load(event.what)),
                     .peer = static_cast<std::int32_t>(where >> 32),
                     .tag = static_cast<std::int32_t>(where),
                     .size = rest >> 32,
                     .at = time_of(rest >> 8 & 0xffffff, load(head.tenths))});
  }
  return shown;
}

std::vector<ShownWorker> read_rings(const Mapping& file, const Names& names) {
  constexpr std::size_t last = 16;
  const Head& head = file.head();
  const auto* const workers = file.at<flight::WorkerNow>(Layout(head.sizes).workers);
  std::vector<ShownWorker> shown;
  for (std::uint32_t i = 0; i < head.sizes.rings(); ++i) {
    const flight::WorkerNow& now = workers[i];
    const std::uint64_t count = now.events.load(std::memory_order_acquire);
    shown.push_back({.task = task_of(names, load(now.task), load(now.name), load(now.file),
                                     load(now.line)),
                     .tasks = load(now.tasks),
                     .steals = load(now.steals),
                     .suspensions = load(now.suspensions),
                     .polls = load(now.polls),
                     .in_task = load(now.in_task),
                     .idle = load(now.idle),
                     .overhead = load(now.overhead),
                     .all_events = count,
                     .events = read_events(file, names, static_cast<int>(i), count, last)});
  }
  return shown;
}

// The text that the process kept of itself; empty if it was just writing, or has moved since.
std::string read_facts(const Mapping& file, const std::vector<ShownWorker>& workers) {
  const Head& head = file.head();
  const std::uint64_t length = head.facts_length.load(std::memory_order_acquire);
  std::uint64_t events = 0;
  for (const ShownWorker& worker : workers) events += worker.all_events;
  if (length % 2 != 0 || length / 2 > head.sizes.facts_bytes || load(head.facts_events) != events) {
    return "";
  }
  std::string text(file.at<char>(Layout(head.sizes).facts), length / 2);
  return head.facts_length.load(std::memory_order_acquire) == length ? text : "";
}

Life life_of(const Head& head, const std::string& host) {
  if (load(head.end) == static_cast<std::uint64_t>(flight::End::failed)) return Life::failed;
  if (load(head.end) == static_cast<std::uint64_t>(flight::End::stuck)) return Life::stuck;
  if (host != flight::host_name()) return Life::unknown;
  return base::started_at(head.pid) == head.started_at ? Life::runs : Life::gone;
}

}  // namespace

Recording read_recording(const std::string& path) {
  const Mapping file(path, false);
  file.check(path);
  const Head& head = file.head();
  const Names names(file);
  Recording it;
  it.path = path;
  it.rank = static_cast<int>(std::min<std::uint64_t>(load(head.rank), most));
  it.ranks = static_cast<int>(std::min<std::uint64_t>(load(head.ranks), 16 * most));
  it.process = head.pid;
  it.host = literal(head.host, sizeof head.host);
  it.job = literal(head.job, sizeof head.job);
  it.program = literal(head.program, sizeof head.program);
  it.life = life_of(head, it.host);
  it.begun_ns = head.begun_ns;
  it.tenths = load(head.tenths);
  it.ready = load(head.ready);
  it.in_flight = load(head.in_flight);
  it.waits = read_waits(file, names);
  it.workers = read_rings(file, names);
  it.facts = read_facts(file, it.workers);
  const auto take = [&it, &head](const flight::Beside whose) {
    return std::move(it.workers[head.sizes.workers + static_cast<std::size_t>(whose)].events);
  };
  it.completed = take(flight::Beside::completed);
  it.resumed = take(flight::Beside::resumed);
  it.workers.resize(head.sizes.workers);
  return it;
}

std::vector<std::string> find_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (!fs::exists(path, error)) throw Error(fmt::format("there is no {}", path));
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".flight") files.push_back(entry.path());
    }
    if (error) throw Error(fmt::format("cannot read {} ({})", path, error.message()));
  }
  std::ranges::sort(files);
  if (files.empty()) {
    throw Error(fmt::format("{} has no file of the flight recorder (*.flight): a run that ends "
                            "well removes its files, and IMBREX_FLIGHT=off writes none",
                            paths.size() == 1 ? paths.front() : "none of these folders"));
  }
  return files;
}

void watch(const std::string& path) noexcept {
  try {
    const Mapping file(path, true);
    file.check(path);
    constexpr std::uint64_t tenths = 30;
    file.head().watched_until.store(load(file.head().tenths) + tenths, std::memory_order_relaxed);
  } catch (const Error&) {  // it may only be read: ten looks a second are enough
  }
}

}  // namespace imbrex::explain
