// SPDX-License-Identifier: BSD-3-Clause
// The round and its workers. answers.cpp handles messages.
#include "distributed/pool/rank_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/arch.hpp"
#include "distributed/pool/pool_worker.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"

namespace imbrex::distributed {

namespace {
[[nodiscard]] std::size_t place_among(const std::vector<int>& ranks, const int rank) {
  const auto found = std::ranges::find(ranks, rank);
  if (found != ranks.end()) return static_cast<std::size_t>(found - ranks.begin());
  throw Error(fmt::format("imbrex: rank {} makes a work pool of {} ranks, and is not among them",
                          rank, ranks.size()));
}
}  // namespace

Pool::Pool(Carrier& carrier, Waves& waves, const Options& options)
    : carrier_(carrier), waves_(waves), options_(options), name_(std::string_view(options.name)),
      waits_for_(detail::keep_text(fmt::format("items of work pool \"{}\"", options.name))),
      search_(place_among(options.ranks, carrier.rank()), options.ranks.size(), options.victims) {
  for (int index = 0; index < options.workers; ++index) {
    workers_.push_back(std::make_unique<Worker>(index, options_));
  }
}

Pool::~Pool() = default;

void Pool::push(const void* const item) {
  const std::lock_guard guard(mutex_);
  if (runs_) {
    throw Error(fmt::format("imbrex: push() to work pool \"{}\" during process() of that pool: let "
                            "the function of process() add items by its argument", options_.name));
  }
  shared_.add(item, options_.item_bytes);
  note_shared();
}

WorkPoolCounters Pool::process(const detail::PoolBody& body) {
  begin_round();
  const auto start_workers = [&] {
    for (const auto& worker : workers_) {
      TaskBuilder(name_, body.where).launch([&, one = worker.get()] { run_worker(*one, body); });
    }
  };
  finish(start_workers, body.where);
  const std::uint64_t elapsed = base::monotonic_ns() - begun_ns_;
  WorkPoolCounters counters = count(elapsed);
  end_round();
  return counters;
}

void Pool::begin_round() {
  const std::lock_guard guard(mutex_);
  if (runs_) {
    throw Error(fmt::format("imbrex: process() of work pool \"{}\" while another one runs on this "
                            "rank", options_.name));
  }
  if (left_round_ != 0 && round_ >= left_round_) throw Error(left_text_);
  begun_ns_ = base::monotonic_ns();
  for (const auto& worker : workers_) worker->begin(begun_ns_);
  runs_ = true;
  ended_ = false;
  ++round_;
  active_ = options_.workers;
  received_before_ = -1;
  counters_ = {};
  error_ = nullptr;
  search_.begin(round_);
  hungry_.store(search_.owes(), std::memory_order_relaxed);  // a hint
  const bool failed = errors_elsewhere_.contains(round_);
  failed_.store(failed, std::memory_order_relaxed);  // the lock orders it
  if (failed) shared_.clear();
  note_shared();
}

void Pool::leave(void (*const over)(void* context) noexcept, void* const context) {
  leaving_.begin(object_text());
  std::uint32_t round = 0;
  if (const std::lock_guard guard(mutex_); true) {
    over_ = over;
    over_context_ = context;
    has_left_ = true;
    runs_ = true;
    ended_ = false;
    round = ++round_;
    active_ = 0;
    received_before_ = -1;
    failed_.store(true, std::memory_order_relaxed);  // the lock orders it
    shared_.clear();
    note_shared();
    sent_ += std::ssize(options_.ranks) - 1;
  }
  const std::string text = Leaving::text(carrier_.rank(), object_text());
  for (const int rank : options_.ranks) {
    if (rank == carrier_.rank()) continue;
    send(rank, {options_.id, round, PoolMessage::left}, std::as_bytes(std::span(text)));
  }
  Step step;
  if (const std::lock_guard guard(mutex_); true) step = next_step();
  perform(step);
}

std::string Pool::object_text() const { return fmt::format("work pool \"{}\"", options_.name); }

void Pool::run_worker(Worker& worker, const detail::PoolBody& body) {
  while (more(worker)) {
    try {
      run_slices(worker, body);
    } catch (...) {
      worker.stack.clear();
      fail(std::current_exception());
    }
  }
}

void Pool::run_slices(Worker& worker, const detail::PoolBody& body) {
  while (worker.stack.bytes() != 0) {
    if (failed_.load(std::memory_order_relaxed)) {  // set before, as far as any thread can tell
      worker.stack.clear();
      return;
    }
    worker.slice_begins();
    const std::uint64_t items = body.run(body.function, worker.stack, worker.pace.slice);
    worker.slice_ended(items);
    share(worker);
    detail::yield();
  }
}

bool Pool::more(Worker& worker) {
  worker.search_begins();
  for (;;) {
    Sleeper sleeper;
    Step step;
    {
      const std::lock_guard guard(mutex_);
      if (ended_) {
        worker.search_ended(false);
        return false;
      }
      if (take_shared(worker)) {
        worker.search_ended(true);
        return true;
      }
      --active_;
      sleeper.next = sleepers_;
      sleepers_ = &sleeper;
      if (lacks_items()) hungry_.store(true, std::memory_order_relaxed);
      if (active_ == 0) search_.all_idle();
      step = next_step();
    }
    perform(step);
    detail::await(sleeper.event, {.kind = detail::WaitKind::event, .what = waits_for_});
  }
}

// The number of items that a worker may take: a chunk, or more if there are more than enough for
// all.
bool Pool::take_shared(Worker& worker) {
  const std::size_t items = shared_items();
  if (items == 0) return false;
  const std::size_t fair = items / (2 * workers_.size());
  const std::size_t some = std::min(items, std::max<std::size_t>(worker.pace.chunk, fair));
  worker.stack.take_last(shared_, some * options_.item_bytes);
  search_.worked();
  note_shared();
  return true;
}

// The number of items that a worker gives away after a slice: some always, so that a thief finds
// items, and half of its items if a worker or rank waits or it has many.
std::size_t Pool::surplus(const Worker& worker) const noexcept {
  const std::size_t own = worker.stack.bytes() / options_.item_bytes;
  if (own < 2 || (workers_.size() == 1 && options_.ranks.size() == 1)) return 0;
  const std::size_t shared = shared_count_.load(std::memory_order_relaxed);
  const std::size_t enough = worker.pace.chunk * (workers_.size() + 8);
  if (shared >= enough) return 0;
  if (own > 2 * worker.pace.chunk || hungry_.load(std::memory_order_relaxed)) {
    return std::min(own / 2, enough - shared);
  }
  return shared == 0 ? std::min(own / 2, worker.pace.chunk) : 0;
}

void Pool::share(Worker& worker) {
  const std::size_t some = surplus(worker);
  const bool hungry = hungry_.load(std::memory_order_relaxed);
  if (some == 0 && !(hungry && shared_count_.load(std::memory_order_relaxed) != 0)) return;
  Sleeper* woken = nullptr;
  std::vector<Parcel> parcels;
  {
    const std::lock_guard guard(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    shared_.take_first(worker.stack, some * options_.item_bytes);
    chunk_.store(static_cast<std::uint32_t>(worker.pace.chunk), std::memory_order_relaxed);
    woken = wake((shared_items() + worker.pace.chunk - 1) / worker.pace.chunk);
    std::size_t to = 0;
    while (shared_items() != 0 && search_.take_owed(to)) {
      parcels.push_back(pack_half(options_.ranks[to]));
      ++counters_.lifeline_pushes;
    }
    hungry_.store(lacks_items() || search_.owes(), std::memory_order_relaxed);
    note_shared();
  }
  fire(woken);
  for (const Parcel& parcel : parcels) send(parcel, true);
}

void Pool::fail(const std::exception_ptr& error) {
  bool is_first = false;
  std::uint32_t round = 0;
  {
    const std::lock_guard guard(mutex_);
    if (error_ == nullptr) error_ = error;
    is_first = !failed_.exchange(true, std::memory_order_relaxed);
    if (is_first) sent_ += std::ssize(options_.ranks) - 1;
    round = round_;
    shared_.clear();
    note_shared();
  }
  if (!is_first) return;
  const std::string text = detail::thrown_text(error).substr(0, 1000);
  for (const int rank : options_.ranks) {
    if (rank == carrier_.rank()) continue;
    send(rank, {options_.id, round, PoolMessage::failed}, std::as_bytes(std::span(text)));
  }
}

WorkPoolCounters Pool::count(const std::uint64_t elapsed_ns) const {
  WorkPoolCounters all;
  {
    const std::lock_guard guard(mutex_);
    all = counters_;
  }
  all.elapsed_s = static_cast<double>(elapsed_ns) * 1e-9;
  for (const auto& worker : workers_) {
    const WorkPoolTally& one = all.workers.emplace_back(worker->tally());
    all.items += one.items;
    all.work_s += one.work_s;
    all.overhead_s += one.overhead_s;
    all.search_s += one.search_s;
    all.idle_s += one.idle_s;
  }
  return all;
}

void Pool::end_round() {
  std::exception_ptr error;
  std::string elsewhere;
  {
    const std::lock_guard guard(mutex_);
    runs_ = false;
    if (shared_items() != 0) {
      throw Error(fmt::format("imbrex: work pool \"{}\" has ended with {} items left: a defect of "
                              "imbrex", options_.name, shared_items()));
    }
    error = std::exchange(error_, nullptr);
    if (auto reported = errors_elsewhere_.extract(round_)) elsewhere = std::move(reported.mapped());
  }
  if (error) std::rethrow_exception(error);
  if (!elsewhere.empty()) throw Error(elsewhere);
}

}  // namespace imbrex::distributed
