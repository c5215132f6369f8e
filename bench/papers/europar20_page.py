# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/europar20: what was measured and simulated beside what Denis et al.
(Euro-Par 2020) publish, in Markdown, and its picture."""

import math
import statistics

import page
from page import number, of, runs_text, table, values

NAMES = {"explicit": "messages in the program", "trees": "inserted, trees",
         "star": "inserted, star", "starpu": "StarPU-MPI", "scalapack": "ScaLAPACK"}
MPI = ("MPI_Bcast", "MPI_Ibcast")


def one(results, part, **wanted):
    found = of(results, part, **wanted)
    return found[0] if found else None


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def ratios(line, other):
    """Of the same repetition: neighbours in time, so that the machine's drift cancels."""
    if line is None or other is None:
        return []
    return [seconds / other["each_s"][repetition]
            for repetition, seconds in line["each_s"].items() if repetition in other["each_s"]]


def ratio(line, other):
    found = ratios(line, other)
    return statistics.median(found) if found else None


def cholesky_line(results, system, grid, tiles):
    return one(results, "cholesky", system=system, grid=grid, tiles=tiles)


def gain(trees, star):
    """Per cent less time."""
    return None if trees is None else 100 * (1 - trees / star)


# ---- goals -------------------------------------------------------------------------------------


def one_copy_s(results, size):
    line = one(results, "broadcast", system="one copy", bytes=size) or \
        one(results, "broadcast", system="loop", ranks=2, bytes=size)
    return line["seconds"] if line else None


def broadcast_goals(results):
    for ranks, most in ((4, 1.4), (8, 1.8)):
        for size in values(of(results, "broadcast", ranks=ranks), "bytes"):
            ours = one(results, "broadcast", system="imbrex", ranks=ranks, bytes=size)
            copy = one_copy_s(results, size)
            if ours is None or size < 2 << 20:
                continue
            if copy:
                yield (f"{size_text(size)} to {ranks} ranks, to one copy", ours["seconds"] / copy,
                       most)
            library = [line["seconds"] for system in MPI
                       for line in of(results, "broadcast", system=system, ranks=ranks, bytes=size)]
            if library:
                yield (f"{size_text(size)} to {ranks} ranks, to the faster of {' and '.join(MPI)}",
                       ours["seconds"] / min(library), 1.05)


def copies_goals(results):
    """Yields the goals for the number of copies that the root sends itself."""
    for ranks in (4, 8):
        for line in sorted(of(results, "broadcast", system="imbrex", ranks=ranks),
                           key=lambda line: line["bytes"]):
            if 256 << 10 <= line["bytes"] < 2 << 20:
                continue
            most = 1 if line["bytes"] >= 2 << 20 else math.ceil(math.log2(ranks))
            yield f"copies that the root sends of {size_text(line['bytes'])} to {ranks} ranks", \
                line.get("copies"), most


def starpu_ratios(results):
    found = []
    for part in ("cholesky", "real"):
        for line in of(results, part, system="trees"):
            other = one(results, part, system="starpu", grid=line["grid"], tiles=line["tiles"])
            if other is not None:
                found.append(ratio(line, other))
    return [value for value in found if value is not None]


def goals(results):
    """(what, measured, the most that it may be)"""
    yield from broadcast_goals(results)
    yield from copies_goals(results)
    sizes = values(of(results, "cholesky"), "tiles")
    if sizes:
        most = sizes[-1]
        line = {system: cholesky_line(results, system, "1x4", most) for system in NAMES}
        yield f"Cholesky 1x4, {most} tiles a side, trees to star", ratio(line["trees"],
                                                                        line["star"]), 0.80
        line = {system: cholesky_line(results, system, "2x2", most) for system in NAMES}
        yield (f"Cholesky 2x2, {most} tiles a side, trees to messages in the program",
               ratio(line["trees"], line["explicit"]), 1.03)
    real = {system: one(results, "real", system=system) for system in NAMES}
    yield "kernels that compute, 2 ranks: inserted to messages", ratio(real["trees"],
                                                                       real["explicit"]), 1 / 0.95
    against = starpu_ratios(results)
    if against:
        yield "to StarPU-MPI, geometric mean", math.prod(against) ** (1 / len(against)), 1.0
        yield "to StarPU-MPI, the largest", max(against), 1.05
    yield from simulated_goals(results, sizes)
    yield ("fifo, Cholesky 2x2 with messages, `IMBREX_SENDS=on` to `off`",
           ratio(one(results, "sends", sends="on"), one(results, "sends", sends="off")), 0.90)


