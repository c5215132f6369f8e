// SPDX-License-Identifier: BSD-3-Clause
// thread_cases <case> [times]: threads of the program's own, at the start and the end of the
// runtime. Each case is a process of its own; with `times` it is run as often, each time in a new
// process, until one ends with anything but 0.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"
#include "until_printed.hpp"

namespace {

using imbrex::Future;
using imbrex::Promise;
using imbrex::Runtime;
using imbrex::task;
using imbrex::test::expect;
using imbrex::test::failures;
using namespace std::chrono_literals;

// Workers and policies are those of the environment.
constexpr int rounds = 60;

// Threads, while main works: it may be the only worker.
void run_on(const int threads, const std::function<void(int)>& body) {
  std::atomic<int> left = threads;
  std::vector<std::thread> all;
  for (int index = 0; index < threads; ++index) {
    all.emplace_back([&, index] {
      body(index);
      --left;
    });
  }
  while (left != 0) {
    if (imbrex::worker_count() != 0) imbrex::yield();
  }
  for (std::thread& thread : all) thread.join();
}

// ---- the start ----------------------------------------------------------------------------------

std::atomic<int> gate = 0;
void pass_together(const int count) {
  ++gate;
  while (gate < count) {
  }
}

int first_tasks_at_once() {
  std::atomic<int> sum = 0;
  run_on(4, [&sum](const int index) {
    pass_together(4);
    sum += task("first").spawn([index] { return index + 1; }).get();
  });
  return sum == 10 ? 0 : 1;
}

int first_tasks_with_main() {
  std::atomic<int> sum = 0;
  std::atomic<bool> done = false;
  std::thread thread([&] {
    pass_together(2);
    imbrex::finish([&sum] {
      for (int i = 0; i < 10; ++i) task("theirs").launch([&sum] { ++sum; });
    });
    done = true;
  });
  pass_together(2);
  imbrex::finish([&sum] {
    for (int i = 0; i < 10; ++i) task("main's").launch([&sum] { ++sum; });
  });
  while (!done) imbrex::yield();
  thread.join();
  return sum == 20 ? 0 : 1;
}

// ---- the first thread is not main ---------------------------------------------------------------

std::atomic<int> ran = 0;

void report_ran(const int expected) {
  static int wanted = 0;
  wanted = expected;
  std::atexit([] {
    if (ran == wanted) return;
    std::printf("ran: %d of %d\n", ran.load(), wanted);
    std::fflush(stdout);
    _Exit(1);
  });
}

// A wait is the first use, and starts the runtime: what it waits for comes when that runs.
template <class Complete, class Wait>
int wait_first(const Complete& complete, const Wait& wait) {
  std::thread thread([&complete] {
    while (imbrex::worker_count() == 0) std::this_thread::yield();
    complete();
  });
  const int value = wait();
  thread.join();
  return value == 7 ? 0 : 1;
}
int get_is_the_first_use() {
  const Promise<int> promise;
  return wait_first([promise] { promise.set(7); }, [&] { return promise.future().get(); });
}
int get_of_a_thread_is_the_first_use() {
  int result = 1;
  std::thread([&result] { result = get_is_the_first_use(); }).join();
  return result;
}
int await_is_the_first_use() {
  Promise<void> event;
  return wait_first([&event] { event.set(); }, [&event] {
    event.future().get();
    return 7;
  });
}

int first_thread_ends() {
  report_ran(20);
  std::thread([] {
    task("early").spawn([] {}).get();
    for (int i = 0; i < 10; ++i) {
      task("tied").tied().launch([] {
        imbrex::yield();
        ++ran;
      });
    }
  }).join();
  imbrex::finish([] {
    for (int i = 0; i < 5; ++i) {
      task("main's").launch([] {
        imbrex::yield();
        ++ran;
      });
    }
  });
  for (int i = 0; i < 5; ++i) task("main's last").launch([] { ++ran; });
  return 0;
}

int main_comes_second() {
  Promise<void> go;
  std::thread first([&go] {
    task("first").spawn([future = go.future()] { future.get(); }).get();
  });
  while (imbrex::worker_count() == 0) std::this_thread::yield();
  int x = 0;
  imbrex::finish([&x] {
    for (int i = 0; i < 100; ++i) task("chain").inout(x).launch([&x] { ++x; });
  });
  task("sets").launch([&go] { go.set(); });
  first.join();
  imbrex::taskwait();
  expect(x == 100, "a chain of main's");
  return failures;
}

// ---- the runtime ends under threads -------------------------------------------------------------

// A thread that waits when the runtime ends gets its value first.
int ends_under_waits() {
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> sum = 0;
    std::optional<Runtime> runtime(std::in_place);
    std::vector<Future<int>> futures;
    for (int i = 0; i < 8; ++i) {
      futures.push_back(task("late").spawn([i] {
        for (int turn = 0; turn < 20; ++turn) imbrex::yield();
        return i;
      }));
    }
    std::vector<std::thread> threads;
    for (int index = 0; index < 4; ++index) {
      threads.emplace_back([&sum, mine = futures[2 * index], other = futures[2 * index + 1]] {
        sum += mine.get();
        sum += other.get();
      });
    }
    if (round % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    runtime.reset();
    for (std::thread& thread : threads) thread.join();
    if (sum != 28) return 1;
  }
  return 0;
}

// A thread fires the last event and ends.
int ends_under_fire() {
  for (int round = 0; round < rounds; ++round) {
    std::optional<Runtime> runtime(std::in_place);
    Promise<void> event, other;
    std::atomic<int> woken = 0;
    for (int i = 0; i < 4; ++i) {
      task("waits").launch([&] {
        event.future().get();
        ++woken;
      });
    }
    std::thread first([&] { event.set(); });
    std::thread second([&] { other.set(); });
    std::thread third([&] {
      try {
        other.future().get();
      } catch (const imbrex::Error&) {  // it came after the end
      }
    });
    runtime.reset();
    if (woken != 4) return 1;
    first.join();
    second.join();
    third.join();
  }
  return 0;
}

// Futures are dropped, copied and asked by threads all the time.
int ends_under_drops() {
  for (int round = 0; round < rounds; ++round) {
    std::optional<Runtime> runtime(std::in_place);
    std::vector<std::vector<Future<std::string>>> futures(3);
    for (auto& mine : futures) {
      for (int i = 0; i < 200; ++i) {
        mine.push_back(task("text").spawn([i] { return std::string(100, char('a' + i % 26)); }));
      }
    }
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (auto& mine : futures) {
      threads.emplace_back([&wrong, mine = std::move(mine)]() mutable {
        while (!mine.empty()) {
          const auto last = mine.back();
          if (mine.size() % 5 == 0 && last.get().size() != 100) ++wrong;
          mine.pop_back();
        }
      });
    }
    runtime.reset();
    for (std::thread& thread : threads) thread.join();
    if (wrong != 0) return 1;
  }
  return 0;
}

// A thread is within finish(), or between its tasks, when the object goes: the end waits for it,
// and later tasks get a runtime of the default kind.
int ends_under_spawns() {
  constexpr int turns = 40;  // two changes of threads each, slow ones beside other load
  report_ran(3 * 4 * turns);
  std::optional<Runtime> runtime(std::in_place);
  task("first").spawn([] {}).get();
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([] {
      for (int i = 0; i < turns; ++i) {
        imbrex::finish([] {
          for (int j = 0; j < 2; ++j) task("in finish").launch([] { ++ran; });
        });
        task("alone").launch([] { ++ran; });
        task("asked").spawn([] { ++ran; }).get();
      }
    });
  }
  std::this_thread::sleep_for(1ms);
  runtime.reset();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

std::atomic<long> accepted = 0;

// main returns while threads spawn for ever: what was accepted has run, the rest is refused.
int main_returns_under_spawns() {
  std::atexit([] {
    const long asked = accepted;
    if (ran >= asked) return;
    std::printf("ran: %d, accepted: %ld\n", ran.load(), asked);
    std::fflush(stdout);
    _Exit(1);
  });
  task("first").spawn([] {}).get();
  for (int index = 0; index < 3; ++index) {
    std::thread([index] {
      try {
        for (int turn = 0;; ++turn) {
          if (turn % 64 == 63) std::this_thread::sleep_for(20us);  // all that comes must be run
          int x = 0;
          if (index == 0) task("asked").inout(x).spawn([] { ++ran; }).get();
          if (index == 1) imbrex::finish([] { task("in finish").launch([] { ++ran; }); });
          if (index == 2) task("alone").launch([] { ++ran; });
          ++accepted;
        }
      } catch (const imbrex::Error&) {
        for (;;) std::this_thread::sleep_for(1s);
      }
    }).detach();
  }
  std::this_thread::sleep_for(2ms);
  return 0;
}

// ---- the end waits for every task ---------------------------------------------------------------

Promise<void> late_event;

int tasks_of_another_thread() {
  report_ran(10);
  task("first").spawn([] {}).get();
  static Promise<void> event;
  std::thread([] {
    for (int i = 0; i < 10; ++i) {
      task("suspended").launch([] {
        event.future().get();
        ++ran;
      });
    }
    task("fires").launch([] {
      std::this_thread::sleep_for(20ms);
      event.set();
    });
  }).join();
  return 0;
}

int tasks_that_a_thread_wakes() {
  report_ran(11);
  static Promise<void> event;
  for (int i = 0; i < 10; ++i) {
    task("suspended").launch([] {
      event.future().get();
      ++ran;
    });
  }
  std::thread([] {
    std::this_thread::sleep_for(50ms);
    task("one more").launch([] { ++ran; });
    event.set();
  }).detach();
  return 0;
}

int finish_of_another_thread() {
  report_ran(2);
  task("first").spawn([] {}).get();
  static std::atomic<bool> open = false;
  std::thread([] {
    imbrex::finish([] {
      open = true;
      task("one").launch([] { ++ran; });
      std::this_thread::sleep_for(50ms);
      task("two").launch([] {
        imbrex::yield();
        ++ran;
      });
    });
  }).detach();
  while (!open) std::this_thread::yield();
  return 0;
}

int exit_within_finish() {
  report_ran(10);
  imbrex::finish([] {
    imbrex::finish([] {
      for (int i = 0; i < 10; ++i) {
        task("late").launch([] {
          imbrex::yield();
          ++ran;
        });
      }
      std::exit(0);
    });
  });
  return 1;
}

// A thread that waits for what no task does is left where it is, and woken without a runtime.
int thread_stays_behind() {
  Promise<void> event;
  std::atomic<int> woken = 0;
  std::thread thread;
  {
    const Runtime runtime;
    thread = std::thread([&] {
      event.future().get();
      ++woken;
    });
    std::this_thread::sleep_for(30ms);
  }
  expect(woken == 0, "nobody has fired");
  expect(imbrex::worker_count() == 0, "the runtime has ended");
  event.set();
  thread.join();
  expect(woken == 1, "the thread was woken");
  expect(imbrex::worker_count() == 0, "an event started a second runtime");
  return failures;
}

// The program ends with an error while tasks wait; an event that fires later wakes no task.
int event_after_the_end() {
  std::atexit([] { late_event.set(); });
  for (int i = 0; i < 3; ++i) task("waits").launch([] { late_event.future().get(); });
  imbrex::yield();
  return 3;
}

int daemon_thread_waits() {
  static Promise<void>& never = *new Promise<void>;  // its end would end the thread's wait
  task("first").spawn([] {}).get();
  static std::atomic<bool> comes = false;
  std::thread([] {
    comes = true;
    never.future().get();
  }).detach();
  while (!comes) std::this_thread::yield();
  return 0;
}

struct Table {
  Table() : text(std::make_unique<std::string>("alive")) {}
  ~Table() { text.reset(); }
  std::unique_ptr<std::string> text;
};
Table& table() {
  static Table first_used_in_a_task;
  return first_used_in_a_task;
}

int statics_of_tasks() {
  report_ran(8);
  task("first").spawn([] { (void)table(); }).get();
  for (int i = 0; i < 8; ++i) {
    task("at exit").launch([] {
      for (int turn = 0; turn < 20; ++turn) imbrex::yield();
      if (table().text != nullptr && *table().text == "alive") ++ran;
    });
  }
  return 0;
}

// ---- Runtime objects ----------------------------------------------------------------------------

int runtime_of_another_thread() {
  for (int round = 0; round < 5; ++round) {
    std::unique_ptr<Runtime> runtime;
    std::atomic<int> sum = 0;
    std::thread([&] {
      runtime = std::make_unique<Runtime>();
      for (int i = 0; i < 10; ++i) {
        task("theirs").launch([&sum] {
          imbrex::yield();
          ++sum;
        });
      }
    }).join();
    task("main's").launch([&sum] { ++sum; });
    if (round % 2 == 0) {
      runtime.reset();
    } else {
      std::thread([&runtime] { runtime.reset(); }).join();
    }
    expect(sum == 11, "all tasks before the object's end");
  }
  return failures;
}

int runtime_deleted_elsewhere() {
  auto runtime = std::make_unique<Runtime>();
  task("first").spawn([] {}).get();
  std::thread([&runtime] { runtime.reset(); }).join();
  return 0;
}

int runtime_deleted_in_a_task() {
  auto runtime = std::make_unique<Runtime>();
  task("deletes").spawn([&runtime] {
    imbrex::yield();
    runtime.reset();
  }).get();
  return 0;
}

long resident_pages() {
  long total = 0;
  long resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &total, &resident) != 2) return 0;
  std::fclose(file);
  return resident;
}

