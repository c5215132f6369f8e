#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table of README.md, between its two comments, from the stored results of the papers
and from the tables of docs/user/ that have results of their own: templates/readme.md.
papers_test.py compares."""

import re

import page
import records

BEGIN = "<!-- bench/papers/readme_figures.py writes these lines -->\n"
END = "<!-- end of these lines -->\n"
GUIDE = records.SOURCE / "docs" / "user"


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
    return {"ours": ours, "theirs": max(0, int(theirs)), "runs": runs}


def seconds(paper, part, ours, theirs, **wanted):
    """Two results of one experiment, which ran equally often on one machine."""
    at = page.page_of(paper).by("system", part, **wanted)
    same = ("repetitions", "on")
    if any(at[ours][name] != at[theirs][name] for name in same):
        raise SystemExit(f"bench: {paper}, {part}: {ours} and {theirs} have not the same number of "
                         "runs on the same machine")
    processor = re.sub(r"\(R\)| Processor|, \d+ cores", "", at[ours]["on"])
    digits = 1 if at[ours]["seconds"] >= 2 else 2
    return {"ours": page.number(at[ours]["seconds"], digits),
            "theirs": page.number(at[theirs]["seconds"], digits),
            "runs": f"{at[ours]['repetitions']} runs, {processor}"}


def costs():
    """Per cent that tasks cost where they hide nothing: of a stencil, and of short computations."""
    at = {name: float(found(rf"^\| `{name}` \| ([\d.]+) \|", "overlap.md"))
          for name in ("block", "tasks")}
    _, percent = page.page_of("capra").costs_of_tasks()
    return {"stencil": 100 * (at["tasks"] / at["block"] - 1), "least": percent.min(),
            "most": percent.max()}


def written(text):
    """`text`, of README.md, with today's lines."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"README.md has no {BEGIN.strip()} and {END.strip()} after it")
    lines = page.rendered("readme.md", {
        "openmp": openmp(), "costs": costs(),
        "fourier": seconds("ics19", "fft", "partial", "blocking", program="fft2d", ranks=4,
                           ratio=1),
        "cholesky": seconds("europar20", "cholesky", "trees", "starpu", grid="1x4", tiles=32)})
    return before + BEGIN + lines.partition("\n")[2] + END + after


if __name__ == "__main__":
    README = records.SOURCE / "README.md"
    README.write_text(written(README.read_text()))
