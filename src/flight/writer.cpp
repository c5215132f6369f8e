// SPDX-License-Identifier: BSD-3-Clause
#include "flight/writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/job.hpp"
#include "flight/folder.hpp"

namespace imbrex::flight {

namespace {

constexpr std::uint32_t events_of_a_ring = 1024;
constexpr std::uint32_t waits_max = 4096;
constexpr std::uint32_t names_max = 4096;
constexpr std::uint32_t pool_bytes = 256 * 1024;
constexpr std::uint32_t facts_bytes = 128 * 1024;
constexpr std::size_t text_max = 240;

// Written by open(), close() and forget().
struct File {
  std::string path;    // empty: none
  std::string folder;  // of the job; empty: the user's own
  std::size_t bytes = 0;
};
File& file() noexcept {
  static File& the_file = *new File;  // a process may end while it is used
  return the_file;
}

template <class T>
T* at(Head& head, const std::size_t offset) noexcept {
  return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(&head) + offset);
}

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

void copy_text(char* const to, const std::size_t room, const std::string& text) noexcept {
  std::memcpy(to, text.data(), std::min(text.size(), room - 1));
}

void fill_in(Head& head, const Sizes& sizes, const std::string& job) {
  head.version = version;
  head.sizes = sizes;
  head.pid = getpid();
  head.started_at = base::started_at(getpid());
  head.begun_ns = now_ns();
  head.tenths.store(1, std::memory_order_relaxed);
  copy_text(head.host, sizeof head.host, host_name());
  copy_text(head.job, sizeof head.job, job);
  copy_text(head.program, sizeof head.program, program_invocation_name);
  std::atomic_ref(head.magic).store(magic, std::memory_order_release);
}

// A new file in the folder of the job; below 0, and the problem in `folder`: there is none. Another
// process of the job that ends takes the folder away if it is empty: then it is made again.
int make_file(const std::string& directory, Folder& folder, std::string& path) {
  constexpr int attempts = 100;
  for (int attempt = 1;; ++attempt) {
    folder = make_folder(directory);
    if (folder.path.empty()) return -1;
    path = folder.path + "/" + file_name();
    unlink(path.c_str());  // of a dead process with the same number
    const int made =
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made >= 0) return made;
    if (errno == ENOENT && attempt < attempts) continue;
    folder.problem = fmt::format("cannot make {} ({})", path, std::strerror(errno));
    return -1;
  }
}

std::string map(const int workers, const std::string& directory) {
  const Sizes sizes{.workers = static_cast<std::uint32_t>(workers),
                    .events = events_of_a_ring,
                    .waits = waits_max,
                    .names = names_max,
                    .pool_bytes = pool_bytes,
                    .facts_bytes = facts_bytes};
  const Layout layout(sizes);
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < layout.end) {  // else a signal comes
    return fmt::format("its file would need {} bytes, and ulimit -f allows {}", layout.end,
                       most.rlim_cur);
  }
  Folder folder;
  std::string path;
  const int descriptor = make_file(directory, folder, path);
  if (descriptor < 0) return folder.problem;
  // Room is taken from the disk now: a store to a page without room would end the program.
  const int refused = posix_fallocate(descriptor, 0, static_cast<off_t>(layout.end));
  void* const memory = refused != 0 ? MAP_FAILED
                                    : mmap(nullptr, layout.end, PROT_READ | PROT_WRITE, MAP_SHARED,
                                           descriptor, 0);
  const int error = refused != 0 ? refused : errno;
  ::close(descriptor);
  if (memory == MAP_FAILED) {
    unlink(path.c_str());
    return fmt::format("cannot map {} bytes of {} ({})", layout.end, path, std::strerror(error));
  }
  Head& head = *static_cast<Head*>(memory);
  fill_in(head, sizes, folder.job);
  file().path = path;
  file().folder = directory.empty() ? folder.path : "";
  file().bytes = layout.end;
  mapped.store(&head, std::memory_order_release);
  return {};
}

