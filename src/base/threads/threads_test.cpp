// SPDX-License-Identifier: BSD-3-Clause
#include "base/threads/threads.hpp"

#include <gtest/gtest.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/arch.hpp"

namespace imbrex::base {

namespace {

using std::chrono::hours;

// A thread that waits for a condition variable, until end() or for an hour.
class Sleeper {
 public:
  explicit Sleeper(bool limited) : thread_([this, limited] { run(limited); }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Sleeper() {
    end();
    if (thread_.joinable()) thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t id() const { return id_; }
  void end() {
    const std::lock_guard guard(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  void join() { thread_.join(); }

 private:
  void run(const bool limited) {
    std::unique_lock lock(mutex_);
    id_ = kernel_thread_id();
    const auto over = [this] { return over_; };
    if (limited) {
      changed_.wait_for(lock, hours(1), over);
    } else {
      changed_.wait(lock, over);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

// Returns when the thread sleeps in a futex.
FutexSleep wait_for_sleep(const pid_t thread) {
  for (;;) {
    const FutexSleep sleep = futex_sleep_of(thread);
    if (!sleep.call.empty()) return sleep;
    std::this_thread::yield();
  }
}

bool shows_calls() { return access("/proc/self/syscall", R_OK) == 0; }

}  // namespace

TEST(Threads, a_wait_without_a_limit_is_for_good) {
  if (!shows_calls()) GTEST_SKIP();
  const Sleeper sleeper(false);
  EXPECT_TRUE(wait_for_sleep(sleeper.id()).for_good);
}

TEST(Threads, a_wait_with_a_limit_is_not) {
  if (!shows_calls()) GTEST_SKIP();
  const Sleeper sleeper(true);
  EXPECT_FALSE(wait_for_sleep(sleeper.id()).for_good);
}

TEST(Threads, a_join_waits_for_good) {
  if (!shows_calls()) GTEST_SKIP();
  Sleeper sleeper(true);
  std::atomic<pid_t> id{0};
  std::thread joiner([&] {
    id = kernel_thread_id();
    sleeper.join();
  });
  while (id == 0) std::this_thread::yield();
  EXPECT_TRUE(wait_for_sleep(id).for_good);
  sleeper.end();
  joiner.join();
}

TEST(Threads, a_wait_in_shared_memory_is_not_for_good) {
  if (!shows_calls()) GTEST_SKIP();
  void* const memory =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const semaphore = static_cast<sem_t*>(memory);
  sem_init(semaphore, 1, 0);
  std::atomic<pid_t> id{0};
  std::thread thread([&] {
    id = kernel_thread_id();
    sem_wait(semaphore);
  });
  while (id == 0) std::this_thread::yield();
  EXPECT_FALSE(wait_for_sleep(id).for_good);
  sem_post(semaphore);
  thread.join();
  munmap(memory, page_bytes);
}

TEST(Threads, a_running_thread_sleeps_in_no_futex) {
  EXPECT_TRUE(futex_sleep_of(kernel_thread_id()).call.empty());
  EXPECT_TRUE(futex_sleep_of(0).call.empty());
}

TEST(Threads, every_thread_is_listed) {
  const Sleeper sleeper(true);
  const std::vector<pid_t> ids = thread_ids();
  EXPECT_NE(std::ranges::find(ids, sleeper.id()), ids.end());
  EXPECT_NE(std::ranges::find(ids, getpid()), ids.end());
}

TEST(Threads, an_own_thread_is_known_until_it_is_removed) {
  const pid_t self = kernel_thread_id();
  EXPECT_FALSE(is_own_thread(self));
  add_own_thread(self);
  EXPECT_TRUE(is_own_thread(self));
  EXPECT_FALSE(is_library_thread(self));
  remove_own_thread(self);
  EXPECT_FALSE(is_own_thread(self));
}

}  // namespace imbrex::base
