// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: phasers and accumulators.
#include "hcmpi/hc_phaser.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "c/places.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/accumulator.hpp"
#include "imbrex/mpi_phaser.hpp"

namespace imbrex::hcmpi {

Ref<hc_phaser> phaser_of(const char* const call, const void* const handle) {
  Ref<hc_phaser> found = Handles<hc_phaser>::all().find(handle);
  if (!found) {
    refuse(call, MPI_ERR_ARG,
           handle == nullptr ? "a null pointer is not a phaser"
                             : "this pointer is not a phaser: it was freed, or no call such as "
                               "PHASER_CREATE or HCMPI_PHASER_CREATE returned it");
  }
  return found;
}

PhaserMode mode_of(const char* const call, const int mode) {
  switch (mode) {
    case SINGLE_MODE: return PhaserMode::single;
    case SIGNAL_WAIT_MODE: return PhaserMode::signal_wait;
    case SIGNAL_ONLY_MODE: return PhaserMode::signal_only;
    case WAIT_ONLY_MODE: return PhaserMode::wait_only;
    default: break;
  }
  refuse(call, MPI_ERR_ARG,
         std::to_string(mode) + " is not a mode: valid: SINGLE_MODE, SIGNAL_WAIT_MODE, "
                                "SIGNAL_ONLY_MODE, WAIT_ONLY_MODE");
}

namespace {

// ---- reductions --------------------------------------------------------------------------------

template <std::size_t Bytes>
struct alignas(16) Value {
  std::byte bytes[Bytes];
};

// An operation of MPI on one value, predefined or of the program.
template <std::size_t Bytes>
struct ReduceLocal {
  MPI_Op op;
  MPI_Datatype type;
  Value<Bytes> operator()(const Value<Bytes>& a, const Value<Bytes>& b) const {
    Value<Bytes> result = b;
    if (MPI_Reduce_local(a.bytes, result.bytes, 1, type, op) != MPI_SUCCESS) {
      throw Error("imbrex: an accumulator's operation has failed: MPI_Reduce_local");
    }
    return result;
  }
};

template <std::size_t Bytes>
class ReductionOf final : public Reduction {
 public:
  ReductionOf(const Phaser& phaser, const ReduceLocal<Bytes>& reduce, const std::size_t bytes)
      : phaser_(phaser),
        bytes_(bytes),
        accumulator_(phaser, reduce, Value<Bytes>{}),
        results_(std::size_t{detail::ahead_of(detail::state_of(phaser))} + 2) {}

  void put(const void* const value) override {
    Value<Bytes> one{};
    std::memcpy(one.bytes, value, bytes_);
    accumulator_.put(one);
  }
  // Tasks in one phase share one result, and tasks in other phases write elsewhere: a task's result
  // stays until it goes on.
  void* get() override {
    detail::Standing by;
    const bool registered = detail::find_standing(detail::state_of(phaser_), by);
    const Value<Bytes> value = accumulator_.get();
    const std::lock_guard guard(lock_);
    Result& result = registered ? results_[by.waited % results_.size()] : last_;
    const std::uint64_t key = registered ? by.waited + 1 : 1;
    if (result.key != key || std::memcmp(&result.value, &value, sizeof value) != 0) {
      result = {key, value};
    }
    return result.value.bytes;
  }

 private:
  struct Result {
    std::uint64_t key = 0;  // one more than the phase; 0: no phase yet
    Value<Bytes> value;
  };
  const Phaser phaser_;
  const std::size_t bytes_;
  const Accumulator<Value<Bytes>> accumulator_;
  std::mutex lock_;  // guards the next two; this layer does not see base/guarded.hpp
  std::vector<Result> results_;
  Result last_;  // for tasks that are not registered
};

// The accumulators that the program has not freed, since accum_next() names none: few.
class Accumulators {
 public:
  static Accumulators& all() {
    static Accumulators& the_accumulators = *new Accumulators;  // never destroyed, as handles
    return the_accumulators;
  }
  void add(const Ref<hc_phaser>& accumulator) {
    const std::lock_guard guard(lock_);
    list_.push_back(accumulator);
  }
  void remove(const hc_phaser* const accumulator) {
    const std::lock_guard guard(lock_);
    std::erase_if(list_, [=](const auto& one) { return one.get() == accumulator; });
  }
  // The accumulators that the running task is registered on.
  [[nodiscard]] std::vector<Ref<hc_phaser>> of_task() {
    std::vector<Ref<hc_phaser>> mine;
    const std::shared_lock guard(lock_);
    for (const auto& one : list_) {
      if (one->phaser.is_registered()) mine.push_back(one);
    }
    return mine;
  }

