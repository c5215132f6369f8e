// SPDX-License-Identifier: BSD-3-Clause
#include "sched/trigger/names.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

namespace {

bool is_within(task::Scope* inner, const task::Scope& outer) noexcept {
  while (inner != nullptr && inner != &outer) inner = inner->outer->finish;
  return inner != nullptr;
}

[[noreturn, gnu::cold]] void throw_triggered_twice(const NamedEvent& event, const std::string& by) {
  throw Error(fmt::format(
      "imbrex: the event {} was triggered twice, first by {}, then by {}: a name means one event "
      "until the end of the finish() in which it is named; give each iteration a finish() of its "
      "own, or its number: named(name, iteration)",
      event.label, event.triggered_by, by));
}

std::string label_of(const detail::EventName& name) {
  if (name.number == 0) return fmt::format("\"{}\"", name.text);
  return fmt::format("\"{}\" {}", name.text, name.number);
}

}  // namespace

void give_up(NamedEvent& event, const char* const why) {
  task::set_failure(event, task::failure_of_nobody(std::make_exception_ptr(Error(
      fmt::format("imbrex: no code has triggered the event {} (named at {}): {}", event.label,
                  detail::text_of(event.where), why)))));
}

Names::~Names() {
  for (const auto& [key, event] : table_) {
    if (task::drop(*event)) task::destroy_promise(*event);
  }
}

NamedEvent& Names::find_or_make(const detail::EventName& name, task::Scope* const finish) {
  if (const auto found = table_.find({name.text, name.number}); found != table_.end()) {
    return *found->second;
  }
  auto named = std::make_unique<NamedEvent>();
  named->references.store(1, std::memory_order_relaxed);  // (1)
  named->kind = detail::CompletionKind::named;
  named->failure = nullptr;
  named->destroy = [](detail::PromiseState& state) noexcept {
    delete static_cast<NamedEvent*>(&state);
  };
  named->text = name.text;
  named->label = label_of(name);
  named->name = named->label.c_str();
  named->number = name.number;
  table_.emplace(Key{named->text, named->number}, named.get());
  NamedEvent& event = *named.release();
  belong(event, finish);
  return event;
}

// Assigns the event to `finish`.
void Names::belong(NamedEvent& event, task::Scope* const finish) {
  event.finish = finish;
  of_finish_[finish].push_back(&event);
  if (finish != nullptr) finish->has_region.store(true, std::memory_order_relaxed);
}

NamedEvent& Names::name(const detail::EventName& name, task::Scope* const finish,
                        const std::source_location& where) {
  const std::lock_guard guard(lock_);
  NamedEvent& event = find_or_make(name, finish);
  if (!event.named) {
    event.named = true;
    event.where = where;
    if (event.finish != finish) {  // it was triggered first, elsewhere
      std::erase(of_finish_[event.finish], &event);
      belong(event, finish);
    }
  }
  task::add_reference(event);
  return event;
}

NamedEvent* Names::trigger(const detail::EventName& name, task::Scope* const finish,
                           const std::string& by) {
  const std::lock_guard guard(lock_);
  NamedEvent& event = find_or_make(name, finish);
  if (event.given_up) return nullptr;
  if (event.taken.exchange(true, std::memory_order_acq_rel)) throw_triggered_twice(event, by);
  event.triggered_by = by;
  task::add_reference(event);
  return &event;
}

std::vector<NamedEvent*> Names::close(task::Scope* const finish) {
  const std::lock_guard guard(lock_);
  const auto found = of_finish_.find(finish);
  if (found == of_finish_.end()) return {};
  std::vector<NamedEvent*> events = std::move(found->second);
  of_finish_.erase(found);
  for (const NamedEvent* const event : events) table_.erase({event->text, event->number});
  return events;
}

std::vector<NamedEvent*> Names::give_up(const task::Scope& finish) {
  std::vector<NamedEvent*> events;
  const std::lock_guard guard(lock_);
  for (const auto& [key, event] : table_) {
    if (!event->named || !is_within(event->finish, finish)) continue;
    if (event->taken.exchange(true, std::memory_order_acq_rel)) continue;
    event->given_up = true;
    task::add_reference(*event);
    events.push_back(event);
  }
  return events;
}

bool Names::give_up(NamedEvent& event) {
  const std::lock_guard guard(lock_);
  if (event.taken.exchange(true, std::memory_order_acq_rel)) return false;
  event.given_up = true;
  return true;
}

std::vector<std::string> Names::awaited() {
  std::vector<std::string> labels;
  const std::lock_guard guard(lock_);
  for (const auto& [key, event] : table_) {
    if (!event->named || event->taken.load(std::memory_order_acquire)) continue;
    labels.push_back(
        fmt::format("{} (named at {})", event->label, detail::text_of(event->where)));
  }
  return labels;
}

}  // namespace imbrex::sched
