// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations that LLVM's compilers call where they emit no instruction for them. Values of
// up to 8 bytes are exchanged by the processor; longer ones are changed under one lock, whose
// waiting tasks are suspended.
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "omp/calls/locks.hpp"
#include "omp/region/ident.hpp"

namespace imbrex::omp {

namespace {

__extension__ using Complex4 = __complex__ float;
__extension__ using Complex8 = __complex__ double;
__extension__ using Complex10 = __complex__ long double;

int lock = 0;  // of values that the processor does not exchange

template <std::size_t bytes>
struct WordOf;
template <>
struct WordOf<1> { using type = std::uint8_t; };
template <>
struct WordOf<2> { using type = std::uint16_t; };
template <>
struct WordOf<4> { using type = std::uint32_t; };
template <>
struct WordOf<8> { using type = std::uint64_t; };

template <class T>
T copied(const auto& bits) noexcept {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
struct Change {
  T before;
  T after;
};

// Replaces *address by operation(*address). seq_cst: the strongest clause that the compiler may
// have seen.
template <class T, class Operation>
Change<T> change(T* const address, const Operation operation) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
    using Word = typename WordOf<sizeof(T)>::type;
    auto* const word = reinterpret_cast<Word*>(address);
    Word seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    for (;;) {
      const T before = copied<T>(seen);
      const T after = operation(before);
      if (__atomic_compare_exchange_n(word, &seen, copied<Word>(after), true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
        return {before, after};
      }
    }
  } else {
    take(lock, "atomic");
    const T before = *address;
    const T after = operation(before);
    *address = after;
    put(lock);
    return {before, after};
  }
}

template <class T>
T read(T* const address) {
  if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
    using Word = typename WordOf<sizeof(T)>::type;
    return copied<T>(__atomic_load_n(reinterpret_cast<Word*>(address), __ATOMIC_SEQ_CST));
  } else {
    return change(address, [](const T value) { return value; }).before;
  }
}

template <class T>
T captured(const Change<T>& change, const int flag) noexcept {
  return flag != 0 ? change.after : change.before;
}

// For the compiler's own operations, on values of any size.
using Combine = void (*)(void* result, const void* left, const void* right);
template <class Word>
void combine(void* const address, void* const right, const Combine operation) {
  (void)change(static_cast<Word*>(address), [&](const Word left) {
    Word result;
    operation(&result, &left, right);
    return result;
  });
}
void combine_locked(void* const address, void* const right, const Combine operation) {
  take(lock, "atomic");
  operation(address, address, right);
  put(lock);
}

template <class Word>
bool exchange(Word* const address, Word& expected, const Word desired) noexcept {
  return __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

// `x` is the value, `y` the operand.
#define IMBREX_OMP_UPDATE(name, T, R, expression)                                          \
  void __kmpc_atomic_##name(const Ident*, int, T* address, R y) {                          \
    (void)change(address, [y](const T x) { return static_cast<T>(expression); });          \
  }
#define IMBREX_OMP_CAPTURE(name, T, expression)                                            \
  T __kmpc_atomic_##name(const Ident*, int, T* address, T y, int flag) {                   \
    return captured(                                                                       \
        change(address, [y](const T x) { return static_cast<T>(expression); }), flag);     \
  }
#define IMBREX_OMP_CAPTURE_INTO(name, T, expression)                                       \
  void __kmpc_atomic_##name(const Ident*, int, T* address, T y, T* into, int flag) {       \
    *into = captured(                                                                      \
        change(address, [y](const T x) { return static_cast<T>(expression); }), flag);     \
  }
