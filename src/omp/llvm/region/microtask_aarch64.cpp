// SPDX-License-Identifier: BSD-3-Clause
// The first six arguments go to registers beside the two addresses, the others onto the stack,
// which stays aligned to 16 bytes.
#include "omp/llvm/region/microtask.hpp"

asm(R"(
  .text
  .balign 16
  .globl imbrex_call_microtask
  .hidden imbrex_call_microtask
  .type imbrex_call_microtask, %function
imbrex_call_microtask:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-16]!
  .cfi_def_cfa_offset 16
  .cfi_offset 29, -16
  .cfi_offset 30, -8
  mov x29, sp
  .cfi_def_cfa_register 29
  str x29, [x5]
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x9, x4
  subs x10, x3, #6
  b.le 2f
  add x11, x10, #1
  and x11, x11, #-2
  sub sp, sp, x11, lsl #3
  mov x11, #0
1:
  add x12, x11, #6
  ldr x13, [x9, x12, lsl #3]
  str x13, [sp, x11, lsl #3]
  add x11, x11, #1
  cmp x11, x10
  b.lt 1b
2:
  ldp x2, x3, [x9]
  ldp x4, x5, [x9, #16]
  ldp x6, x7, [x9, #32]
  blr x8
  mov sp, x29
  .cfi_def_cfa_register 31
  ldp x29, x30, [sp], #16
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size imbrex_call_microtask, . - imbrex_call_microtask
)");
