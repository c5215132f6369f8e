# SPDX-License-Identifier: BSD-3-Clause
"""What docs/user/results.md says, from the records of bench/results: tables, charts, and the rows
in which another system is faster."""

import json
import sys

import records

sys.path.append(str(records.SOURCE / "bench" / "papers"))
import page  # noqa: E402 (found by the line before)

RESULTS = records.SOURCE / "bench" / "results.json"
PAGE = records.SOURCE / "docs" / "user" / "results.md"

# Groups of the page: the script, the names of its records (those that end with _ begin so), and the
# title.
GROUPS = {
    "tasks": ("compare", ("spawn", "chain", "stencil", "fib", "suspend"),
              "Tasks and dependencies"),
    "iterate": ("compare", ("iterate_",), "Graphs that are built once"),
    "openmp": ("compare", ("omp_",), "OpenMP programs"),
    "messages": ("compare", ("pingpong", "pingpong_busy", "outstanding_"),
                 "Messages in tasks, beside MPI"),
    "mpi": ("compare_mpi", ("pingpong_4096", "pingpong_65536", "pingpong_1048576", "message_",
                            "waiting_ring_", "preload_"),
            "Bandwidth, rate and latency, beside MPI"),
    "sync": ("syncbench", ("sync_",), "Barriers and reductions over ranks"),
}
# Cases without a peer.
OWN = {"compare": ("release_", "oversubscribed_", "outstanding_tasks_", "spawn_window_off"),
       "compare_mpi": ("waiting_cpu",)}
# Counts of imbrex alone: the script, the value of its records, and the title of the chart.
COUNTS = (("instructions", "instructions", "instructions of a task or call"),
          ("lines", "moved", "cache lines that move for a task"))
# Other ways to run imbrex, which are no peers.
OURS = ("imbrex", "imbrex, HCMPI", "imbrex_llvm", "MPI+OpenMP by imbrex", "tasks")
SHOWN_MOST = 20     # of a bar, in times of imbrex


def records_of(build):
    path = build / "bench.json"
    return json.loads(path.read_text()) if path.exists() else []


def script_of(record):
    """The script that has measured a record; "" for one that has no place on the page."""
    name = record["benchmark"]
    for script, _, _ in COUNTS:
        if name.startswith(script + "_"):
            return script
    names = [*OWN.items(), *((script, its) for script, its, _ in GROUPS.values())]
    return next((script for script, its in names if is_named(name, its)), "")


def is_named(name, names):
    return any(name.startswith(one) if one.endswith("_") else name == one for one in names)


def is_own(record):
    return any(is_named(record["benchmark"], names) for names in OWN.values())


