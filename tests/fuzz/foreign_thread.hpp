// SPDX-License-Identifier: BSD-3-Clause
// A thread that is no worker, for fuzzers whose tasks wait for one.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "imbrex/imbrex.hpp"

namespace imbrex::test {

// Fires events from a thread that is no worker.
class ForeignThread {
 public:
  ForeignThread() : thread_([this] { run(); }) {}
  ~ForeignThread() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void fire(Promise<void>& event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(&event);
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return over_ || !events_.empty(); });
      if (events_.empty()) return;
      Promise<void>* const event = events_.front();
      events_.pop_front();
      lock.unlock();
      event->set();
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards events_ and over_
  std::condition_variable changed_;
  std::deque<Promise<void>*> events_;
  bool over_ = false;
  std::thread thread_;
};

// The running task waits for an event that `thread` fires; null: another task, of a lower priority.
inline void wait_for_event(ForeignThread* const thread, const int priority) {
  Promise<void> event;
  if (thread != nullptr) {
    thread->fire(event);
  } else {
    task("firer").priority(priority - 1).launch([&event] {
      yield();
      event.set();
    });
  }
  event.future().get();
}

}  // namespace imbrex::test
