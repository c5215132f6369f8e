#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""progress_test.py MODE COMMAND...: runs a solver under that way of progress and looks at what its
file of figures says of polls and callbacks."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile


def expect(holds, what, run):
    if not holds:
        sys.exit(f"progress_test: {what}: {run}")


def check(run, mode, workers, ranks):
    polls, polls_s = run["timed_polls"], run["timed_polls_s"]
    callbacks, callbacks_s = run["timed_callbacks"], run["timed_callbacks_s"]
    for count, seconds in ((polls, polls_s), (callbacks, callbacks_s)):
        expect((count > 0) == (seconds > 0), "time without a number, or a number without time", run)
    expect(polls_s < 1.1 * (workers + 1) * ranks * run["seconds"], "more time than there was", run)
    expect(polls >= 0.9 * run["polls"], "workers poll more than all do", run)
    expect(run["progress_polls"] == 0, "a thread polls though there is none", run)
    # A callback that has not returned has noticed completions, and is not counted yet.
    expect(run["progress_notices"] <= callbacks + ranks, "more was found than looked for", run)
    if run["variant"] == "tasks":
        expect(polls > 0, "no polls", run)
        expect((callbacks > 0) == (mode == "callback"), f"{callbacks} callbacks under {mode}", run)


def main():
    mode, command = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "figures.json"
        done = subprocess.run([*command, "--json", str(path)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"progress_test: exit code {done.returncode}: {done.stdout}{done.stderr}")
        figures = json.loads(path.read_text())
    lines = re.findall(r"^ +polls (\d+) in [\d.]+ ms .*, callbacks (\d+) in", done.stdout, re.M)
    runs = figures["runs"]
    told = [(run["timed_polls"], run["timed_callbacks"]) for run in runs]
    expect([(float(polls), float(callbacks)) for polls, callbacks in lines] == told,
           "printed and written figures differ", lines)
    for run in runs:  # an MPI without a hook polls instead
        check(run, figures["progress"], figures["workers"], figures["ranks"])
    expect(figures["progress"] in (mode, "poll"), "another mode has run", figures["progress"])


if __name__ == "__main__":
    main()
