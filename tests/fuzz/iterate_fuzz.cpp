// SPDX-License-Identifier: BSD-3-Clause
// iterate_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--show 1]: runs random loops by
// iterate() and compares them with a sequential model; or shows the loop of one seed.
//
// Methodology: a loop is drawn from its seed (iterate_program.hpp): a period, a count, and tasks
// with accesses of all kinds to few objects and ranges, that yield, wait, have children, release
// accesses early or after an event, decide, stop the loop, and fail. Half of the programs run two
// loops at once. Each instance of a task notes when its accesses began and ended. Then
//   1. each pair of instances that conflict must have run in the order of a loop without iterate(),
//   2. two of a mutexinoutset must not have overlapped,
//   3. what was read and what is left must equal the sequential program's,
//   4. an instance must have begun after the end of the one before, with its descendants, and after
//      all that decide in the iteration before,
//   5. all instances up to the last iteration must have run once, and none after it; if a task
//      fails, those that it cannot have stopped,
//   6. iterate() throws if and only if a task failed, and each captured object is destroyed.
#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "fuzz/campaign.hpp"
#include "fuzz/foreign_thread.hpp"
#include "fuzz/iterate_program.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

// One run of one loop.
class LoopRun {
 public:
  LoopRun(LoopProgram& program, const bool foreign) : program_(program) {
    if (foreign) foreign_ = std::make_unique<ForeignThread>();
  }

