# SPDX-License-Identifier: BSD-3-Clause
"""`imbrex explain` and `imbrex top`: find the files of the flight recorder, which imbrex-explain
(src/explain) reads. A picture of who waits for whom is drawn here, from its JSON.
"""
import html
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import imbrex_config
from imbrex_errors import CommandError

WHERE = ("JOB is a folder or a file of the flight recorder, the name of a job's folder in "
         "$TMPDIR/imbrex-UID (a part of it is enough), or the number of a process; without it, the "
         "job that ran last.")


def add_to(commands):
    parser = commands.add_parser(
        "explain", help="say why a program hangs or has died, from the files that it left",
        usage="imbrex explain [options] [JOB...]",
        description="Merges what the ranks of a job did last and what they wait for, and names the "
        "cause. The program may run, hang, or have died in any way: each process keeps a file "
        "until it ends well (IMBREX_FLIGHT). " + WHERE + " Files of several nodes lie in several "
        "folders: name all, or gather them first with --collect.")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--page", metavar="FILE", type=pathlib.Path,
                        help="also write a page with a picture of who waits for whom")
    output.add_argument("--collect", metavar="DIR", type=pathlib.Path,
                        help="only copy the files to DIR: run it once on each node, as by srun "
                        "--ntasks-per-node=1, with a DIR that all nodes see")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="what to look at")
    parser.set_defaults(run=explain)
    parser = commands.add_parser(
        "top", help="show what the workers of a running program do",
        usage="imbrex top [options] [JOB]",
        description="Shows once a second, for each rank and worker of this node, what runs, the "
        "shares of time in tasks, idle and in the runtime (overhead), and what waits. " + WHERE)
    parser.add_argument("--looks", metavar="N", type=int, default=0,
                        help="end after N tables (default: when the program ends)")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="what to look at")
    parser.set_defaults(run=top)


# ---- files -------------------------------------------------------------------------------------

def folders():
    """The folders of jobs on this node, the newest first."""
    own = os.environ.get("IMBREX_FLIGHT_DIR")
    if own:
        return [pathlib.Path(own)]
    base = pathlib.Path(os.environ.get("TMPDIR") or "/tmp") / f"imbrex-{os.geteuid()}"
    found = [(newest(folder), folder) for folder in base.glob("*") if folder.is_dir()]
    return [folder for time, folder in sorted(found, reverse=True) if time]


def newest(folder):
    times = [file.stat().st_mtime for file in folder.glob("*.flight")]
    return max(times, default=0)


def find(job):
    """The paths that the word stands for."""
    path = pathlib.Path(job)
    if path.exists():
        return [path]
    known = folders()
    if job.isdigit():
        files = [file for folder in known for file in folder.glob(f"*.{job}.flight")]
        if files:
            return [files[0].parent]  # with the other ranks of its job
    named = [folder for folder in known if job in folder.name]
    if not named:
        raise CommandError(f"{job}: there is no such folder, job or process; known jobs: "
                           f"{', '.join(folder.name for folder in known) or 'none'}")
    return named[:1]


def paths_of(jobs):
    found = [path for job in jobs for path in find(job)]
    if found:
        return found
    known = folders()
    if not known:
        raise CommandError("no program has left a file of the flight recorder on this node: a run "
                           "that ends well removes its file, and IMBREX_FLIGHT=off writes none")
    return known[:1]


