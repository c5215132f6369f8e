// SPDX-License-Identifier: BSD-3-Clause
// What one rank has of a datum: memory with a version of it, which tasks here turn into later
// versions in place. Knows neither a record of a datum nor messages.
//
// A copy is kept by its datum's record while its version is valid, by each task that uses it, and
// by a transfer that brings it or passes it on; it goes with the last of them. Its address is what
// the tasks of this rank are ordered by.
//
// Thread safety: references, buffer and `forwards`, any thread; `trouble`, and the bytes: whoever
// writes them has the copy to itself, by the order of tasks, and so has what brings it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "distributed/data/buffer.hpp"
#include "imbrex/detail/distributed/data_space.hpp"

namespace imbrex::distributed {

using detail::DataPlace;
using detail::DataShape;

// Why a version of a datum does not exist. Kept by the space.
struct Trouble {
  explicit Trouble(std::string its_text) : text(std::move(its_text)) {
    const std::size_t task = text.find("imbrex: task \"");
    cause = std::string_view(text).substr(task == std::string::npos ? 0 : task);
  }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  const std::string text;  // names rank and task
  // The same without the ways by which it has come here. This is what other ranks are told: else
  // texts would grow from rank to rank until they are cut.
  std::string_view cause;
};

// Bytes of copies that a space has, and the most that they were.
class CopyBytes {
 public:
  void add(std::size_t bytes) noexcept;
  void remove(std::size_t bytes) noexcept;
  [[nodiscard]] std::uint64_t most() const noexcept;

 private:
  std::atomic<std::uint64_t> now_{0}, most_{0};  // relaxed: they are counters
};

class Copy {
 public:
  // In memory of the program's, laid out as `shape` says; null: in the runtime's, without gaps.
  Copy(CopyBytes& counted, const DataShape& shape, void* program) noexcept;
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

  [[nodiscard]] bool is_program() const noexcept { return program_ != nullptr; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return shape_.rows * shape_.columns * shape_.element_bytes;
  }
  [[nodiscard]] bool has_gaps() const noexcept {
    return shape_.columns > 1 && shape_.leading != shape_.rows;
  }

  // False: nobody has read or written it, and nothing has come for it.
  [[nodiscard]] bool has_memory() const noexcept {
    return program_ != nullptr || buffer_.load(std::memory_order_acquire) != nullptr;
  }
  // For who reads. Memory that nobody has written is zero.
  [[nodiscard]] DataPlace readable();
  // For who writes, with what is there or without. While the buffer is passed on to other ranks,
  // another one takes its place.
  [[nodiscard]] DataPlace writable(bool keeps);
  // The bytes without gaps: where they lie, or copied to `scratch`, whose reference is the
  // caller's.
  [[nodiscard]] const std::byte* packed(Buffer*& scratch);
  void assign(Copy& other);  // all elements

  // What has come for it; takes over the reference. Until passed_on() it may not be written.
  void arrive(Buffer* buffer) noexcept;
  void passed_on() noexcept { forwards_.store(false, std::memory_order_release); }

  const Trouble* trouble = nullptr;  // null: the version exists
  // Fires when what a message brings is here; null: it was made here. A reference. Only the thread
  // that inserts looks at it.
  detail::RemoteState* arrival = nullptr;

 private:
  ~Copy();
  [[nodiscard]] DataPlace place(Buffer& buffer) const noexcept;
  [[nodiscard]] Buffer* make_buffer() const;
  [[nodiscard]] Buffer& zeroed();

  std::atomic<std::uint32_t> references_{1};
  std::atomic<bool> forwards_{false};  // release by passed_on() pairs with the acquire of a writer
  CopyBytes& counted_;
  const DataShape shape_;
  void* const program_;
  // acq_rel: of several first readers one gives it its zeros.
  std::atomic<Buffer*> buffer_{nullptr};
};

void copy_elements(const DataPlace& to, const DataPlace& from) noexcept;

}  // namespace imbrex::distributed
