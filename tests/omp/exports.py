#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the symbols of a library with those of the stock library of its name.

usage: exports.py OURS STOCK

Ends with 1 if ours lacks a symbol of the stock library, or its version.
"""
import re
import subprocess
import sys


def exported(library):
    listed = subprocess.run(["nm", "-D", "-g", "--with-symbol-versions", "--defined-only", library],
                            capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[-1] for line in listed.splitlines()}
    return {symbol for symbol in symbols if not re.match(r"(OMP|GOMP|OACC|VERSION)[_0-9.A-Z]*$",
                                                          symbol)}


def main():
    ours, stock = map(exported, sys.argv[1:])
    lacking = sorted(stock - ours)
    print(f"{len(stock)} symbols, {len(lacking)} are not here", *lacking)
    return 1 if lacking or not stock else 0


sys.exit(main())