 private:
  std::shared_mutex lock_;  // guards `list_`
  std::vector<Ref<hc_phaser>> list_;
};

// ---- making them -------------------------------------------------------------------------------

MpiPhaser make_fused(const PhaserMode mode, const hc_phaser_options& given,
                     const std::source_location& where) {
  MpiPhaserOptions options;
  options.ahead = given.ahead;
  if (given.name != nullptr) options.name = Name(std::string_view(given.name));
  options.fusion = given.fuzzy != 0 ? Fusion::fuzzy : Fusion::strict;
  if (given.key != nullptr) options.key = *given.key;
  options.ranks_may_leave = given.ranks_may_leave != 0;
  return MpiPhaser(given.comm != nullptr ? *given.comm : MPI_COMM_WORLD, mode, options, where);
}

// The options of a call that makes a phaser, with defaults for null.
const hc_phaser_options& options_of(const hc_phaser_options* const given) noexcept {
  static constexpr hc_phaser_options none{};
  return given == nullptr ? none : *given;
}

std::size_t bytes_of(const char* const call, const MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Aint true_lower = 0;
  MPI_Aint true_extent = 0;
  if (MPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS ||
      MPI_Type_get_true_extent(type, &true_lower, &true_extent) != MPI_SUCCESS) {
    refuse(call, MPI_ERR_TYPE, "this argument is not a datatype");
  }
  const MPI_Aint bytes = std::max(extent, true_extent);
  if (lower != 0 || true_lower != 0 || bytes <= 0 || bytes > 64) {
    refuse(call, MPI_ERR_TYPE,
           "a value of this datatype has " + std::to_string(bytes) + " bytes from offset " +
               std::to_string(std::min(lower, true_lower)) +
               " on: an accumulator takes 1 to 64 bytes from offset 0 on");
  }
  return static_cast<std::size_t>(bytes);
}

template <std::size_t Bytes>
std::unique_ptr<Reduction> reduce(const Phaser& phaser, const MPI_Op op, const MPI_Datatype type,
                                  const std::size_t bytes) {
  return std::make_unique<ReductionOf<Bytes>>(phaser, ReduceLocal<Bytes>{op, type}, bytes);
}

hc_phaser* make_accumulator(const MPI_Op op, const MPI_Datatype type,
                            const hc_phaser_options& options, const std::source_location& where) {
  constexpr const char* call = "HCMPI_ACCUM_CREATE";
  require_mpi(call);
  const std::size_t bytes = bytes_of(call, type);
  auto made = std::make_unique<hc_phaser>(make_fused(PhaserMode::signal_wait, options, where));
  made->reduction = bytes <= 16 ? reduce<16>(made->phaser, op, type, bytes)
                                : reduce<64>(made->phaser, op, type, bytes);
  hc_phaser* const handle = Handles<hc_phaser>::all().add(std::move(made));
  Accumulators::all().add(Handles<hc_phaser>::all().find(handle));
  return handle;
}

// ---- acting on them ----------------------------------------------------------------------------

// `one` acts on a phaser, `every` on all phasers of the task.
template <class One, class Every>
int act(const char* const call, hc_phaser* const handle, const One& one, const Every& every) {
  return guard(call, [&] {
    if (handle == nullptr) {
      every();
    } else {
      one(phaser_of(call, handle)->phaser);
    }
  });
}

}  // namespace

}  // namespace imbrex::hcmpi

