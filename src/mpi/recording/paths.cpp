// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/paths.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::mpi::paths {

namespace {

using Clock = std::chrono::steady_clock;

// The format in which a figure is sent: the ranks of one program are on machines of one kind.
struct Figure {
  std::uint32_t channel;  // tag and communicator
  float length_us;
};
constexpr std::size_t letter_max = letter_bytes_max / sizeof(Figure);

// A rank and the channel to or from it: the number by which policies know a message.
std::uint64_t number(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  const std::uint32_t channel = static_cast<std::uint32_t>(tag) * 0x9E3779B9u ^
                                communicator * 0x85EBCA6Bu;
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 | channel;
}

// Lives as long as the process: a worker may be in send() when it is closed.
class Letters {
 public:
  void open(const Carrier& carrier) {
    const std::lock_guard guard(sending_);
    carrier_ = carrier;
    open_.store(true, std::memory_order_release);
  }
  void close() {
    const std::lock_guard guard(sending_);
    open_.store(false, std::memory_order_relaxed);
    const std::lock_guard writing(writing_);
    letters_.clear();
  }
  // Acquire pairs with open().
  [[nodiscard]] bool are_open() const noexcept { return open_.load(std::memory_order_acquire); }

  void write(const std::uint64_t message, const float length_us) {
    const std::lock_guard guard(writing_);
    std::vector<Figure>& letter = letters_[static_cast<int>(message >> 32)];
    // If the other rank takes none, older figures are worth as much.
    if (letter.size() < letter_max) {
      letter.push_back({static_cast<std::uint32_t>(message), length_us});
    }
  }

  // True if it was time to send.
  [[nodiscard]] bool send() noexcept {
    if (!sending_.try_lock()) return false;
    const std::lock_guard guard(sending_, std::adopt_lock);
    const Clock::time_point now = Clock::now();
    if (!are_open() || now < next_) return false;
    next_ = now + std::chrono::milliseconds(1);
    std::map<int, std::vector<Figure>> letters;
    if (const std::lock_guard writing(writing_); true) letters.swap(letters_);
    // A letter without room is dropped: that rank has not polled for long.
    for (const auto& [to, figures] : letters) {
      (void)carrier_.send(to, std::as_bytes(std::span(figures)));
    }
    return true;
  }
  void poll() noexcept {
    if (send()) carrier_.poll();
  }

 private:
  std::atomic<bool> open_{false};  // written under sending_
  Carrier carrier_{};              // written before it is open
  std::mutex sending_;             // only tried, except at the beginning and the end
  Clock::time_point next_ IMBREX_GUARDED_BY(sending_);
  std::mutex writing_;
  // The figures for each rank that are not sent yet.
  std::map<int, std::vector<Figure>> letters_ IMBREX_GUARDED_BY(writing_);
};

Letters& letters() noexcept {
  static auto& one = *new Letters;
  return one;
}

// No thread polls while nothing is outstanding, so letters leave also when a path ends.
void write(const std::uint64_t message, const float length_us) noexcept {
  letters().write(message, length_us);
  send();
}

}  // namespace

void open(const Carrier& carrier) {
  letters().open(carrier);
  detail::report_paths(&write);
}

void close() {
  detail::report_paths(nullptr);
  letters().close();
}

bool are_open() noexcept { return letters().are_open(); }

void take(const int from, const std::span<const std::byte> letter) noexcept {
  const auto rank = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32;
  for (std::size_t at = 0; at + sizeof(Figure) <= letter.size(); at += sizeof(Figure)) {
    Figure figure;
    std::memcpy(&figure, letter.data() + at, sizeof figure);
    detail::learn_path(rank | figure.channel, figure.length_us);
  }
}

void sent(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  poll();
  detail::message_leaves(number(peer, tag, communicator));
}

void received(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  detail::message_arrives(number(peer, tag, communicator));
}

void poll() noexcept {
  if (are_open()) letters().poll();
}

void send() noexcept {
  if (are_open()) (void)letters().send();
}

}  // namespace imbrex::mpi::paths