def simulated_goals(results, sizes):
    points = [(measured, simulated) for _, tiles, _, measured, simulated in
              simulated_rows(results) if tiles == sizes[-1]]
    if points:
        yield (f"simulated to measured, or measured to simulated, the largest of {len(points)} "
               "points", max(max(a / b, b / a) for a, b in points), 1.10)
    for grid in values(of(results, "cholesky"), "grid"):
        line = cholesky_line(results, "trees", grid, sizes[-1])
        if line and line.get("broadcasts"):
            yield (f"broadcasts of the Cholesky {grid} not found with the full list",
                   1 - line["broadcasts_full"] / line["broadcasts"], 0.02)


def describe_goals(results, _):
    rows = [(what, number(value, 3), f"<= {most:.2f}",
             "yes" if value <= most else "NO") for what, value, most in goals(results)
            if value is not None]
    return table(("ratio", "measured", "goal", "reached"), rows)


# ---- the parts ---------------------------------------------------------------------------------


def broadcast(results, _):
    lines = of(results, "broadcast")
    systems = sorted({line["system"] for line in lines} - {"one copy"})
    rows = []
    for size in values(lines, "bytes"):
        copy = one_copy_s(results, size)
        for ranks in values(lines, "ranks"):
            at = {system: one(results, "broadcast", system=system, ranks=ranks, bytes=size)
                  for system in systems}
            if not any(at.values()):
                continue
            rows.append((size_text(size), ranks,
                         *(number(at[system]["seconds"] * 1e3, 1) if at[system] else "-"
                           for system in systems),
                         number(at["imbrex"]["seconds"] / copy)
                         if at.get("imbrex") and copy else "-"))
    return ("Milliseconds from the root's start to the last arrival, over links of 100 Mbit/s. The "
            "last column is imbrex's time divided by the time of one copy to one rank.\n\n" +
            table(("bytes", "ranks", *systems, "imbrex to one copy"), rows))


def figure2(results, _):
    trees_of = ("star", "binomial", "chain", "auto")
    rows = [(ranks, *(number(line and 1e3 * line["seconds"], 1) for line in (
        one(results, "figure2", ranks=ranks, tree=tree) for tree in trees_of)))
        for ranks in values(of(results, "figure2"), "ranks")]
    return ("Simulated by `imbrex simulate broadcast`, with the library's own protocol: "
            "milliseconds of 8 MB to so many nodes, on `tools/networks/qdr.network`, whose latency "
            "is assumed. `auto` is what imbrex chooses. The paper (figure only) finds that a loop "
            "of sends is linear in the number of nodes, and that its broadcast, a binomial tree, "
            "and `MPI_Bcast` are logarithmic and equally fast.\n\n" +
            table(("nodes", *(f"{tree}, ms" for tree in trees_of)), rows))


def repetitions_text(lines):
    """Returns how often each of these lines was run."""
    least, most = (chosen(line["repetitions"] for line in lines) for chosen in (min, max))
    if most == 1:
        return "one run of each"
    return f"medians of {least}" + ("" if least == most else f" to {most}") + " runs"


def share_found(line):
    if not line or not line.get("broadcasts"):
        return "-"
    return f"{100 * line['broadcasts_full'] / line['broadcasts']:.1f} %"


def cholesky(results, published):
    lines = of(results, "cholesky")
    rows = []
    for grid in values(lines, "grid"):
        for tiles in values(lines, "tiles"):
            at = {system: cholesky_line(results, system, grid, tiles) for system in NAMES}
            trees_to_star = ratio(at["trees"], at["star"])
            rows.append((grid, tiles,
                         *(number(at[system] and at[system]["seconds"], 3)
                           for system in ("explicit", "star", "trees", "starpu")),
                         "-" if trees_to_star is None else f"{100 * (1 - trees_to_star):.0f} %",
                         number(ratio(at["trees"], at["explicit"])),
                         number(ratio(at["trees"], at["starpu"])), share_found(at["trees"])))
    text = (f"Seconds, with tiles of 512, kernels that sleep (gemm 6 ms), one worker a rank, links "
            f"of 1 Gbit/s, policy `{results['policy']}`; {repetitions_text(lines)}. The gain is "
            "that of trees over star. The "
            "last column is the share of broadcasts that were found with the list of all ranks "
            f"that need the tile; the paper has {published['found_with_full_list_percent']} %.\n\n")
    return text + table(("grid", "tiles a side", "messages", "star", "trees", "StarPU-MPI", "gain",
                         "trees to messages", "trees to StarPU-MPI", "full lists"), rows)


