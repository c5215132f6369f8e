#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fmt_test.py OBJECT BINARY...: cmake/fmt_alone.cpp, compiled as OBJECT, defines each function of
libfmt that a BINARY takes from the shared library. The wheel has that file in the library's place,
and would not link without one of them."""
import subprocess
import sys


def names(*options):
    listed = subprocess.run(["nm", "--format=just-symbols", *options], capture_output=True,
                            text=True, check=True)
    return {line.split("@")[0] for line in listed.stdout.splitlines()}


def main():
    defined = names("--defined-only", sys.argv[1])
    missing = False
    for binary in sys.argv[2:]:
        wanted = {name for name in names("--dynamic", "--undefined-only", binary)
                  if name.startswith(("_ZN3fmt", "_ZNK3fmt"))}
        for name in sorted(wanted - defined):
            text = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True)
            print(f"{binary} needs {text.stdout.strip()}: add it to cmake/fmt_alone.cpp")
            missing = True
        print(f"{binary} needs {len(wanted)} functions of fmt")
    return 1 if missing else 0


sys.exit(main())
