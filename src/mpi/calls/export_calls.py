#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the MPI functions that programs see, for every function of an MPI's mpi.h.

export_calls.py <folder> <compiler and flags that find mpi.h>...: writes

  own_names.hpp         for our sources: PMPI_X there is the next definition of MPI_X, by the thread
                        that may call it (next.hpp, ship.hpp); and our MPI_X is imbrex_MPI_X
  default_calls.cpp     weakly, imbrex_MPI_X for what our sources do not define
  exported_calls.cpp    MPI_X and PMPI_X, which lead there
"""
import pathlib
import re
import subprocess
import sys

DECLARATION = re.compile(r"\b(int|double|MPI_\w+)\s+PMPI_(\w+)\s*\(([^;{}]*?)\)[^;(){}]*;")
# Life and death of MPI: world.cpp says who makes these calls.
LIFE = {"Init", "Init_thread", "Finalize"}
# The clock is anyone's; an abort waits for nobody.
NOT_OURS = {"Abort", "Wtime", "Wtick", "Pcontrol"}
# They block; ship_blocking.hpp says how they are shipped.
BLOCKING = ["Recv", "Send", "Ssend", "Rsend", "Bsend", "Sendrecv", "Mrecv", "Probe", "Mprobe",
            "Wait", "Waitall", "Waitany", "Waitsome", "Recv_c", "Send_c", "Ssend_c", "Rsend_c",
            "Bsend_c", "Sendrecv_c", "Mrecv_c"]
# What tells sends.hpp that the calling rank sends: a pattern of names (without _c), the call, and
# whether it comes before or after MPI's. {3} is the fourth argument, {comm} the one of that type.
SENDS = [
    (r"I?[sbr]?send", "message({3})", "before"),
    (r"I?sendrecv(_replace)?", "message({3})", "before"),
    (r"[sbr]?send_init|Psend_init", "made(code, {request})", "after"),
    (r"Start", "start(1, {0})", "before"),
    (r"Startall", "start({0}, {1})", "before"),
    (r"Pready(_range|_list)?", "part()", "before"),
    (r"Request_free", "freed({0})", "before"),
    (r"I?(bcast|scatterv?)", "from_root({root}, {comm})", "before"),
    (r"I?(gatherv?|reduce)", "to_root({root}, {comm})", "before"),
    (r"I?(neighbor_)?(allgatherv?|alltoall[vw]?)|I?(allreduce|reduce_scatter(_block)?|scan|exscan)",
     "collective()", "before"),
]
HEAD = "// SPDX-License-Identifier: BSD-3-Clause\n// Made by export_calls.py from mpi.h.\n"


def declarations(compiler):
    text = subprocess.run([*compiler, "-E", "-P", "-x", "c++", "-"], input="#include <mpi.h>\n",
                          capture_output=True, text=True, check=True).stdout
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    found = {name: (result, " ".join(parameters.split()))
             for result, name, parameters in DECLARATION.findall(text)}
    if len(found) < 300:
        sys.exit(f"export_calls.py: only {len(found)} functions found in mpi.h")
    return found


def is_ours(name, parameters):
    # Sums, and Fortran's conversions of handles, are macros or tables that need no thread.
    return (name not in NOT_OURS and "..." not in parameters
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


def notice(name, every):
    """What tells of a send before and after the call, if it is one; `every` as named() gives it."""
    plain = re.sub(r"_c$", "", name)
    for pattern, call, when in SENDS:
        if not re.fullmatch(pattern, plain, re.IGNORECASE):
            continue
        names = [name_of(parameter) for parameter in every]
        of_kind = {"comm": r"MPI_Comm\b", "request": r"MPI_Request\b", "root": r"int root\b"}
        found = {kind: names[i] for kind, form in of_kind.items()
                 for i, parameter in enumerate(every) if re.match(form, parameter)}
        told = f"sends::{call.format(*names, **found)}"
        return (told, "") if when == "before" else ("", told)
    return "", ""


def own_names(found):
    lines = [HEAD, "#pragma once\n", "#include <mpi.h>\n", '#include "mpi/below/ship.hpp"',
             '#include "mpi/below/ship_blocking.hpp"\n', "#pragma GCC diagnostic push",
             '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"']
    lines += [f'extern "C" decltype(PMPI_{name}) imbrex_MPI_{name};' for name in sorted(found)]
    lines += ["#pragma GCC diagnostic pop\n", "#ifndef IMBREX_PROGRAMS_NAMES"]
    for name in sorted(found):
        kind = "Passed" if name in LIFE else "Blocking" if name in BLOCKING else "Shipped"
        lines += [f"#define PMPI_{name} (::imbrex::mpi::progress::{kind}<PMPI_{name}>::call)",
                  f"#define MPI_{name} imbrex_MPI_{name}"]
    return "\n".join([*lines, "#endif"]) + "\n"


def default_calls(found):
    lines = [HEAD, '#include "own_names.hpp"\n']
    for name, (result, parameters) in sorted(found.items()):
        if name not in LIFE:
            every = named(parameters)
            lines.append(f'extern "C" [[gnu::weak]] {result} MPI_{name}({", ".join(every)}) {{\n'
                         f"  return PMPI_{name}({', '.join(map(name_of, every))});\n}}")
    return "\n".join(lines) + "\n"


def exported_calls(found):
    lines = [HEAD, '#include "mpi/below/next.hpp"', '#include "mpi/calls/p2p/sends.hpp"\n',
             '#define IMBREX_EXPORT extern "C" [[gnu::visibility("default")]]',
             "using namespace imbrex::mpi;\n"]
    for name, (result, parameters) in sorted(found.items()):
        every = named(parameters)
        taken, given = ", ".join(every), ", ".join(map(name_of, every))
        passes, real = "passes_through", "passes_through || depth_below != 0"
        if name in LIFE:
            passes, real = "false", "depth_below != 0"
        ours = f"  return imbrex_MPI_{name}({given});\n}}"
        before, after = notice(name, every)
        if before:
            ours = f"  if (sends::watched) [[unlikely]] {before};\n{ours}"
        if after:
            ours = (f"  const int code = imbrex_MPI_{name}({given});\n"
                    f"  if (sends::watched) [[unlikely]] {after};\n  return code;\n}}")
        lines.append(f"IMBREX_EXPORT {result} MPI_{name}({taken}) {{\n"
                     f"  if ({passes}) return next<PMPI_{name}>({given});\n{ours}\n"
                     f"IMBREX_EXPORT {result} PMPI_{name}({taken}) {{\n"
                     f"  if ({real}) return real<PMPI_{name}>({given});\n{ours}")
    lines.append("\nvoid imbrex::mpi::find_all() noexcept {")
    for name in sorted(found):
        kind = f"decltype(&PMPI_{name})"
        lines.append(f'  next<PMPI_{name}> = reinterpret_cast<{kind}>('
                     f'find_next("MPI_{name}", "PMPI_{name}"));\n'
                     f'  real<PMPI_{name}> = reinterpret_cast<{kind}>('
                     f'find_next("PMPI_{name}", "MPI_{name}"));')
    lines.append("}\n[[gnu::constructor]] static void find_early() { find_all(); }")
    return "\n".join(lines) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    found = {name: it for name, it in declarations(sys.argv[2:]).items() if is_ours(name, it[1])}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own_names.hpp").write_text(own_names(found))
    (folder / "default_calls.cpp").write_text(default_calls(found))
    (folder / "exported_calls.cpp").write_text(exported_calls(found))


main()
