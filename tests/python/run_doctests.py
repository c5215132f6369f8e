#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the doctests of the Python package; each public function and method has one."""
import doctest
import inspect
import sys

import imbrex
from imbrex import aio, executor

# Shown with another one: by `recv`, by its counterpart, or by the tests on several ranks.
SHOWN_ELSEWHERE = {"send", "ssend", "Send", "Ssend", "Sendrecv", "Isend", "Bcast", "Gather",
                   "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall",
                   "Alltoallv", "Reduce"}

failed = 0
for module in (imbrex, aio, executor):
    result = doctest.testmod(module)
    print(f"{module.__name__}: {result.attempted} examples")
    failed += result.failed
for name, method in inspect.getmembers(aio.Comm, inspect.isfunction):
    if name.startswith("_") or name in SHOWN_ELSEWHERE:
        continue
    if ">>>" not in (inspect.getdoc(method) or ""):
        print(f"Comm.{name} has no doctest")
        failed += 1
sys.exit(failed != 0)
