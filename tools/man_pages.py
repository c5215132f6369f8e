#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""man_pages.py FOLDER VERSION: writes the man pages of the installed commands, from what they print
for --help.

`cmake --install` calls this; tools/man_pages_test.py looks at the result.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent
NAMES = {"imbrex": "run programs on imbrex, and show what a run has recorded",
         "imbrex-c++": "compile C++ programs with imbrex",
         "imbrex-cc": "compile C programs with imbrex",
         "imbrex-fort": "compile Fortran programs with imbrex",
         "netlab": "run a command on a network of limited bandwidth"}
OPTION = re.compile(r"^  (?P<name>-[^ ]+(?: ?[^ ]+)*?)(?:  +(?P<text>\S.*))?$")
COMMAND = re.compile(r"^    (?P<name>[a-z]+)(?: +(?P<text>\S.*))?$")


@functools.cache
def help_of(name, *words):
    """Returns the output of --help. The compiler wrappers know by their name which one they are."""
    tool = TOOLS / ("netlab" if name == "netlab" else "imbrex")
    with tempfile.TemporaryDirectory() as folder:
        link = pathlib.Path(folder, name)
        link.symlink_to(tool)
        said = subprocess.run([sys.executable, "-B", link, *words, "--help"], check=True,
                              capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"})
    return said.stdout


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + text if text.startswith(".") else text


def section(title, level="SH"):
    return f'.{level} "{escaped(title)}"'


def entries(lines, pattern):
    """Options and subcommands with their texts, which may go on in lines that are indented more."""
    found = []
    for line in lines:
        match = pattern.match(line)
        if match:
            found.append([match["name"], match["text"] or ""])
        elif found and line.strip():
            found[-1][1] += " " + line.strip()
    return [line for name, text in found
            for line in (".TP", f".B {escaped(name)}", escaped(text.strip() or "(needed)"))]


def parts_of(text):
    """The usage; paragraphs; and the titles of lists with their lines."""
    usage, paragraphs, lists = [], [], []
    for block in re.split(r"\n\n+", text.strip("\n")):
        lines = block.splitlines()
        if lines[0].startswith("usage: "):
            usage = [lines[0][len("usage: "):], *lines[1:]]
        elif lines[0].endswith(":") and len(lines) > 1 and lines[1].startswith("  "):
            lists.append((lines[0].rstrip(":"), lines[1:]))
        else:
            paragraphs.append(" ".join(line.strip() for line in lines))
    return usage, paragraphs, lists


def body(text, level):
    """All but the usage, as roff; what stands behind the lists is a paragraph too."""
    _, paragraphs, lists = parts_of(text)
    for paragraph in paragraphs:
        yield from (".PP", escaped(paragraph))
    for title, lines in lists:
        commands = any(COMMAND.match(line) for line in lines)
        made = entries(lines, COMMAND if commands else OPTION)
        if made:
            title = "commands" if commands else title
            yield from (section(title.upper() if level == "SH" else title, level), *made)


def page(name, version):
    text = help_of(name)
    usage, _, lists = parts_of(text)
    lines = [f'.TH "{name.upper()}" 1 "" "imbrex {version}"', section("NAME"),
             f"{escaped(name)} \\- {escaped(NAMES[name])}", section("SYNOPSIS"), ".nf",
             *(escaped(line.strip()) for line in usage), ".fi", section("DESCRIPTION"),
             *body(text, "SH")]
    for _, rows in lists:
        for command in filter(None, map(COMMAND.match, rows)):
            whole = help_of(name, command["name"])
            lines += [section(f"{name} {command['name']}".upper()), ".nf",
                      *(escaped(line.strip()) for line in parts_of(whole)[0]), ".fi",
                      *body(whole, "SS")]
    lines += [section("SEE ALSO"), "The pages in", ".I share/doc/imbrex",
              "of the folder where imbrex is installed; first", ".IR docs/user/start.md ."]
    return "\n".join(lines) + "\n"


def main(folder, version):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.1").write_text(page(name, version), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
