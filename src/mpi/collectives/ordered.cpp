// SPDX-License-Identifier: BSD-3-Clause
// imbrex/mpi.h: scopes in which collectives start in one order on all ranks:
// imbrex::order_collectives(), begun and ended by functions of C.
#include <memory>

#include "c/guard.hpp"
#include "imbrex/mpi.h"
#include "mpi/collectives/order/order_scope.hpp"
#include "mpi/engine/guard_mpi.hpp"

namespace imbrex::mpi {

namespace {

using detail::OrderScope;

// `describe()` returns the scope.
template <class F>
int begin(F describe) noexcept {
  return guard_mpi([&] {
    auto scope = std::make_unique<OrderScope>(describe());
    order::open(*scope);
    static_cast<void>(scope.release());  // until end()
  });
}

int end() noexcept {
  return guard_mpi([] {
    OrderScope* const scope = order::innermost();
    if (scope == nullptr || !scope->is_of_c) {
      throw Error("imbrex: imbrex_collective_order_end() in a task without an open "
                  "imbrex_collective_order_begin(): it ends the last one of its task");
    }
    order::close(*scope);
    delete scope;
  });
}

}  // namespace

}  // namespace imbrex::mpi

using imbrex::detail::OrderScope;

#pragma GCC visibility push(default)
extern "C" {

int imbrex_collective_order_begin(const uint64_t key) {
  return imbrex::mpi::begin([&] { return OrderScope{.key = key, .is_of_c = true}; });
}

int imbrex_collective_order_begin_by_name(const char* const name) {
  return imbrex::mpi::begin([&] {
    imbrex::c::require(name, "the name of an order");
    return OrderScope{.key = imbrex::mpi::order::key_of(name), .is_of_c = true};
  });
}

int imbrex_collective_order_begin_as_spawned(const void* const object, const int count) {
  return imbrex::mpi::begin([&] {
    imbrex::c::require(object, "the object whose access orders collectives");
    return imbrex::mpi::order::by_access(object, 0, count, true);
  });
}

int imbrex_collective_order_end(void) { return imbrex::mpi::end(); }

}  // extern "C"
#pragma GCC visibility pop
