// SPDX-License-Identifier: BSD-3-Clause
// Processes of one job that lend processors to each other, without MPI:
//
//   lend_cases <case>
//
// The case starts processes of this program, each with one worker and one processor of its own. It
// tells them through pipes how many tasks to run. A process that has none waits in imbrex, and so
// lends its processor.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <imbrex/imbrex.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/detail/observation.hpp"

namespace {

void require(const bool condition, const char* const what) {
  if (condition) return;
  std::fprintf(stderr, "lend_cases: %s\n", what);
  std::_Exit(1);
}

// ---- a process with a worker -------------------------------------------------------------------

// Takes this time of the thread's processor, so that it takes longer where two threads share one.
void compute(const double ms) {
  const auto spent_ms = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  };
  const double end = spent_ms() + ms;
  while (spent_ms() < end) {
  }
}

// Runs the tasks of one order; returns the number of threads that have taken part.
std::size_t run_tasks(const int count, const int ms, const bool tied) {
  std::mutex lock;
  std::set<pid_t> threads;
  const auto note = [&] {
    const std::lock_guard guard(lock);
    threads.insert(gettid());
  };
  imbrex::finish([&] {
    for (int each = 0; each < count; ++each) {
      auto task = imbrex::task("compute");
      if (tied) (void)task.tied();
      task.launch([&] {
        note();
        compute(ms);
        if (!tied) return;
        // A tied task goes on in its thread, wherever its processor is by then.
        const pid_t before = gettid();
        imbrex::task("part").spawn([ms] { compute(ms); }).get();
        require(gettid() == before, "a tied task has changed its thread");
      });
    }
  });
  return threads.size();
}

// Orders are lines "COUNT MS TIED"; the answer to each is the number of threads. main waits for
// them as a task does.
int work() {
  for (;;) {
    imbrex::Promise<void> is_here;
    char line[64] = "";
    std::thread reader([&] {
      if (std::fgets(line, sizeof line, stdin) == nullptr) line[0] = '\0';
      is_here.set();
    });
    is_here.future().get();
    reader.join();
    int count = 0;
    int ms = 0;
    int tied = 0;
    if (std::sscanf(line, "%d %d %d", &count, &ms, &tied) != 3) break;
    std::printf("%zu\n", run_tasks(count, ms, tied != 0));
    std::fflush(stdout);
  }
  const imbrex::detail::Totals totals = imbrex::detail::totals();
  std::printf("%.6f %.6f\n", totals.lent_s, totals.borrowed_s);
  return 0;
}

// ---- the cases ---------------------------------------------------------------------------------

std::vector<int> processors() {
  cpu_set_t mask;
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> all;
  for (int each = 0; each < CPU_SETSIZE; ++each) {
    if (CPU_ISSET(each, &mask)) all.push_back(each);
  }
  return all;
}

