# SPDX-License-Identifier: BSD-3-Clause
"""The parts that runners of bench/papers share: options, the file of results, and the making of a
page. A runner measures its parts and adds lines to the results; its page reads them."""

import datetime
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import page
import records

HERE = pathlib.Path(__file__).resolve().parent


def program(name):
    """A program of this folder as a module: it has no suffix."""
    loader = importlib.machinery.SourceFileLoader(name, str(HERE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def options(doc, paper, parts, repetitions):
    """A parser with what every runner has; the runner adds its own."""
    parser = records.options(doc, repetitions, prints_rows=False)
    parser.set_defaults(paper=paper)
    parser.add_argument("--parts", nargs="*", choices=parts, default=parts, metavar="PART",
                        help="parts to measure, of " + ", ".join(parts) + " (default: all); no "
                             "PART: write the page only")
    parser.add_argument("--missing", action="store_true",
                        help="only what the results lack (not every part of every paper)")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / f"{paper}_results.json",
                        help="the file of all results (default: beside this program)")
    parser.add_argument("--page", type=pathlib.Path,
                        default=page.path_of(paper),
                        help="the page to write; its picture goes beside it, as .png")
    return parser


def replace(results, key, line):
    """`line` instead of what was measured of `key` before."""
    results[:] = [old for old in results if any(old.get(n) != v for n, v in key.items())]
    results.append({**line, **key})


def lacks(arguments, results, key):
    """Whether it is to be measured."""
    return not arguments.missing or not any(
        all(line.get(n) == v for n, v in key.items()) for line in results)


def keep(arguments, results, key, line):
    """replace(), with the day and the commit, and the file is saved at once: a run that is ended
    goes on from there with --missing."""
    today = datetime.date.today().isoformat()
    replace(results, key, {**line, "date": today, "commit": commit()})
    path = arguments.results
    head = json.loads(path.read_text()) if path.exists() else {}
    save(path, {**head, "date": today}, results)


def commit():
    done = subprocess.run(["git", "-C", str(records.SOURCE), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip()


def simulate(build, *words):
    """The records of `imbrex simulate` with these words, one for each policy and point. A program
    of its own may follow `--`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "simulated.json"
        command = [build / "bin" / "imbrex", "simulate", "--json", path, *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise records.Failed(f"imbrex simulate: {done.stderr.strip()[-400:]}")
        return json.loads(path.read_text())


def save(path, head, results):
    """One result a line, in an order of its own: measuring again changes the lines measured. A new
    result gets the name of this machine."""
    for line in results:
        line.setdefault("on", page.machine())
    lines = sorted(json.dumps(line, sort_keys=True) for line in results)
    head = {name: value for name, value in head.items() if name not in ("results", "machine")}
    path.write_text(json.dumps(head)[:-1] + ', "results": [\n' + ",\n".join(lines) + "\n]}\n")


def main(arguments, run_parts, **head):
    """run_parts(arguments, results) adds lines; the page shows all that are kept."""
    kept = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    results = kept.get("results", [])
    if arguments.parts:
        run_parts(arguments, results)
        save(arguments.results, {"date": datetime.date.today().isoformat(), **head}, results)
    if not results:
        sys.exit("bench: there are no results yet: run it with --parts")
    page.page_of(arguments.paper, json.loads(arguments.results.read_text()),
                 path=arguments.page).write()
    records.say(f"page: {arguments.page}, with its picture")