// ---- texts -------------------------------------------------------------------------------------

// Copies the text at `address`, which may be gone. (The system copies, and refuses what is not
// there, where a load would end the process.)
std::size_t copy_from(const std::uint64_t address, char* const to) noexcept {
  std::size_t length = 0;
  while (length < text_max) {
    // no piece goes over the end of a page, whose neighbour may be missing
    const std::size_t piece =
        std::min<std::size_t>(text_max - length, 64 - (address + length) % 64);
    iovec mine{to + length, piece};
    iovec theirs{reinterpret_cast<void*>(address + length), piece};  // NOLINT: an address as such
    if (process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) != static_cast<ssize_t>(piece)) break;
    if (const void* const end = std::memchr(to + length, 0, piece)) {
      return static_cast<std::size_t>(static_cast<const char*>(end) - to);
    }
    length += piece;
  }
  return length;
}

// Enters the text of the address, if it is new and there is room.
void look_up(Head& head, const std::uint64_t address) noexcept {
  if (address == 0) return;
  const Layout layout(head.sizes);
  Name* const names = at<Name>(head, layout.names);
  for (std::size_t place = place_of(address, head.sizes.names), step = 0; step < 16;
       ++step, place = (place + 1) & (head.sizes.names - 1)) {
    const std::uint64_t there = names[place].address.load(std::memory_order_relaxed);
    if (there == address) return;
    if (there != 0) continue;
    const std::uint64_t used = head.pool_used.load(std::memory_order_relaxed);
    if (used + text_max > head.sizes.pool_bytes) return;
    const std::size_t length = copy_from(address, at<char>(head, layout.pool) + used);
    head.pool_used.store(used + length, std::memory_order_relaxed);
    names[place].text.store(used << 16 | length, std::memory_order_relaxed);
    names[place].address.store(address, std::memory_order_release);
    return;
  }
}

void look_up_waits(Head& head) noexcept {
  Wait* const waits = at<Wait>(head, Layout(head.sizes).waits);
  const std::uint64_t used = head.waits_used.load(std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < used; ++i) {
    if (waits[i].task.load(std::memory_order_acquire) == 0) continue;
    for (const Word* const one : {&waits[i].name, &waits[i].file, &waits[i].what}) {
      look_up(head, one->load(std::memory_order_relaxed));
    }
  }
}

// What a worker does, or the thread that has a ring beside them.
WorkerNow& now_of(Head& head, const std::uint32_t place) noexcept {
  return at<WorkerNow>(head, Layout(head.sizes).workers)[place];
}
Event* events_of(Head& head, const std::uint32_t place) noexcept {
  return at<Event>(head, Layout(head.sizes).rings) + std::size_t{place} * head.sizes.events;
}

// Those of the last events: when a program stands still, these are what it did last.
void look_up_events(Head& head) noexcept {
  constexpr std::uint64_t last = 64;
  for (std::uint32_t place = 0; place < head.sizes.rings(); ++place) {
    const WorkerNow& now = now_of(head, place);
    for (const Word* const one : {&now.name, &now.file}) {
      look_up(head, one->load(std::memory_order_relaxed));
    }
    const Event* const events = events_of(head, place);
    const std::uint64_t count = now.events.load(std::memory_order_acquire);
    for (std::uint64_t i = count - std::min(count, last); i < count; ++i) {
      look_up(head, events[i & (head.sizes.events - 1)].what.load(std::memory_order_relaxed));
    }
  }
}

}  // namespace

