#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/user/options.md from src/base/tables/; with --check only says whether it is up to
date, and whether docs/user/policies.md has each policy."""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """# Options (environment variables)

Options are environment variables that change how a program with imbrex runs; every option has a
default that suits most programs. `IMBREX_HELP=1` prints this list when the runtime starts.

```sh
IMBREX_WORKERS=4 IMBREX_SUMMARY=1 ./program
mpirun -x IMBREX_WORKERS=4 -x IMBREX_SUMMARY=1 -n 2 ./program   # Open MPI: -x reaches other nodes
```

If a value is malformed, the process ends with status 2 and prints the valid values. An unknown
`IMBREX_*` name is ignored: one process prints one line with the option that it may stand for, or
with the successor of an earlier version's option. `IMBREX_ROOT`, `IMBREX_DIR`, `IMBREX_HOME`,
`IMBREX_PREFIX`, `IMBREX_BASE` and `IMBREX_VERSION`, which module files set, are ignored silently.
`IMBREX_TELL_PROCESS`, by which `imbrex run` asks each rank for its process, is ignored too.

| option | kind | default | valid | meaning |
|---|---|---|---|---|
"""
TAIL = """
`tools/options_doc.py` writes this page from `src/base/tables/options.def` and
`src/base/tables/options_texts.def`.
"""
OPTION = re.compile(r'^IMBREX_OPTION\((\w+), (\w+), ("[^"]*"|-?\w+)\)$', re.MULTILINE)
TEXT = re.compile(r'^IMBREX_OPTION_TEXT\((\w+), ("[^"]*"|\w+), ("(?:[^"\\]|\\.)*")\)$',
                  re.MULTILINE)
POLICY = re.compile(r'^IMBREX_POLICY\((\w+), "([^"]*)"\)$', re.MULTILINE)


def page(folder):
    table, texts, policies = ((folder / name).read_text(encoding="utf-8") for name in (
        "options.def", "options_texts.def", "policies.def"))
    of_option = {name: (valid, text) for name, valid, text in TEXT.findall(texts)}
    valid_policies = ", ".join(name + rest for name, rest in POLICY.findall(policies))
    rows = []
    for name, kind, default in OPTION.findall(table):
        valid, text = of_option.get(name) or sys.exit(
            f"tools/options_doc.py: options_texts.def has no line for {name}, or none of the form "
            'IMBREX_OPTION_TEXT(name, "valid", "help")')
        valid = valid_policies if valid == "valid_policies" else valid.strip('"')
        default = default.strip('"')
        if not re.search(r"[.] Set it [^.;]+[.]$", text[1:-1]):
            sys.exit(f"tools/options_doc.py: the text of {name} must end with a sentence that says "
                     'when a user sets it: "Set it ..."')
        meaning = text[1:-1].replace("|", "\\|").replace('\\"', '"')
        shown = f"`{readable(default, kind)}`" if default else "none"
        rows.append(f"| `IMBREX_{name}` | {kind} | {shown} | `{valid}` | {meaning} |\n")
    announced = len(re.findall(r"^IMBREX_OPTION\(", table, re.MULTILINE))
    if not rows or len(rows) != announced:
        sys.exit(f"tools/options_doc.py: understood {len(rows)} of the {announced} lines "
                 "IMBREX_OPTION(name, kind, default) of options.def")
    return HEAD + "".join(rows) + TAIL


def readable(default, kind):
    if kind == "size":
        for unit, suffix in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
            if int(default) and int(default) % unit == 0:
                return f"{int(default) // unit}{suffix}"
    return default


def undescribed(policies, page):
    """The policies of policies.def for which the users' page of policies has no row."""
    return [name for name, _ in POLICY.findall(policies)
            if not re.search(rf"^\| `{name}\b[^`]*`", page, re.MULTILINE)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")
    parser.add_argument("--tables", type=pathlib.Path, default=ROOT / "src/base/tables",
                        help="the folder of options.def, options_texts.def and policies.def")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/user/options.md",
                        help="the page to write (default: docs/user/options.md)")
    options = parser.parse_args()
    wanted = page(options.tables)
    missing = undescribed((options.tables / "policies.def").read_text(encoding="utf-8"),
                          (ROOT / "docs/user/policies.md").read_text(encoding="utf-8"))
    if missing:
        sys.exit(f"docs/user/policies.md:1: its table has no row for {', '.join(missing)}")
    if not options.check:
        options.page.write_text(wanted, encoding="utf-8")
        return 0
    if options.page.exists() and options.page.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{options.page}:1: not up to date with the tables: run tools/options_doc.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