def stored():
    """What bench/results has kept; without results an empty page."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"scripts": {}}


def stored_page():
    return Results(stored())


def name_of(record, script):
    return record["benchmark"].removeprefix(script + "_")


def unit_of(record):
    return next((key for key in record if key.startswith("median_")), "")


class Case:
    """The records of one benchmark and number of workers."""

    def __init__(self, name, workers):
        self.name, self.workers, self.records = name, workers, []

    def ours(self):
        return next((one for one in self.records if one["system"] == "imbrex"), None)

    def peers(self):
        """Those that do the same work, the fastest first."""
        found = [one for one in self.records if one["system"] not in OURS]
        return sorted(found, key=lambda one: (runs_inline(one), one[unit_of(one)]))

    def others(self):
        """The peers, then the other ways to run imbrex."""
        return self.peers() + [one for one in self.records
                               if one["system"] in OURS and one is not self.ours()]

    def ratio(self, other):
        """How many times as long as imbrex another system takes; None where a delay that was
        subtracted leaves nothing."""
        times = [one[unit_of(one)] for one in (other, self.ours())]
        return times[0] / times[1] if min(times) > 0 else None


def runs_inline(record):
    return record.get("inline_share", 0) > records.INLINE_LIMIT


def cases_of(lines):
    found = {}
    for record in lines:
        if unit_of(record):
            key = record["benchmark"], record["workers"]
            found.setdefault(key, Case(*key)).records.append(record)
    return list(found.values())


class Results:
    def __init__(self, results):
        self.scripts = results["scripts"]

    def lines(self, script):
        return self.scripts.get(script, {}).get("records", [])

    def origin(self):
        """Where, when and at which commits."""
        parts = self.scripts.values()
        machines = " and ".join(sorted({part["on"] for part in parts}))
        days = sorted({part["date"] for part in parts})
        commits = ", ".join(sorted({part["commit"] for part in parts}))
        when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
        return f"{machines}; {when}; commit {commits}"

    def peers(self):
        return ", ".join(sorted({record["system"] for script in self.scripts
                                 for record in self.lines(script)
                                 if record["system"] not in OURS}))

    def cases(self, group):
        script, names, _ = GROUPS[group]
        lines = [line for line in self.lines(script)
                 if is_named(line["benchmark"], names) and not is_own(line)]
        return [case for case in cases_of(lines) if case.ours() and case.peers()]

    def losses(self):
        """(case, workers, ours, the faster system and its time, ratio), the greatest first."""
        found = []
        for group in GROUPS:
            for case in self.cases(group):
                best = case.peers()[0]
                ratio = case.ratio(best)
                if not runs_inline(best) and ratio is not None and ratio < 0.95:
                    ours = case.ours()
                    found.append((f"`{case.name}`", case.workers, time_of(ours),
                                  f"{best['system']} {time_of(best)}", f"{1 / ratio:.2f}",
                                  1 / ratio))
        return [row[:-1] for row in sorted(found, key=lambda row: -row[-1])]

    def missed(self):
        """(case, workers, target, value) of the records that miss the project's own target."""
        return [(f"`{line['benchmark']}`", line["workers"], line["target"], time_of(line))
                for script in self.scripts for line in self.lines(script)
                if line.get("reached") is False]

    def table(self, group):
        """(case, workers, imbrex, the others with their ratios) of each case."""
        rows = []
        for case in self.cases(group):
            others = [f"{one['system']} {time_of(one)} ({page.number(case.ratio(one))})"
                      + (" *" if runs_inline(one) else "") for one in case.others()]
            ours = case.ours()
            rows.append((f"`{case.name}`", case.workers, time_of(ours), spread_of(ours),
                         "; ".join(others)))
        return rows

    def groups(self):
        return [(name, title) for name, (_, _, title) in GROUPS.items() if self.cases(name)]

    def alone(self):
        """Cases without a peer."""
        return [(f"`{line['benchmark']}`", line["workers"], time_of(line), spread_of(line))
                for script in OWN for line in self.lines(script)
                if is_own(line) and line["system"] in OURS]

    def instructions(self):
        return [(f"`{name_of(line, 'instructions')}`", line["instructions"],
                 line.get("target", "-")) for line in self.lines("instructions")]

    def moved_lines(self):
        return [(f"`{name_of(line, 'lines')}`", line["workers"], line["accesses"], line["moved"],
                 line["data"]) for line in self.lines("lines")]

    def text(self):
        return page.unfolded(page.rendered("results.md", {
            name: getattr(self, name) for name in dir(self) if not name.startswith("_")}))

    def write(self):
        PAGE.write_text(self.text())
        for group, title in self.groups():
            draw(self.cases(group), title, PAGE.with_name(f"results-{group}.png"))
        for script, key, title in COUNTS:
            bars = [(f"{name_of(line, script)}, {line['workers']}", line[key])
                    for line in self.lines(script)]
            if bars:
                draw_counts(bars, title, PAGE.with_name(f"results-{script}.png"))


def time_of(record):
    if "instructions" in record:
        return f"{record['instructions']:,.1f} instructions"
    unit = unit_of(record)
    if not unit:
        return f"{record.get('moved', 0):.2f} lines"
    value = record[unit]
    if unit != "median_ns":
        return f"{value:,.2f} {unit.removeprefix('median_')}"
    if value >= 1e6:
        return f"{value / 1e6:,.2f} ms"
    return f"{value / 1e3:,.2f} us" if value >= 1e4 else f"{value:,.1f} ns"


def spread_of(record):
    if record.get("repetitions", 1) < 2:
        return "one run"
    least, most = (record[unit_of(record).replace("median", kind)] for kind in ("min", "max"))
    middle = record[unit_of(record)] or 1
    return f"{100 * (least / middle - 1):+.0f} to {100 * (most / middle - 1):+.0f} %"


def draw_counts(bars, title, path):
    plt = page.pyplot()
    figure, axis = plt.subplots(figsize=(10, 0.8 + 0.22 * len(bars)))
    axis.barh([name for name, _ in bars], [count for _, count in bars], color="#4878a8")
    axis.invert_yaxis()
    axis.tick_params(axis="y", labelsize=7)
    page.finish(axis, title)
    figure.tight_layout()
    page.save_picture(figure, path)
    plt.close(figure)


def draw(cases, title, path):
    """A bar for each peer of each case, in times of imbrex, on a scale of powers."""
    bars = [(f"{case.name}, {case.workers}: {one['system']}", case.ratio(one), runs_inline(one))
            for case in cases for one in case.peers() if case.ratio(one) is not None]
    plt = page.pyplot()
    figure, axis = plt.subplots(figsize=(10, 0.8 + 0.22 * len(bars)))
    for place, (_, ratio, inline) in enumerate(bars):
        colour = "#bbbbbb" if inline else "#4878a8" if ratio >= 1 else "#c85a4a"
        shown = min(ratio, SHOWN_MOST)
        axis.barh(place, shown - 1, left=1, color=colour)
        axis.text(max(shown, 1) * 1.03, place, f"{ratio:.2f}", va="center", fontsize=7)
    axis.set_yticks(range(len(bars)), [name for name, _, _ in bars], fontsize=7)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlim(min([ratio for _, ratio, _ in bars] + [0.8]) * 0.8, SHOWN_MOST * 1.3)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    axis.minorticks_off()
    page.finish(axis, title, "time of the other system by imbrex's (right of 1: imbrex is faster)")
    figure.tight_layout()
    page.save_picture(figure, path)
    plt.close(figure)
