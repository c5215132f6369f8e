#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the faces of the OpenMP runtime: libraries that export the names of another runtime, and
jump to libimbrex_omp.so.

usage: export_symbols.py entries.h refused.cpp FACE.txt...
       export_symbols.py --face ARCHITECTURE FACE.txt FACE.cpp FACE.map

A FACE.txt lists symbols by version ([VERSION]). A line has one of these forms:

  name name=target ...  functions of the runtime; `target` is its name in the runtime's source
  name : reason         a function that ends the program, with this reason
  name := bytes value   a constant

The runtime defines each function under the name imbrex_omp_TARGET, so that no library in front of
it in the search order, such as a tool that wraps OpenMP's names, can come between a face and the
runtime. entries.h renames the functions in the runtime's source.
"""
import argparse
import collections

Symbol = collections.namedtuple("Symbol", "name version target reason data")

JUMPS = {
    "x86_64": "  endbr64\\n  jmp *{target}@GOTPCREL(%rip)\\n",
    "aarch64": "  hint #34\\n  adrp x16, :got:{target}\\n"
               "  ldr x16, [x16, :got_lo12:{target}]\\n  br x16\\n",
}
PREFIX = "imbrex_omp_"


def read(path):
    symbols, version = [], None
    for line in open(path, encoding="utf-8"):
        text = line.split("#")[0].strip()
        if text.startswith("["):
            version = text.strip("[]")
        elif " := " in text:
            name, value = text.split(" := ")
            symbols.append(Symbol(name, version, None, None, [int(word) for word in value.split()]))
        elif " : " in text:
            name, reason = text.split(" : ")
            symbols.append(Symbol(name, version, name, reason, None))
        else:
            for word in text.split():
                name, _, target = word.partition("=")
                symbols.append(Symbol(name, version, target or name, None, None))
    return symbols


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def entries(symbols):
    targets = sorted({symbol.target for symbol in symbols if symbol.target})
    return ("// Made by export_symbols.py.\n#pragma once\n" +
            "".join(f"#define {target} {PREFIX}{target}\n" for target in targets))


def refusals(symbols):
    text = '// Made by export_symbols.py.\n#include "omp/environment/fatal.hpp"\n\nextern "C" {\n'
    for name, reason in sorted({(symbol.name, symbol.reason)
                                for symbol in symbols if symbol.reason}):
        text += (f'[[gnu::visibility("default"), noreturn]] void {name}() {{\n'
                 f'  imbrex::omp::fatal("%s was called: {reason}", "{name}");\n}}\n')
    return text + "}\n"


def script(symbols):
    """The versions, none of which contains another, as in the original libraries."""
    versions = collections.defaultdict(list)
    for symbol in symbols:
        versions[symbol.version].append(symbol.name)
    text = ""
    for index, (version, names) in enumerate(versions.items()):
        text += f"{version} {{\n  global:\n" + "".join(f"    {name};\n" for name in names)
        text += "  local:\n    *;\n};\n" if index == 0 else "};\n"
    return text


def default_versions(symbols):
    """Name -> the version that a program gets which is linked with the face: VERSION, or the newest
    one of the list."""
    newest = {}
    for symbol in symbols:
        if newest.get(symbol.name) != "VERSION":
            newest[symbol.name] = symbol.version
    return newest


def face(symbols, architecture):
    """Assembler text in a C++ file, so that the build needs no other language."""
    default = default_versions(symbols)
    text = "// Made by export_symbols.py.\n"
    for index, symbol in enumerate(symbols):
        label = f"imbrex_face_{index}"
        at = "@@" if default[symbol.name] == symbol.version else "@"
        kind = "@object" if symbol.data else "@function"
        lines = [f".globl {label}", f".type {label}, {kind.replace('@', '%')}"]
        if symbol.data:
            size, value = symbol.data
            words = {4: ".long", 8: ".quad"}.get(size)
            body = f"  {words} {value}\\n" if words else f"  .zero {size}\\n"
            lines = [".section .rodata", f".balign {min(size, 16)}", *lines, f"{label}:"]
            tail = [f".size {label}, {size}", ".text"]
        else:
            body = JUMPS[architecture].format(target=PREFIX + symbol.target)
            lines = [".balign 16", *lines, f"{label}:", ".cfi_startproc"]
            tail = [".cfi_endproc", f".size {label}, . - {label}"]
        lines = "".join(f"{line}\\n" for line in lines) + body + "".join(
            f"{line}\\n" for line in tail)
        text += f'asm("{lines}.symver {label}, {symbol.name}{at}{symbol.version}\\n");\n'
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--face", metavar="ARCHITECTURE")
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    if arguments.face:
        source, cpp_file, map_file = arguments.paths
        symbols = read(source)
        write(cpp_file, face(symbols, arguments.face))
        write(map_file, script(symbols))
        return
    entries_file, refused_file, *sources = arguments.paths
    symbols = [symbol for source in sources for symbol in read(source)]
    write(entries_file, entries(symbols))
    write(refused_file, refusals(symbols))


main()
