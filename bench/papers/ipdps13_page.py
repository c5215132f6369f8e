# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/ipdps13: what was measured beside what Chatterjee et al. (IPDPS 2013)
publish, in Markdown, and its picture."""

import page
from page import number, of, one, ratio_text, runs_text, table, values

TIMES = ("work_s", "overhead_s", "search_s", "idle_s")
SYNC = {"strict": "barrier, strict", "fuzzy": "barrier, fuzzy", "reduction": "reduction"}


# ---- the parts ---------------------------------------------------------------------------------


def synchronisation(results, published):
    """Table II. The records are those of bench/syncbench: sync_<kind>_<ranks>x<workers>."""
    rows, dates = [], set()
    for line in of(results, "synchronisation"):
        _, kind, shape = line["benchmark"].split("_")
        ranks, workers = (int(part) for part in shape.split("x"))
        crowded = ranks * workers > results["cores"]
        dates.add(line.get("date", results["date"]))
        rows.append((SYNC[kind], shape + (", oversubscribed" if crowded else ""), line["system"],
                     number(line["median_ns"] / 1e3, 3), number(line["min_ns"] / 1e3, 3)))
    text = ("Microseconds beyond the delay that all systems share, by EPCC's method: the median of "
            "the repetitions, and the least. The systems took turns in one "
            f"run on {', '.join(sorted(dates))}. This machine has {results['cores']} cores: shapes "
            "with more threads are marked as oversubscribed, and their times say little. A fuzzy "
            "phaser differs from a strict one only where several ranks have several workers "
            "each.\n\n")
    text += table(("what", "ranks x workers", "system", "here", "least"), sorted(rows))
    return text + "\n" + sync_verdict(results) + "\n" + published_sync(published)


def sync_verdict(results):
    """In how many of the rows imbrex is faster than each other system."""
    lines = {(line["benchmark"], line["system"]): line["median_ns"]
             for line in of(results, "synchronisation")}
    ours = [name for name, system in lines if system == "imbrex"]
    parts = []
    for other in ("MPI", "MPI+OpenMP"):
        pairs = [(lines[name, "imbrex"], lines[name, other]) for name in ours
                 if (name, other) in lines]
        if pairs:
            parts.append(f"than {other} in {sum(a < b for a, b in pairs)} of {len(pairs)} rows")
    return (f"Verdict: imbrex is faster {' and '.join(parts)}. With all ranks on one machine "
            "a barrier of MPI stays in shared memory; the smallest machine of the paper has two "
            "nodes.\n" if parts else "")


def published_sync(published):
    """Table II, all columns."""
    columns = list(published["table2"]["strict"]["MPI"])
    names = {"imbrex": "HCMPI"}
    rows = [(SYNC[kind], names.get(system, system),
             *(number(at.get(column), 1) for column in columns))
            for kind, systems in published["table2"].items() if kind != "note"
            for system, at in systems.items()]
    text = (f"The paper's {len(columns)} columns, nodes x cores, microseconds on MVAPICH2 and "
            "InfiniBand. None of these shapes can be had on this machine:\n\n" +
            table(("what", "system", *columns), rows))
    wins = []
    for kind, systems in published["table2"].items():
        if kind != "note":
            count = sum(systems["imbrex"][column] <= min(
                at[column] for name, at in systems.items() if name != "imbrex")
                for column in columns)
            wins.append(f"{SYNC[kind]} {count}")
    return text + (f"\nIn the paper HCMPI is not beaten in so many of {len(columns)} columns: "
                   f"{'; '.join(wins)}.\n")


def threads(results, _):
    rows = [(line["benchmark"].removeprefix("message_"), line["workers"], line["system"],
             number(line["median_ns"], 0)) for line in of(results, "threads")]
    text = ("Nanoseconds for each message (for the latency: a round trip; for the bandwidth: a "
            "block), between two ranks with so many threads or workers each. The paper draws these "
            "results without numbers: with 8 threads MPI's latency is several times "
            "HCMPI's.\n\n")
    return text + table(("test", "threads", "system", "ns"), sorted(rows))


def shares(line):
    return [number(line.get(name), 3) for name in TIMES]


def uts(results, published):
    lines = of(results, "uts")
    rows = []
    for tree in values(lines, "tree"):
        alone = of(results, "uts", tree=tree, system="sequential")
        for line in sorted(of(results, "uts", tree=tree),
                           key=lambda line: (line["system"], line["shape"])):
            ranks, workers = (int(part) for part in line["shape"].split("x"))
            cores = min(ranks * workers, results["cores"])
            share = alone[0]["seconds"] / line["seconds"] / cores if alone else None
            rows.append((tree, line["system"], line["shape"], number(line["seconds"], 3),
                         number(line["nodes"] / line["seconds"] / 1e6, 1), number(share),
                         *shares(line), line.get("fails", "-"), line["repetitions"]))
    text = ("Times are seconds, the median of so many runs as the last column says. *Share* is the "
            "speed-up over the sequential program for each core. "
            "Work, overhead, search and idle time are averages over the workers, as in Table "
            "III.\n\n")
    text += table(("tree", "system", "ranks x workers", "time", "Mnodes/s", "share", "work",
                   "overhead", "search", "idle", "failed steals", "runs"), rows)
    text += "\n" + timed(results)
    rows = [(row[0], row[1], *(number(value, 3) for value in row[2:6]), row[6],
             *(number(value, 3) for value in row[7:11]), row[11], number(row[2] / row[7], 1))
            for row in published["table3"]["rows"]]
    text += "\nThe paper's results for T1XXL on Jaguar (Table III):\n\n"
    text += table(("nodes", "cores", "MPI: time", "work", "overhead", "search", "fails",
                   "HCMPI: time", "work", "overhead", "search", "fails", "speed-up"), rows)
    return text + "\n" + speed_ups_text(published)


def speed_ups_text(published):
    said = published["speed_ups"]
    at = {row[1]: row[2] / row[7] for row in published["table3"]["rows"] if row[0] == 1024}
    pairs = ", ".join(f"{said['t1xxl'][str(cores)]:g} on {cores} cores (the table: "
                      f"{at[cores]:.2f})" for cores in (4, 8, 16))
    return ("The last column is the quotient of the two times in the table. The text of the paper "
            f"gives other speed-ups for 1,024 nodes: {pairs}. For T3XXL it gives "
            f"{said['t3xxl']['16']:g} on 16 cores, and no times. HCMPI has one communication "
            "worker, so one computing worker less than MPI has processes.\n")


def timed(results):
    lines = of(results, "uts_timed")
    if not lines:
        return ""
    rows = [(line["shape"], line["system"], number(line["seconds"], 3), *shares(line),
             line.get("fails_of_all", "-"), line["repetitions"]) for line in lines]
    return ("In the next table many ranks share few cores: the program sleeps for the time of a "
            "node, and links of 1 Gbit/s join the ranks. Failed steals are the sum over the "
            "runs.\n\n" +
            table(("ranks x workers", "system", "time", "work", "overhead", "search", "idle",
                   "failed steals", "runs"), rows))


def grid(results, _):
    text = ("The tables have seconds by chunk (`-c`, down) and polling interval (`-i`, across). "
            "The paper's best on Jaguar are 4 and 16 (T1XXL) and 15 and 8 (T3XXL) for MPI, and 8 "
            "and 4 for HCMPI.\n")
    lines = of(results, "grid")
    for tree in values(lines, "tree"):
        for system in ("mpi", "imbrex"):
            some = of(results, "grid", tree=tree, system=system)
            if not some:
                continue
            intervals = values(some, "interval")
            at = {(line["chunk"], line["interval"]): line["seconds"] for line in some}
            rows = [(chunk, *(number(at.get((chunk, interval)), 3) for interval in intervals))
                    for chunk in values(some, "chunk")]
            text += f"\n{tree}, {system}:\n\n" + table(("", *intervals), rows)
    return text


def best_alignments(results, part):
    """Of each size, shape and system the fastest of the tiles and distributions that were tried."""
    lines = of(results, part)
    for size in values(lines, "size"):
        for shape in values(lines, "shape"):
            tried = {system: of(results, part, size=size, system=system, shape=shape)
                     for system in ("forkjoin", "imbrex")}
            yield size, shape, {system: min(some, key=lambda line: line["seconds"])
                                for system, some in tried.items() if some}


ALIGNMENT_HEAD = ("cells", "ranks x workers", "system", "time", "GCUPS", "rows of a tile: outer",
                  "inner", "distribution", "fork-join's time to it", "runs")


def alignment_table(results, part):
    rows = []
    for size, shape, best in best_alignments(results, part):
        for system, line in best.items():
            ratio = best["forkjoin"]["seconds"] / line["seconds"] if "forkjoin" in best else None
            rows.append((size, shape, system, number(line["seconds"]),
                         number(line["cells"] / line["seconds"] / 1e9), line["outer"],
                         line["inner"], line["distribution"], number(ratio), line["repetitions"]))
    return table(ALIGNMENT_HEAD, rows)


def smith_waterman(results, published):
    text = ("Each row is the best of three tile sizes and two distributions.\n\n" +
            alignment_table(results, "smith_waterman"))
    if of(results, "alignment_network"):
        text += ("\nIn the next table ranks share the cores, links of 1 Gbit/s join them, and an "
                 "inner tile sleeps for its time (200 us).\n\n" +
                 alignment_table(results, "alignment_network"))
    paper = published["table4"]
    cells = 1.856e6 * 1.92e6
    rows = [(cores, *(f"{number(seconds, 1)} ({cells / seconds / 1e9:.1f})" for seconds in times))
            for cores, times in paper["cores"].items()]
    text += ("\nThe paper's results for 1.856 M x 1.92 M: seconds and GCUPS by cores (down) and "
             "nodes (across, Table IV):\n\n")
    return text + table(("", *paper["nodes"]), rows)


def communication_worker(results, _):
    rows = []
    for line in sorted(of(results, "communication_worker"),
                       key=lambda line: (line["name"], line["seconds"])):
        ranks, workers = line["shape"].split("x")
        shape = line["shape"] if line["progress"] != "dedicated-thread" else \
            f"{ranks} x ({int(workers) - 1} + 1)"
        rows.append((line["name"], line["system"], line["progress"], shape,
                     number(line["seconds"], 3), runs_text(line), number(line.get("work_s"), 3),
                     number(line.get("search_s"), 3)))
    return ("HCMPI gives one worker of a rank to communication. Here that is the mode "
            "`dedicated-thread`, beside the default `auto`, in which all four workers of a rank "
            "compute. Ranks share two processors over links of 1 Gbit/s, and kernels "
            "sleep. Four threads that poll all the time then share two processors, which costs "
            "more than a processor for each would.\n\n" +
            table(("program", "system", "progress", "ranks x workers", "time, s", "least to most",
                   "work", "search"), rows) + "\n" + worker_verdict(results))


def worker_verdict(results):
    text = ""
    for name in values(of(results, "communication_worker"), "name"):
        auto, given = (one(results, "communication_worker", name=name, system="imbrex",
                           progress=progress) for progress in ("auto", "dedicated-thread"))
        if auto and given:
            text += (f"- {name}: a communication worker takes "
                     f"{number(given['seconds'] / auto['seconds'])} times as long as `auto` "
                     "(3 of 4 workers compute: 1.33 if communication cost nothing).\n")
    return text


def table4(results, published):
    paper, rows, off = published["table4"], [], []
    for cores, times in paper["cores"].items():
        cells = []
        for nodes, known in zip(paper["nodes"], times):
            line = one(results, "table4", nodes=nodes, cores=int(cores))
            cells += [number(line and line["seconds"], 1), number(known, 1),
                      ratio_text(line and line["seconds"], known)]
            if line:
                off.append(abs(line["seconds"] / known - 1))
        rows.append((cores, *cells))
    head = [text for nodes in paper["nodes"] for text in (f"{nodes} nodes, s", "paper", "off by")]
    return ("Simulated by `imbrex simulate wavefront`: 1.856 M x 1.92 M, the outer tiles "
            "of the paper and inner tiles of 580 x 600 (paper: 290 x 300), blocks of diagonals, "
            "and one worker of a node for communication. One constant is fitted, the time of an "
            "inner tile, to 8 nodes of 2 cores. The network is `tools/networks/qdr.network`, whose "
            "latency is assumed.\n\n" +
            table(("cores", *head), rows) +
            (f"\nThe largest difference of {len(off)} points is {100 * max(off):.0f} %. "
             "With one computing worker the simulated wavefront loses time at the first and last "
             "diagonals from 16 nodes on; the paper sees that loss from 64 to 96 nodes. The "
             "simulator has no memory that workers share.\n" if off else ""))


def pool(results, published):
    return table3(results, published) + "\n" + strong_scaling(results)


def strong_scaling(results):
    """Figures 16 to 19: the paper draws its curves without numbers."""
    lines = [line for line in of(results, "pool") if line["cores"] == 16]
    trees = values(lines, "tree")
    rows = []
    for nodes in values(lines, "nodes"):
        cells = []
        for tree in trees:
            line = one(results, "pool", tree=tree, nodes=nodes, cores=16)
            cells += [number(line and line["seconds"], 3),
                      number(line and 100 * line["in_task"], 1)]
        rows.append((nodes, 16 * nodes, *cells))
    head = [text for tree in trees for text in (f"{tree}, s", "in tasks, %")]
    return ("Strong scaling on nodes of 16 cores (Figures 16 to 19), simulated with the same time "
            "of a node: one node of both trees is one hash. *In tasks* is the share of the "
            "computing workers' time. The paper draws its curves without numbers: on T1XXL, MPI "
            "stops at some 4,096 cores, and HCMPI scales to some 8,192 cores and hardly degrades "
            "from there; on T3XXL both do alike. Empty cells were not simulated: on T3XXL, whose "
            "work is harder to share, a point of 1,024 nodes takes more than 8 minutes of a "
            "processor.\n\n" + table(("nodes", "cores", *head), rows))


def table3(results, published):
    rows = []
    for row in published["table3"]["rows"]:
        line = one(results, "pool", tree="T1XXL", nodes=row[0], cores=row[1])
        if line:
            rows.append((row[0], row[1], number(line["seconds"], 3), number(row[7], 3),
                         ratio_text(line["seconds"], row[7]),
                         number(line["seconds"] * line["in_task"], 3), number(row[8], 3)))
    missing = len(published["table3"]["rows"]) - len(rows)
    return ("Simulated by `imbrex simulate pool` on the real tree T1XXL of 4.2 billion nodes, with "
            "one worker of a node for communication. The time of a node is fitted to the work of "
            "HCMPI on 64 nodes of 2 cores. The network is `edr`; Jaguar's has no file here, so "
            "latencies are assumed.\n\n" +
            table(("nodes", "cores", "time, s", "HCMPI", "off by", "work, s", "HCMPI"), rows) +
            "\nHCMPI's time on many cores is mostly search, start and end. Start and end of a "
            "program are not simulated, and the work pool of imbrex hardly searches there: the "
            "simulation says what is possible with these latencies.\n" +
            (f"\n{missing} of 12 rows have not been simulated: a row takes minutes.\n"
             if missing else ""))


PARTS = {"synchronisation": ("Barriers and reductions (Table II)", synchronisation),
         "threads": ("Threads that send (Figures 14 and 15)", threads),
         "uts": ("UTS (Table III, Figures 16 to 22)", uts),
         "grid": ("UTS: chunk and polling interval", grid),
         "communication_worker": ("A communication worker", communication_worker),
         "pool": ("UTS on 4 to 1,024 nodes (Table III, Figures 16 to 19, simulated)", pool),
         "smith_waterman": ("Smith-Waterman (Table IV, Figures 24 and 25)", smith_waterman),
         "table4": ("Smith-Waterman on 8 to 96 nodes (Table IV, simulated)", table4)}


# ---- the picture -------------------------------------------------------------------------------


def draw_shares(axis, results):
    """Draws Table III as bars: how each system spends its time."""
    lines = [line for line in of(results, "uts") if line["system"] != "sequential"]
    labels = [f"{line['tree']} {line['system']} {line['shape']}" for line in lines]
    left = [0.0] * len(lines)
    for name in TIMES:
        widths = [line.get(name) or 0.0 for line in lines]
        axis.barh(labels, widths, left=left, label=name.removesuffix("_s"))
        left = [a + b for a, b in zip(left, widths)]
    axis.set_xlabel("s")
    axis.set_title("UTS: where the time of a core goes")
    axis.legend(fontsize="small")


def draw_pool(axis, results):
    lines = [line for line in of(results, "pool") if line["cores"] == 16]
    for tree in values(lines, "tree"):
        at = sorted((line["nodes"], line["seconds"]) for line in lines if line["tree"] == tree)
        axis.plot(*zip(*at), marker="o", label=tree)
        axis.plot([at[0][0], at[-1][0]], [at[0][1], at[0][1] * at[0][0] / at[-1][0]], color="grey",
                  linewidth=0.5)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("nodes of 16 cores")
    axis.set_ylabel("s")
    axis.set_title("UTS, simulated; grey: ideal")
    if lines:
        axis.legend(fontsize="small")


def draw_alignment(axis, results):
    lines = of(results, "smith_waterman")
    bars = {}
    for line in lines:
        label = f"{line['size']}\n{line['system']} {line['shape']}"
        bars[label] = max(bars.get(label, 0.0), line["cells"] / line["seconds"] / 1e9)
    axis.barh(list(bars), list(bars.values()))
    axis.set_xlabel("GCUPS")
    axis.set_title("Smith-Waterman: the best of each")


def draw_synchronisation(axis, results):
    lines = of(results, "synchronisation")
    labels = [f"{line['benchmark'].removeprefix('sync_')} {line['system']}" for line in lines]
    axis.barh(labels, [line["median_ns"] / 1e3 for line in lines])
    axis.tick_params(axis="y", labelsize="x-small")
    axis.set_xlabel("us")
    axis.set_title("barriers and reductions")


def write(path, results, published):
    text = ["This page compares imbrex with the results of " + published["source"] + ": barriers, "
            "messages of several threads, UTS and Smith-Waterman. "
            f"`bench/papers/ipdps13` wrote it from {page.origin(results)}.", "",
            "```sh", "bench/papers/ipdps13", "```", "",
            f"![picture]({page.picture_of(path).name})", ""]
    limits = ["## Limits", "",
              "The paper's programs ran on up to 1,024 nodes of 16 cores, these on one machine. "
              "Compare the ratios of systems, not the seconds.\n"]

    def picture(axes):
        draw_shares(axes[0][0], results)
        draw_pool(axes[0][1], results)
        draw_alignment(axes[1][0], results)
        draw_synchronisation(axes[1][1], results)

    page.write(path, "Integrating asynchronous task parallelism with MPI: measured and published",
               text + page.describe(PARTS, results, published) + limits, picture)
