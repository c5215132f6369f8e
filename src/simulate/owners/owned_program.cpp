// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/owners/owned_program.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <new>
#include <numeric>
#include <span>
#include <utility>

#include "distributed/carrier/waves.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "simulate/carried/carriers.hpp"
#include "simulate/engine/cluster.hpp"
#include "simulate/owners/insertion_steps.hpp"

namespace imbrex::simulate {

using detail::AccessKind;
using distributed::Broadcasts;
using distributed::Buffer;
using distributed::DatumName;
using distributed::Recipient;
using distributed::Waves;

namespace {

// Payloads without memory: pages that nobody touches. Data of a few kilobytes travel within a
// message, which reads them.
class NoData {
 public:
  explicit NoData(const std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~NoData() { munmap(memory_, bytes_); }
  NoData(const NoData&) = delete;
  NoData& operator=(const NoData&) = delete;
  [[nodiscard]] std::span<const std::byte> first(const std::size_t bytes) const noexcept {
    return {static_cast<const std::byte*>(memory_), bytes};
  }

 private:
  const std::size_t bytes_;
  void* memory_;
};
constexpr std::size_t largest_bytes = std::size_t{1} << 40;

class Owned;

// As distributed::VersionSend: a list of ranks that is open until its task runs.
struct Send {
  Owned& owned;
  const int rank;
  const std::uint16_t space;
  const DatumName name;
  const std::size_t bytes;
  Version* version;   // a reference; null for the elements of a reduction
  std::vector<Recipient> list;
  task::Task* task = nullptr;
  bool is_inside = false;  // Broadcasts::send() has not returned
  bool has_ended = false;
};

// A copy that is expected.
struct Receive {
  Owned& owned;
  const int rank;
  const std::uint16_t space;
  const DatumName name;
  const int source;
  const std::uint32_t ticket;
  const std::size_t bytes;
  task::Task* task = nullptr;
  bool is_inside = false;  // Broadcasts::expect() has not returned
  bool has_arrived = false;
  bool has_passed = false;
};

enum class Waits : std::uint8_t { nothing, for_room, for_all, for_wave };

// As distributed::Pending.
struct Pending {
  std::uint64_t tasks = 0;
  std::uint64_t steps = 0;
  std::uint64_t waves = 0;  // joined
};

struct RankState {
  std::unique_ptr<Broadcasts> broadcasts;
  std::unique_ptr<Waves> waves;
  std::uint64_t position = 0;    // of the last insertion that this rank has made
  Waits waits = Waits::nothing;
  bool joins = false;            // Waves::join() has not returned
  bool wave_has_ended = false;
  std::uint16_t waits_in = 0;    // a space
  std::vector<Pending> pending;  // by space
  DataCounters counters;
};

struct Joined {
  Owned& owned;
  int rank;
};

class Owned final : public Program {
 public:
  explicit Owned(const OwnedSetup& setup)
      : setup_(setup),
        kernels_(setup.kernels),
        sequence_(setup.path, setup.ranks, static_cast<std::uint32_t>(setup.kernels.size())),
        no_data_(largest_bytes),
        all_ranks_(static_cast<std::size_t>(setup.ranks)),
        ranks_(static_cast<std::size_t>(setup.ranks)) {
    std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
    const auto names = static_cast<std::uint16_t>(kernels_.size());
    send_kernel_ = names;
    receive_kernel_ = static_cast<std::uint16_t>(names + 1);
    merge_kernel_ = static_cast<std::uint16_t>(names + 2);
    kernels_.push_back({"send of data", 0});
    kernels_.push_back({"data from another rank", 0});
    kernels_.push_back({"combination of data", setup.combine_ns});
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }
  void start(Host& host) override;
  bool next(int rank, Batch& batch) override;
  bool call(int rank, task::Task& task, const TaskPlan& plan) override;
  void ended(int rank, const TaskPlan& plan) override;
  void poll(const int rank) override { carriers_->poll(rank); }
  bool has_arrivals(const int rank) const override { return carriers_->has_arrivals(rank); }
  void add_to(Outcome& outcome) const override;