int future_after_its_runtime() {
  const Promise<int> promise = [] {
    const Runtime runtime;
    return Promise<int>("never");
  }();
  try {
    (void)promise.future().get();
  } catch (const imbrex::Error& error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  return 1;
}

// Futures that outlive a runtime keep its memory, and no longer than they live.
int futures_outlive_runtimes() {
  long before = 0;
  for (int round = 0; round < 120; ++round) {
    std::vector<Future<std::string>> kept;
    {
      const Runtime runtime;
      for (int i = 0; i < 300; ++i) {
        kept.push_back(task("text").spawn([] { return std::string(2000, 'x'); }));
      }
      int x = 0;
      kept.push_back(task("child").inout(x).spawn([] {
        imbrex::finish([] { task("inner").launch([] {}); });
        return std::string(2000, 'x');
      }));
    }
    if (round % 2 == 0) {
      const Runtime next;  // they are given back under another runtime
      task("other").spawn([] {}).get();
      kept.resize(100);
      std::thread([&kept] { kept.resize(50); }).join();
    }
    for (const auto& future : kept) expect(future.get().size() == 2000, "a result");
    kept.clear();
    if (round == 20) before = resident_pages();
  }
  const long grown = (resident_pages() - before) * 4;
  if (grown > 20'000) std::printf("FAILS: %ld KiB more after 100 runtimes\n", grown);
  return failures + (grown > 20'000 ? 1 : 0);
}

// A result is destroyed by a thread of the program's own while its runtime ends and the next one
// begins: tasks of the second runtime do not use memory that the first one cut for the task. If the
// worker that has run the task is the last to release the result, the thread tries another.
int result_destroyed_across_runtimes() {
  static std::atomic<int> stage;
  static std::thread::id holder_id;
  static bool destroyed_here;
  struct Result {
    explicit Result(const bool last) : slow(last) {}
    Result(Result&& other) noexcept : slow(std::exchange(other.slow, false)) {}
    ~Result() {
      if (!slow || std::this_thread::get_id() != holder_id) return;
      destroyed_here = true;
      stage = 1;
      while (stage < 2) std::this_thread::sleep_for(100us);
    }
    bool slow;
  };
  for (const int extra_bytes : {0, 2000}) {  // a descriptor of a slot, and one of its own
    stage = 0;
    std::optional<Runtime> runtime(std::in_place);
    std::thread holder([extra_bytes] {
      holder_id = std::this_thread::get_id();
      for (destroyed_here = false; !destroyed_here;) {
        auto future = extra_bytes == 0
                          ? task("slow").spawn([] { return Result(true); })
                          : task("large").spawn([bytes = std::array<char, 2000>{}] {
                              return Result(bytes.front() == 0);
                            });
        future.wait();
        future = {};
      }
      for (int i = 0; i < 1000; ++i) task("later").spawn([] { ++ran; }).get();
      stage = 3;
    });
    while (stage < 1) imbrex::yield();  // this thread may be the only worker
    runtime.reset();
    runtime.emplace();
    task("of the second").spawn([] {}).get();
    stage = 2;
    while (stage < 3) imbrex::yield();
    holder.join();
  }
  expect(ran == 2000, "later tasks have run");
  return failures;
}

// ---- fork ---------------------------------------------------------------------------------------

// Threads come and go, so one may hold any lock of imbrex when the process forks.
int fork_under_locks() {
  task("first").spawn([] {}).get();
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([&over] {
      while (!over) {
        std::thread([] { task("brief").launch([] {}); }).join();
        std::this_thread::sleep_for(100us);  // all that comes must be run
      }
    });
  }
  auto kept = task("kept").spawn([] { return std::string("kept"); });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      kept = {};
      std::exit(6);
    }
    int status = 0;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 6, "a child's exit");
    imbrex::yield();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  return failures;
}

