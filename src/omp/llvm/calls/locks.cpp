// SPDX-License-Identifier: BSD-3-Clause
// Locks as LLVM's compilers call them. A nestable lock is a pointer, as in Fortran.
#include "omp/calls/locks.hpp"

#include <cstdint>

#include "omp/region/ident.hpp"

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void omp_init_nest_lock_(void* address);
void omp_destroy_nest_lock_(void* address);
void omp_set_nest_lock_(void* address);
void omp_unset_nest_lock_(void* address);
int omp_test_nest_lock_(void* address);

void __kmpc_init_lock(const Ident*, std::int32_t, int* lock) { init_here(*lock, 0); }
void __kmpc_init_lock_with_hint(const Ident*, std::int32_t, int* lock, std::uintptr_t hint) {
  init_here(*lock, static_cast<int>(hint));
}
void __kmpc_destroy_lock(const Ident*, std::int32_t, int* lock) { destroy_here(*lock); }
void __kmpc_set_lock(const Ident*, std::int32_t, int* lock) {
  take_here(*lock, tools::Mutex::lock, "lock");
}
void __kmpc_unset_lock(const Ident*, std::int32_t, int* lock) {
  put_here(*lock, tools::Mutex::lock);
}
int __kmpc_test_lock(const Ident*, std::int32_t, int* lock) {
  return try_take_here(*lock) ? 1 : 0;
}

// The calls end these functions, so that a tool hears of the program's place.
void __kmpc_init_nest_lock(const Ident*, std::int32_t, void* lock) { omp_init_nest_lock_(lock); }
void __kmpc_init_nest_lock_with_hint(const Ident*, std::int32_t, void* lock, std::uintptr_t) {
  omp_init_nest_lock_(lock);
}
void __kmpc_destroy_nest_lock(const Ident*, std::int32_t, void* lock) {
  omp_destroy_nest_lock_(lock);
}
void __kmpc_set_nest_lock(const Ident*, std::int32_t, void* lock) { omp_set_nest_lock_(lock); }
void __kmpc_unset_nest_lock(const Ident*, std::int32_t, void* lock) { omp_unset_nest_lock_(lock); }
int __kmpc_test_nest_lock(const Ident*, std::int32_t, void* lock) {
  return omp_test_nest_lock_(lock);
}

}
#pragma GCC visibility pop
