// SPDX-License-Identifier: BSD-3-Clause
// How the values of one type travel from rank to rank: the table of functions that
// detail/distributed/spaces.hpp declares. Included by future_space.hpp; knows no MPI.
#pragma once

#include "imbrex/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "imbrex/detail/distributed/spaces.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/serialise.hpp"

namespace imbrex::detail {

template <class T>
struct SpaceFutureOf : SpaceFuture {
  Slot<T> slot;
};

template <class T>
struct ValueOpsOf {
  static constexpr bool as_it_is = saved_as_it_is<T>;
  using State = SpaceFutureOf<T>;

  static SpaceFuture* make() { return new State; }
  static void destroy(SpaceFuture& future) noexcept {
    auto& state = static_cast<State&>(future);
    if (state.built) destroy_object(state.slot.value);
    delete &state;
  }
  static std::span<std::byte> room(SpaceFuture& future, const std::size_t bytes,
                                   std::vector<std::byte>& scratch) {
    auto& state = static_cast<State&>(future);
    if constexpr (as_it_is) {
      return {reinterpret_cast<std::byte*>(&state.slot.value), bytes};
    } else if constexpr (flat<T>) {
      using E = typename T::value_type;
      if (bytes % sizeof(E) != 0) throw Error("imbrex: a value from another rank does not have "
                                              "whole elements: the ranks use different types");
      ::new (static_cast<void*>(&state.slot.value)) T(bytes / sizeof(E), E());
      state.built = true;
      return std::as_writable_bytes(std::span(state.slot.value.data(), state.slot.value.size()));
    } else {
      scratch.resize(bytes);
      return scratch;
    }
  }
  static void landed(SpaceFuture& future, [[maybe_unused]] const std::span<const std::byte> bytes) {
    auto& state = static_cast<State&>(future);
    if constexpr (!as_it_is && !flat<T>) {
      ::new (static_cast<void*>(&state.slot.value)) T();
      state.built = true;
      Loader loader(bytes);
      loader(state.slot.value);
      if (loader.left() != 0) {
        throw Error("imbrex: a value from another rank has bytes left: its load() reads less than "
                    "its save() has written");
      }
    }
    state.built = true;
  }
  static std::span<const std::byte> view(const SpaceFuture& future,
                                         std::vector<std::byte>& scratch) {
    const auto& state = static_cast<const State&>(future);
    if constexpr (as_it_is) {
      return std::as_bytes(std::span(&state.slot.value, 1));
    } else if constexpr (flat<T>) {
      return std::as_bytes(std::span(state.slot.value.data(), state.slot.value.size()));
    } else {
      scratch.clear();
      Saver saver(scratch);
      saver(state.slot.value);
      return scratch;
    }
  }
  // Names T as the compiler prints it, because a program may be compiled without typeid().
  [[nodiscard]] static const char* type_text() noexcept { return __PRETTY_FUNCTION__; }
  [[nodiscard]] static std::uint64_t type() noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u ^ sizeof(T);  // FNV-1a
    for (const char c : std::string_view(type_text())) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash;
  }
  [[nodiscard]] static const ValueOps& ops() {
    static const ValueOps all{type(), type_text(), as_it_is ? sizeof(T) : ValueOps::varying,
                              make,   destroy,          room,
                              landed, view};
    return all;
  }
};

}  // namespace imbrex::detail
