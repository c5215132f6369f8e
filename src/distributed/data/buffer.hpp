// SPDX-License-Identifier: BSD-3-Clause
// The memory of a datum's copy that has arrived from another rank. Knows no protocol.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace imbrex::distributed {

// Thread safety: any thread uses the references; the users agree on the bytes.
class Buffer {
 public:
  // Makes a buffer with one reference, which the caller owns, and undefined bytes. Throws
  // std::bad_alloc.
  [[nodiscard]] static Buffer* make(std::size_t bytes);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() noexcept {  // aligned to 64
    return {reinterpret_cast<std::byte*>(this) + head_bytes, bytes_};
  }
  // REQUIRES: the caller has a reference.
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

 private:
  static constexpr std::size_t head_bytes = 64;
  explicit Buffer(const std::size_t bytes) noexcept : bytes_(bytes) {}
  ~Buffer() = default;

  const std::size_t bytes_;
  std::atomic<std::uint32_t> references_{1};  // acq_rel: the last user's accesses before the end
};

}  // namespace imbrex::distributed
