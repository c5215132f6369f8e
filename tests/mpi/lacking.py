#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lacking.py LIBRARY FOLDER NAME...: copies an MPI library into FOLDER, under its soname, without
the functions MPI_NAME and PMPI_NAME.

The copy has other names for them in its table of strings. The linker finds a symbol by the hash of
its name, and then compares the names: so it finds neither the old names nor the new ones.
"""
import pathlib
import re
import subprocess
import sys


def main():
    library, folder, *names = sys.argv[1:]
    # The name that the linker takes may be that of a script: the library stands beside it.
    if pathlib.Path(library).read_bytes()[:4] != b"\x7fELF":
        path = pathlib.Path(library)
        library = str(sorted(path.parent.glob(path.name + ".*"))[0])
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                             check=True).stdout
    soname = re.search(r"SONAME.*\[(.*)\]", dynamic).group(1)
    content = pathlib.Path(library).read_bytes()
    for name in names:
        # The linker may keep one string for both names, since the one ends as the other.
        old, new = f"MPI_{name}\0".encode(), f"MPI_{name[:-1]}0\0".encode()
        if old not in content:
            sys.exit(f"lacking.py: {library} has no MPI_{name}")
        content = content.replace(old, new)
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / soname).write_bytes(content)
    # A library that is no part of the system finds what it needs from where it stands.
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", needed):
        if not path.startswith(("/lib", "/usr/lib")):
            (target / name).unlink(missing_ok=True)
            (target / name).symlink_to(path)


main()
