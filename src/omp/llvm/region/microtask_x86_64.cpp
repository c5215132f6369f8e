// SPDX-License-Identifier: BSD-3-Clause
// The first four arguments go to registers beside the two addresses, the others onto the stack, the
// last one first. An odd number of them is padded, since the stack must be aligned to 16 bytes.
#include "omp/llvm/region/microtask.hpp"

asm(R"(
  .text
  .balign 16
  .globl imbrex_call_microtask
  .hidden imbrex_call_microtask
  .type imbrex_call_microtask, @function
imbrex_call_microtask:
  .cfi_startproc
  endbr64
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  mov %rbp, (%r9)
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %r10
  mov %r8, %r11
  cmp $4, %r10
  jle 2f
  test $1, %r10
  jz 1f
  sub $8, %rsp
1:
  push -8(%r11,%r10,8)
  dec %r10
  cmp $4, %r10
  jg 1b
2:
  mov (%r11), %rdx
  mov 8(%r11), %rcx
  mov 16(%r11), %r8
  mov 24(%r11), %r9
  mov %rax, %r10
  xor %eax, %eax
  call *%r10
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size imbrex_call_microtask, . - imbrex_call_microtask
)");
