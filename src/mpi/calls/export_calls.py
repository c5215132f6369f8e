#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the MPI functions that programs see, for every function of an MPI's mpi.h.

export_calls.py <folder> <compiler and flags that find mpi.h>...: writes

  own_names.hpp         for our sources: PMPI_X there is the next definition of MPI_X, by the thread
                        that may call it (next.hpp, ship.hpp); and our MPI_X is imbrex_MPI_X, which
                        they define by IMBREX_FUNCTION(X)
  default_calls.cpp     weakly, imbrex_MPI_X for what our sources do not define
  observed_calls.cpp    imbrex_observed_MPI_X, which reports the call to observers and leads there,
                        for the calls that an observer may watch (observed.py)
  exported_calls.cpp    MPI_X and PMPI_X, which lead there, past imbrex_observed_MPI_X if there is
                        no observer; and for each a function that ends the program, which stands in
                        where the MPI behind this library lacks X

Where our sources call MPI_X they call imbrex_observed_MPI_X, if there is such.
"""
import pathlib
import re
import subprocess
import sys

import observed

DECLARATION = re.compile(r"\b(int|double|MPI_\w+)\s+PMPI_(\w+)\s*\(([^;{}]*?)\)[^;(){}]*;")
# Life and death of MPI: init_and_finalize.cpp says who makes these calls; an abort waits for
# nobody.
LIFE = {"Init", "Init_thread", "Finalize", "Abort"}
# The clock is anyone's.
NOT_OURS = {"Wtime", "Wtick", "Pcontrol"}
# They block; ship_blocking.hpp says how they are shipped.
BLOCKING = ["Recv", "Send", "Ssend", "Rsend", "Bsend", "Sendrecv", "Mrecv", "Probe", "Mprobe",
            "Wait", "Waitall", "Waitany", "Waitsome", "Recv_c", "Send_c", "Ssend_c", "Rsend_c",
            "Bsend_c", "Sendrecv_c", "Mrecv_c"]
# MPI calls functions of the program's in them: ship.hpp. Error handlers are not meant:
# mpi_errors.cpp decides where they run.
REDUCTIONS = ["Iallreduce", "Ireduce", "Iscan", "Iexscan", "Ireduce_scatter",
              "Ireduce_scatter_block", "Reduce_local"]
CALLING_BACK = [*REDUCTIONS, *(name + "_c" for name in REDUCTIONS), "Start", "Startall", "Cancel",
                "Test", "Testall", "Testany", "Testsome", "Request_get_status", "Request_free",
                "Grequest_complete", "Comm_dup", "Comm_idup", "Comm_dup_with_info",
                "Comm_idup_with_info", "Comm_free", "Comm_disconnect", "Comm_set_attr",
                "Comm_delete_attr", "Attr_put", "Attr_delete", "Type_dup", "Type_free",
                "Type_set_attr", "Type_delete_attr", "Win_free", "Win_set_attr", "Win_delete_attr"]
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


def observed_body(name, parameters):
    every = named(parameters)
    return observed.observed(name, every, [name_of(parameter) for parameter in every])


def own_names(found):
    lines = [HEAD, "#pragma once\n", "#include <mpi.h>\n", '#include "mpi/engine/threads/ship.hpp"',
             '#include "mpi/engine/threads/ship_blocking.hpp"\n', "#pragma GCC diagnostic push",
             '#pragma GCC diagnostic ignored "-Wdeprecated-declarations"']
    names = {}
    for name, (_, parameters) in sorted(found.items()):
        is_observed = observed_body(name, parameters) is not None
        names[name] = f"imbrex_observed_MPI_{name}" if is_observed else f"imbrex_MPI_{name}"
        lines += [f'extern "C" decltype(PMPI_{name}) {one};'
                  for one in sorted({names[name], f"imbrex_MPI_{name}"})]
    lines += ["#pragma GCC diagnostic pop\n",
              '#define IMBREX_FUNCTION(name) extern "C" int imbrex_MPI_##name\n',
              "#ifndef IMBREX_PROGRAMS_NAMES"]
    for name in sorted(found):
        kind = "Passed" if name in LIFE else "Blocking" if name in BLOCKING else "Shipped"
        arguments = f"PMPI_{name}"
        if name in CALLING_BACK:
            kind, arguments = "CallsBack", f'PMPI_{name}, "MPI_{name}"'
        lines += [f"#define PMPI_{name} (::imbrex::mpi::threads::{kind}<{arguments}>::call)",
                  f"#define MPI_{name} {names[name]}"]
    return "\n".join([*lines, "#endif"]) + "\n"


def default_calls(found):
    lines = [HEAD, '#include "own_names.hpp"\n']
    for name, (result, parameters) in sorted(found.items()):
        if name not in LIFE:
            every = named(parameters)
            lines.append(f'extern "C" [[gnu::weak]] {result} imbrex_MPI_{name}'
                         f'({", ".join(every)}) {{\n'
                         f"  return PMPI_{name}({', '.join(map(name_of, every))});\n}}")
    return "\n".join(lines) + "\n"


def observed_calls(found):
    lines = [HEAD, '#include "mpi/calls/observed.hpp"\n', "using namespace imbrex::mpi;\n"]
    for name, (result, parameters) in sorted(found.items()):
        body = observed_body(name, parameters)
        if body is not None:
            lines.append(f'extern "C" {result} imbrex_observed_MPI_{name}'
                         f'({", ".join(named(parameters))}) {{\n{body}\n}}')
    return "\n".join(lines) + "\n"


def exported_calls(found):
    lines = [HEAD, '#include "mpi/abi/error_handlers.hpp"', '#include "mpi/abi/next.hpp"',
             '#include "imbrex/detail/observation.hpp"',
             '#include "mpi/calls/observed.hpp"\n',
             '#define IMBREX_EXPORT extern "C" [[gnu::visibility("default")]]',
             "using namespace imbrex::mpi;\n"]
    for name, (result, parameters) in sorted(found.items()):
        every = named(parameters)
        taken, given = ", ".join(every), ", ".join(map(name_of, every))
        passes, real = "passes_through", "passes_through || depth_in_next() != 0"
        if name in LIFE:
            passes, real = "false", "depth_in_next() != 0"
        begin = "".join(f"  {line}\n" for line in
                        ["forget_kept();", *observed.flown(name, list(map(name_of, every)))])
        # Error handlers run when MPI has returned and the call has nothing left to do.
        end = "returned({})" if result == "int" else "{}"
        end = observed.result_of(name, list(map(name_of, every)), end)
        ours = f"  return {end.format(f'imbrex_MPI_{name}({given})')};\n}}"
        if observed_body(name, parameters) is not None:
            observed_name = f"imbrex_observed_MPI_{name}({given})"
            ours = ("  if (switches.observes_calls.load(std::memory_order_relaxed)) "
                    f"[[unlikely]] {{\n    return {end.format(observed_name)};\n  }}\n{ours}")
        lines.append(f"IMBREX_EXPORT {result} MPI_{name}({taken}) {{\n"
                     f"  if ({passes}) return next<PMPI_{name}>({given});\n{begin}{ours}\n"
                     f"IMBREX_EXPORT {result} PMPI_{name}({taken}) {{\n"
                     f"  if ({real}) return real<PMPI_{name}>({given});\n{begin}{ours}")
    lines.append("\nnamespace {")
    for name, (result, parameters) in sorted(found.items()):
        unused = ", ".join("[[maybe_unused]] " + it for it in named(parameters))
        lines.append(f'{result} missing_{name}({unused}) {{ end_at_missing("MPI_{name}"); }}')
    lines.append("}  // namespace\n\nvoid imbrex::mpi::find_all() noexcept {\n  require_mpi();")
    for name in sorted(found):
        lines.append(f'  next<PMPI_{name}> = find_next("MPI_{name}", "PMPI_{name}", '
                     f'&missing_{name});\n'
                     f'  real<PMPI_{name}> = find_next("PMPI_{name}", "MPI_{name}", '
                     f'&missing_{name});')
    lines.append("}\n[[gnu::constructor]] static void find_early() { find_all(); }")
    return "\n".join(lines) + "\n"


# What includes a file that stays the same is not compiled again.
def write_if_new(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    folder = pathlib.Path(sys.argv[1])
    found = {name: it for name, it in declarations(sys.argv[2:]).items() if is_ours(name, it[1])}
    folder.mkdir(parents=True, exist_ok=True)
    for make in (own_names, default_calls, observed_calls, exported_calls):
        name = make.__name__ + (".hpp" if make is own_names else ".cpp")
        write_if_new(folder / name, make(found))


main()