def run_program(words, **options):
    program = imbrex_config.find_program("imbrex-explain")
    done = subprocess.run([program, *map(str, words)], stderr=subprocess.PIPE, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise CommandError(done.stderr.strip() or f"{program} has failed")
    return done.stdout


# ---- the commands ------------------------------------------------------------------------------

def explain(options):
    paths = paths_of(options.jobs)
    if options.collect:
        collect(paths, options.collect)
        return
    if options.page:
        options.page.write_text(page(json.loads(run_program(["json", *paths],
                                                            stdout=subprocess.PIPE))),
                                encoding="utf-8")
    run_program(["json" if options.json else "explain", *paths])


def collect(paths, folder):
    folder.mkdir(parents=True, exist_ok=True)
    files = [file for path in paths
             for file in (sorted(path.glob("*.flight")) if path.is_dir() else [path])]
    for file in files:
        shutil.copy(file, folder / file.name)
    print(f"{len(files)} file{'s' * (len(files) != 1)} copied to {folder}")


def top(options):
    if options.looks < 0:
        raise CommandError(f"--looks {options.looks}: at least 0")
    try:
        run_program(["top", options.looks, *paths_of(options.jobs)])
    except KeyboardInterrupt:
        sys.exit(130)


# ---- the picture -------------------------------------------------------------------------------

RANKS_DRAWN = 48


def page(facts):
    """The causes, and a picture: the ranks in a circle, an arrow from each that waits for a message
    to the rank that it waits for. What the first cause names is red."""
    named = set(facts["findings"][0]["ranks"]) if facts["findings"] else set()
    causes = "".join(f"<p><b>{'' if it['certain'] else 'perhaps: '}{html.escape(it['cause'])}</b>."
                     f" {html.escape(it['advice'])}.</p>" for it in facts["findings"])
    rows = "".join(f"<tr><td>{it['rank']}</td><td>{html.escape(it['state'])}</td><td>"
                   + "<br>".join(html.escape(f"{wait['wait']}: in {wait['task']}, "
                                             f"{wait['seconds']} s") for wait in it["waits"][:20])
                   + "</td></tr>" for it in facts["ranks"])
    return ("<!DOCTYPE html><meta charset='utf-8'><title>imbrex explain</title>"
            "<style>body{font-family:sans-serif;margin:2em}td{border-top:1px solid #ccc;"
            "padding:.3em 1em;vertical-align:top}</style><h1>Who waits for whom</h1>"
            f"{causes or '<p>No cause is known.</p>'}{picture(facts['ranks'], named)}"
            f"<table><tr><th>rank<th>state<th>waits</tr>{rows}</table>\n")


def picture(ranks, named):
    shown = ranks[:RANKS_DRAWN]
    if not shown:
        return ""
    radius = max(90, 11 * len(shown))
    middle = radius + 40
    where = {}
    for place, it in enumerate(shown):
        angle = 2 * math.pi * place / len(shown) - math.pi / 2
        where[it["rank"]] = (middle + radius * math.cos(angle), middle + radius * math.sin(angle))
    lines = [f"<svg width='{2 * middle}' height='{2 * middle}' font-size='12'>"
             "<defs><marker id='head' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' "
             "markerHeight='8' orient='auto'><path d='M0 0L8 4L0 8z'/></marker></defs>"]
    edges = {(it["rank"], wait["peer"]) for it in shown for wait in it["waits"]
             if wait["peer"] in where and wait["peer"] != it["rank"]}
    for one, other in sorted(edges):
        (x, y), (to_x, to_y) = where[one], where[other]
        length = math.hypot(to_x - x, to_y - y) or 1
        back_x, back_y = 14 * (to_x - x) / length, 14 * (to_y - y) / length
        color = "#c00" if {one, other} <= named else "#555"
        lines.append(f"<line x1='{x + back_x:.1f}' y1='{y + back_y:.1f}' x2='{to_x - back_x:.1f}' "
                     f"y2='{to_y - back_y:.1f}' stroke='{color}' marker-end='url(#head)'/>")
    for rank, (x, y) in where.items():
        fill = "#fcc" if rank in named else "#eee"
        lines.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='13' fill='{fill}' stroke='#333'/>"
                     f"<text x='{x:.1f}' y='{y + 4:.1f}' text-anchor='middle'>{rank}</text>")
    left = len(ranks) - len(shown)
    more = f"<p>{left} more ranks are not drawn.</p>" if left else ""
    return "".join(lines) + "</svg>" + more
