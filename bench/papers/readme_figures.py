#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table of README.md, between its two comments, from the stored results of the papers
and from the tables of docs/user/ that have results of their own. papers_test.py compares."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import capra_page  # noqa: E402 (found by the line before)
import page  # noqa: E402
import records  # noqa: E402

BEGIN = "<!-- bench/papers/readme_figures.py writes these lines -->\n"
END = "<!-- end of these lines -->\n"
GUIDE = records.SOURCE / "docs" / "user"


def stored(paper):
    return json.loads((HERE / f"{paper}_results.json").read_text())


def found(pattern, name):
    """The groups of the only match on this page of the guide."""
    matches = re.findall(pattern, (GUIDE / name).read_text(), re.MULTILINE)
    if len(matches) != 1:
        raise SystemExit(f"docs/user/{name}: {len(matches)} matches of {pattern}: adapt "
                         "bench/papers/readme_figures.py to the page")
    return matches[0]


def openmp():
    """What GCC's libgomp and imbrex hide under an OpenMP program, in per cent."""
    theirs, ours = found(r"^\| libgomp \| imbrex, `default` \|.*\n\|[-|]+\n"
                         r"\| (-?\d+) \([^|]*\| (\d+) \(", "openmp-programs.md")
    runs = found(r"\(least to most\) of (\d+) runs", "openmp-programs.md")
    # A share below zero is within the spread of nothing.
    return ("the halo exchange of an OpenMP program, unmodified, 2 ranks", f"{ours} % hidden",
            f"GCC's libgomp: {max(0, int(theirs))} %", f"{runs} runs",
            "`bench/compare_openmp_overlap`")


def seconds(text, peer, ours, theirs, command):
    """A row of two results of one experiment, which ran equally often on one machine."""
    if (ours["repetitions"], ours["on"]) != (theirs["repetitions"], theirs["on"]):
        raise SystemExit(f"bench: {text}: not the same number of runs on the same machine")
    processor = re.sub(r"\(R\)| Processor|, \d+ cores", "", ours["on"])
    digits = 1 if ours["seconds"] >= 2 else 2
    return (text, f"{page.number(ours['seconds'], digits)} s",
            f"{peer}: {page.number(theirs['seconds'], digits)} s",
            f"{ours['repetitions']} runs, {processor}", f"`bench/papers/{command}`")


def fourier():
    ours, theirs = (page.one(stored("ics19"), "fft", program="fft2d", ranks=4, system=system)
                    for system in ("partial", "blocking"))
    return seconds("2-D Fourier transform, partial collectives, 4 ranks", "blocking collectives",
                   ours, theirs, "ics19")


def cholesky():
    ours, theirs = (page.one(stored("europar20"), "cholesky", grid="1x4", tiles=32, system=system)
                    for system in ("trees", "starpu"))
    return seconds("Cholesky, data with owners, 4 ranks", "StarPU-MPI", ours, theirs, "europar20")


def costs():
    """What tasks cost where they hide nothing: of a stencil, and of short computations."""
    at = {name: float(found(rf"^\| `{name}` \| ([\d.]+) \|", "overlap.md"))
          for name in ("block", "tasks")}
    percent = sorted(percent for _, percent in capra_page.costs_of_tasks(stored("capra")))
    return ("Where nothing can be hidden, tasks cost time: "
            f"[{100 * (at['tasks'] / at['block'] - 1):.0f} %](docs/user/overlap.md) of a\nstencil, "
            f"and [{percent[0]:.0f} to {percent[-1]:.0f} %](docs/papers/capra.md) of a computation "
            "of 500 us in ten tasks.\n")


def lines():
    head = ("program", "imbrex", "compared with", "median of", "command")
    return page.table(head, (openmp(), fourier(), cholesky())) + "\n" + costs()


def written(text):
    """`text`, of README.md, with today's lines."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"README.md has no {BEGIN.strip()} and {END.strip()} after it")
    return before + BEGIN + lines() + END + after


if __name__ == "__main__":
    README = records.SOURCE / "README.md"
    README.write_text(written(README.read_text()))