int fork_with_a_runtime() {
  std::fflush(stdout);
  const Runtime runtime;
  task("first").spawn([] {}).get();
  pid_t child = 0;
  imbrex::finish([&child] {
    child = fork();
    if (child != 0) task("parent's").launch([] {});
  });
  if (child == 0) return 6;  // by the destructor of `runtime`
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 6, "the child's return");
  return failures;
}

// ---- main's thread ends ------------------------------------------------------------------------

// Its thread is one of the workers: nothing ends the process but another thread.
int main_ends_by_pthread_exit() {
  static Promise<void> never;
  task("waits").launch([] { never.future().get(); });
  std::thread([] {
    imbrex::test::until_printed("main has ended by pthread_exit");
    std::printf("the other thread ends the process\n");
    std::_Exit(0);  // exit() would wait for the task
  }).detach();
  pthread_exit(nullptr);
}

const imbrex::test::Cases cases{
    {"first_tasks_at_once", first_tasks_at_once},
    {"first_tasks_with_main", first_tasks_with_main},
    {"get_is_the_first_use", get_is_the_first_use},
    {"get_of_a_thread_is_the_first_use", get_of_a_thread_is_the_first_use},
    {"await_is_the_first_use", await_is_the_first_use},
    {"first_thread_ends", first_thread_ends},
    {"main_comes_second", main_comes_second},
    {"ends_under_waits", ends_under_waits},
    {"ends_under_fire", ends_under_fire},
    {"ends_under_drops", ends_under_drops},
    {"ends_under_spawns", ends_under_spawns},
    {"main_returns_under_spawns", main_returns_under_spawns},
    {"tasks_of_another_thread", tasks_of_another_thread},
    {"tasks_that_a_thread_wakes", tasks_that_a_thread_wakes},
    {"finish_of_another_thread", finish_of_another_thread},
    {"exit_within_finish", exit_within_finish},
    {"thread_stays_behind", thread_stays_behind},
    {"event_after_the_end", event_after_the_end},
    {"daemon_thread_waits", daemon_thread_waits},
    {"statics_of_tasks", statics_of_tasks},
    {"runtime_of_another_thread", runtime_of_another_thread},
    {"runtime_deleted_elsewhere", runtime_deleted_elsewhere},
    {"runtime_deleted_in_a_task", runtime_deleted_in_a_task},
    {"future_after_its_runtime", future_after_its_runtime},
    {"futures_outlive_runtimes", futures_outlive_runtimes},
    {"result_destroyed_across_runtimes", result_destroyed_across_runtimes},
    {"fork_under_locks", fork_under_locks},
    {"fork_with_a_runtime", fork_with_a_runtime},
    {"main_ends_by_pthread_exit", main_ends_by_pthread_exit},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv, " [times]");
  if (run == nullptr) return 2;
  if (argc == 3) return imbrex::test::run_often(argv[1], std::atoi(argv[2]));
  return (*run)();
}
