// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/space/copy.hpp"

#include <cstring>

namespace imbrex::distributed {

void CopyBytes::add(const std::size_t bytes) noexcept {
  const std::uint64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::uint64_t most = most_.load(std::memory_order_relaxed);
  while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}
void CopyBytes::remove(const std::size_t bytes) noexcept {
  now_.fetch_sub(bytes, std::memory_order_relaxed);
}
std::uint64_t CopyBytes::most() const noexcept { return most_.load(std::memory_order_relaxed); }

Copy::Copy(CopyBytes& counted, const DataShape& shape, void* const program) noexcept
    : counted_(counted),
      shape_{shape.rows, shape.columns, program != nullptr ? shape.leading : shape.rows,
             shape.element_bytes},
      program_(program) {}

Copy::~Copy() {
  if (arrival != nullptr) detail::release(*arrival);
  Buffer* const buffer = buffer_.load(std::memory_order_relaxed);
  if (buffer == nullptr) return;
  counted_.remove(bytes());
  buffer->release();
}

void Copy::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

Buffer* Copy::make_buffer() const {
  Buffer* const made = Buffer::make(bytes());
  counted_.add(bytes());
  return made;
}

DataMemory Copy::place(Buffer& buffer) const noexcept { return {buffer.bytes().data(), shape_}; }

Buffer& Copy::zeroed() {
  Buffer* buffer = buffer_.load(std::memory_order_acquire);
  if (buffer != nullptr) return *buffer;
  Buffer* const made = make_buffer();
  if (bytes() != 0) std::memset(made->bytes().data(), 0, bytes());
  if (buffer_.compare_exchange_strong(buffer, made, std::memory_order_acq_rel)) return *made;
  counted_.remove(bytes());
  made->release();
  return *buffer;
}

DataMemory Copy::readable() {
  if (program_ != nullptr) return {program_, shape_};
  return place(zeroed());
}

DataMemory Copy::writable(const bool keeps) {
  if (program_ != nullptr) return {program_, shape_};
  Buffer* const buffer = buffer_.load(std::memory_order_relaxed);
  if (buffer == nullptr && keeps) return place(zeroed());
  if (buffer != nullptr && !forwards_.load(std::memory_order_acquire)) return place(*buffer);
  Buffer* const made = make_buffer();
  if (buffer != nullptr) {
    if (keeps && bytes() != 0) {
      std::memcpy(made->bytes().data(), buffer->bytes().data(), bytes());
    }
    counted_.remove(bytes());
    buffer->release();
    // The forwarded buffer is another one from now on.
    forwards_.store(false, std::memory_order_relaxed);
  }
  buffer_.store(made, std::memory_order_release);
  return place(*made);
}

const std::byte* Copy::packed(Buffer*& scratch) {
  const DataMemory from = readable();
  if (!has_gaps()) return static_cast<const std::byte*>(from.memory);
  scratch = Buffer::make(bytes());
  copy_elements({scratch->bytes().data(),
                 {shape_.rows, shape_.columns, shape_.rows, shape_.element_bytes}},
                from);
  return scratch->bytes().data();
}

void Copy::assign(Copy& other) { copy_elements(writable(false), other.readable()); }

void Copy::arrive(Buffer* const buffer) noexcept {
  counted_.add(bytes());
  forwards_.store(true, std::memory_order_relaxed);
  buffer_.store(buffer, std::memory_order_release);
}

void copy_elements(const DataMemory& to, const DataMemory& from) noexcept {
  const std::size_t column = from.shape.rows * from.shape.element_bytes;
  if (column == 0) return;
  auto* into = static_cast<std::byte*>(to.memory);
  const auto* source = static_cast<const std::byte*>(from.memory);
  for (std::size_t i = 0; i < from.shape.columns; ++i) {
    std::memcpy(into, source, column);
    into += to.shape.leading * to.shape.element_bytes;
    source += from.shape.leading * from.shape.element_bytes;
  }
}

}  // namespace imbrex::distributed