def real(results, _):
    rows = []
    explicit = one(results, "real", system="explicit")
    for system, name in NAMES.items():
        line = one(results, "real", system=system)
        if line is not None:
            rows.append((name, number(line["seconds"], 3),
                         runs_text(line), number(line.get("gflops"), 1),
                         number(ratio(line, explicit))))
    return ("The kernels compute: n = 8192, tiles of 512 (ScaLAPACK: blocks of 128), 2 ranks with "
            "one worker each on one machine.\n\n" +
            table(("", "seconds", "least to most", "Gflop/s", "to messages"), rows))


def sends(results, _):
    rows = [(f"`IMBREX_SENDS={line['sends']}`", number(line["seconds"], 3),
             runs_text(line)) for line in of(results, "sends")]
    return ("The Cholesky factorisation with messages in the program, 2x2 ranks, 32 x 32 tiles: "
            "with `on` long messages take turns in imbrex, with `off` MPI gets all at once.\n\n" +
            table(("", "seconds", "least to most"), rows))


def simulated_rows(results):
    for grid in values(of(results, "cholesky"), "grid"):
        for tiles in values(of(results, "cholesky"), "tiles"):
            found = one(results, "simulated", grid=grid, tiles=tiles)
            for system, tree in (("star", "star"), ("trees", "auto")):
                line = cholesky_line(results, system, grid, tiles)
                if found and line:
                    yield grid, tiles, system, line["seconds"], found[tree]


def simulated(results, _):
    text = ("`imbrex simulate` with the tasks that `tiled` inserts, on "
            "`tools/networks/netlab-1gbit.network`. No parameter was fitted.\n\n")
    rows = [(grid, tiles, system, number(measured, 3), number(predicted, 3),
             f"{100 * (predicted / measured - 1):+.0f} %")
            for grid, tiles, system, measured, predicted in simulated_rows(results)]
    return text + table(("grid", "tiles a side", "", "measured, s", "simulated, s", "off by"), rows)


def limits(results, _):
    def at(policy, network, tree, gap_us=None):
        found = [line[tree] for line in of(results, "limits", policy=policy, network=network)
                 if gap_us in (None, line["gap_us"])]
        return statistics.median(found) if found else None

    gaps = values(of(results, "limits", policy="default", network="netlab-1gbit"), "gap_us")
    rows = [("`default`", "1 Gbit/s", f"{gap:,}", *(number(at("default", "netlab-1gbit", tree, gap),
                                                            2) for tree in ("star", "auto")))
            for gap in gaps]
    rows += [(f"`{policy}`", rate, f"{line['gap_us']:,}", number(line["star"], 2),
              number(line["auto"], 2))
             for policy, network, rate in (("default", "hdr", "194 Gbit/s"),
                                           ("fa", "netlab-1gbit", "1 Gbit/s"),
                                           ("fa", "hdr", "194 Gbit/s"))
             for line in of(results, "limits", policy=policy, network=network)]
    text = ("Simulated, 1x4 ranks, 32 tiles a side: seconds by the policy, the rate of the links, "
            "and the time between two polls of a rank whose worker is in a kernel. A relay passes "
            "a segment on when it polls.\n\n" +
            table(("policy", "links", "polls, us", "star", "trees"), rows))
    trees = [line["auto"] for line in of(results, "limits", policy="default",
                                         network="netlab-1gbit")]
    star = cholesky_line(results, "star", "1x4", 32)
    if star is None or not trees:
        return text
    return text + (
        f"\nTrees take {number(min(trees))} to {number(max(trees))} s, whatever the time between "
        "polls is. So relays that poll late do not keep trees from the goal. The goal, 0.80 of the "
        f"measured star, is {number(0.8 * star['seconds'])} s. Links that take almost no time "
        f"give {number(at('default', 'hdr', 'auto'))} s. The order of tasks gives more than "
        f"faster relays: `fa` takes {number(at('fa', 'netlab-1gbit', 'auto'))} s.\n")


