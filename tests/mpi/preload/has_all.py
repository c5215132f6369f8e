#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""has_all.py LIBRARY PRELOAD: every function of MPI that LIBRARY shows, PRELOAD shows too."""
import re
import subprocess
import sys


def functions(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r" [TW] (P?MPI_\w+)$", text, re.MULTILINE))


shown, jumps = functions(sys.argv[1]), functions(sys.argv[2])
if len(shown) < 700:
    sys.exit(f"only {len(shown)} functions in {sys.argv[1]}")
missing = sorted(shown - jumps)
if missing:
    sys.exit(f"src/preload/functions.txt lacks: {' '.join(missing)}")
