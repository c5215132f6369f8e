#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes what ships the calls of MPI to one thread, for every function of an MPI's mpi.h.

ship_calls.py <folder> <compiler and flags that find mpi.h>...: writes shipped_names.hpp, which
renames each PMPI_X in our sources, and shipped_calls.cpp, which defines each MPI_X weakly.
"""
import pathlib
import re
import subprocess
import sys

DECLARATION = re.compile(r"\b(int|double|MPI_\w+)\s+PMPI_(\w+)\s*\(([^;{}]*?)\)[^;(){}]*;")
# Life and death of MPI are world.cpp's; the clock is anyone's; an abort waits for nobody.
NOT_SHIPPED = {"Init", "Init_thread", "Finalize", "Abort", "Wtime", "Wtick", "Pcontrol"}
# Answered by world.cpp for the program's main thread.
DEFINED = {"Is_thread_main", "Query_thread"}
# They block; ship_blocking.hpp says how they are shipped.
BLOCKING = ["Recv", "Send", "Ssend", "Rsend", "Bsend", "Sendrecv", "Mrecv", "Probe", "Mprobe",
            "Wait", "Waitall", "Waitany", "Waitsome", "Recv_c", "Send_c", "Ssend_c", "Rsend_c",
            "Bsend_c", "Sendrecv_c", "Mrecv_c"]
HEAD = "// SPDX-License-Identifier: BSD-3-Clause\n// Made by ship_calls.py from mpi.h.\n"


def declarations(compiler):
    text = subprocess.run([*compiler, "-E", "-P", "-x", "c++", "-"], input="#include <mpi.h>\n",
                          capture_output=True, text=True, check=True).stdout
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    found = {name: (result, " ".join(parameters.split()))
             for result, name, parameters in DECLARATION.findall(text)}
    if len(found) < 300:
        sys.exit(f"ship_calls.py: only {len(found)} functions found in mpi.h")
    return found


def is_shipped(name, parameters):
    # Sums, and Fortran's conversions of handles, are macros or tables that need no thread.
    return (name not in NOT_SHIPPED and "..." not in parameters
            and not re.search(r"^Aint_|_(f2c|c2f|f082c|c2f08|f2f08|f082f)$", name))


def named(parameters):
    """The parameters of a declaration, with a name for each that has none."""
    parts = [part.strip() for part in parameters.split(",")]
    if parts in ([""], ["void"]):
        return []
    return [part + f" parameter_{place}" if re.fullmatch(r"(const )?\w+[ *]*", part) else part
            for place, part in enumerate(parts)]


def name_of(parameter):
    return re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", parameter).group(1)


def names_header(found):
    lines = [HEAD, "#pragma once\n", "#include <mpi.h>\n", '#include "progress/ship.hpp"',
             '#include "progress/ship_blocking.hpp"\n']
    for name, (_, parameters) in sorted(found.items()):
        if is_shipped(name, parameters):
            kind = "Blocking" if name in BLOCKING else "Shipped"
            lines.append(f"#define PMPI_{name} "
                         f"(::imbrex::mpi::progress::{kind}<PMPI_{name}>::call)")
    return "\n".join(lines) + "\n"


def calls_source(found):
    lines = [HEAD, '#include "shipped_names.hpp"\n',
             "#define IMBREX_WEAK extern \"C\" [[gnu::weak, gnu::visibility(\"default\")]]\n"]
    for name, (result, parameters) in sorted(found.items()):
        if is_shipped(name, parameters) and name not in DEFINED:
            every = named(parameters)
            lines.append(f"IMBREX_WEAK {result} MPI_{name}({', '.join(every)}) {{\n"
                         f"  return PMPI_{name}({', '.join(map(name_of, every))});\n}}")
    return "\n".join(lines) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    found = declarations(sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shipped_names.hpp").write_text(names_header(found))
    (folder / "shipped_calls.cpp").write_text(calls_source(found))


main()
