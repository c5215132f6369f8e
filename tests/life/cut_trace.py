# SPDX-License-Identifier: BSD-3-Clause
"""cut_trace.py IMBREX FOLDER [-e REGEX]... -- COMMAND...: a program that records and fails leaves a
trace that `imbrex report` reads, and in what that prints each REGEX is found.

Methodology: COMMAND is run with IMBREX_TRACE=FOLDER, 30 s at most. It must fail. Its output is
printed if something is wrong.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys


def main():
    imbrex, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    split = sys.argv.index("--")
    wanted = [word for word in sys.argv[3:split] if word != "-e"]
    shutil.rmtree(folder, ignore_errors=True)
    ended = subprocess.run(sys.argv[split + 1:], capture_output=True, text=True, check=False,
                           timeout=30, stdin=subprocess.DEVNULL,
                           env=os.environ | {"IMBREX_TRACE": str(folder)})
    said = subprocess.run([imbrex, "report", "--whole", "--write", "none", folder],
                          capture_output=True, text=True, check=False)
    problems = [f"nothing matches {regex}" for regex in wanted
                if not re.search(regex, said.stdout, re.MULTILINE)]
    if ended.returncode == 0:
        problems.append("the program did not fail")
    if said.returncode != 0:
        problems.append(f"imbrex report ended with {said.returncode}")
    for problem in problems:
        print(problem)
    if problems:
        print(f"---- the program ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
              f"---- imbrex report:\n{said.stdout}{said.stderr}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
