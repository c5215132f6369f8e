#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the functions of MPI that libimbrex_preload.so shows: jumps, in assembly language.

jumps.py FUNCTIONS PROCESSOR OUTPUT: FUNCTIONS has a name X in each line: the functions of MPI 3.1,
and after an empty line the functions of later versions, whose jumps stand between
imbrex_newer_begin and imbrex_newer_end. For MPI_X and PMPI_X there
is a jump to an address in a table, imbrex_targets. Each address is at first that of code which
calls imbrex_choose() with the number of the function, and then jumps to the result. No function of
MPI takes a number in a vector register, so that code keeps the other arguments' registers only.
"""
import pathlib
import sys

HEAD = """# SPDX-License-Identifier: BSD-3-Clause
# Made by jumps.py.
.section .note.GNU-stack,"",%progbits
"""
PROCESSORS = {
    "x86_64": {
        "jump": "  endbr64\n  jmp *imbrex_targets+{offset}(%rip)\n",
        "first": "  movl ${number}, %r11d\n  jmp imbrex_first\n",
        "common": """  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  movl %r11d, %edi
  call imbrex_choose
  movq %rax, %r11
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rbp
  .cfi_def_cfa %rsp, 8
  jmp *%r11
"""},
    "aarch64": {
        "jump": """  bti c
  adrp x16, imbrex_targets+{offset}
  add x16, x16, #:lo12:imbrex_targets+{offset}
  ldar x16, [x16]
  br x16
""",
        "first": "  mov w17, #{number}\n  b imbrex_first\n",
        "common": """  bti j
  stp x29, x30, [sp, #-96]!
  .cfi_def_cfa_offset 96
  .cfi_offset 29, -96
  .cfi_offset 30, -88
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  mov w0, w17
  bl imbrex_choose
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldp x29, x30, [sp], #96
  .cfi_restore 30
  .cfi_restore 29
  .cfi_def_cfa_offset 0
  br x16
"""},
}


def function(name, body, visible):
    scope = f".globl {name}\n" if visible else ""
    return (f"{scope}.type {name}, %function\n.p2align 4\n{name}:\n  .cfi_startproc\n{body}"
            f"  .cfi_endproc\n.size {name}, .-{name}\n")


def label(name):
    return f".globl {name}\n.hidden {name}\n{name}:\n"


def main():
    functions, processor, output = sys.argv[1:]
    old, newer = ([prefix + name for name in part.split() for prefix in ("MPI_", "PMPI_")]
                  for part in pathlib.Path(functions).read_text().split("\n\n"))
    names = old + newer
    words = PROCESSORS[processor]
    start = ".arch armv8.5-a\n" if processor == "aarch64" else ""
    text = [HEAD, start, ".text\n", function("imbrex_first", words["common"], False)]
    for number, name in enumerate(names):
        if number == len(old):
            text.append(label("imbrex_newer_begin"))
        text.append(function(name, words["jump"].format(offset=8 * number), True))
        text.append(function(f"first_{name}", words["first"].format(number=number), False))
    text += [label("imbrex_newer_end"), ".data\n.p2align 3\n", label("imbrex_targets")]
    text += [f"  .quad first_{name}\n" for name in names]
    text += [".section .rodata\n", label("imbrex_names")]
    text += [f'  .asciz "{name}"\n' for name in names]
    text.append("  .byte 0\n")
    pathlib.Path(output).write_text("".join(text))


main()
