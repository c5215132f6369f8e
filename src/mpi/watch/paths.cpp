// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/watch/paths.hpp"

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/below/abi/asked.hpp"
#include "mpi/below/ship.hpp"
#include "mpi/watch/private_world.hpp"

namespace imbrex::mpi::paths {

namespace {

using Clock = std::chrono::steady_clock;

// A figure as it is sent: the ranks of one program are on machines of one kind.
struct Figure {
  std::uint32_t channel;  // tag and communicator
  float length_us;
};

// A rank and the channel to or from it: the number by which policies know a message.
std::uint64_t number(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  const std::uint32_t channel = static_cast<std::uint32_t>(tag) * 0x9E3779B9u ^
                                communicator * 0x85EBCA6Bu;
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 | channel;
}

// Lives as long as the process: a worker may be in poll() when it is closed.
class Post {
 public:
  void open() {
    const std::lock_guard guard(polling_);
    comm_ = private_world::comm();
    open_.store(true, std::memory_order_relaxed);
  }
  // Letters are synchronous, so those that are complete have been taken: when every rank has said
  // that its own are, there are none left (the non-blocking consensus of Hoefler et al., 2010).
  void close() {
    const std::lock_guard guard(polling_);
    open_.store(false, std::memory_order_relaxed);
    MPI_Request barrier = MPI_REQUEST_NULL;
    bool begun = false;
    for (;;) {
      take();
      forget_sent();
      if (!begun && sending_.empty()) {
        begun = true;
        PMPI_Ibarrier(comm_, &barrier);
      }
      if (begun && asked::has_ended(barrier)) break;
      sched_yield();
    }
    const std::lock_guard writing(writing_);
    letters_.clear();
  }
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }

  void write(const std::uint64_t message, const float length_us) {
    const std::lock_guard guard(writing_);
    std::vector<Figure>& letter = letters_[static_cast<int>(message >> 32)];
    // A rank that does not answer, or answers late: older figures are worth as much.
    if (letter.size() < letter_max) {
      letter.push_back({static_cast<std::uint32_t>(message), length_us});
    }
  }

  void poll() noexcept {
    if (!polling_.try_lock()) return;
    const std::lock_guard guard(polling_, std::adopt_lock);
    poll_locked();
  }

 private:
  static constexpr int tag = private_world::tag_of_paths;
  static constexpr std::size_t letter_max = 512;
  static constexpr std::size_t letters_max = 16;  // under way

  struct SentLetter {
    MPI_Request request;
    std::vector<Figure> figures;  // stays in place until MPI has let go of it
  };

  void poll_locked() noexcept IMBREX_REQUIRES(polling_) {
    const Clock::time_point now = Clock::now();
    if (!is_open() || now < next_) return;
    next_ = now + std::chrono::milliseconds(1);
    take();
    forget_sent();
    send();
  }

  void take() noexcept IMBREX_REQUIRES(polling_) {
    for (;;) {
      int there = 0;
      MPI_Message message;
      MPI_Status status;
      if (PMPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &there, &message, &status) != MPI_SUCCESS ||
          there == 0) {
        return;
      }
      int bytes = 0;
      PMPI_Get_count(&status, MPI_BYTE, &bytes);
      std::vector<Figure> figures(static_cast<std::size_t>(bytes) / sizeof(Figure));
      PMPI_Mrecv(figures.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      const auto from = static_cast<std::uint64_t>(status.MPI_SOURCE) << 32;
      for (const Figure& figure : figures) {
        detail::learn_path(from | figure.channel, figure.length_us);
      }
    }
  }

  void send() noexcept IMBREX_REQUIRES(polling_) {
    std::map<int, std::vector<Figure>> letters;
    {
      const std::lock_guard guard(writing_);
      if (sending_.size() + letters_.size() > letters_max && !sending_.empty()) return;
      letters.swap(letters_);
    }
    for (auto& [to, figures] : letters) {
      SentLetter& letter = sending_.emplace_back(SentLetter{MPI_REQUEST_NULL, std::move(figures)});
      PMPI_Issend(letter.figures.data(),
                  static_cast<int>(letter.figures.size() * sizeof(Figure)), MPI_BYTE, to, tag,
                  comm_, &letter.request);
    }
  }

  void forget_sent() noexcept IMBREX_REQUIRES(polling_) {
    sending_.remove_if([](SentLetter& letter) { return asked::has_ended(letter.request); });
  }

  std::atomic<bool> open_{false};  // written under polling_
  std::mutex polling_;
  MPI_Comm comm_ IMBREX_GUARDED_BY(polling_) = MPI_COMM_NULL;
  Clock::time_point next_ IMBREX_GUARDED_BY(polling_);
  std::list<SentLetter> sending_ IMBREX_GUARDED_BY(polling_);
  std::mutex writing_;
  // By rank, not yet sent.
  std::map<int, std::vector<Figure>> letters_ IMBREX_GUARDED_BY(writing_);
};

Post& post() noexcept {
  static auto& one = *new Post;
  return one;
}

// Nobody polls while nothing is outstanding. So this looks when a message leaves and when a path
// ends, unless another thread makes all calls.
void look() noexcept {
  if (post().is_open() && !progress::shipping.load(std::memory_order_relaxed)) post().poll();
}

void write(const std::uint64_t message, const float length_us) noexcept {
  post().write(message, length_us);
  look();
}

}  // namespace

void open() {
  post().open();
  detail::report_paths(&write);
}

void close() {
  detail::report_paths(nullptr);
  post().close();
}

bool are_open() noexcept { return post().is_open(); }

void sent(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  look();
  detail::message_leaves(number(peer, tag, communicator));
}

void received(const int peer, const int tag, const std::uint32_t communicator) noexcept {
  detail::message_arrives(number(peer, tag, communicator));
}

void poll() noexcept {
  if (post().is_open()) post().poll();
}

}  // namespace imbrex::mpi::paths
