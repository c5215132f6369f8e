#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/user/options.md from src/base/tables/; with --check only says whether it is up to
date, and whether docs/user/policies.md has each policy."""
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
option that it may have been meant to be, or where the setting of an earlier version went.
`IMBREX_ROOT`, `IMBREX_DIR`, `IMBREX_HOME`,
`IMBREX_PREFIX`, `IMBREX_BASE` and `IMBREX_VERSION` are ignored without a word: module files set
them. So is `IMBREX_TELL_PROCESS`, by which `imbrex run` asks each rank which process it is.

| option | kind | default | valid | meaning |
|---|---|---|---|---|
"""
TAIL = """
This page is made from `src/base/tables/options.def` and `src/base/tables/options_texts.def` by
`tools/options_doc.py`.
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
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tables", type=pathlib.Path, default=ROOT / "src/base/tables",
                        help="the folder of options.def, options_texts.def and policies.def")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs/user/options.md")
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
