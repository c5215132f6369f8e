// SPDX-License-Identifier: BSD-3-Clause
// Offload constructs, on the host: it is the only device, so mapped variables are the program's
// own, and a target region is a call.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "omp/environment/machine.hpp"
#include "omp/region/share.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

namespace {

constexpr unsigned firstprivate = 0x0c;  // GOMP_MAP_FIRSTPRIVATE

// The arguments of a region, with copies of its firstprivate variables.
class Arguments {
 public:
  Arguments(const std::size_t count, void** const addresses, const std::size_t* const sizes,
            const unsigned short* const kinds)
      : addresses_(addresses, addresses + count) {
    for (std::size_t index = 0; index < count; ++index) {
      if ((kinds[index] & 0xff) != firstprivate || addresses_[index] == nullptr) continue;
      const std::size_t alignment = std::size_t{1} << (kinds[index] >> 8);
      auto& memory = copies_.emplace_back(sizes[index] + alignment);
      const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
      void* const place =
          reinterpret_cast<void*>((first + alignment - 1) / alignment * alignment);
      std::memcpy(place, addresses_[index], sizes[index]);
      addresses_[index] = place;
    }
  }
  [[nodiscard]] void** data() noexcept { return addresses_.data(); }

 private:
  std::vector<void*> addresses_;
  std::vector<std::vector<std::byte>> copies_;
};

// The value of thread_limit among the arguments of a region, 0 if there is none. The compiler
// passes the arguments beside the region's data, as in gomp-constants.h: the low bits of each
// number give the device and the kind; the value is in the high bits, or in the next number. 0 ends
// them.
int thread_limit_in(void** arguments) noexcept {
  constexpr std::uintptr_t device_mask = 0x7f, value_follows = 0x80, what_mask = 0xff00,
                           thread_limit = 0x200;
  if (arguments == nullptr) return 0;
  std::intptr_t limit = 0;
  while (*arguments != nullptr) {
    const auto word = reinterpret_cast<std::uintptr_t>(*arguments++);
    const std::intptr_t value = (word & value_follows) != 0
                                    ? reinterpret_cast<std::intptr_t>(*arguments++)
                                    : static_cast<std::intptr_t>(word) >> 16;
    if ((word & device_mask) == 0 && (word & what_mask) == thread_limit) limit = value;
  }
  return static_cast<int>(std::clamp<std::intptr_t>(limit, 0, INT32_MAX));
}

// A region belongs to no team, whatever the code around it belongs to. `thread_limit`: 0 for none.
void run_apart(const Function function, void* const data, const int thread_limit) {
  Team of_one;
  std::atomic<int> busy{1};
  of_one.busy = &busy;
  const auto prepare = [&of_one, thread_limit](Implicit& apart) {
    apart.team = &of_one;
    apart.variables = settings().initial;
    int& limit = apart.variables.thread_limit;
    if (thread_limit != 0) limit = std::min(limit, thread_limit);
    of_one.members = {{&apart}};
    const Seat seat = seat_of(current());
    if (seat.place >= 0) of_one.seats = {seat};
    apart.share = new Share;
  };
  if (const detail::BodyOps* const ops = detail::running_body().ops;
      ops == &implicit_body || ops == &explicit_body) {
    void* const closure = detail::create({.name = "target", .where = {}, .tied = true},
                                         implicit_body, sizeof(Implicit));
    auto& apart = *::new (closure) Implicit;
    prepare(apart);
    detail::enter(closure, nullptr, apart.entered);
    function(data);
    detail::end_scopes(nullptr, "the body of task");
    delete apart.share;
    const detail::Entered entered = apart.entered;
    detail::leave(entered);
    return;
  }
  Implicit apart;
  prepare(apart);
  Context* const before = std::exchange(initial().included, &apart);
  function(data);
  initial().included = before;
  delete apart.share;
}

// Copies a block of `volume`, in bytes along the last of the dimensions.
struct Side {
  std::byte* memory;
  const std::size_t* offsets;
  const std::size_t* dimensions;
};
void copy_block(const std::size_t element, const int dimensions, const std::size_t* const volume,
                Side to, Side from) {
  std::size_t to_slice = element;
  std::size_t from_slice = element;
  for (int inner = 1; inner < dimensions; ++inner) {
    to_slice *= to.dimensions[inner];
    from_slice *= from.dimensions[inner];
  }
  to.memory += to.offsets[0] * to_slice;
  from.memory += from.offsets[0] * from_slice;
  if (dimensions == 1) {
    std::memcpy(to.memory, from.memory, volume[0] * element);
    return;
  }
  for (std::size_t index = 0; index < volume[0]; ++index) {
    copy_block(element, dimensions - 1, volume + 1,
               {to.memory + index * to_slice, to.offsets + 1, to.dimensions + 1},
               {from.memory + index * from_slice, from.offsets + 1, from.dimensions + 1});
  }
}

void wait_before(void** const depend) {
  if (depend != nullptr && current().team->group != nullptr) wait_for_accesses({.gnu = depend});
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_target(int, Function function, const void*, std::size_t, void** addresses, std::size_t*,
                 unsigned char*) {
  run_apart(function, addresses, 0);
}

void GOMP_target_ext(int, Function function, std::size_t count, void** addresses,
                     std::size_t* sizes, unsigned short* kinds, unsigned, void** depend,
                     void** clauses) {
  wait_before(depend);
  Arguments arguments(count, addresses, sizes, kinds);
  run_apart(function, arguments.data(), thread_limit_in(clauses));
}

void GOMP_target_data(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {}
void GOMP_target_data_ext(int, std::size_t, void**, std::size_t*, unsigned short*) {}
void GOMP_target_end_data() {}
void GOMP_target_update(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {}
void GOMP_target_update_ext(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned,
                            void** depend) {
  wait_before(depend);
}
void GOMP_target_enter_exit_data(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned,
                                 void** depend) {
  wait_before(depend);
}

// Constructors of programs that carry code for devices call it.
void GOMP_offload_register(const void*, int, const void*) {}
void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {}
void GOMP_offload_unregister(const void*, int, const void*) {}
void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}

void* omp_target_alloc(std::size_t bytes, int) { return std::malloc(bytes); }
void omp_target_free(void* memory, int) { std::free(memory); }
int omp_target_is_present(const void*, int) { return 1; }
int omp_target_memcpy(void* to, const void* from, std::size_t bytes, std::size_t to_offset,
                      std::size_t from_offset, int, int) {
  std::memcpy(static_cast<std::byte*>(to) + to_offset,
              static_cast<const std::byte*>(from) + from_offset, bytes);
  return 0;
}
// If neither address is given, returns the possible number of dimensions.
int omp_target_memcpy_rect(void* to, const void* from, std::size_t element, int dimensions,
                           const std::size_t* volume, const std::size_t* to_offsets,
                           const std::size_t* from_offsets, const std::size_t* to_dimensions,
                           const std::size_t* from_dimensions, int, int) {
  if (to == nullptr && from == nullptr) return INT32_MAX;
  if (dimensions < 1) return EINVAL;
  copy_block(element, dimensions, volume,
             {static_cast<std::byte*>(to), to_offsets, to_dimensions},
             {static_cast<std::byte*>(const_cast<void*>(from)), from_offsets, from_dimensions});
  return 0;
}

int omp_target_associate_ptr(const void*, const void*, std::size_t, std::size_t, int) {
  return EINVAL;  // the host's memory has no other copy
}
int omp_target_disassociate_ptr(const void*, int) { return EINVAL; }

}
#pragma GCC visibility pop