  // As a task, or as main.
  void run() {
    for (const std::size_t variable : program_.before) {
      task("before").inout(program_.values[variable]).launch([this, variable] {
        yield();
        program_.values[variable] = mix(7, variable);
      });
    }
    try {
      iterate(program_.count, {.period = program_.period}, [this](const std::int64_t i) {
        for (Step& step : program_.steps) {
          if (step.offset == i) launch(step);
        }
      });
    } catch (const Error& error) {
      thrown_ = error.what();
    }
    if (*live_ != 1) complain("the loop is over, but not all that its tasks captured is destroyed");
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::string& thrown() const { return thrown_; }

 private:
  std::uint64_t stamp() { return ++clock_; }

  void complain(const char* const what) {
    std::printf("FAILS: %s\n", what);
    failed_ = true;
  }

  // A captured value that is no plain one.
  class Counted {
   public:
    explicit Counted(std::shared_ptr<std::atomic<int>> live) : live_(std::move(live)) { ++*live_; }
    Counted(const Counted& other) : live_(other.live_) { ++*live_; }
    ~Counted() { --*live_; }

   private:
    std::shared_ptr<std::atomic<int>> live_;
  };

  void launch(Step& step) {
    TaskBuilder builder = task(step.name);
    (void)builder.priority(step.priority);
    if (step.tied) (void)builder.tied();
    if (step.after_failure) (void)builder.run_after_failure();
    if (step.decides) (void)builder.decides();
    for (const StepAccess& access : step.accesses) {
      std::uint64_t& first = program_.values[access.variable];
      if (access.range) {
        declare(builder, access.kind, range(&first, access.count));
      } else {
        declare(builder, access.kind, first);
      }
    }
    if (step.by_parameter) {
      builder.launch([this, &step, held = counted_](const std::int64_t i) { body(step, i); });
    } else {
      builder.launch([this, &step] { body(step, iteration()); });
    }
  }

  template <class Object>
  static void declare(TaskBuilder& builder, const Kind kind, Object&& object) {
    switch (kind) {
      case Kind::in: (void)builder.in(std::forward<Object>(object)); return;
      case Kind::out: (void)builder.out(std::forward<Object>(object)); return;
      case Kind::inout: (void)builder.inout(std::forward<Object>(object)); return;
      case Kind::mutexinoutset:
        (void)builder.mutexinoutset(std::forward<Object>(object));
        return;
      case Kind::inoutset: (void)builder.inoutset(std::forward<Object>(object)); return;
    }
  }

  void body(Step& step, const std::int64_t i) {
    if (i < 0 || i >= program_.count || i % program_.period != step.offset) {
      return complain("an instance has an iteration that is not its own");
    }
    Instance& instance = program_.at(step, i);
    if (instance.start != 0) complain("an instance ran twice");
    instance.start = stamp();
    if (step.priority > 0) detail::about_to_send();
    instance.access_end.assign(step.accesses.size(), 0);
    for (const StepAccess& access : step.accesses) {
      std::uint64_t seen = 0;
      for (std::size_t at = access.variable; at < access.variable + access.count; ++at) {
        seen = seen_too(seen, use(step, i, access, program_.values[at]));
      }
      instance.observed.push_back(seen);
    }
    release_early(step, instance);
    for (int yields = 0; yields < step.yields; ++yields) yield();
    run_children(step, i);
    if (step.suspends) suspend(step);
    hold_accesses(step, i);
    if (step.bound) bind(step, i);
    if (step.stops_at == i) stop_iterating();
    instance.body_end = stamp();
    if (step.fails == Fails::itself && step.fails_at == i) throw Error("broken");
  }

  static std::uint64_t id_of(const Step& step, const std::int64_t i) {
    return step.id + 100 * static_cast<std::uint64_t>(i);
  }
  // Whether the access is written after the body.
  static bool is_late(const Step& step, const StepAccess& access) {
    if (access.kind != Kind::out || access.end == AccessEnd::early) return false;
    return step.bound || access.end == AccessEnd::by_event;
  }

  static std::uint64_t use(const Step& step, const std::int64_t i, const StepAccess& access,
                           std::uint64_t& variable) {
    const std::uint64_t id = id_of(step, i);
    switch (access.kind) {
      case Kind::in: return variable;
      case Kind::out:
        if (!is_late(step, access)) variable = mix(0, id);
        return 0;
      case Kind::inout: {
        const std::uint64_t before = variable;
        if (step.yields > 1) yield();
        variable = mix(before, id);
        return before;
      }
      case Kind::mutexinoutset: {
        const std::uint64_t before = variable;
        if (step.yields > 0) yield();
        variable = before + mix(id, 2);
        return 0;
      }
      case Kind::inoutset:
        std::atomic_ref(variable).fetch_add(mix(id, 2), std::memory_order_relaxed);
        return 0;
    }
    return 0;
  }

  void release_early(Step& step, Instance& instance) {
    for (std::size_t a = 0; a < step.accesses.size(); ++a) {
      if (step.accesses[a].end != AccessEnd::early) continue;
      instance.access_end[a] = stamp();
      std::uint64_t& first = program_.values[step.accesses[a].variable];
      if (step.accesses[a].range) {
        release(range(&first, step.accesses[a].count));
      } else {
        release(first);
      }
    }
  }

  void run_children(Step& step, const std::int64_t i) {
    if (step.children == 0) return;
    Instance& instance = program_.at(step, i);
    const auto body = [this, &step, &instance, i] {
      yield();
      std::atomic_ref(instance.last_child).store(stamp(), std::memory_order_relaxed);
      if (step.fails == Fails::by_child && step.fails_at == i) throw Error("broken");
    };
    if (!step.nested) {
      for (int child = 0; child < step.children; ++child) task("child").launch(body);
    } else {
      int chain = 0;
      iterate(step.children, [&](std::int64_t) {
        task("of an inner loop").inout(chain).launch(body);
      });
    }
  }

  void suspend(const Step& step) {
    wait_for_event(step.foreign ? foreign_.get() : nullptr, step.priority);
  }

  // Acts as MPI would on a buffer after its task has ended.
  template <class Concerns>
  void write_late(Step& step, const std::int64_t i, const Concerns concerns) {
    for (std::size_t a = 0; a < step.accesses.size(); ++a) {
      const StepAccess& access = step.accesses[a];
      if (!concerns(access) || !is_late(step, access)) continue;
      std::fill_n(&program_.values[access.variable], access.count, mix(0, id_of(step, i)));
    }
  }

  void hold_accesses(Step& step, const std::int64_t i) {
    const auto concerns = [](const StepAccess& access) {
      return access.end == AccessEnd::by_event;
    };
    if (std::ranges::none_of(step.accesses, concerns)) return;
    const Promise<void> event;
    for (const StepAccess& access : step.accesses) {
      if (!concerns(access)) continue;
      std::uint64_t& first = program_.values[access.variable];
      if (access.range) {
        release_after(event.future(), range(&first, access.count));
      } else {
        release_after(event.future(), first);
      }
    }
    task("ends accesses").launch([this, &step, i, event, concerns] {
      yield();
      write_late(step, i, concerns);
      Instance& instance = program_.at(step, i);
      for (std::size_t a = 0; a < step.accesses.size(); ++a) {
        if (concerns(step.accesses[a])) instance.access_end[a] = stamp();
      }
      event.set();
    });
  }

  void bind(Step& step, const std::int64_t i) {
    const Promise<void> event;
    release_after(event.future());
    task("bound").launch([this, &step, i, event] {
      yield();
      write_late(step, i, [](const StepAccess& access) {
        return access.end == AccessEnd::with_task;
      });
      program_.at(step, i).bound_end = stamp();
      event.set();
    });
  }

  LoopProgram& program_;
  std::unique_ptr<ForeignThread> foreign_;
  std::atomic<std::uint64_t> clock_ = 0;  // any thread; seq_cst: its order is the order of the run
  std::atomic<bool> failed_ = false;
  std::shared_ptr<std::atomic<int>> live_ = std::make_shared<std::atomic<int>>(0);
  const Counted counted_{live_};
  std::string thrown_;
};

// ---- checks ------------------------------------------------------------------------------------

// An instance of a step, in program order.
struct Place {
  const Step* step;
  std::int64_t iteration;
  const Instance* instance;

