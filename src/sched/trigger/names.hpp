// SPDX-License-Identifier: BSD-3-Clause
// Named events: which event a name means now, and until when. Knows no thread and no queue: events
// that are to be fired are handed back.
//
// A name belongs to the finish scope in which it was named first, or to none; until it is named, to
// the scope of the code that triggered it. It is forgotten when that scope ends.
//
// Thread safety: any thread calls every function; the scopes in the arguments live.
// Invariants:
//   (1) the table has a reference to each event in it.
//   (2) the thread that sets PromiseState::taken, once, fires the event, without the lock.
//   (3) the scope of an event in the table lives: close() comes first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/waist.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::sched {

struct NamedEvent : detail::PromiseState {
  std::string text;
  std::string label;              // for messages
  std::int64_t number = 0;
  bool named = false;             // else it has only been triggered; guarded by names' lock
  task::Scope* finish = nullptr;  // guarded by names' lock
  bool given_up = false;          // no code will trigger it; guarded by names' lock
  std::string triggered_by;       // guarded by names' lock
};

class Names {
 public:
  Names() = default;
  ~Names();
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  // The event of `name`, with a reference for the caller.
  [[nodiscard]] NamedEvent& name(const detail::EventName& name, task::Scope* finish,
                                 const std::source_location& where);

  // The event of `name`, taken, for the caller to fire; with a reference. Null if it was given up.
  // Throws Error if it has been triggered before. `by` names the triggering code.
  [[nodiscard]] NamedEvent* trigger(const detail::EventName& name, task::Scope* finish,
                                    const std::string& by);

  // Takes out the events of `finish` (null: the events of no scope), whose tasks are complete. The
  // caller gets the table's references.
  [[nodiscard]] std::vector<NamedEvent*> close(task::Scope* finish);

  // Takes all untriggered events of `finish`, and of scopes within, for the caller to fire with
  // `failure`; each comes with a reference.
  [[nodiscard]] std::vector<NamedEvent*> give_up(const task::Scope& finish);

  // give_up() for one event; false if it was triggered.
  [[nodiscard]] bool give_up(NamedEvent& event);

  // Lists the events that are named and not yet triggered, for reports.
  [[nodiscard]] std::vector<std::string> awaited();

 private:
  struct Key {
    std::string_view text;  // of the event itself
    std::int64_t number;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string_view>()(key.text) ^
             std::hash<std::int64_t>()(key.number * 0x9E3779B97F4A7C15);
    }
  };
  [[nodiscard]] NamedEvent& find_or_make(const detail::EventName& name, task::Scope* finish)
      IMBREX_REQUIRES(lock_);
  void belong(NamedEvent& event, task::Scope* finish) IMBREX_REQUIRES(lock_);

  base::SpinLock lock_;
  std::unordered_map<Key, NamedEvent*, Hash> table_ IMBREX_GUARDED_BY(lock_);
  std::unordered_map<const task::Scope*, std::vector<NamedEvent*>> of_finish_
      IMBREX_GUARDED_BY(lock_);
};

// An event that no code will trigger any more fails; call it before the event is fired.
void give_up(NamedEvent& event, const char* why);

}  // namespace imbrex::sched
