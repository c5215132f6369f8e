#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table of calls in docs/user/mpi.md from calls.def, between two marks.

calls_doc.py [--check]: with --check, writes nothing and fails if the table is not what it would
write.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "calls.def"
PAGE = HERE.parent.parent / "docs" / "user" / "mpi.md"
BEGIN = "<!-- begin: made by src/mpi/calls_doc.py -->"
END = "<!-- end -->"
ENTRY = re.compile(r"^IMBREX_(SEND|CALL|COLLECTIVE)\((\w+), ([\w+ ]+)[,)]", re.MULTILINE)


def twin(text):
    return " and ".join(f"`MPI_{name.strip()}`" for name in text.split("+"))


def table():
    entries = ENTRY.findall(TABLE.read_text())
    if len(entries) < 30:
        sys.exit(f"calls_doc.py: only {len(entries)} calls found in {TABLE}")
    lines = ["| call | in a task | elsewhere |", "|---|---|---|"]
    for kind, name, by in entries:
        elsewhere = "the same" if kind == "COLLECTIVE" else "MPI's own"
        lines.append(f"| `MPI_{name}` | {twin(by)} | {elsewhere} |")
    return "\n".join(lines)


def main():
    page = PAGE.read_text()
    head, found, rest = page.partition(BEGIN)
    _, found_end, tail = rest.partition(END)
    if not found or not found_end:
        sys.exit(f"calls_doc.py: {PAGE} lacks the marks {BEGIN} and {END}")
    made = f"{head}{BEGIN}\n{table()}\n{END}{tail}"
    if made == page:
        return
    if "--check" in sys.argv[1:]:
        sys.exit("calls_doc.py: docs/user/mpi.md is older than calls.def: run src/mpi/calls_doc.py")
    PAGE.write_text(made)


main()
