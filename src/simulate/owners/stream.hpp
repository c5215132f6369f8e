// SPDX-License-Identifier: BSD-3-Clause
// Reads the file of insertions (distributed/data/recorded.hpp), number by number.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "distributed/data/recorded.hpp"

namespace imbrex::simulate {

class Stream {
 public:
  // Throws Error if the file cannot be read, or is no file of insertions.
  explicit Stream(const std::string& path);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Throw Error with the path and the place if the file ends too early or is damaged.
  [[nodiscard]] distributed::recorded::Operation operation();
  [[nodiscard]] std::uint64_t number();
  // A number below `end`.
  [[nodiscard]] std::uint64_t number_below(std::uint64_t end, const char* what);
  void skip(std::uint64_t bytes);
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  [[nodiscard]] unsigned char next() {
    if (place_ == filled_) fill();
    return buffer_[place_++];
  }
  void fill();

  const std::string path_;
  std::FILE* file_;
  std::vector<unsigned char> buffer_;
  std::size_t place_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t before_ = 0;  // bytes of the file before the buffer
};

}  // namespace imbrex::simulate
