// SPDX-License-Identifier: BSD-3-Clause
// One rank's memory of a datum: a version of it, which tasks here turn into later versions in
// place. Knows neither the record of a datum nor messages.
//
// A copy lives while its version is valid (a reference of the record), while a task uses it, and
// while a transfer brings it or passes it on. The tasks of this rank are ordered by its address.
//
// Thread safety: any thread uses references, buffer and `forwards`. `trouble`, and the bytes: the
// order of tasks gives their writer the copy alone, as it does for the transfer that brings it.
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

using detail::DataMemory;
using detail::DataShape;

// The reason why a version of a datum does not exist. Kept by the space.
struct Trouble {
  explicit Trouble(std::string its_text) : text(std::move(its_text)) {
    const std::size_t task = text.find("imbrex: task \"");
    cause = std::string_view(text).substr(task == std::string::npos ? 0 : task);
  }
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;

  const std::string text;  // names rank and task
  // The text without the ways by which it has come here. Other ranks are told this part; otherwise
  // texts would grow from rank to rank until they are cut.
  std::string_view cause;
};

// The bytes of a space's copies, and their maximum.
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
  // In memory of the program, with layout `shape`; null: in memory of the runtime, without gaps.
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

  // False: the copy was neither read nor written, and no data have arrived.
  [[nodiscard]] bool has_memory() const noexcept {
    return program_ != nullptr || buffer_.load(std::memory_order_acquire) != nullptr;
  }
  // For a reader. Memory that was never written is zero.
  [[nodiscard]] DataMemory readable();
  // For a writer, with the present contents or without. While other ranks are still being sent the
  // buffer, another one takes its place.
  [[nodiscard]] DataMemory writable(bool keeps);
  // The bytes without gaps: in place, or copied to `scratch`, whose reference the caller owns.
  [[nodiscard]] const std::byte* packed(Buffer*& scratch);
  void assign(Copy& other);  // all elements

  // Takes over the reference of arrived data. They must not be written until passed_on().
  void arrive(Buffer* buffer) noexcept;
  void passed_on() noexcept { forwards_.store(false, std::memory_order_release); }

  const Trouble* trouble = nullptr;  // null: the version exists
  // Fires when the data of a message have arrived; null: made on this rank. A reference. Only the
  // inserting thread uses it.
  detail::RemoteState* arrival = nullptr;

 private:
  ~Copy();
  [[nodiscard]] DataMemory place(Buffer& buffer) const noexcept;
  [[nodiscard]] Buffer* make_buffer() const;
  [[nodiscard]] Buffer& zeroed();

  std::atomic<std::uint32_t> references_{1};
  std::atomic<bool> forwards_{false};  // release by passed_on() pairs with the acquire of a writer
  CopyBytes& counted_;
  const DataShape shape_;
  void* const program_;
  // acq_rel: one of several first readers makes the zeros.
  std::atomic<Buffer*> buffer_{nullptr};
};

void copy_elements(const DataMemory& to, const DataMemory& from) noexcept;

}  // namespace imbrex::distributed