std::string open(const int workers, const std::string& directory) noexcept {
  if (head() != nullptr) return {};
  try {
    return map(workers, directory);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void close(const bool well) noexcept {
  Head* const present = head();
  if (present == nullptr) return;
  if (well) {
    unlink(file().path.c_str());
    if (!file().folder.empty()) rmdir(file().folder.c_str());  // if this was the last of the job
    file().path.clear();
  } else {
    note_end(End::failed);
  }
}

void note_end(const End end) noexcept {
  if (Head* const present = head()) {
    present->end.store(static_cast<std::uint64_t>(end), std::memory_order_relaxed);
  }
}

void forget() noexcept {
  Head* const present = mapped.exchange(nullptr, std::memory_order_relaxed);
  if (present == nullptr) return;
  (void)mmap(present, file().bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  file().path.clear();
}

WorkerNow* worker(const int index) noexcept {
  Head* const present = head();
  const bool has_one = present != nullptr && index >= 0 &&
                       static_cast<std::uint32_t>(index) < present->sizes.workers;
  return has_one ? &now_of(*present, static_cast<std::uint32_t>(index)) : nullptr;
}

// REQUIRES: the file has this place.
Ring ring_at(const std::uint32_t place) noexcept {
  Head& present = *head();
  WorkerNow& now = now_of(present, place);
  Ring ring;
  ring.events_ = events_of(present, place);
  ring.mask_ = present.sizes.events - 1;
  ring.count_ = now.events.load(std::memory_order_relaxed);
  ring.now_ = &now;
  ring.clock_ = &present.tenths;
  return ring;
}

Ring ring_of(const int index) noexcept {
  return worker(index) != nullptr ? ring_at(static_cast<std::uint32_t>(index)) : Ring();
}

Ring ring_of(const Beside whose) noexcept {
  const Head* const present = head();
  return present != nullptr ? ring_at(present->sizes.workers + static_cast<std::uint32_t>(whose))
                            : Ring();
}

Wait* wait_of(const std::uint64_t place) noexcept {
  Head* const present = head();
  if (present == nullptr || place >= present->sizes.waits) return nullptr;
  std::uint64_t used = present->waits_used.load(std::memory_order_relaxed);
  while (used <= place && !present->waits_used.compare_exchange_weak(used, place + 1)) {
  }
  return at<Wait>(*present, Layout(present->sizes).waits) + place;
}

void begin(Wait& wait, const std::uint64_t task, const char* const name,
           const std::source_location& where, const detail::WaitReason& reason) noexcept {
  const auto put = [](Word& to, const std::uint64_t value) {
    to.store(value, std::memory_order_relaxed);
  };
  put(wait.name, reinterpret_cast<std::uintptr_t>(name));
  put(wait.file, reinterpret_cast<std::uintptr_t>(where.file_name()));
  put(wait.what, reinterpret_cast<std::uintptr_t>(reason.what));
  const std::uint64_t tenths = head()->tenths.load(std::memory_order_relaxed) & 0xffffffff;
  put(wait.since, std::uint64_t{where.line()} << 40 |
                      static_cast<std::uint64_t>(reason.kind) << 32 | tenths);
  put(wait.where, pack_where(reason.peer, reason.tag));
  put(wait.bytes, reason.bytes);
  put(wait.comm, reason.communicator);
  wait.task.store(task, std::memory_order_release);
}

void tick() noexcept {
  Head* const present = head();
  if (present == nullptr) return;
  present->tenths.store((now_ns() - present->begun_ns) / 100'000'000 + 1,
                        std::memory_order_relaxed);
  look_up_waits(*present);
  look_up_events(*present);
}

void keep_facts(const std::string_view facts) noexcept {
  Head* const present = head();
  if (present == nullptr) return;
  const std::size_t length = std::min<std::size_t>(facts.size(), present->sizes.facts_bytes);
  std::uint64_t events = 0;
  for (std::uint32_t place = 0; place < present->sizes.rings(); ++place) {
    events += now_of(*present, place).events.load(std::memory_order_relaxed);
  }
  // acq_rel: what follows stays behind it
  (void)present->facts_length.exchange(1, std::memory_order_acq_rel);
  std::memcpy(at<char>(*present, Layout(present->sizes).facts), facts.data(), length);
  present->facts_events.store(events, std::memory_order_relaxed);
  present->facts_length.store(2 * length, std::memory_order_release);
}

}  // namespace imbrex::flight
