#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the list of calls in docs/user/mpi.md from calls.def, between two marks.

calls_doc.py [--check]: with --check, writes nothing and fails if the list is not what it would
write. calls_doc.py --names: prints the functions that the table stands for, and their twins.
"""
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "calls.def"
PAGE = HERE.parent.parent.parent / "docs" / "user" / "mpi.md"
BEGIN = "<!-- begin: made by src/mpi/calls/calls_doc.py -->"
END = "<!-- end -->"
KINDS = ("SEND_C|CALL|CALL_C|LOCAL|ASK|COLLECTIVE|COLLECTIVE_C|NEIGHBOR_C|FILE_C|FILE_ALL_C|SPARE|"
         "SPARE_C|SPARE_OWN|SPLIT_C|SPLIT_END")
ON_SPARE_THREAD = ("SPARE", "FILE", "SPLIT")
ENTRY = re.compile(rf"^IMBREX_({KINDS})\((\w+),\s*(\w[\w+ ]*)?|^// ---- ([\w ]+) -", re.MULTILINE)


def read_table():
    """Rows as (section, kind, name, twin); of two rows for one name (under #if) the first."""
    rows, section, seen = [], "", set()
    for match in ENTRY.finditer(TABLE.read_text()):
        kind, name, twin, heading = match.groups()
        if heading:
            section = heading
        elif name not in seen:
            seen.add(name)
            rows.append((section, kind.replace("NEIGHBOR", "COLLECTIVE"), name, twin))
    if len(rows) < 100:
        sys.exit(f"calls_doc.py: only {len(rows)} calls found in {TABLE}")
    return rows


def functions(kind, name):
    """The MPI functions that a row stands for, without those for MPI_X_init."""
    return [f"MPI_{name}"] + ([f"MPI_{name}_c"] if kind.endswith("_C") else [])


def inits(kind, name):
    return [f"{one}_init" if not one.endswith("_c") else f"{one[:-2]}_init_c"
            for one in functions(kind, name)] if kind == "COLLECTIVE_C" else []


def quote(names):
    return ", ".join(f"`{name}`" for name in names)


def twin_table(rows):
    lines = ["| call | in a task | elsewhere |", "|---|---|---|"]
    for _, kind, name, twin in rows:
        if kind.startswith(ON_SPARE_THREAD):
            continue
        by = " and ".join(f"`MPI_{one.strip()}`" for one in twin.split("+"))
        elsewhere = "as in a task" if kind.startswith("COLLECTIVE") else "MPI's own"
        lines.append(f"| `MPI_{name}` | {by} | {elsewhere} |")
    return "\n".join(lines)


def spare_list(rows):
    sections = {}
    for section, kind, name, _ in rows:
        if kind.startswith(ON_SPARE_THREAD) and not name.endswith("_init"):
            sections.setdefault(section, []).append(f"MPI_{name}")
    return "\n".join(
        textwrap.fill(f"- {section.capitalize()}: {quote(names)}.", 100, subsequent_indent="  ",
                      break_on_hyphens=False)
        for section, names in sections.items())


def make():
    rows = read_table()
    return (f"{twin_table(rows)}\n\nOn a spare thread in a task, MPI's own elsewhere:\n\n"
            f"{spare_list(rows)}")


def main():
    if "--names" in sys.argv[1:]:
        for _, kind, name, by in read_table():
            twins = [one.strip() for one in by.split("+")] if by else []
            print("call", *functions(kind, name), *inits(kind, name))
            print("twin", *(one for each in twins for one in functions(kind, each)))
        return
    page = PAGE.read_text()
    head, found, rest = page.partition(BEGIN)
    _, found_end, tail = rest.partition(END)
    if not found or not found_end:
        sys.exit(f"calls_doc.py: {PAGE} lacks the marks {BEGIN} and {END}")
    made = f"{head}{BEGIN}\n{make()}\n{END}{tail}"
    if made == page:
        return
    if "--check" in sys.argv[1:]:
        sys.exit("calls_doc.py: docs/user/mpi.md is older than calls.def: run "
                 "src/mpi/calls/calls_doc.py")
    PAGE.write_text(made)


if __name__ == "__main__":
    main()