CLUSTER_TREES = ("star", "binomial", "chain", "auto")


def cluster_rows(results, name):
    """(tiles of a side, seconds by tree) of one machine."""
    for tiles in values(of(results, "clusters", machine=name), "tiles"):
        yield tiles, one(results, "clusters", machine=name, tiles=tiles)


def clusters(results, published):
    text = ("Predictions by `imbrex simulate` for the program that is measured above, with tiles "
            "of 320. Kernels and rates are from data sheets, and the latency of the networks is "
            f"assumed; policy `{results['policy']}`. `auto` is what imbrex chooses, and `messages` "
            "is the variant with MPI calls in the program. Gains are gains over star. The paper "
            "draws its curves by matrix size, without numbers, and its text has the best gain of "
            "each machine.\n\n")
    rows = []
    for name, best in best_gains(published):
        for tiles, at in cluster_rows(results, name):
            rows.append((name, tiles, *(number(at[tree], 3) for tree in ("messages",
                                                                         *CLUSTER_TREES)),
                         *(f"{gain(at[tree], at['star']):.0f} %" for tree in ("binomial", "auto")),
                         f"{best} %"))
    return text + table(("machine", "tiles a side", "messages, s",
                         *(f"{tree}, s" for tree in CLUSTER_TREES), "gain, binomial", "gain, auto",
                         "paper, at best"), rows) + "\n" + gaps_of_clusters(results, published)


def gaps_of_clusters(results, published):
    """How the best gains differ from the paper's, and why."""
    text = ""
    for name, best in best_gains(published):
        rows = list(cluster_rows(results, name))
        if not rows:
            continue
        tiles, at = max(rows, key=lambda row: gain(row[1]["auto"], row[1]["star"]))
        other, least = max(rows, key=lambda row: gain(row[1]["auto"], row[1]["messages"]))
        text += (f"- {name}: the best gain over star is {gain(at['auto'], at['star']):.0f} %, at "
                 f"{tiles} tiles a side (paper {best} %). The best gain over the variant with "
                 f"messages is {gain(least['auto'], least['messages']):.0f} %, at {other} tiles.\n")
    return text + (
        "- **Why the gains over star are another size.** The baseline of the paper sends one "
        "message to each reader of a tile, as the variant with messages does. In the simulation "
        "these messages share the link of the owner evenly. The star of imbrex serves one reader "
        "before the next, and the tile with the highest priority, or else the oldest, before other "
        "tiles. So early readers wait less than in that variant.\n"
        "- **Why the gains do not grow towards small matrices on inti.** The kernels of the "
        "critical path alone take 5.1 ms a step, 0.10 s with 20 tiles a side, so a tree cannot "
        "gain more than a fifth there. Times of kernels are from data sheets; faster kernels move "
        "the best gain to smaller matrices.\n"
        "- **Large matrices** gain less on 16 and 64 nodes, as the paper finds.\n")


def best_gains(published):
    return [(name, best) for name, best in published["best_gain_percent"].items()
            if name != "note"]


PARTS = {"broadcast": ("The broadcast of one datum (Figure 2)", broadcast),
         "figure2": ("A broadcast on 100 nodes (Figure 2, simulated)", figure2),
         "cholesky": ("Cholesky by matrix size (Figures 4 and 5)", cholesky),
         "real": ("Kernels that compute", real),
         "sends": ("Sends in order", sends),
         "simulated": ("Cholesky, simulated beside measured", simulated),
         "limits": ("What limits the gain of trees (simulated)", limits),
         "clusters": ("Cholesky on 16, 64 and 100 nodes (Figures 4 and 5, simulated)", clusters)}


# ---- the picture -------------------------------------------------------------------------------


def draw_broadcast(axis, results):
    lines = of(results, "broadcast")
    sizes = values(lines, "bytes")
    size = next((size for size in reversed(sizes) if size <= 2 << 20), None)
    for system in sorted({line["system"] for line in lines} - {"one copy"}):
        found = sorted(of(results, "broadcast", system=system, bytes=size),
                       key=lambda line: line["ranks"])
        axis.plot([line["ranks"] for line in found], [line["seconds"] for line in found],
                  marker="o", label=system)
    axis.set_xlabel("ranks")
    axis.set_ylabel("s")
    axis.set_title(f"broadcast of {size_text(size)}, 100 Mbit/s" if size else "broadcast")
    if lines:
        axis.legend(fontsize="small")


