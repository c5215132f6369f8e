// SPDX-License-Identifier: BSD-3-Clause
// Which random programs a fuzzer runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

namespace imbrex::test {

// The seeds from a first seed on: `count` of them, or, if `seconds` is above 0, as many as begin in
// this time, at least one. With `seconds` the first seed is drawn if none is given, so that each
// run of the tests sees other programs. A fuzzer prints the command that runs a failed program
// again.
class Seeds {
 public:
  explicit Seeds(const int count) : count_(count) {}

  // `key value` of the command line; false if this is no such key. FUZZ_SECONDS of the environment
  // takes the place of the value of --seconds: ./test --full looks for longer.
  bool take(const std::string& key, const char* const value) {
    if (key == "--seed") {
      first_ = std::strtoull(value, nullptr, 10);
    } else if (key == "--count") {
      count_ = std::atoi(value);
      seconds_ = 0;
    } else if (key == "--seconds") {
      const char* const longer = std::getenv("FUZZ_SECONDS");
      seconds_ = std::atof(longer != nullptr ? longer : value);
    } else {
      return false;
    }
    return true;
  }

  // Drawn by the first call, if it is to be drawn.
  std::uint64_t first() {
    if (!first_) first_ = seconds_ > 0 ? 1 + std::random_device()() % 1'000'000'000 : 1;
    return *first_;
  }
  // The number of seeds that next() has given.
  int given() const { return given_; }

  // The next one, or none if the last has been given. The time begins with the first call.
  std::optional<std::uint64_t> next() {
    const auto now = std::chrono::steady_clock::now();
    if (given_ == 0) {
      begun_ = now;
    } else if (seconds_ > 0 && now - begun_ >= std::chrono::duration<double>(seconds_)) {
      return {};
    }
    if (seconds_ <= 0 && given_ >= count_) return {};
    return first() + static_cast<std::uint64_t>(given_++);
  }

 private:
  int count_;
  double seconds_ = 0;
  std::optional<std::uint64_t> first_;
  int given_ = 0;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace imbrex::test
