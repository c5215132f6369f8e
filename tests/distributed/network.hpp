// SPDX-License-Identifier: BSD-3-Clause
// A network in one process, for protocols of src/distributed: each of its ranks has a carrier.
// Messages between two ranks arrive in order, all others in any, after any time, on threads that
// imbrex does not know; on one rank one at a time, as active messages do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/carrier/carrier.hpp"

namespace imbrex::test {

class Network {
 public:
  using Handler = std::function<void(int from, distributed::Bytes message)>;

  // `threads` deliver.
  Network(const int ranks, const unsigned seed, const int threads) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      ends_.push_back(std::make_unique<End>(*this, rank));
    }
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Network() {
    {
      const std::lock_guard guard(mutex_);
      stops_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] distributed::Carrier& carrier(const int rank) { return *end(rank); }
  // Until a rank has its handler, messages are kept for it.
  void set_handler(const int rank, Handler handler) {
    {
      const std::lock_guard guard(mutex_);
      end(rank)->handler = std::move(handler);
    }
    wake_.notify_all();
  }

 private:
  struct End final : distributed::Carrier {
    End(Network& the_network, const int its_rank) : network(the_network), own(its_rank) {}
    [[nodiscard]] int rank() const noexcept override { return own; }
    void send(const int to, const distributed::Bytes head, const distributed::Bytes body) override {
      std::vector<std::byte> message(head.begin(), head.end());
      message.insert(message.end(), body.begin(), body.end());
      network.send(own, to, std::move(message));
    }
    void flush() noexcept override {}

    Network& network;
    const int own;
    Handler handler;
    bool handles = false;
    std::map<int, std::deque<std::vector<std::byte>>> arriving;  // by source; none is empty
  };

  [[nodiscard]] End* end(const int rank) { return ends_[static_cast<std::size_t>(rank)].get(); }

  void send(const int from, const int to, std::vector<std::byte> message) {
    {
      const std::lock_guard guard(mutex_);
      end(to)->arriving[from].push_back(std::move(message));
    }
    wake_.notify_one();
  }

  // A rank that has a message and handles none; null if there is none.
  [[nodiscard]] End* pick() {
    std::vector<End*> some;
    for (const auto& one : ends_) {
      if (one->handler && !one->handles && !one->arriving.empty()) some.push_back(one.get());
    }
    return some.empty() ? nullptr : some[random_() % some.size()];
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      End* to = nullptr;
      wake_.wait(lock, [&] { return (to = pick()) != nullptr || stops_; });
      if (to == nullptr) return;
      if (random_() % 4 == 0) {  // later
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        continue;
      }
      const auto from = std::next(to->arriving.begin(),
                                  static_cast<long>(random_() % to->arriving.size()));
      const int source = from->first;
      const std::vector<std::byte> message = std::move(from->second.front());
      from->second.pop_front();
      if (from->second.empty()) to->arriving.erase(from);
      to->handles = true;
      lock.unlock();
      to->handler(source, message);
      lock.lock();
      to->handles = false;
      wake_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<End>> ends_;
  bool stops_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace imbrex::test
