// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/block_channel.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "mpi/collectives/blocks/partial_collective.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/of_communicators.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::blocks {

namespace {

// For all communicators that have not been freed. Operations in flight keep their place.
OfCommunicators<Place>& places() {
  static auto& the_places = *new OfCommunicators<Place>;
  return the_places;
}

void require(const char* call, const int code) {
  if (code != MPI_SUCCESS) throw make_error(call, code, detail::describe_current_task());
}

}  // namespace

TagLayout TagLayout::of(const int tag_max) noexcept {
  const int bits = std::bit_width(static_cast<unsigned>(tag_max) + 1u) - 1;
  const int free = std::min(bits, 30) - kind_bits - 12;  // bits above the minimum, shared equally
  return {.part_bits = 6 + std::max(free, 0) / 2, .instance_bits = 6 + std::max(free, 0) / 2};
}

TagLayout layout_of(MPI_Comm comm) {
  void* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  return TagLayout::of(found != 0 ? *static_cast<const int*>(largest) : 32767);
}

Place::Place(MPI_Comm its_program)
    : program(its_program),
      of_program_(messages::communicator_of(its_program)),
      life_(of_program_ != nullptr ? of_program_->life() : 0) {}

Place::~Place() { free_duplicates(); }

// The life is read after the watcher: if another communicator has the object by now, it got its
// watcher after the change of life, which the load of the watcher has acquired.
const messages::Watcher* Place::watcher() const noexcept {
  if (!messages::Communicator::any_watched() || of_program_ == nullptr) return nullptr;
  const messages::Watcher* const it = of_program_->watcher();
  return it != nullptr && of_program_->life() == life_ ? it : nullptr;
}

void Place::free_duplicates() noexcept {
  if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
  if (self != MPI_COMM_NULL) PMPI_Comm_free(&self);
}

int Place::begin(detail::CollectiveState& state) {
  const std::lock_guard guard(lock_);
  const auto instance = static_cast<int>(next_ % static_cast<std::uint64_t>(tags.instances()));
  const auto [there, is_free] = open_.try_emplace(instance, &state);
  if (!is_free) {
    throw Error(fmt::format(
        "imbrex: {}: MPI's tags allow {} such collectives in flight on a communicator, and the "
        "oldest has {}: {}",
        state.call, tags.instances(), there->second != nullptr ? "not ended" : "failed",
        there->second != nullptr ? "wait for all() of earlier collectives"
                                 : "make another communicator"));
  }
  ++next_;
  return instance;
}

void Place::end(const int instance, const bool clean) noexcept {
  const std::lock_guard guard(lock_);
  if (clean) {
    open_.erase(instance);
  } else {
    open_[instance] = nullptr;
  }
}

bool Place::is_idle() noexcept {
  const std::lock_guard guard(lock_);
  return std::ranges::all_of(open_, [](const auto& one) { return one.second == nullptr; });
}

bool Place::give_up_held() noexcept {
  std::vector<detail::CollectiveState*> kept;
  {
    const std::lock_guard guard(lock_);
    for (const auto& [instance, state] : open_) {
      if (state == nullptr) continue;
      state->references.fetch_add(1, std::memory_order_relaxed);  // it has one, because it is open
      kept.push_back(state);
    }
  }
  bool given_up = false;
  for (detail::CollectiveState* const state : kept) {
    if (state->give_up("MPI_Finalize has been called")) given_up = true;
    state->drop_reference();
  }
  return given_up;
}

void Place::describe(std::vector<std::string>& lines) {
  const std::lock_guard guard(lock_);
  for (const auto& [instance, state] : open_) {
    if (state != nullptr) state->describe(lines);
  }
}

void Place::make(const char* const call) {
  bool is_first = false;
  {
    const std::lock_guard guard(lock_);
    is_first = !std::exchange(begun_, true);
  }
  if (is_first) duplicate(call);
  duplicated_.future().get();
}

void Place::duplicate(const char* const call) {
  const Call its_call{
      .name = call, .comm = program, .kind = mpi::Kind::collective, .throws = true};
  MPI_Comm duplicate = MPI_COMM_NULL;
  int code = carry_out(its_call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return PMPI_Comm_idup(program, &duplicate, request);
  });
  if (code == MPI_SUCCESS) {
    comm = duplicate;
    code = PMPI_Comm_dup(MPI_COMM_SELF, &self);
  }
  if (code != MPI_SUCCESS) {
    duplicated_.set_exception(
        std::make_exception_ptr(make_error(call, code, detail::describe_current_task())));
  } else {
    PMPI_Comm_set_name(comm, "imbrex partial collectives");
    // A part of a more urgent task may overtake another one: only equal tags keep their order.
    if (messages::Communicator* const it = messages::communicator_of(comm)) it->assert_no_any_tag();
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    duplicated_.set();
  }
}


std::shared_ptr<Place> place_of(const char* const call, MPI_Comm comm) {
  int code = MPI_SUCCESS;
  std::shared_ptr<Place> found = places().find_or(comm, code, [comm] {
    auto place = std::make_shared<Place>(comm);
    PMPI_Comm_rank(comm, &place->rank);
    PMPI_Comm_size(comm, &place->size);
    place->tags = layout_of(comm);
    return place;
  });
  require(call, code);
  return found;
}

std::vector<std::string> describe_open() {
  std::vector<std::string> lines;
  for (const std::shared_ptr<Place>& place : places().living()) place->describe(lines);
  return lines;
}

void close_places_or_abort() noexcept {
  const std::vector<std::shared_ptr<Place>> left = places().living();
  places().end();
  for (const std::shared_ptr<Place>& place : left) {
    if (place->give_up_held() && place->size > 1) {
      print("MPI_Finalize: parts of a collective were not sent, and other ranks may wait for them: "
            "all ranks are ended.");
      abort_all(MPI_COMM_WORLD, 1);
    }
    while (!place->is_idle()) {
      engine().poll();
      sched_yield();
    }
    place->free_duplicates();
  }
}

}  // namespace imbrex::mpi::blocks