using namespace imbrex::hcmpi;

#pragma GCC visibility push(default)
extern "C" {

hc_phaser* hc_phaser_create(const int mode, const char* const file, const int line) {
  hc_phaser* made = nullptr;
  (void)guard("PHASER_CREATE", [&] {
    const imbrex::Phaser local(mode_of("PHASER_CREATE", mode), {}, imbrex::c::place(file, line));
    made = Handles<hc_phaser>::all().add(std::make_unique<hc_phaser>(local));
  });
  return made;
}

hc_phaser* hcmpi_phaser_create(const int mode, const hc_phaser_options* const options,
                            const char* const file, const int line) {
  hc_phaser* made = nullptr;
  (void)guard("HCMPI_PHASER_CREATE", [&] {
    require_mpi("HCMPI_PHASER_CREATE");
    const auto fused = make_fused(mode_of("HCMPI_PHASER_CREATE", mode), options_of(options),
                                  imbrex::c::place(file, line));
    made = Handles<hc_phaser>::all().add(std::make_unique<hc_phaser>(fused));
  });
  return made;
}

hc_phaser* hcmpi_accum_create(const HCMPI_Op op, const HCMPI_Datatype type,
                           const hc_phaser_options* const options, const char* const file,
                           const int line) {
  hc_phaser* made = nullptr;
  (void)guard("HCMPI_ACCUM_CREATE", [&] {
    made = make_accumulator(op, type, options_of(options), imbrex::c::place(file, line));
  });
  return made;
}

int PHASER_FREE(hc_phaser** const handle) {
  return guard("PHASER_FREE", [&] {
    require(handle, "PHASER_FREE", "the address of the phaser");
    (void)phaser_of("PHASER_FREE", *handle);
    Accumulators::all().remove(*handle);
    (void)Handles<hc_phaser>::all().take(*handle);
    *handle = nullptr;
  });
}

int hc_next(void) {
  return guard("hc_next", [] { imbrex::Phaser::next_all(); });
}
int hc_next_single(void (*const f)(void*), void* const argument) {
  return guard("hc_next_single", [&] {
    require(reinterpret_cast<const void*>(f), "hc_next_single", "the function");
    imbrex::Phaser::next_all(imbrex::PhaserMode::single, [&] { f(argument); });
  });
}
int hc_signal(hc_phaser* const handle) {
  return act("hc_signal", handle, [](const imbrex::Phaser& one) { one.signal(); },
             [] { imbrex::Phaser::signal_all(); });
}
int hc_wait(hc_phaser* const handle) {
  return act("hc_wait", handle, [](const imbrex::Phaser& one) { one.wait(); },
             [] { imbrex::Phaser::wait_all(); });
}
int hc_drop(hc_phaser* const handle) {
  return act("hc_drop", handle, [](const imbrex::Phaser& one) { one.drop(); },
             [] { imbrex::Phaser::drop_all(); });
}

int accum_next(const void* const value) {
  return guard("accum_next", [&] {
    require(value, "accum_next", "the value");
    const auto mine = Accumulators::all().of_task();
    if (mine.empty()) {
      refuse("accum_next", MPI_ERR_OTHER,
             "this task is registered on no accumulator: spawn it with hc_clauses::phased, or call "
             "hc_next()");
    }
    for (const auto& one : mine) one->reduction->put(value);
    imbrex::Phaser::next_all();
  });
}
void* accum_get(hc_phaser* const accumulator) {
  void* value = nullptr;
  (void)guard("accum_get", [&] {
    const auto found = phaser_of("accum_get", accumulator);
    if (found->reduction == nullptr) {
      refuse("accum_get", MPI_ERR_ARG,
             "this phaser is not an accumulator: create it by HCMPI_ACCUM_CREATE");
    }
    value = found->reduction->get();
  });
  return value;
}

}  // extern "C"
#pragma GCC visibility pop
