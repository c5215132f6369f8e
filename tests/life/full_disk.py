# SPDX-License-Identifier: BSD-3-Clause
"""full_disk.py IMBREX FOLDER -- COMMAND...: a right program stays right if its trace, summary or
messages find no room, and the written part of the trace is readable.

Methodology: the limit of the size of files, which also sends a signal, stands for a full disk; so
does a small file system, if one can be mounted. For standard error, /dev/full and a pipe without a
reader stand for a full disk.
"""
import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOM = 16 << 10


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


class Checks:
    def __init__(self, imbrex, command):
        self.imbrex = imbrex
        self.command = command
        self.problems = []

    def run(self, what, stderr=subprocess.PIPE, limited=False, **options):
        """Runs the program; it must succeed, and say on standard output what it says otherwise."""
        options["IMBREX_FLIGHT"] = "off"  # it would warn of the limit, too
        ended = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=stderr, text=True,
                               timeout=30, check=False, stdin=subprocess.DEVNULL,
                               preexec_fn=limit_files if limited else None,
                               env=os.environ | options)
        if ended.returncode != 0 or "work done: 100" not in ended.stdout:
            self.problems.append(f"{what}: the program ended with {ended.returncode}:\n"
                                 f"{ended.stdout}{ended.stderr or ''}")
        return ended

    def trace(self, what, folder, limited):
        ended = self.run(what, limited=limited, IMBREX_TRACE=str(folder))
        lines = ended.stderr.splitlines()
        if len(lines) != 1 or "there was no room" not in lines[0]:
            self.problems.append(f"{what}: not one line that there was no room:\n{ended.stderr}")
        for words in (["report", "--write", "none"], ["summary"]):
            said = subprocess.run([self.imbrex, *words, folder], capture_output=True, text=True,
                                  check=False)
            if said.returncode != 0 or "had no room for" not in said.stdout + said.stderr:
                self.problems.append(f"{what}: imbrex {words[0]} ended with {said.returncode}:\n"
                                     f"{said.stdout}{said.stderr}")


def with_broken_pipe(checks):
    reading, writing = os.pipe()
    os.close(reading)
    checks.run("nobody reads standard error", stderr=writing, IMBREX_SUMMARY="1", IMBREX_HELP="1")
    os.close(writing)


def with_small_file_system(checks, folder):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", folder],
                             capture_output=True, check=False).returncode == 0
    if not mounted:
        return  # this needs rights
    try:
        checks.trace("a small file system", folder / "trace", limited=False)
        shutil.rmtree(folder / "trace")
        with open(folder / "filler", "wb", buffering=0) as filler:
            filler.write(bytes(2 * ROOM))
        checks.run("a full file system", IMBREX_TRACE=str(folder / "trace"))
    finally:
        subprocess.run(["umount", folder], check=True)


def main():
    folder = pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    checks = Checks(sys.argv[1], sys.argv[sys.argv.index("--") + 1:])
    checks.trace("a limit of the size of files", folder / "limited", limited=True)
    with_small_file_system(checks, folder / "small")
    with open("/dev/full", "w", encoding="utf-8") as full:
        checks.run("standard error is full", stderr=full, IMBREX_SUMMARY="1", IMBREX_HELP="1")
    with_broken_pipe(checks)
    for problem in checks.problems:
        print(problem)
    return 1 if checks.problems else 0


if __name__ == "__main__":
    sys.exit(main())
