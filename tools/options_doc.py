#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/user/options.md from src/base/options.def; with --check only says whether it is up to
date."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# Options

Set in the environment, for example `IMBREX_WORKERS=4 ./program`; with `mpirun` of Open MPI,
`mpirun -x IMBREX_WORKERS=4 ...` carries them to other nodes. `IMBREX_HELP=1` prints this list when
the runtime starts. A malformed value is refused then, with the valid ones: the process ends with
status 2. An unknown `IMBREX_*` name is ignored, and one process says so in one line, with the
option that it may have been meant to be. `IMBREX_ROOT`, `IMBREX_DIR`, `IMBREX_HOME`,
`IMBREX_PREFIX`, `IMBREX_BASE` and `IMBREX_VERSION` are ignored without a word: module files set
them.

| option | kind | default | valid | meaning |
|---|---|---|---|---|
"""
TAIL = """
This page is made from `src/base/options.def` by `tools/options_doc.py`.
"""
OPTION = re.compile(r'^IMBREX_OPTION\(\s*(\w+),\s*(\w+),\s*("[^"]*"|-?\w+),\s*"([^"]*)",'
                    r'\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.MULTILINE)


def page(table):
    rows = []
    for name, kind, default, valid, text in OPTION.findall(table):
        default = default.strip('"')
        meaning = re.sub(r'"\s*"', "", text.strip())[1:-1].replace("|", "\\|").replace('\\"', '"')
        shown = f"`{readable(default, kind)}`" if default else "none"
        rows.append(f"| `IMBREX_{name}` | {kind} | {shown} | `{valid}` | {meaning} |\n")
    announced = len(re.findall(r"^IMBREX_OPTION\(", table, re.MULTILINE))
    if not rows or len(rows) != announced:
        sys.exit(f"tools/options_doc.py: understood {len(rows)} of the {announced} lines "
                 "IMBREX_OPTION(name, kind, default, \"valid\", \"help\") of the table")
    return HEAD + "".join(rows) + TAIL


def readable(default, kind):
    if kind == "size":
        for unit, suffix in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
            if int(default) and int(default) % unit == 0:
                return f"{int(default) // unit}{suffix}"
    return default


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "src/base/options.def")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/user/options.md")
    options = parser.parse_args()
    wanted = page(options.table.read_text(encoding="utf-8"))
    if not options.check:
        options.page.write_text(wanted, encoding="utf-8")
        return 0
    if options.page.exists() and options.page.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{options.page}:1: not up to date with {options.table.name}: run tools/options_doc.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
