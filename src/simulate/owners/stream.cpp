// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/owners/stream.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "imbrex/error.hpp"

namespace imbrex::simulate {

using distributed::recorded::Operation;

Stream::Stream(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "rb")), buffer_(1 << 16) {
  if (file_ == nullptr) throw Error(fmt::format("{}: {}", path, std::strerror(errno)));
  try {
    for (const char c : distributed::recorded::magic) {
      if (next() != static_cast<unsigned char>(c)) {
        refuse("is no file of insertions that this version of imbrex has written");
      }
    }
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

Stream::~Stream() { std::fclose(file_); }

void Stream::refuse(const std::string& why) const {
  throw Error(fmt::format("{}, byte {}: {}", path_, before_ + place_, why));
}

void Stream::fill() {
  before_ += filled_;
  place_ = 0;
  filled_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
  if (filled_ == 0) refuse("the file ends in the middle: the program has not ended well");
}

Operation Stream::operation() {
  const unsigned char kind = next();
  if (kind >= static_cast<unsigned char>(Operation::operations)) {
    refuse(fmt::format("there is no operation {}: the file is damaged", kind));
  }
  return static_cast<Operation>(kind);
}

std::uint64_t Stream::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const unsigned char byte = next();
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  refuse("a number has more than 64 bits: the file is damaged");
}

std::uint64_t Stream::number_below(const std::uint64_t end, const char* const what) {
  const std::uint64_t value = number();
  if (value >= end) refuse(fmt::format("there is no {} {}: the file is damaged", what, value));
  return value;
}

void Stream::skip(const std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes; ++i) (void)next();
}

}  // namespace imbrex::simulate
