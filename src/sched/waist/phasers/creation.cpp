// SPDX-License-Identifier: BSD-3-Clause
// Creation of phasers, and registration of tasks on them.
#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

#include "imbrex/error.hpp"
#include "sched/waist/phasers/registrations.hpp"

namespace imbrex::detail {

namespace {

constexpr std::uint32_t ahead_most = 65'536;

// The memory of a registration of `task`, which is not yet in its list.
std::unique_ptr<Registration, void (*)(Registration*)> make_registration(
    Worker& worker, Task& task, const PhaserMode mode, const std::source_location& where) {
  void* const memory = worker.small.take(base::slab_class(sizeof(Registration)));
  auto* const registration = ::new (memory) Registration{
      .phases = nullptr, .task = &task, .mode = mode, .where = where, .path = {}};
  return {registration, [](Registration* const unused) {
            unused->~Registration();
            sched::current_worker()->small.give(unused,
                                                base::slab_class(sizeof(Registration)));
          }};
}

void destroy_phaser(PromiseState& state) noexcept { delete static_cast<Phases*>(&state); }

void prepare(Phases& phases, const PhaserSpec& spec, const std::source_location& where,
             Family& family) {
  phases.kind = CompletionKind::phaser;
  phases.references.store(2, std::memory_order_relaxed);  // one of the caller, one of the
                                                          // registration
  phases.shared.store(false, std::memory_order_relaxed);
  phases.failure = nullptr;
  phases.destroy = &destroy_phaser;
  phases.name = spec.name;
  phases.where = where;
  phases.ahead = spec.ahead;
  if (task::Scope* const finish = family.current->finish) {
    phases.finish = finish;
    phases.finish_where = finish->where;
  }
}

}  // namespace

PhaserState& make_phaser(const PhaserSpec& spec, const std::source_location& where) {
  std::unique_ptr<PhaserBackend> backend(spec.backend);
  if (spec.ahead > ahead_most) {
    throw Error(fmt::format("imbrex: the phaser made at {} has .ahead = {}: valid: 1 to {}, or 0 "
                            "for no limit",
                            text_of(where), spec.ahead, ahead_most));
  }
  if (is_outside()) {
    const PhaserSpec inner{spec.mode, spec.ahead, spec.name, backend.release()};
    return *sched::visit_to_spawn([&] { return &make_phaser(inner, where); });
  }
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "a phaser made");
  Family& family = family_of(worker, *worker.task);
  auto registration = make_registration(worker, *worker.task, spec.mode, where);
  auto phases = std::make_unique<Phases>();
  prepare(*phases, spec, where, family);
  std::vector<std::uint32_t> at(spec.ahead == 0 ? 0 : spec.ahead + 1);
  phases->backend = std::move(backend);
  registration->phases = phases.get();
  task::phaser::open(*phases, *registration, std::move(at));
  registration->following = family.registrations;
  family.registrations = registration.release();
  return *phases.release();
}

// ---- a task under construction ---------------------------------------------------------------

namespace {

void check_hand_on(const Worker& worker, const Task& child, const Registration& parent,
                   const PhaserMode mode) {
  const Phases& phases = *parent.phases;
  if (!task::may_hand_on(parent.mode, mode)) {
    refuse_at("phased()", phases,
              fmt::format("this task may not register task \"{}\" ({}) as {}: {}",
                          child.name, text_of(child.where), text_of(mode), text_of(parent)));
  }
  const task::Scope* const finish = worker.task->family->current->finish;
  if (finish != phases.finish) {
    refuse_at("phased()", phases,
              fmt::format("task \"{}\" ({}) belongs to the finish() at {}, the phaser to {}: a "
                          "phaser is for tasks of the finish() in which it was made; "
                          "make another one in the inner finish()",
                          child.name, text_of(child.where),
                          finish == nullptr ? "?" : text_of(finish->where),
                          phases.finish == nullptr ? "none"
                          : "the one at " + text_of(phases.finish_where)));
  }
  if (find_registration(child, phases) != nullptr) {
    refuse_at("phased()", phases, fmt::format("this task registers task \"{}\" ({}) twice",
                                              child.name, text_of(child.where)));
  }
}

void hand_on(Worker& worker, Task& child, Registration& parent, const PhaserMode mode) {
  check_hand_on(worker, child, parent, mode);
  Phases& phases = *parent.phases;
  auto registration = make_registration(worker, child, mode, child.where);
  registration->phases = &phases;
  if (phases.keeps_order) {
    registration->path = parent.path;
    registration->path.push_back(parent.children++);
  }
  if (!task::phaser::add(parent, *registration)) {
    refuse_at("phased()", phases, fmt::format("the phaser has {} tasks, and no phaser can have "
                                              "more",
                                              Phases::most));
  }
  task::add_reference(phases);
  registration->following = child.family->registrations;
  child.family->registrations = registration.release();
}

}  // namespace

void put_phased(void* const closure, const std::span<const Phased> phased) {
  if (is_outside()) {  // it waits for the task that is being made
    return sched::visit(Purpose::passes, [&] { put_phased(closure, phased); }, [] {});
  }
  Worker& worker = *sched::current_worker();
  Task& child = Task::of_closure(closure);
  if (records(*worker.task->family)) {
    refuse_recorded(*worker.task->family, child,
                    "it is phased(), and a registration on a phaser ends with its task");
  }
  Family& family = family_of(worker, child);
  family.children.finish = worker.task->family->current->finish;
  for (const Phased& one : phased) {
    if (one.phaser != nullptr) {
      Registration& parent = registration_on(worker, *one.phaser, "phased()");
      hand_on(worker, child, parent, one.inherits ? parent.mode : one.mode);
      continue;
    }
    Registration* mine = first_registration(*worker.task);
    for (; mine != nullptr; mine = mine->following) {
      if (find_registration(child, *mine->phases) != nullptr) continue;
      hand_on(worker, child, *mine, mine->mode);
    }
  }
}

}  // namespace imbrex::detail