 private:
  [[nodiscard]] RankState& at(const int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] static std::uint64_t id_of(const std::uint16_t space) noexcept {
    return std::uint64_t{space} + 1;
  }
  void open_spaces();
  void wait(RankState& here, Waits why, std::uint16_t space, Batch& batch);
  void look_at_wait(int rank);
  [[nodiscard]] bool has_room(const RankState& here, std::uint16_t space) const;
  // False: the rank waits before the step.
  [[nodiscard]] bool take(int rank, const Step& step, StepList& list, Batch& batch);
  [[nodiscard]] bool finish(int rank, const Step& step, Batch& batch);
  void compute(std::uint16_t kernel, const Step& step, StepList& list, Batch& batch);
  void send(int rank, const Step& step, Batch& batch);
  [[nodiscard]] Recipient recipient(int rank, const Step& step) const;
  void begin_send(int rank, const Step& step, Version* version, Batch& batch);
  void receive(int rank, const Step& step, Batch& batch);
  [[nodiscard]] bool run(Send& send);
  [[nodiscard]] bool run(Receive& receive);
  static void sent(void* context, std::exception_ptr error) noexcept;
  static void arrived(void* context, Buffer* buffer, std::exception_ptr error) noexcept;
  static void passed_on(void* context) noexcept;
  void end_step(int rank, std::uint16_t space);