#define IMBREX_OMP_BOTH(type, T, op, expression)      \
  IMBREX_OMP_UPDATE(type##_##op, T, T, expression)    \
  IMBREX_OMP_CAPTURE(type##_##op##_cpt, T, expression)
// With the operands in the other order, too.
#define IMBREX_OMP_REVERSED(type, T, op, sign)            \
  IMBREX_OMP_BOTH(type, T, op, x sign y)                  \
  IMBREX_OMP_UPDATE(type##_##op##_rev, T, T, y sign x)    \
  IMBREX_OMP_CAPTURE(type##_##op##_cpt_rev, T, y sign x)
#define IMBREX_OMP_MOVES(type, T)                                                        \
  T __kmpc_atomic_##type##_rd(const Ident*, int, T* address) { return read(address); }   \
  void __kmpc_atomic_##type##_wr(const Ident*, int, T* address, T y) {                   \
    (void)change(address, [y](const T) { return y; });                                   \
  }

#define IMBREX_OMP_SWAP(type, T)                                      \
  T __kmpc_atomic_##type##_swp(const Ident*, int, T* address, T y) {  \
    return change(address, [y](const T) { return y; }).before;        \
  }

#define IMBREX_OMP_INTEGER(type, T, U)                       \
  IMBREX_OMP_BOTH(type, T, add, x + y)                       \
  IMBREX_OMP_BOTH(type, T, mul, x * y)                       \
  IMBREX_OMP_BOTH(type, T, andb, x & y)                      \
  IMBREX_OMP_BOTH(type, T, orb, x | y)                       \
  IMBREX_OMP_BOTH(type, T, xor, x ^ y)                       \
  IMBREX_OMP_BOTH(type, T, neqv, x ^ y)                      \
  IMBREX_OMP_BOTH(type, T, eqv, x ^ ~y)                      \
  IMBREX_OMP_BOTH(type, T, andl, (x != 0) & (y != 0))        \
  IMBREX_OMP_BOTH(type, T, orl, (x != 0) | (y != 0))         \
  IMBREX_OMP_BOTH(type, T, max, x < y ? y : x)               \
  IMBREX_OMP_BOTH(type, T, min, y < x ? y : x)               \
  IMBREX_OMP_REVERSED(type, T, sub, -)                       \
  IMBREX_OMP_REVERSED(type, T, div, /)                       \
  IMBREX_OMP_REVERSED(type, T, shl, <<)                      \
  IMBREX_OMP_REVERSED(type, T, shr, >>)                      \
  IMBREX_OMP_UPDATE(type##_mul_float8, T, double, x * y)     \
  IMBREX_OMP_UPDATE(type##_div_float8, T, double, x / y)     \
  IMBREX_OMP_MOVES(type, T)                                  \
  IMBREX_OMP_SWAP(type, T)                                   \
  IMBREX_OMP_REVERSED(type##u, U, div, /)                    \
  IMBREX_OMP_REVERSED(type##u, U, shr, >>)

#define IMBREX_OMP_FLOAT(type, T)                \
  IMBREX_OMP_BOTH(type, T, add, x + y)           \
  IMBREX_OMP_BOTH(type, T, mul, x * y)           \
  IMBREX_OMP_BOTH(type, T, max, x < y ? y : x)   \
  IMBREX_OMP_BOTH(type, T, min, y < x ? y : x)   \
  IMBREX_OMP_REVERSED(type, T, sub, -)           \
  IMBREX_OMP_REVERSED(type, T, div, /)           \
  IMBREX_OMP_MOVES(type, T)                      \
  IMBREX_OMP_SWAP(type, T)

#define IMBREX_OMP_COMPLEX(type, T)              \
  IMBREX_OMP_BOTH(type, T, add, x + y)           \
  IMBREX_OMP_BOTH(type, T, mul, x * y)           \
  IMBREX_OMP_REVERSED(type, T, sub, -)           \
  IMBREX_OMP_REVERSED(type, T, div, /)           \
  IMBREX_OMP_MOVES(type, T)                      \
  IMBREX_OMP_SWAP(type, T)

IMBREX_OMP_INTEGER(fixed1, std::int8_t, std::uint8_t)
IMBREX_OMP_INTEGER(fixed2, std::int16_t, std::uint16_t)
IMBREX_OMP_INTEGER(fixed4, std::int32_t, std::uint32_t)
IMBREX_OMP_INTEGER(fixed8, std::int64_t, std::uint64_t)
IMBREX_OMP_FLOAT(float4, float)
IMBREX_OMP_FLOAT(float8, double)
IMBREX_OMP_FLOAT(float10, long double)
IMBREX_OMP_UPDATE(float4_add_float8, float, double, x + y)
IMBREX_OMP_UPDATE(float4_sub_float8, float, double, x - y)
IMBREX_OMP_UPDATE(float4_mul_float8, float, double, x * y)
IMBREX_OMP_UPDATE(float4_div_float8, float, double, x / y)
IMBREX_OMP_COMPLEX(cmplx8, Complex8)
IMBREX_OMP_COMPLEX(cmplx10, Complex10)

// A captured value of this type goes to memory.
#define IMBREX_OMP_COMPLEX4(op, sign)                                              \
  IMBREX_OMP_UPDATE(cmplx4_##op, Complex4, Complex4, x sign y)                     \
  IMBREX_OMP_UPDATE(cmplx4_##op##_cmplx8, Complex4, Complex8, Complex8(x) sign y)  \
  IMBREX_OMP_CAPTURE_INTO(cmplx4_##op##_cpt, Complex4, x sign y)
IMBREX_OMP_COMPLEX4(add, +)
IMBREX_OMP_COMPLEX4(sub, -)
IMBREX_OMP_COMPLEX4(mul, *)
IMBREX_OMP_COMPLEX4(div, /)
IMBREX_OMP_UPDATE(cmplx4_sub_rev, Complex4, Complex4, y - x)
IMBREX_OMP_UPDATE(cmplx4_div_rev, Complex4, Complex4, y / x)
IMBREX_OMP_CAPTURE_INTO(cmplx4_sub_cpt_rev, Complex4, y - x)
IMBREX_OMP_CAPTURE_INTO(cmplx4_div_cpt_rev, Complex4, y / x)
IMBREX_OMP_MOVES(cmplx4, Complex4)
void __kmpc_atomic_cmplx4_swp(const Ident*, int, Complex4* address, Complex4 y, Complex4* into) {
  *into = change(address, [y](const Complex4) { return y; }).before;
}

#define IMBREX_OMP_EXCHANGE(bytes, T)                                                            \
  bool __kmpc_atomic_bool_##bytes##_cas(const Ident*, int, T* address, T expected, T desired) {  \
    return exchange(address, expected, desired);                                                 \
  }                                                                                              \
  bool __kmpc_atomic_bool_##bytes##_cas_cpt(const Ident*, int, T* address, T expected,           \
                                            T desired, T* seen) {                                \
    if (exchange(address, expected, desired)) return true;                                       \
    *seen = expected;                                                                            \
    return false;                                                                                \
  }                                                                                              \
  T __kmpc_atomic_val_##bytes##_cas(const Ident*, int, T* address, T expected, T desired) {      \
    (void)exchange(address, expected, desired);                                                  \
    return expected;                                                                             \
  }                                                                                              \
  T __kmpc_atomic_val_##bytes##_cas_cpt(const Ident*, int, T* address, T expected, T desired,    \
                                        T* now) {                                                \
    *now = exchange(address, expected, desired) ? desired : expected;                            \
    return expected;                                                                             \
  }
IMBREX_OMP_EXCHANGE(1, std::int8_t)
IMBREX_OMP_EXCHANGE(2, std::int16_t)
IMBREX_OMP_EXCHANGE(4, std::int32_t)
IMBREX_OMP_EXCHANGE(8, std::int64_t)

#define IMBREX_OMP_COMBINE(bytes, call)                                                      \
  void __kmpc_atomic_##bytes(const Ident*, int, void* address, void* right, Combine operation) { \
    call(address, right, operation);                                                         \
  }
IMBREX_OMP_COMBINE(1, combine<std::uint8_t>)
IMBREX_OMP_COMBINE(2, combine<std::uint16_t>)
IMBREX_OMP_COMBINE(4, combine<std::uint32_t>)
IMBREX_OMP_COMBINE(8, combine<std::uint64_t>)
IMBREX_OMP_COMBINE(10, combine_locked)
IMBREX_OMP_COMBINE(16, combine_locked)
IMBREX_OMP_COMBINE(20, combine_locked)
IMBREX_OMP_COMBINE(32, combine_locked)
void __kmpc_atomic_start() { take_here(lock, tools::Mutex::atomic, "atomic"); }
void __kmpc_atomic_end() { put_here(lock, tools::Mutex::atomic); }

}
#pragma GCC visibility pop