class Process {
 public:
  explicit Process(const int processor) {
    int orders[2];
    int answers[2];
    require(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0, "no pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(orders[0], 0);
      dup2(answers[1], 1);
      cpu_set_t mask;
      CPU_ZERO(&mask);
      CPU_SET(processor, &mask);
      sched_setaffinity(0, sizeof mask, &mask);
      execl("/proc/self/exe", "lend_cases", "work", nullptr);
      std::_Exit(1);
    }
    close(orders[0]);
    close(answers[1]);
    orders_ = fdopen(orders[1], "w");
    answers_ = fdopen(answers[0], "r");
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void order(const int count, const int ms, const int tied = 0) const {
    std::fprintf(orders_, "%d %d %d\n", count, ms, tied);
    std::fflush(orders_);
  }
  // The answer to one order. Fails after a time that no working protocol takes.
  [[nodiscard]] int answer() const {
    pollfd ready{.fd = fileno(answers_), .events = POLLIN, .revents = 0};
    require(poll(&ready, 1, 30'000) == 1, "a process has not run its tasks within 30 s");
    int threads = 0;
    require(std::fscanf(answers_, "%d", &threads) == 1, "a process has ended early");
    return threads;
  }
  struct Sums {
    double lent_s = 0;
    double borrowed_s = 0;
  };
  Sums end() {
    std::fclose(orders_);
    orders_ = nullptr;
    Sums sums;
    require(std::fscanf(answers_, "%lf %lf", &sums.lent_s, &sums.borrowed_s) == 2, "no sums");
    int status = 0;
    waitpid(pid_, &status, 0);
    require(status == 0, "a process has failed");
    pid_ = 0;
    return sums;
  }
  void signal(const int number) const { ::kill(pid_, number); }
  void kill() {
    if (pid_ == 0) return;
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* orders_ = nullptr;
  std::FILE* answers_ = nullptr;
};

void sleep_ms(const int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

bool has_table() {
  const std::string name = std::string("-") + std::getenv("PMIX_NAMESPACE");
  bool found = false;
  DIR* const all = opendir("/dev/shm");
  while (const dirent* const one = readdir(all)) {
    found = found || std::string(one->d_name).ends_with(name);
  }
  closedir(all);
  return found;
}

void lends(const std::vector<int>& where) {
  Process busy(where[0]);
  Process idle(where[1]);
  idle.order(1, 1);
  require(idle.answer() == 1, "an own task ran elsewhere");
  busy.order(100, 5);
  require(busy.answer() == 2, "the tasks did not use the idle process's processor");
  require(has_table(), "there is no table");
  const Process::Sums borrowed = busy.end();
  const Process::Sums lent = idle.end();
  require(borrowed.borrowed_s > 0.05 && borrowed.lent_s == 0, "the borrower's sums are wrong");
  require(lent.lent_s > 0.05 && lent.borrowed_s == 0, "the owner's sums are wrong");
  require(!has_table(), "the table is left");
}

// The owner gets its processor back at the end of one task, not of all.
void gives_back(const std::vector<int>& where) {
  Process busy(where[0]);
  Process idle(where[1]);
  idle.order(1, 1);
  (void)idle.answer();
  busy.order(400, 5);
  sleep_ms(100);
  for (int round = 0; round < 5; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    idle.order(2, 1);
    (void)idle.answer();
    const auto took = std::chrono::steady_clock::now() - begin;
    require(took < std::chrono::milliseconds(900), "the owner waited for more than a task");
    sleep_ms(20);
  }
  require(busy.answer() == 2, "the tasks did not use the idle process's processor");
}

void borrower_is_killed(const std::vector<int>& where) {
  Process idle(where[1]);
  idle.order(1, 1);
  (void)idle.answer();
  for (int round = 0; round < 3; ++round) {
    Process busy(where[0]);
    busy.order(1000, 20);
    sleep_ms(100);
    busy.kill();
    idle.order(3, 1);
    (void)idle.answer();
  }
  idle.end();
  require(!has_table(), "the table is left");
}

void borrower_is_stopped(const std::vector<int>& where) {
  Process busy(where[0]);
  Process idle(where[1]);
  idle.order(1, 1);
  (void)idle.answer();
  busy.order(60, 10);
  sleep_ms(100);
  busy.signal(SIGSTOP);
  idle.order(3, 1);
  (void)idle.answer();
  busy.signal(SIGCONT);
  (void)busy.answer();
  busy.end();
  idle.end();
}

// What nobody owns any more serves the others.
void owner_is_killed(const std::vector<int>& where) {
  Process busy(where[0]);
  Process idle(where[1]);
  idle.order(1, 1);
  (void)idle.answer();
  busy.order(1, 1);
  (void)busy.answer();
  idle.kill();
  busy.order(200, 5);
  require(busy.answer() == 2, "the processor of a dead process is unused");
  busy.end();
  require(!has_table(), "the table is left");
}

void starts_late_and_ends_early(const std::vector<int>& where) {
  Process busy(where[0]);
  busy.order(200, 5);
  sleep_ms(50);
  {
    Process late(where[1]);
    late.order(2, 1);
    (void)late.answer();
    sleep_ms(200);
    late.end();
  }
  require(busy.answer() >= 1, "no answer");
  busy.end();
  require(!has_table(), "the table is left");
}

void tied_tasks_stay(const std::vector<int>& where) {
  Process busy(where[0]);
  Process idle(where[1]);
  idle.order(1, 1);
  (void)idle.answer();
  busy.order(60, 2, 1);
  for (int round = 0; round < 5; ++round) {
    idle.order(5, 2);
    (void)idle.answer();
    sleep_ms(10);
  }
  (void)busy.answer();
  busy.end();
  idle.end();
}

// Two processes that own one processor: one of them lends nothing, says so, and both run.
void share_a_processor(const std::vector<int>& where) {
  Process first(where[0]);
  first.order(1, 1);
  (void)first.answer();
  Process second(where[0]);
  second.order(1, 1);
  require(second.answer() == 1, "the second process does not run");
}

const std::map<std::string, void (*)(const std::vector<int>&)> cases{
    {"lends", &lends},
    {"gives_back", &gives_back},
    {"borrower_is_killed", &borrower_is_killed},
    {"borrower_is_stopped", &borrower_is_stopped},
    {"owner_is_killed", &owner_is_killed},
    {"starts_late_and_ends_early", &starts_late_and_ends_early},
    {"tied_tasks_stay", &tied_tasks_stay},
    {"share_a_processor", &share_a_processor}};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "work") return work();
  const auto found = cases.find(name);
  require(found != cases.end(), "no such case");
  const std::vector<int> where = processors();
  if (where.size() < 2) {
    std::printf("skipped: one processor\n");
    return 0;
  }
  setenv("PMIX_NAMESPACE", ("lend-cases-" + std::to_string(getpid())).c_str(), 1);
  unsetenv("SLURM_JOB_ID");
  setenv("IMBREX_LEND", "1", 1);
  setenv("IMBREX_WORKERS", "1", 1);
  signal(SIGPIPE, SIG_IGN);
  found->second(where);
  std::printf("ok\n");
  return 0;
}
