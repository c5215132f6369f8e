// SPDX-License-Identifier: BSD-3-Clause
// Places: the program's view of the groups that parts of the runtime's workers form.
#include "imbrex/values/place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "sched/life/life.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/runtime_state.hpp"
#include "sched/waist/caller.hpp"

namespace imbrex {

namespace {

using sched::RuntimeState;
using sched::Worker;

// Asks the runtime while it cannot end: it does not end while the caller runs on one of its
// workers.
template <class Question>
auto ask(Question question) {
  if (const Worker* const worker = sched::current_worker()) return question(*worker->runtime);
  detail::start();
  const std::lock_guard guard(sched::end_lock());
  const RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) throw Error("imbrex: a function of places is called while the runtime "
                                      "ends: call it earlier");
  return question(*runtime);
}

// The group of a place of the runtime with this number.
detail::Group& group_of(const RuntimeState& runtime, const int index, const std::uint32_t number) {
  if (index < 0) return runtime.groups.everyone();
  if (number == runtime.number) return runtime.groups.place(index);
  throw Error(fmt::format("imbrex: place {} belongs to a runtime that has ended: call place() "
                          "again after another runtime has started",
                          index));
}

// The caller's worker; null in a thread that is none.
const Worker* here() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker == nullptr || worker->foreign() ? nullptr : worker;
}

}  // namespace

int place_count() {
  return ask([](const RuntimeState& runtime) { return runtime.groups.place_count(); });
}

Place place(const int index) {
  return ask([index](const RuntimeState& runtime) {
    const int count = runtime.groups.place_count();
    if (index < 0 || index >= count) {
      throw Error(fmt::format("imbrex: place({}): valid: 0 to {}: IMBREX_PLACES={} divides the {} "
                              "workers into {} places",
                              index, count - 1, runtime.options.PLACES,
                              runtime.groups.everyone().size, count));
    }
    return Place(index, runtime.number);
  });
}

int Place::worker_count() const {
  return ask([this](const RuntimeState& runtime) {
    return group_of(runtime, index_, runtime_).size;
  });
}

std::string Place::name() const {
  return ask([this](const RuntimeState& runtime) {
    const std::string& name = group_of(runtime, index_, runtime_).name;
    return index_ < 0 ? "all workers" : name;
  });
}

PlaceKind Place::kind() const {
  return ask([this](const RuntimeState& runtime) {
    return group_of(runtime, index_, runtime_).kind;
  });
}

int Place::level() const {
  return ask([this](const RuntimeState& runtime) {
    return group_of(runtime, index_, runtime_).level;
  });
}

Place Place::parent() const {
  return ask([this](const RuntimeState& runtime) {
    const int parent = group_of(runtime, index_, runtime_).parent;
    return parent < 0 ? Place() : Place(parent, runtime.number);
  });
}

std::vector<Place> Place::children() const {
  return ask([this](const RuntimeState& runtime) {
    (void)group_of(runtime, index_, runtime_);
    std::vector<Place> children;
    for (int index = 0; index < runtime.groups.place_count(); ++index) {
      if (runtime.groups.place(index).parent == index_) children.push_back({index, runtime.number});
    }
    return children;
  });
}

Place current_place() noexcept {
  const Worker* const worker = here();
  if (worker == nullptr || worker->task == nullptr) return {};
  const int index = worker->runtime->groups.place_index(worker->task->group);
  return index < 0 ? Place() : Place(index, worker->runtime->number);
}

Place parent_place() { return current_place().parent(); }

Place local_place() noexcept {
  const Worker* const worker = here();
  if (worker == nullptr) return {};
  const sched::Groups& groups = worker->runtime->groups;
  for (int index = 0; index < groups.place_count(); ++index) {
    const std::vector<int>& workers = groups.place(index).workers;
    if (std::ranges::find(workers, worker->id) != workers.end()) {
      return {index, worker->runtime->number};
    }
  }
  return {};
}

int current_worker() noexcept {
  const Worker* const worker = here();
  return worker == nullptr ? -1 : worker->id;
}

void detail::put_at(void* const closure, const imbrex::Place place) {
  RuntimeState& runtime = *sched::runtime();  // it waits for the task that is being made
  Group& group = group_of(runtime, place.index_, place.runtime_);
  if (group.kind > PlaceKind::cache) {
    throw Error(fmt::format("imbrex: a task cannot run at {}, which has no processors: choose a "
                            "place of kind memory or cache",
                            group.name));
  }
  if (group.size == 0) {
    throw Error(fmt::format("imbrex: a task cannot run at {}, which has no workers: choose its "
                            "parent, or give it workers in the file of places",
                            group.name));
  }
  Task& task = Task::of_closure(closure);
  if (task.group == sched::Groups::in_place) return;  // it runs at once, at its creation
  runtime.use_places();
  task.group = group.id;
  if (Worker* const worker = sched::current_worker()) {
    sched::notes::bind(*worker, task, place.index_);
  }
}

}  // namespace imbrex
