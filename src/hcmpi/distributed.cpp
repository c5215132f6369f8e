// SPDX-License-Identifier: BSD-3-Clause
#include "hcmpi/distributed.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hcmpi/ddf.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/future_space.hpp"

namespace imbrex::hcmpi {

namespace {

constexpr std::size_t unknown = detail::ValueOps::varying;

int ranks() {
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}
int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// ---- what is known of guids --------------------------------------------------------------------

struct Known {
  int home;
  std::size_t bytes;         // or `unknown`: another rank takes this rank for the home
  hc_ddf* handle = nullptr;  // or null: freed, or never made
};

// Thread safety: any thread. Known values stay: values are asked for without their handles.
class Guids {
 public:
  [[nodiscard]] static Guids& all() {  // never destroyed: as Handles
    static Guids& the_guids = *new Guids;
    return the_guids;
  }
  // A question about a guid without a handle here is a message for this rank.
  [[nodiscard]] int home_of(const std::uint64_t guid) {
    Part& part = part_of(guid);
    const std::lock_guard guard(part.lock);
    return part.guids.try_emplace(guid, Known{rank_here(), unknown}).first->second.home;
  }
  [[nodiscard]] std::size_t size_of(const std::uint64_t guid) {
    Part& part = part_of(guid);
    const std::lock_guard guard(part.lock);
    const auto found = part.guids.find(guid);
    return found == part.guids.end() ? unknown : found->second.bytes;
  }
  [[nodiscard]] hc_ddf* handle_of(const char* const call, const std::uint64_t guid, const int home,
                                  const std::size_t bytes) {
    Part& part = part_of(guid);
    const std::lock_guard guard(part.lock);
    Known& known = part.guids.try_emplace(guid, Known{home, bytes}).first->second;
    check(call, guid, known, home, bytes);
    known.bytes = bytes;
    const Ref<hc_ddf> there = Ddfs::all().find(known.handle);
    // A freed handle may already be reused for another guid.
    if (there && there->kind == hc_ddf::Kind::distributed && there->distributed->guid() == guid) {
      return there.get();
    }
    auto made = std::make_unique<hc_ddf>(hc_ddf::Kind::distributed);
    made->distributed = std::make_unique<Distributed>(guid, bytes);
    return known.handle = Ddfs::all().add(std::move(made));
  }
  void forget(const hc_ddf& handle) {
    const std::uint64_t guid = handle.distributed->guid();
    Part& part = part_of(guid);
    const std::lock_guard guard(part.lock);
    Known& known = part.guids.at(guid);
    if (known.handle == &handle) known.handle = nullptr;
  }

 private:
  static void check(const char* const call, const std::uint64_t guid, const Known& known,
                    const int home, const std::size_t bytes) {
    const std::string of_guid = " of guid " + std::to_string(guid) + " is ";
    if (known.home != home) {
      refuse(call, MPI_ERR_ARG,
             "DDF_HOME" + of_guid + std::to_string(home) + " on rank " +
                 std::to_string(rank_here()) + ", and was " + std::to_string(known.home) +
                 (known.bytes == unknown ? " on a rank that has sent a message to this rank"
                                         : " before") +
                 ": DDF_HOME must be the same on all ranks at all times");
    }
    if (known.bytes != bytes && known.bytes != unknown) {
      refuse(call, MPI_ERR_ARG,
             "DDF_SIZE" + of_guid + std::to_string(bytes) + ", and was " +
                 std::to_string(known.bytes) + " before: DDF_SIZE must be the same at all times");
    }
  }

