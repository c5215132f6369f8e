#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that a library defines each function that TAMPI.h declares, and its twin for Fortran.

check_names.py <TAMPI.h> <libimbrex_mpi.so> [--without-fortran]
"""
import pathlib
import re
import subprocess
import sys


def main():
    header, library = sys.argv[1:3]
    text = pathlib.Path(header).read_text()
    declared = set(re.findall(r"^int (TAMPI_\w+)\(", text, re.MULTILINE))
    if len(declared) < 30:
        sys.exit(f"check_names.py: only {len(declared)} functions found in {header}")
    wanted = set(declared)
    if "--without-fortran" not in sys.argv:
        wanted |= {f"{name.lower()}_" for name in declared}
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True).stdout
    defined = set(re.findall(r" T (tampi_\w+)", text, re.IGNORECASE))
    for name in sorted(wanted - defined):
        print(f"{name}: not defined by {library}")
    for name in sorted(defined - wanted):
        print(f"{name}: defined by {library}, but {header} does not declare it")
    print(f"check_names.py: {len(declared)} functions, {len(wanted)} names")
    return 1 if wanted != defined else 0


sys.exit(main())