def draw_cholesky(axis, results):
    lines = of(results, "cholesky")
    tiles = values(lines, "tiles")
    labels, bars = [], {system: [] for system in NAMES}
    for grid in values(lines, "grid"):
        at = {system: cholesky_line(results, system, grid, tiles[-1]) for system in NAMES}
        labels.append(f"{grid}, {tiles[-1]} x {tiles[-1]} tiles")
        for system in NAMES:
            bars[system].append(at[system]["seconds"] if at[system] else 0)
    shown = [system for system in NAMES if any(bars[system])]
    for index, system in enumerate(shown):
        places = [place + index * 0.8 / len(shown) for place in range(len(labels))]
        axis.bar(places, bars[system], 0.8 / len(shown), label=NAMES[system])
    axis.set_xticks([place + 0.3 for place in range(len(labels))], labels)
    axis.set_ylabel("s")
    axis.set_title("Cholesky, kernels asleep, 1 Gbit/s")
    if labels:
        axis.legend(fontsize="small")


def draw_gain(axis, results):
    for grid in values(of(results, "cholesky"), "grid"):
        points = [(tiles, ratio(cholesky_line(results, "trees", grid, tiles),
                                cholesky_line(results, "star", grid, tiles)))
                  for tiles in values(of(results, "cholesky"), "tiles")]
        points = [(tiles, 100 * (1 - value)) for tiles, value in points if value is not None]
        axis.plot(*zip(*points), marker="o", label=f"{grid} measured") if points else None
        at = {(tiles, system): seconds for which, tiles, system, _, seconds in
              simulated_rows(results) if which == grid}
        sizes = sorted({tiles for tiles, _ in at})
        axis.plot(sizes, [gain(at[tiles, "trees"], at[tiles, "star"]) for tiles in sizes],
                  linestyle="--", label=f"{grid} simulated")
    axis.set_xlabel("tiles a side")
    axis.set_ylabel("%")
    axis.set_title("less time by trees than by star")
    if axis.lines:
        axis.legend(fontsize="small")


def draw_clusters(axis, results, published):
    for index, (name, best) in enumerate(best_gains(published)):
        found = list(cluster_rows(results, name))
        for tree, style in (("binomial", "-"), ("auto", "--")):
            axis.plot([320 * tiles for tiles, _ in found],
                      [gain(at[tree], at["star"]) for _, at in found], linestyle=style,
                      color=f"C{index}", marker="o", label=f"{name}, {tree}")
        axis.axhline(best, color=f"C{index}", linewidth=0.7, linestyle=":")
    axis.set_xlabel("order of the matrix")
    axis.set_ylabel("%")
    axis.set_title("less time than by star, simulated; dotted: the paper's best")
    if axis.lines:
        axis.legend(fontsize="x-small")


def write(path, results, published):
    text = ["This page compares imbrex with the results of " + published["source"] + ": how long a "
            "broadcast along a tree takes, and how much it saves in a Cholesky factorisation. "
            f"`bench/papers/europar20` wrote it from {page.origin(results)}.", "",
            "```sh", "bench/papers/europar20", "```", "",
            f"![picture]({page.picture_of(path).name})", "",
            "## Goals", "", describe_goals(results, published)]
    limits = ["## Limits", "",
              "The ranks of these measurements share one machine, over `tools/netlab`, and their "
              "kernels sleep; the paper's ranks ran on nodes of 16 and 32 cores with InfiniBand "
              "and Omni-Path. Compare the ratios of systems, not the seconds. Results for 16 nodes "
              "and more are simulated only, and [the simulator has limits]"
              "(../design/simulator.md#what-is-not-modelled).\n"]

    def picture(axes):
        draw_broadcast(axes[0][0], results)
        draw_cholesky(axes[0][1], results)
        draw_gain(axes[1][0], results)
        draw_clusters(axes[1][1], results, published)

    page.write(path, "Dynamic broadcasts: measured, simulated and published",
               text + page.describe(PARTS, results, published) + limits, picture)
