// SPDX-License-Identifier: BSD-3-Clause
// limits_cases <case>: the system gives no further thread, or no further memory. This program's own
// pthread_create() and mmap() stand before those of the C library, and refuse as a limit would.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>
#include <vector>

#include "imbrex/imbrex.h"
#include "imbrex/imbrex.hpp"

namespace {

std::atomic<int> threads_left{INT_MAX};  // that pthread_create() still makes
std::atomic<bool> memory_ends{false};    // mmap() refuses all that is as large as a slab

}  // namespace

#pragma GCC visibility push(default)

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left.fetch_sub(1) <= 0) return EAGAIN;
  return create(thread, attributes, run, argument);
}

extern "C" void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                      off_t offset) noexcept {
  using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const auto map = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  if (memory_ends.load() && bytes >= 1 << 20) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return map(address, bytes, protection, flags, file, offset);
}

#pragma GCC visibility pop

namespace {

using imbrex::task;

bool some_tasks_run() {
  std::atomic<int> ran = 0;
  imbrex::finish([&ran] {
    for (int i = 0; i < 100; ++i) {
      task("some").launch([&ran] {
        imbrex::yield();
        ++ran;
      });
    }
  });
  return ran == 100;
}

// True if there was no error.
template <class F>
bool goes(F&& start) {
  try {
    start();
    return true;
  } catch (const imbrex::Error& error) {
    std::printf("Error: %s\n", error.what());
    return false;
  }
}

// Each thread of 8 workers is refused once; the next try works.
int no_thread(const char* policy) {
  imbrex::RuntimeOptions config;
  config.workers = 8;
  config.policy = policy;
  for (int made = 0; made < 7; ++made) {
    threads_left = made;
    if (goes([&config] { const imbrex::Runtime runtime(config); })) return 1;
    threads_left = INT_MAX;
    const imbrex::Runtime runtime(config);
    if (!some_tasks_run()) return 2;
  }
  return 0;
}

// The first task starts the runtime; IMBREX_WORKERS says how many threads it wants.
int no_thread_by_first_use(const char*) {
  threads_left = 1;
  if (goes([] { task("first").launch([] {}); })) return 1;
  if (goes([] { imbrex::finish([] {}); })) return 2;
  threads_left = INT_MAX;
  return some_tasks_run() ? 0 : 3;
}

int no_thread_in_c(const char*) {
  threads_left = 1;
  imbrex_finish_t finish = nullptr;
  if (imbrex_finish_begin(&finish, __FILE__, __LINE__) == IMBREX_SUCCESS) return 1;
  std::printf("Error: %s\n", imbrex_message());
  threads_left = INT_MAX;
  return some_tasks_run() ? 0 : 3;
}

// Only what imbrex adds for itself: it does without.
int no_thread_beside_the_workers(const char*) {
  imbrex::RuntimeOptions config;
  config.workers = 4;
  threads_left = 3;
  const imbrex::Runtime runtime(config);
  return some_tasks_run() ? 0 : 1;
}

int no_memory_at_start(const char* policy) {
  imbrex::RuntimeOptions config;
  config.workers = 4;
  config.policy = policy;
  memory_ends = true;
  if (goes([&config] { const imbrex::Runtime runtime(config); })) return 1;
  memory_ends = false;
  const imbrex::Runtime runtime(config);
  return some_tasks_run() ? 0 : 2;
}

// More tasks wait than there are stacks.
int no_stack_later(const char*) {
  some_tasks_run();
  memory_ends = true;
  imbrex::Promise<void> event;
  imbrex::finish([&event] {
    for (int i = 0; i < 1000; ++i) {
      task("waits").launch([&event] { event.future().get(); });
    }
    imbrex::yield();
    event.set();
  });
  return 0;
}

// The thread that starts the runtime has a small stack; the next thread that tries has a larger
// one.
int small_stacks_of_threads(const char*) {
  const auto run_with = [](const std::size_t kib) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kib * 1024);
    const auto body = [](void* answer) -> void* {
      if (goes([] { (void)task("first").spawn([] {}); })) *static_cast<bool*>(answer) = true;
      return nullptr;
    };
    bool started = false;
    pthread_t thread;
    if (pthread_create(&thread, &attributes, body, &started) == 0) pthread_join(thread, nullptr);
    return started;
  };
  for (int i = 0; i < 3; ++i) {
    if (run_with(24)) return 1;
  }
  return run_with(256) && some_tasks_run() ? 0 : 2;
}

int small_stack_of_main(const char*) {
  if (!goes([] { imbrex::finish([] {}); })) return 3;
  return some_tasks_run() ? 0 : 1;
}

struct Case {
  const char* name;
  int (*run)(const char*);
};
constexpr Case cases[] = {
    {"no_thread", no_thread},
    {"no_thread_by_first_use", no_thread_by_first_use},
    {"no_thread_in_c", no_thread_in_c},
    {"no_thread_beside_the_workers", no_thread_beside_the_workers},
    {"no_memory_at_start", no_memory_at_start},
    {"no_stack_later", no_stack_later},
    {"small_stacks_of_threads", small_stacks_of_threads},
    {"small_stack_of_main", small_stack_of_main},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : cases) {
    if (argc < 2 || one.name != std::string(argv[1])) continue;
    const int code = one.run(argc > 2 ? argv[2] : "");
    std::printf("ended with %d\n", code);
    return code;
  }
  return 99;
}