  struct alignas(64) Part {
    std::mutex lock;  // guards `guids`
    std::unordered_map<std::uint64_t, Known> guids;
  };
  [[nodiscard]] Part& part_of(const std::uint64_t guid) noexcept {
    return parts_[(guid * 0x9E3779B97F4A7C15u) >> 60];
  }
  std::array<Part, 16> parts_;
};

// ---- the space ---------------------------------------------------------------------------------

// A number that no other space has: others have the rank that has drawn them in the upper 32 bits.
// Spaces must not use the highest 8 bits.
constexpr std::uint64_t number_of_space = std::uint64_t{0xffffff} << 32;

// Written by HCMPI_Init. Never destroyed: as Handles.
std::atomic<detail::Space*> opened{nullptr};

detail::Space& space(const char* const call) {
  require_mpi(call);
  detail::Space* const there = opened.load(std::memory_order_acquire);
  if (there == nullptr) {
    refuse(call, MPI_ERR_OTHER,
           "distributed futures need HCMPI_Init, where MPI_Init was called, and active messages");
  }
  return *there;
}
// The typed form of the space.
struct Futures : FutureSpace<Distributed::Bytes> {
  explicit Futures(detail::Space& there) noexcept : FutureSpace(there) {}
};
const Futures& futures(const char* const call) {
  detail::Space& there = space(call);
  static const auto& typed = *new Futures(there);
  return typed;
}

std::string name_of(const std::uint64_t guid) {
  return "the distributed future of guid " + std::to_string(guid);
}

}  // namespace

// ---- handles -----------------------------------------------------------------------------------

Future<Distributed::Bytes> Distributed::future() {
  if (const std::lock_guard guard(lock_); value_.valid()) return value_;
  // Not under the lock, because it may suspend.
  Future<Bytes> value = futures("a use of a DDF_HANDLE")[guid_];
  const std::lock_guard guard(lock_);
  if (!value_.valid()) value_ = value;
  return value;
}

void Distributed::put(const void* const data, const std::source_location& where) const {
  if (bytes_ != 0) require(data, "DDF_PUT", "the address of the value");
  const auto* const first = static_cast<const std::byte*>(data);
  futures("DDF_PUT").set(guid_, Bytes(first, first + bytes_), where);
}

void* Distributed::get() {
  const Future<Bytes> value = future();
  if (!value.ready()) {
    refuse("DDF_GET", MPI_ERR_OTHER,
           name_of(guid_) + " has not arrived on this rank: no value was put, or the value is in "
                            "flight. Let the task await the future first");
  }
  const Bytes& bytes = value.get();
  if (bytes.size() != bytes_) {  // put on another rank, before this rank knew its length
    refuse("DDF_GET", MPI_ERR_ARG,
           name_of(guid_) + " has " + std::to_string(bytes.size()) + " bytes, and DDF_SIZE is " +
               std::to_string(bytes_) + " on rank " + std::to_string(rank_here()) +
               ": DDF_SIZE must be the same on all ranks");
  }
  return const_cast<std::byte*>(bytes.data());
}

void forget_handle(const hc_ddf& handle) { Guids::all().forget(handle); }

void open_distributed() try {
  std::vector<int> all(static_cast<std::size_t>(ranks()));
  std::iota(all.begin(), all.end(), 0);
  opened.store(&detail::open_space(
                   {number_of_space, std::move(all),
                    &detail::ValueOpsOf<Distributed::Bytes>::ops(),
                    [](const std::uint64_t guid) { return Guids::all().home_of(guid); },
                    [](const std::uint64_t guid) { return Guids::all().size_of(guid); },
                    {}, "DDF_HANDLE", false}),
               std::memory_order_release);
} catch (const Error&) {  // there are no messages: DDF_HANDLE reports it
}

}  // namespace imbrex::hcmpi

#pragma GCC visibility push(default)
extern "C" DDF_t* hc_ddf_handle(const uint64_t guid, const int home, const size_t bytes) {
  using namespace imbrex::hcmpi;
  DDF_t* handle = nullptr;
  (void)guard("DDF_HANDLE", [&] {
    imbrex::detail::Space& all = space("DDF_HANDLE");
    if (home < 0 || home >= ranks()) {
      refuse("DDF_HANDLE", MPI_ERR_ARG,
             "DDF_HOME of guid " + std::to_string(guid) + " is " + std::to_string(home) +
                 ", which is not one of the " + std::to_string(ranks()) + " ranks");
    }
    handle = Guids::all().handle_of("DDF_HANDLE", guid, home, bytes);
    all.expect();
  });
  return handle;
}
#pragma GCC visibility pop
