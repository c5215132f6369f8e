// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/recorder.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/text/json_text.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

using recorded::Operation;

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& path) {
  throw Error(fmt::format("imbrex: the insertions for imbrex simulate cannot be written to {}: {}",
                          path, std::strerror(errno)));
}

}  // namespace

int Recorder::ranks() { return static_cast<int>(detail::number_option("SIMULATE_RANKS")); }

Recorder* Recorder::of_process() {
  static Recorder* const recorder =  // never destroyed: spaces may be static
      ranks() == 0 ? nullptr : new Recorder(detail::text_option("SIMULATE_FILE"), ranks());
  return recorder;
}

Recorder::Recorder(std::string path, const int ranks) : path_(std::move(path)), ranks_(ranks) {
  if (path_.empty()) {
    throw Error("imbrex: IMBREX_SIMULATE_RANKS is set, and IMBREX_SIMULATE_FILE is not: start the "
                "program by imbrex simulate, which sets both");
  }
  file_ = std::fopen(path_.c_str(), "wb");
  if (file_ == nullptr) fail(path_);
  put(recorded::magic);
}

void Recorder::put(const std::string_view bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void Recorder::put(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) buffer_.push_back(static_cast<char>(number | 0x80));
  buffer_.push_back(static_cast<char>(number));
}

void Recorder::put(const Operation operation, const std::uint64_t space) {
  if (buffer_.size() >= buffer_bytes) flush();
  buffer_.push_back(static_cast<char>(operation));
  put(space);
}

void Recorder::flush() {
  const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_) == buffer_.size();
  if (!written || std::fflush(file_) != 0) fail(path_);
  buffer_.clear();
}

std::uint64_t Recorder::number_of(const char* const name) {
  const auto known = by_address_.find(name);
  // A name may have been built in memory that another name has now.
  if (known != by_address_.end() && names_[known->second] == name) return known->second;
  const auto [place, is_new] = by_text_.try_emplace(name, names_.size());
  if (is_new) {
    names_.emplace_back(name);
    counts_.push_back(0);
    const std::string_view text = name;
    put(Operation::name, text.size());
    put(text);
  }
  by_address_[name] = place->second;
  return place->second;
}

std::uint64_t Recorder::number_of(const detail::DataReduction& reduction) {
  return reductions_.try_emplace(&reduction, reductions_.size()).first->second;
}

std::uint64_t Recorder::open(const std::uint64_t window) {
  const std::uint64_t number = spaces_++;
  if (++open_spaces_ == 1) (void)std::remove((path_ + ".json").c_str());  // not complete any more
  put(Operation::space, window);
  return number;
}

void Recorder::datum(const std::uint64_t space, const int owner, const std::size_t bytes) {
  ++data_;
  put(Operation::datum, space);
  put(static_cast<std::uint64_t>(owner + 1));
  put(bytes);
}

void Recorder::task(const std::uint64_t space, const Task& task,
                    const std::span<const Access> accesses) {
  const std::uint64_t name = number_of(task.name);
  ++counts_[name];
  accesses_ += accesses.size();
  put(Operation::task, space);
  put(name);
  put(static_cast<std::uint64_t>(task.executor));
  put(recorded::folded(task.priority));
  put(accesses.size());
  for (const Access& access : accesses) {
    put(access.datum << 2 | static_cast<std::uint64_t>(access.mode));
    if (access.mode == detail::DataMode::reduce) put(number_of(*access.reduction));
  }
}

void Recorder::movement(const Operation operation, const std::uint64_t space,
                        const std::uint64_t datum, const int owner) {
  put(operation, space);
  put(datum);
  if (operation == Operation::move) put(static_cast<std::uint64_t>(owner));
}

void Recorder::finish(const std::uint64_t space) { put(Operation::finish, space); }

void Recorder::close(const std::uint64_t space) {
  put(Operation::close, space);
  if (--open_spaces_ == 0 && !abandoned_) write_summary();
}

// What `imbrex simulate` needs before it reads the file. Without this second file the first one is
// not complete. A program may open more spaces later, and the summary is written anew then.
void Recorder::write_summary() {
  flush();
  const long end = std::ftell(file_);
  buffer_.push_back(static_cast<char>(Operation::end));
  flush();
  if (std::fseek(file_, end, SEEK_SET) != 0) fail(path_);
  std::string text = fmt::format("{{\"ranks\": {}, \"spaces\": {}, \"data\": {}, \"accesses\": {}, "
                                 "\"names\": [",
                                 ranks_, spaces_, data_, accesses_);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    text += fmt::format("{}[{}, {}]", i == 0 ? "" : ", ", base::text::json_text(names_[i]),
                        counts_[i]);
  }
  text += fmt::format("], \"viewed\": {}}}\n", base::text::json_text(viewed_));
  const std::string path = path_ + ".json";
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) fail(path);
}

void* Recorder::zeros(const std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace imbrex::distributed
