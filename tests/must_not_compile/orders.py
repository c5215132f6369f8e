# SPDX-License-Identifier: BSD-3-Clause
"""Public headers can be included together, in every order of two: only the syntax is checked.

orders.py CC CXX INCLUDE [FLAG...]: FLAGs follow each compiler. With -DWITH_MPI among them, headers
that need <mpi.h> take part.

Headers for C define macros, and one may include another: each of them and each ordered pair is a
unit of its own, in C and in C++. Headers for C++ alone define no macro that a program sees: all of
them together, forward and backward, stand before and after the headers for C.
"""
import concurrent.futures
import itertools
import pathlib
import subprocess
import sys

cc, cxx, include, *flags = sys.argv[1:]
root = pathlib.Path(include)
NEED_MPI = {"imbrex/continue.h", "imbrex/events.h", "imbrex/mpi.h", "imbrex/mpi.hpp", "TAMPI.h",
            "imbrex/compat/hcmpi.h", "imbrex/data.h", "imbrex/data.hpp", "imbrex/collective.hpp",
            "imbrex/future_space.hpp", "imbrex/mpi_phaser.hpp", "imbrex/remote.hpp",
            "imbrex/work_pool.hpp", "imbrex/compat/habanero.hpp"}
FORTRAN = {"TAMPIf.h"}


def public(suffix):
    found = [*root.glob("*" + suffix), *root.glob("imbrex/*" + suffix),
             *root.glob("imbrex/compat/*" + suffix)]
    names = sorted(str(one.relative_to(root)) for one in found)
    return [name for name in names
            if name not in FORTRAN and ("-DWITH_MPI" in flags or name not in NEED_MPI)]


def units():
    of_c, of_cxx = public(".h"), public(".hpp")
    assert {"imbrex/imbrex.h", "imbrex/omp.h"} <= set(of_c) and len(of_cxx) > 8
    for headers in [(one,) for one in of_c] + list(itertools.permutations(of_c, 2)):
        yield "c", headers
        yield "c++", headers
    yield "c++", of_cxx + of_c
    yield "c++", of_c + of_cxx
    yield "c++", of_cxx[::-1] + of_c[::-1]


def compile_unit(unit):
    language, headers = unit
    compiler, standard = (cc, "-std=c11") if language == "c" else (cxx, "-std=c++20")
    source = "".join(f"#include <{one}>\n" for one in headers)
    done = subprocess.run([compiler, standard, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           f"-I{include}", *flags, "-x", language, "-"],
                          input=source, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"{language}:\n{source}{done.stderr}"


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    wrong = [text for text in pool.map(compile_unit, units()) if text]
print(*wrong[:3], sep="\n")
print(len(wrong), "of the units are refused")
sys.exit(bool(wrong))
