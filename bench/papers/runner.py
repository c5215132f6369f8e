# SPDX-License-Identifier: BSD-3-Clause
"""The parts that runners of bench/papers share: options, the file of results, and the making of a
page. A runner measures its parts and adds lines to the results; its page reads them."""

import datetime
import importlib.machinery
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys

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
    parser.add_argument("--parts", nargs="*", choices=parts, default=list(parts), metavar="PART",
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


def save(path, head, results):
    """One result a line, in an order of its own: measuring again changes the lines measured. A new
    result gets the name of this machine."""
    for line in results:
        line.setdefault("on", page.machine())
    lines = sorted(json.dumps(line, sort_keys=True) for line in results)
    head = {name: value for name, value in head.items() if name not in ("results", "machine")}
    path.write_text(json.dumps(head)[:-1] + ', "results": [\n' + ",\n".join(lines) + "\n]}\n")


# ---- measuring and simulating ------------------------------------------------------------------


def text_of(key):
    return " ".join(map(str, key.values()))


def times_of(runs):
    """{repetition: figures} as a line: the median time, the least, the most, and each. Ratios are
    taken between neighbours in time, so by repetition."""
    each = {str(repetition): run["seconds"] for repetition, run in sorted(runs.items())}
    return {"seconds": statistics.median(each.values()), "least_s": min(each.values()),
            "most_s": max(each.values()), "repetitions": len(each), "each_s": each}


def measure(arguments, results, cases, run, key_of, of_all=lambda runs: {}):
    """Adds a line for each case, with the figures of its run of median time, and of all its runs;
    cases take turns."""
    found = records.take_turns(cases, arguments.repetitions, run,
                               lambda case: text_of(key_of(case)))
    for place, runs in found.items():
        if runs:
            ordered = sorted(runs.values(), key=lambda run: run["seconds"])
            replace(results, key_of(cases[place]),
                    {**ordered[len(ordered) // 2], **times_of(runs), **of_all(ordered)})


def tried(what, run):
    """What `run` returns; None if it failed, which is reported."""
    try:
        return run()
    except records.Failed as error:
        records.say(f"bench: {what}: {error}")
        return None


def figures_of(found):
    """What is kept of a simulation."""
    return {name: found[0][name] for name in ("seconds", "in_task", "idle", "overhead", "tasks",
                                              "messages", "bytes")}


def simulate(arguments, results, key, *words, figures=figures_of):
    """Keeps the figures of `imbrex simulate` with these words, if there are none yet."""
    if lacks(arguments, results, key):
        records.say(f"simulate: {text_of(key)}")
        found = tried(text_of(key), lambda: records.simulate(arguments.build / "bin" / "imbrex",
                                                             *words))
        if found is not None:
            keep(arguments, results, key, figures(found))


def bench_records(arguments, program, *words):
    """What another program of bench/ has measured, of all its records; none if it failed."""
    command = [records.SOURCE / "bench" / program, "--build", arguments.build, *words]
    if not records.run_shown(list(map(str, command))):
        records.say(f"bench: bench/{program} could not measure")
        return []
    return json.loads((arguments.build / "bench.json").read_text())


# ---- main --------------------------------------------------------------------------------------


def main(arguments, parts, libraries=("imbrex-simulate",), **head):
    """`parts`: {name: (function, programs)}; function(arguments, results) adds lines. The page
    shows all lines that are kept."""
    kept = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    results = kept.get("results", [])
    if arguments.parts:
        wanted = {name for part in arguments.parts for name in parts[part][1]}
        records.prepare(arguments, sorted(wanted), libraries)
        for part, (function, _) in parts.items():
            if part in arguments.parts:
                function(arguments, results)
        save(arguments.results, {"date": datetime.date.today().isoformat(), **head}, results)
    if not results:
        sys.exit("bench: there are no results yet: run it with --parts")
    page.page_of(arguments.paper, json.loads(arguments.results.read_text()),
                 path=arguments.page).write()
    records.say(f"page: {arguments.page}, with its picture")