  [[nodiscard]] bool ran() const { return instance->start != 0; }
  [[nodiscard]] std::uint64_t end() const {  // of all that the task itself accesses
    return std::max(instance->body_end, instance->bound_end);
  }
  [[nodiscard]] std::uint64_t end(const std::size_t access) const {
    return step->accesses[access].end == AccessEnd::with_task ? end()
                                                              : instance->access_end[access];
  }
  [[nodiscard]] std::uint64_t life_end() const {
    std::uint64_t last = std::max(end(), instance->last_child);
    for (const std::uint64_t each : instance->access_end) last = std::max(last, each);
    return last;
  }
};

bool complain(const char* const what, const Place& one, const Place& two) {
  std::printf("FAILS: %s: %s, iteration %lld, and %s, iteration %lld\n", what,
              one.step->name.c_str(), static_cast<long long>(one.iteration),
              two.step->name.c_str(), static_cast<long long>(two.iteration));
  return false;
}

std::vector<Place> in_order(LoopProgram& program) {
  std::vector<Place> places;
  for (std::int64_t i = 0; i < program.count; ++i) {
    for (Step& step : program.steps) {
      if (step.offset == i % program.period) places.push_back({&step, i, &program.at(step, i)});
    }
  }
  return places;
}

bool check_accesses(const Place& one, const std::size_t a, const Place& two, const std::size_t b) {
  const Kind first = one.step->accesses[a].kind;
  const Kind second = two.step->accesses[b].kind;
  if (first == second && (first == Kind::in || first == Kind::inoutset)) return true;
  const bool ordered = one.end(a) < two.instance->start;
  if (first == second && first == Kind::mutexinoutset) {
    if (ordered || two.end(b) < one.instance->start) return true;
    return complain("two of a mutexinoutset overlap", one, two);
  }
  return ordered || complain("not in program order", one, two);
}

// Both ran.
bool check_pair(const Place& one, const Place& two, const std::int64_t period) {
  bool good = true;
  for (std::size_t a = 0; a < one.step->accesses.size(); ++a) {
    for (std::size_t b = 0; b < two.step->accesses.size(); ++b) {
      if (!overlap(one.step->accesses[a], two.step->accesses[b])) continue;
      good = check_accesses(one, a, two, b) && good;
    }
  }
  if (one.step == two.step && one.iteration + period == two.iteration) {
    if (one.life_end() >= two.instance->start) {
      good = complain("began before its instance of the iteration before ended", one, two);
    }
  }
  if (one.step->decides && one.iteration + 1 == two.iteration) {
    if (one.end() >= two.instance->start) {
      good = complain("began before the iteration before had decided", one, two);
    }
  }
  return good;
}

bool may_conflict(const Step& one, const Step& two) {
  for (const StepAccess& a : one.accesses) {
    for (const StepAccess& b : two.accesses) {
      if (overlap(a, b) && !(a.kind == b.kind && a.kind == Kind::in)) return true;
    }
  }
  return false;
}

// The instances of the first iteration in which a task fails, as far as a failure may lie before
// them: positions in `places`.
std::vector<bool> may_be_stopped(const std::vector<Place>& places, const std::int64_t failing) {
  std::vector<bool> stopped(places.size());
  for (std::size_t two = 0; two < places.size(); ++two) {
    if (places[two].iteration != failing) continue;
    for (std::size_t one = 0; one < two; ++one) {
      const Step& before = *places[one].step;
      const bool fails = before.fails == Fails::itself && before.fails_at == failing;
      const bool by_loop = before.fails == Fails::by_child && before.nested &&
                           before.fails_at == failing;
      if (places[one].iteration != failing || !(fails || by_loop || stopped[one])) continue;
      if (may_conflict(before, *places[two].step)) stopped[two] = true;
    }
  }
  return stopped;
}

bool check_values(const LoopProgram& program, const std::vector<Place>& places) {
  const std::int64_t failing = program.first_failure();
  const std::vector<bool> stopped = may_be_stopped(places, failing);
  bool good = true;
  for (std::size_t at = 0; at < places.size(); ++at) {
    const Place& place = places[at];
    const bool must_run = place.iteration <= std::min(failing, program.last()) && !stopped[at];
    if (must_run && !place.ran()) good = complain("did not run", place, place);
    if (!place.ran()) continue;
    if (place.iteration > program.last()) good = complain("ran after the end", place, place);
    if (stopped[at]) continue;
    if (place.instance->observed != place.instance->expected) {
      good = complain("wrong value read", place, place);
    }
  }
  return good;
}

bool check_end(const LoopProgram& program, const LoopRun& run) {
  bool good = !run.failed();
  const bool fails = program.first_failure() != INT64_MAX;
  if (fails != (run.thrown().find("broken") != std::string::npos)) {
    std::printf("FAILS: the loop has thrown \"%s\"\n", run.thrown().c_str());
    good = false;
  }
  if (!fails && program.values != program.expected) {
    std::printf("FAILS: wrong values are left\n");
    good = false;
  }
  return good;
}

bool check(LoopProgram& program, const LoopRun& run) {
  const std::vector<Place> places = in_order(program);
  bool good = check_end(program, run);
  for (std::size_t two = 0; two < places.size(); ++two) {
    for (std::size_t one = 0; one < two; ++one) {
      if (!places[one].ran() || !places[two].ran()) continue;
      good = check_pair(places[one], places[two], program.period) && good;
    }
  }
  return check_values(program, places) && good;
}

// ---- one program, and all of them --------------------------------------------------------------

void show(const LoopProgram& program) {
  constexpr const char* kinds[] = {"in", "out", "inout", "mutexinoutset", "inoutset"};
  constexpr const char* ends[] = {"", " early", " by event"};
  std::printf("count %lld, period %lld\n", static_cast<long long>(program.count),
              static_cast<long long>(program.period));
  for (const Step& step : program.steps) {
    std::printf("%lld: %s:", static_cast<long long>(step.offset), step.name.c_str());
    for (const StepAccess& access : step.accesses) {
      std::printf(" %s(%zu", kinds[static_cast<int>(access.kind)], access.variable);
      if (access.range) std::printf(" to %zu", access.variable + access.count - 1);
      std::printf(")%s", ends[static_cast<int>(access.end)]);
    }
    if (step.children > 0) {
      std::printf(" %d children%s", step.children, step.nested ? " inner" : "");
    }
    if (step.decides) std::printf(" decides");
    if (step.stops_at >= 0) std::printf(" stops in %lld", static_cast<long long>(step.stops_at));
    if (step.fails != Fails::never) {
      std::printf(" fails in %lld", static_cast<long long>(step.fails_at));
    }
    std::printf("%s%s%s%s\n", step.suspends ? " suspends" : "", step.bound ? " bound" : "",
                step.tied ? " tied" : "", step.after_failure ? " after failure" : "");
  }
}

bool run_seed(const std::uint64_t seed, const int workers, const std::string& policy) {
  std::printf("--seed %llu --count 1 --workers %d --policy %s\n",
              static_cast<unsigned long long>(seed), workers, policy.c_str());
  const bool seeded = policy == "seeded";
  std::vector<LoopProgram> programs;
  for (std::uint64_t i = 0; i <= seed % 2; ++i) {
    programs.push_back(LoopGenerator(seed + 1'000'000'007 * i, !seeded).program());
  }
  std::vector<std::unique_ptr<LoopRun>> runs;
  for (LoopProgram& program : programs) {
    runs.push_back(std::make_unique<LoopRun>(program, !seeded));
  }
  constexpr int windows[] = {-1, 0, 1, 4};
  RuntimeOptions options;
  options.tasks_ahead = windows[seed % 4];
  options.workers = workers;
  options.policy = seeded ? "seeded:" + std::to_string(seed) : policy;
  {
    const Runtime runtime(options);
    if (runs.size() == 1) {
      runs.front()->run();
    } else {
      finish([&] {
        for (const auto& run : runs) task("loop").launch([&run] { run->run(); });
      });
    }
  }
  bool good = true;
  for (std::size_t i = 0; i < runs.size(); ++i) good = check(programs[i], *runs[i]) && good;
  return good;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, run_seed, [](Campaign& campaign) {
    show(LoopGenerator(campaign.seeds.first(), campaign.policies.front() != "seeded").program());
  });
}