  const OwnedSetup setup_;
  std::vector<Kernel> kernels_;
  Sequence sequence_;
  const NoData no_data_;
  std::vector<int> all_ranks_;
  std::vector<RankState> ranks_;
  std::uint16_t send_kernel_ = 0, receive_kernel_ = 0, merge_kernel_ = 0;
  std::size_t open_ = 0;                 // spaces
  Host* host_ = nullptr;
  std::unique_ptr<Carriers> carriers_;
  std::exception_ptr error_;             // of a protocol: next() throws it
};

// ---- the ranks -------------------------------------------------------------------------------

void Owned::start(Host& host) {
  host_ = &host;
  if (host.worth_of_sending(0, 0).any != 0) sequence_.look_ahead();
  carriers_ = std::make_unique<Carriers>(host.events(), host.links(), setup_.ranks);
  carriers_->watch_idle({.next_poll = [](void* const its_host, const int rank) {
                           static_cast<Host*>(its_host)->arrived(rank);
                           return time_most;  // the rank decides when it polls
                         },
                         .object = &host});
  distributed::BroadcastOptions options;
  options.kind = setup_.tree;
  for (const int rank : all_ranks_) {
    RankState& here = at(rank);
    here.broadcasts = std::make_unique<Broadcasts>(
        carriers_->end(rank, Carriers::data_protocol), options);
    here.waves = std::make_unique<Waves>(carriers_->end(rank, Carriers::wave_protocol));
    carriers_->handle(rank, Carriers::data_protocol,
                      {.receive = [](void* const its, const int from,
                                     const distributed::Bytes message) {
                         static_cast<Broadcasts*>(its)->receive(from, message);
                       },
                       .object = here.broadcasts.get()});
    carriers_->handle(rank, Carriers::wave_protocol,
                      {.receive = [](void* const its, const int from,
                                     const distributed::Bytes message) {
                         static_cast<Waves*>(its)->receive(from, message);
                       },
                       .object = here.waves.get()});
  }
}

// Those that the file has named meanwhile.
void Owned::open_spaces() {
  for (; open_ < sequence_.spaces(); ++open_) {
    std::vector<int> nodes;
    for (const int rank : all_ranks_) nodes.push_back(rank / setup_.per_node);
    for (RankState& here : ranks_) {
      const std::uint64_t id = id_of(static_cast<std::uint16_t>(open_));
      here.broadcasts->open_space(id, "space");
      here.broadcasts->set_nodes(id, nodes);
      here.pending.emplace_back();
    }
  }
}

void Owned::add_to(Outcome& outcome) const {
  outcome.messages += carriers_->messages();
  outcome.messages_received += carriers_->messages_handled();
  for (const RankState& here : ranks_) {
    DataCounters counters = here.counters;
    for (std::size_t space = 0; space < open_; ++space) {
      const auto copies = here.broadcasts->copies(id_of(static_cast<std::uint16_t>(space)));
      counters.copies_from_root += copies.as_root;
      counters.copies_from_relay += copies.as_relay;
      counters.bytes_sent += copies.bytes;
    }
    outcome.data.push_back(counters);
  }
}

// ---- insertion -------------------------------------------------------------------------------

bool Owned::next(const int rank, Batch& batch) {
  if (error_ != nullptr) std::rethrow_exception(error_);
  RankState& here = at(rank);
  StepList& list = sequence_.steps(rank);
  open_spaces();
  const Step step = list.steps.front();
  if (step.kind == Step::Kind::end) return false;
  // Insertions before it that have no step here.
  if (here.position + 1 < step.position) {
    const auto elsewhere = static_cast<Time>(step.position - 1 - here.position);
    here.position = step.position - 1;
    batch.spend(elsewhere * setup_.elsewhere_ns);
    return true;
  }
  if (!take(rank, step, list, batch)) return true;
  // An insertion at which a rank only raises copies is one that has no step here.
  if (step.kind != Step::Kind::raise) here.position = step.position;
  list.steps.pop_front();
  return true;
}

bool Owned::take(const int rank, const Step& step, StepList& list, Batch& batch) {
  RankState& here = at(rank);
  switch (step.kind) {
    case Step::Kind::task:
      if (!has_room(here, step.space)) {
        wait(here, Waits::for_room, step.space, batch);
        return false;
      }
      ++here.pending[step.space].tasks;
      ++here.counters.tasks;
      compute(static_cast<std::uint16_t>(step.name), step, list, batch);
      break;
    case Step::Kind::merge:
      ++here.pending[step.space].steps;
      compute(merge_kernel_, step, list, batch);
      break;
    case Step::Kind::send: send(rank, step, batch); break;
    case Step::Kind::send_once: begin_send(rank, step, nullptr, batch); break;
    case Step::Kind::raise:
      list.leads.front().raise(step.rank, [this, rank](const int to) {
        return host_->worth_of_sending(rank, to);
      });
      list.leads.pop_front();
      break;
    case Step::Kind::receive: receive(rank, step, batch); break;
    case Step::Kind::finish: return finish(rank, step, batch);
    case Step::Kind::end: break;
  }
  return true;
}

void Owned::compute(const std::uint16_t kernel, const Step& step, StepList& list, Batch& batch) {
  batch.add({.kernel = kernel, .priority = step.priority, .tag = step.space});
  for (std::uint32_t i = 0; i < step.accesses; ++i) {
    batch.access(list.accesses.front().copy, list.accesses.front().kind);
    list.accesses.pop_front();
  }
}

// ---- waits: as DataSpace::wait_for_room() and end_together() ---------------------------------

void Owned::wait(RankState& here, const Waits why, const std::uint16_t space, Batch& batch) {
  here.waits = why;
  here.waits_in = space;
  batch.wait_for_event();
}

bool Owned::has_room(const RankState& here, const std::uint16_t space) const {
  const std::uint64_t window = sequence_.window(space);
  return window == 0 || here.pending[space].tasks < window;
}

bool Owned::finish(const int rank, const Step& step, Batch& batch) {
  RankState& here = at(rank);
  Pending& pending = here.pending[step.space];
  if (pending.tasks != 0 || pending.steps != 0) {
    wait(here, Waits::for_all, step.space, batch);
    return false;
  }
  if (here.waits != Waits::for_wave) {
    here.waits = Waits::for_wave;
    here.waits_in = step.space;
    here.wave_has_ended = false;
    here.joins = true;
    here.waves->join({id_of(step.space), pending.waves++}, all_ranks_, {},
                     [](void* const context, const distributed::WaveSums&) noexcept {
                       const std::unique_ptr<Joined> joined(static_cast<Joined*>(context));
                       RankState& its = joined->owned.at(joined->rank);
                       its.wave_has_ended = true;
                       if (!its.joins) joined->owned.host_->resume_creator(joined->rank);
                     },
                     new Joined{*this, rank});
    here.joins = false;
  }
  if (!here.wave_has_ended) {
    batch.wait_for_event();
    return false;
  }
  here.waits = Waits::nothing;
  return true;
}

// An operation has ended: a creator that has waited for it goes on.
void Owned::look_at_wait(const int rank) {
  RankState& here = at(rank);
  const Pending& pending = here.pending[here.waits_in];
  bool goes_on = false;
  if (here.waits == Waits::for_room) {
    const std::uint64_t window = sequence_.window(here.waits_in);
    goes_on = pending.tasks <= window - 1 - window / 4;
  } else if (here.waits == Waits::for_all) {
    goes_on = pending.tasks == 0 && pending.steps == 0;
  }
  if (!goes_on) return;
  here.waits = Waits::nothing;
  host_->resume_creator(rank);
}

void Owned::ended(const int rank, const TaskPlan& plan) {
  const auto space = static_cast<std::uint16_t>(plan.tag);
  if (plan.kernel == merge_kernel_) return end_step(rank, space);
  --at(rank).pending[space].tasks;
  look_at_wait(rank);
}

void Owned::end_step(const int rank, const std::uint16_t space) {
  --at(rank).pending[space].steps;
  look_at_wait(rank);
}

// ---- sends: as DataSpace::send() -------------------------------------------------------------

void Owned::send(const int rank, const Step& step, Batch& batch) {
  RankState& here = at(rank);
  Version& version = *step.version;
  DataCounters& counters = here.counters;
  ++version.recipients;
  if (version.recipients == 1) ++counters.versions_sent;
  if (version.recipients == 2) ++counters.broadcasts;
  if (version.open != nullptr) {
    version.open->push_back(recipient(rank, step));
    if (version.recipients == 2) ++counters.broadcasts_full;
    version.release();
    return;
  }
  if (version.has_sent) {
    if (version.recipients > 2 && !version.lists) --counters.broadcasts_full;
    version.lists = true;
  }
  begin_send(rank, step, &version, batch);
}

Recipient Owned::recipient(const int rank, const Step& step) const {
  return {step.rank, step.ticket, step.priority,
          host_->worth_of_sending(rank, step.rank).of_rank};
}

void Owned::begin_send(const int rank, const Step& step, Version* const version, Batch& batch) {
  ++at(rank).pending[step.space].steps;
  auto* const send = new Send{.owned = *this,
                              .rank = rank,
                              .space = step.space,
                              .name = {id_of(step.space), step.datum},
                              .bytes = sequence_.bytes(step.space, step.datum),
                              .version = version,
                              .list = {recipient(rank, step)}};
  if (version != nullptr) {
    version->has_sent = true;
    version->open = &send->list;
  }
  batch.add({.kernel = send_kernel_,
             .role = Role::protocol,
             .priority = step.priority,
             .tag = step.space,
             .operation = reinterpret_cast<std::uintptr_t>(send)});
  batch.access(step.copy, AccessKind::in);
}

bool Owned::run(Send& send) {
  if (send.version != nullptr) {
    send.version->open = nullptr;
    send.version->coming -= static_cast<std::uint32_t>(send.list.size());
    send.version->release();
  }
  send.is_inside = true;
  try {
    at(send.rank).broadcasts->send(send.name, std::move(send.list), no_data_.first(send.bytes),
                                   &sent, &send);
  } catch (...) {
    error_ = std::current_exception();
    send.has_ended = true;
  }
  send.is_inside = false;
  if (!send.has_ended) return false;
  const std::unique_ptr<Send> over(&send);
  end_step(send.rank, send.space);
  return true;
}

void Owned::sent(void* const context, const std::exception_ptr error) noexcept {
  auto& send = *static_cast<Send*>(context);
  if (error != nullptr) send.owned.error_ = error;
  send.has_ended = true;
  if (send.is_inside) return;
  const std::unique_ptr<Send> over(&send);
  send.owned.host_->complete(send.rank, *send.task);
  send.owned.end_step(send.rank, send.space);
}

// ---- copies that come ------------------------------------------------------------------------

void Owned::receive(const int rank, const Step& step, Batch& batch) {
  ++at(rank).pending[step.space].steps;
  auto* const receive = new Receive{.owned = *this,
                                    .rank = rank,
                                    .space = step.space,
                                    .name = {id_of(step.space), step.datum},
                                    .source = step.rank,
                                    .ticket = step.ticket,
                                    .bytes = sequence_.bytes(step.space, step.datum)};
  batch.add({.kernel = receive_kernel_,
             .role = Role::protocol,
             .by_library = true,
             .tag = step.space,
             .operation = reinterpret_cast<std::uintptr_t>(receive)});
  batch.access(step.copy, AccessKind::out);
}

bool Owned::run(Receive& receive) {
  receive.is_inside = true;
  try {
    at(receive.rank).broadcasts->expect(receive.name, receive.source, receive.ticket,
                                        receive.bytes, {&arrived, &passed_on, &receive});
  } catch (...) {
    error_ = std::current_exception();
    receive.has_arrived = receive.has_passed = true;
  }
  receive.is_inside = false;
  const bool has_arrived = receive.has_arrived;
  if (receive.has_passed) {
    const std::unique_ptr<Receive> over(&receive);
    end_step(receive.rank, receive.space);
  }
  return has_arrived;
}

void Owned::arrived(void* const context, Buffer* const buffer,
                    const std::exception_ptr error) noexcept {
  auto& receive = *static_cast<Receive*>(context);
  if (error != nullptr) receive.owned.error_ = error;
  if (buffer != nullptr) buffer->release();
  receive.owned.at(receive.rank).counters.bytes_received += receive.bytes;
  receive.has_arrived = true;
  if (!receive.is_inside) receive.owned.host_->complete(receive.rank, *receive.task);
}

void Owned::passed_on(void* const context) noexcept {
  auto& receive = *static_cast<Receive*>(context);
  receive.has_passed = true;
  if (receive.is_inside) return;
  const std::unique_ptr<Receive> over(&receive);
  receive.owned.end_step(receive.rank, receive.space);
}

bool Owned::call(const int, task::Task& task, const TaskPlan& plan) {
  if (plan.kernel == send_kernel_) {
    auto& send = *reinterpret_cast<Send*>(plan.operation);
    send.task = &task;
    return run(send);
  }
  auto& receive = *reinterpret_cast<Receive*>(plan.operation);
  receive.task = &task;
  return run(receive);
}

}  // namespace

std::unique_ptr<Program> make_owned_program(const OwnedSetup& setup) {
  return std::make_unique<Owned>(setup);
}

}  // namespace imbrex::simulate
