// SPDX-License-Identifier: BSD-3-Clause
// Blocking collectives that go block by block (IMBREX_PARTIAL). The calls find here whether that is
// for them; partial/decompose.cpp, which lies above, carries them out.
//
// All ranks must decide alike. So what decides is the same on all by MPI's own rules: the kind of
// the call, its communicator, the bytes of a block where all have the same, MPI_IN_PLACE of an
// all-to-all; and the option, which MPI_Init compares.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::decompose {

enum class Shape : std::uint8_t { alltoall, allgather, gather, scatter, other };

// One side of a collective, as its call names it. Pointers are valid during the call.
struct Side {
  const void* address = nullptr;
  MPI_Count count = 0;  // of each block, where `counts` is null
  MPI_Datatype type = MPI_DATATYPE_NULL;
  // Of each rank: how many elements, in int or in MPI_Count; where, in int or in MPI_Aint; of which
  // type, and then the place is in bytes. Null: all blocks are alike, one behind the other.
  const int* counts = nullptr;
  const MPI_Count* large_counts = nullptr;
  const int* places = nullptr;
  const MPI_Aint* large_places = nullptr;
  const MPI_Datatype* types = nullptr;

  [[nodiscard]] MPI_Count count_of(int rank) const noexcept {
    return counts != nullptr ? counts[rank] : large_counts != nullptr ? large_counts[rank] : count;
  }
  [[nodiscard]] MPI_Datatype type_of(int rank) const noexcept {
    return types != nullptr ? types[rank] : type;
  }
};

struct Asked {
  Shape shape = Shape::other;
  bool varies = false;  // its name ends in v or w: blocks need not have one size
  Side send;
  Side receive;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

// How large a block must be at least, in bytes; -1: nothing goes block by block. Written in
// MPI_Init; relaxed, as MPI orders its users' calls behind that.
inline std::atomic<std::int64_t> bytes_least{-1};
// Carries out what has been accepted. Null until bytes_least is not negative.
inline int (*carry_out)(const Call& call, const Asked& asked) = nullptr;

// Whether all ranks decide for it. REQUIRES: bytes_least is not negative.
[[nodiscard]] bool accepts(const Asked& asked) noexcept;

[[nodiscard]] consteval Shape shape_of(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  if (name == "Alltoall" || name == "Alltoallv" || name == "Alltoallw") return Shape::alltoall;
  if (name == "Allgather" || name == "Allgatherv") return Shape::allgather;
  if (name == "Gather" || name == "Gatherv") return Shape::gather;
  if (name == "Scatter" || name == "Scatterv") return Shape::scatter;
  return Shape::other;
}

[[nodiscard]] consteval bool varies(std::string_view name) {
  if (name.ends_with("_c")) name.remove_suffix(2);
  return name.ends_with('v') || name.ends_with('w');
}

// ---- from arguments ----------------------------------------------------------------------------

inline Side side(const void* address, MPI_Count count, MPI_Datatype type) {
  return {.address = address, .count = count, .type = type};
}
inline Side side(const void* address, const int* counts, const int* places, MPI_Datatype type) {
  return {.address = address, .type = type, .counts = counts, .places = places};
}
inline Side side(const void* address, const int* counts, const int* places,
                 const MPI_Datatype* types) {
  return {.address = address, .counts = counts, .places = places, .types = types};
}
inline Side side(const void* address, const MPI_Count* counts, const MPI_Aint* places,
                 MPI_Datatype type) {
  return {.address = address, .type = type, .large_counts = counts, .large_places = places};
}
inline Side side(const void* address, const MPI_Count* counts, const MPI_Aint* places,
                 const MPI_Datatype* types) {
  return {.address = address, .large_counts = counts, .large_places = places, .types = types};
}

// The arguments of each shape: the communicator is the last; a root stands before it.
template <Shape shape>
struct From {
  template <class A, class B, class C, class D, class E, class F>
  static Asked arguments(A a, B b, C c, D d, E e, F f, MPI_Comm comm) {
    return make(side(a, b, c), side(d, e, f), 0, comm);
  }
  template <class A, class B, class C, class D, class E, class F>
    requires(shape == Shape::gather || shape == Shape::scatter)
  static Asked arguments(A a, B b, C c, D d, E e, F f, int root, MPI_Comm comm) {
    return make(side(a, b, c), side(d, e, f), root, comm);
  }
  template <class A, class B, class C, class D, class E, class F, class G>
    requires(shape == Shape::allgather)
  static Asked arguments(A a, B b, C c, D d, E e, F f, G g, MPI_Comm comm) {
    return make(side(a, b, c), side(d, e, f, g), 0, comm);
  }
  template <class A, class B, class C, class D, class E, class F, class G>
    requires(shape == Shape::gather)
  static Asked arguments(A a, B b, C c, D d, E e, F f, G g, int root, MPI_Comm comm) {
    return make(side(a, b, c), side(d, e, f, g), root, comm);
  }
  template <class A, class B, class C, class D, class E, class F, class G>
    requires(shape == Shape::scatter)
  static Asked arguments(A a, B b, C c, D d, E e, F f, G g, int root, MPI_Comm comm) {
    return make(side(a, b, c, d), side(e, f, g), root, comm);
  }
  template <class A, class B, class C, class D, class E, class F, class G, class H>
  static Asked arguments(A a, B b, C c, D d, E e, F f, G g, H h, MPI_Comm comm) {
    return make(side(a, b, c, d), side(e, f, g, h), 0, comm);
  }

 private:
  static Asked make(const Side& send, const Side& receive, int root, MPI_Comm comm) {
    return {.shape = shape, .send = send, .receive = receive, .root = root, .comm = comm};
  }
};

// What the call returns, if it has gone block by block.
template <Shape shape, bool varies, class... Arguments>
[[nodiscard]] std::optional<int> attempt([[maybe_unused]] const Call& call,
                                         [[maybe_unused]] Arguments... arguments) {
  if constexpr (shape != Shape::other) {
    if (bytes_least.load(std::memory_order_relaxed) >= 0) [[unlikely]] {
      Asked asked = From<shape>::arguments(arguments...);
      asked.varies = varies;
      if (accepts(asked)) return carry_out(call, asked);
    }
  }
  return std::nullopt;
}

}  // namespace imbrex::mpi::decompose
