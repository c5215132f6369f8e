#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes, from symbols.txt, the version script of libgomp.so.1 and the functions that only say what
is missing. usage: export_symbols.py symbols.txt script.map refused.cpp"""
import sys


def read(path):
    """Version -> [(name, construct that is refused or None)], in the order of the file."""
    versions, version = {}, None
    for line in open(path, encoding="utf-8"):
        text = line.split("#")[0].strip()
        if not text:
            continue
        if text.startswith("["):
            version = text.strip("[]")
            versions.setdefault(version, [])
            continue
        names, _, refused = text.partition(" : ")
        for name in names.split():
            versions[version].append((name, refused.strip() or None))
    return versions


def script(versions):
    text = ""
    for index, (version, names) in enumerate(versions.items()):
        text += f"{version} {{\n"
        if names:
            text += "  global:\n" + "".join(f"    {name};\n" for name, _ in names)
        if index == 0:
            text += "  local:\n    *;\n"
        text += "};\n"
    return text


def refusals(versions):
    text = '// Made by export_symbols.py.\n#include "omp/environment/fatal.hpp"\n\nextern "C" {\n'
    for names in versions.values():
        for name, refused in names:
            if refused is not None:
                text += (f'[[gnu::visibility("default"), noreturn]] void {name}() {{\n'
                         f'  imbrex::omp::fatal("%s was called: {refused}", "{name}");\n}}\n')
    return text + "}\n"


def main():
    source, map_file, cpp_file = sys.argv[1:]
    versions = read(source)
    with open(map_file, "w", encoding="utf-8") as file:
        file.write(script(versions))
    with open(cpp_file, "w", encoding="utf-8") as file:
        file.write(refusals(versions))


main()
