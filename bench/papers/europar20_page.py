# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/europar20 computes from what was measured and simulated, and its
picture."""

import math

import page
from page import is_missing, ratio

NAMES = {"explicit": "messages in the program", "trees": "inserted, trees",
         "star": "inserted, star", "starpu": "StarPU-MPI", "scalapack": "ScaLAPACK"}
MPI = ["MPI_Bcast", "MPI_Ibcast"]
TREES = ("star", "binomial", "chain", "auto")
CLUSTER_TREES = ("messages", *TREES)


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def gain(trees, star):
    """Per cent less time."""
    return None if is_missing(trees) else 100 * (1 - trees / star)


class Page(page.Page):
    def systems(self, part, **wanted):
        """{system: its result, or None}."""
        return dict.fromkeys(NAMES) | self.by("system", part, **wanted)

    def points(self):
        """(grid, tiles, results by system) of the Cholesky factorisation."""
        for grid in self.values("cholesky", "grid"):
            for tiles in self.values("cholesky", "tiles"):
                yield grid, tiles, self.systems("cholesky", grid=grid, tiles=tiles)

    # ---- goals ---------------------------------------------------------------------------------

    def goals(self):
        """(what, measured, the most that it may be, whether it is reached)."""
        for what, value, most in (*self.broadcast_goals(), *self.copies_goals(),
                                  *self.cholesky_goals(), *self.simulated_goals(),
                                  *self.sends_goals()):
            if not is_missing(value):
                yield what, value, most, page.yes_no(value <= most)

    def broadcast_goals(self):
        for ranks, most in ((4, 1.4), (8, 1.8)):
            at = self.broadcasts()
            for size, line in at[at.ranks == ranks].set_index("bytes").iterrows():
                if size >= 2 << 20:
                    what = f"{size_text(size)} to {ranks} ranks, to "
                    yield what + "one copy", line["to one copy"], most
                    yield (what + f"the faster of {' and '.join(MPI)}",
                           line.imbrex / line.reindex(MPI).min(), 1.05)

    def copies_goals(self):
        """The goals for the number of copies that the root sends itself."""
        for ranks in (4, 8):
            lines = self.of("broadcast", system="imbrex", ranks=ranks)
            for line in sorted(lines, key=lambda line: line["bytes"]):
                if not 256 << 10 <= line["bytes"] < 2 << 20:
                    most = 1 if line["bytes"] >= 2 << 20 else math.ceil(math.log2(ranks))
                    yield (f"copies that the root sends of {size_text(line['bytes'])} to {ranks} "
                           "ranks"), line.get("copies"), most

    def cholesky_goals(self):
        most = max(self.values("cholesky", "tiles"), default=0)
        for grid, system, other, least in (("1x4", "trees", "star", 0.80),
                                           ("2x2", "trees", "explicit", 1.03)):
            at = self.systems("cholesky", grid=grid, tiles=most)
            to = {"star": "star", "explicit": "messages in the program"}[other]
            yield f"Cholesky {grid}, {most} tiles a side, trees to {to}", ratio(
                at[system], at[other]), least
        at = self.systems("real")
        yield "kernels that compute, 2 ranks: inserted to messages", ratio(
            at["trees"], at["explicit"]), 1 / 0.95
        against = [ratio(line, self.one(part, system="starpu", grid=line["grid"],
                                        tiles=line["tiles"]))
                   for part in ("cholesky", "real") for line in self.of(part, system="trees")]
        against = [value for value in against if not is_missing(value)]
        if against:
            yield "to StarPU-MPI, geometric mean", math.prod(against) ** (1 / len(against)), 1.0
            yield "to StarPU-MPI, the largest", max(against), 1.05

    def simulated_goals(self):
        most = max(self.values("cholesky", "tiles"), default=0)
        points = [max(measured / simulated, simulated / measured)
                  for _, tiles, _, measured, simulated, _ in self.simulated() if tiles == most]
        yield ("simulated to measured, or measured to simulated, the largest of "
               f"{len(points)} points"), max(points, default=None), 1.10
        for grid, tiles, at in self.points():
            if tiles == most and at["trees"] and at["trees"].get("broadcasts"):
                yield (f"broadcasts of the Cholesky {grid} not found with the full list",
                       1 - at["trees"]["broadcasts_full"] / at["trees"]["broadcasts"], 0.02)

    def sends_goals(self):
        yield ("fifo, Cholesky 2x2 with messages, `IMBREX_SENDS=on` to `off`",
               ratio(self.one("sends", sends="on"), self.one("sends", sends="off")), 0.90)

    # ---- the parts -----------------------------------------------------------------------------

    def broadcasts(self):
        """Seconds of each system, and imbrex's time by that of one copy."""
        lines = self.frame("broadcast", "bytes", "ranks", "system", "seconds")
        at = lines.pivot(index=["bytes", "ranks"], columns="system", values="seconds")
        at = at.drop(columns="one copy", errors="ignore").dropna(how="all").reset_index()
        copy = lines[lines.system == "one copy"].groupby("bytes").seconds.first().combine_first(
            lines[(lines.system == "loop") & (lines.ranks == 2)].set_index("bytes").seconds)
        at["to one copy"] = (at.imbrex if "imbrex" in at else math.nan) / at.bytes.map(copy)
        return at

    def broadcast_table(self):
        at = self.broadcasts()
        systems = list(at)[2:-1]
        at[systems] *= 1e3
        return systems, at.assign(bytes=at.bytes.map(size_text))

    def figure2(self):
        at = self.frame("figure2").pivot(index="ranks", columns="tree", values="seconds")
        return (1e3 * at.reindex(columns=list(TREES))).reset_index()

    def repetitions(self):
        """How often each system was run."""
        counts = self.values("cholesky", "repetitions")
        if counts[-1] == 1:
            return "one run of each"
        return "medians of " + " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) + \
            " runs"

    def cholesky(self):
        for grid, tiles, at in self.points():
            trees = at["trees"]
            found = 100 * trees["broadcasts_full"] / trees["broadcasts"] \
                if trees and trees.get("broadcasts") else None
            yield (grid, tiles, *(at[system] and at[system]["seconds"]
                                  for system in ("explicit", "star", "trees", "starpu")),
                   100 * (1 - ratio(trees, at["star"])), ratio(trees, at["explicit"]),
                   ratio(trees, at["starpu"]), found)

    def real(self):
        at = self.systems("real")
        return [(name, at[system]["seconds"], page.runs_of(at[system]), at[system].get("gflops"),
                 ratio(at[system], at["explicit"])) for system, name in NAMES.items()
                if at[system]]

    def simulated(self):
        """(grid, tiles, system, measured, simulated, per cent more)."""
        for grid, tiles, at in self.points():
            found = self.one("simulated", grid=grid, tiles=tiles)
            for system, tree in (("star", "star"), ("trees", "auto")):
                if found and at[system]:
                    measured = at[system]["seconds"]
                    yield (grid, tiles, system, measured, found[tree],
                           100 * (found[tree] / measured - 1))

    def limits(self):
        """(policy, rate of the links, us between polls, seconds by star, by trees)."""
        order = (("default", "netlab-1gbit", "1 Gbit/s"), ("default", "hdr", "194 Gbit/s"),
                 ("fa", "netlab-1gbit", "1 Gbit/s"), ("fa", "hdr", "194 Gbit/s"))
        return [(policy, rate, line["gap_us"], line["star"], line["auto"])
                for policy, network, rate in order
                for line in sorted(self.of("limits", policy=policy, network=network),
                                   key=lambda line: line["gap_us"])]

    def seconds_of_trees(self, policy, network):
        return self.frame("limits", "auto", policy=policy, network=network).auto

    def best_gains(self):
        """{machine: the paper's best gain in per cent}."""
        return {name: best for name, best in self.published["best_gain_percent"].items()
                if name != "note"}

    def clusters(self):
        for name, best in self.best_gains().items():
            for tiles in self.values("clusters", "tiles", machine=name):
                at = self.one("clusters", machine=name, tiles=tiles)
                yield (name, tiles, *(at[tree] for tree in CLUSTER_TREES),
                       *(gain(at[tree], at["star"]) for tree in ("binomial", "auto")), best)

    def best_of_cluster(self, name, other):
        """The best gain over `other`, and its number of tiles."""
        found = [(gain(line["auto"], line[other]), -line["tiles"])
                 for line in self.of("clusters", machine=name)]
        percent, tiles = max(found)
        return {"percent": percent, "tiles": -tiles}

    # ---- the picture ---------------------------------------------------------------------------

    def draw_on(self, axes):
        self.draw_broadcast(axes[0][0])
        self.draw_cholesky(axes[0][1])
        self.draw_gain(axes[1][0])
        self.draw_clusters(axes[1][1])

    def draw_broadcast(self, axis):
        size = max((size for size in self.values("broadcast", "bytes") if size <= 2 << 20),
                   default=None)
        for system in sorted(set(self.values("broadcast", "system")) - {"one copy"}):
            page.curve(axis, self.of("broadcast", system=system, bytes=size), "ranks", "seconds",
                       label=system)
        title = f"broadcast of {size_text(size)}, 100 Mbit/s" if size else "broadcast"
        page.finish(axis, title, "ranks", "s")

    def draw_cholesky(self, axis):
        most = max(self.values("cholesky", "tiles"), default=0)
        points = [(grid, at) for grid, tiles, at in self.points() if tiles == most]
        shown = [system for system in NAMES if any(at[system] for _, at in points)]
        for index, system in enumerate(shown):
            axis.bar([place + index * 0.8 / len(shown) for place in range(len(points))],
                     [at[system]["seconds"] if at[system] else 0 for _, at in points],
                     0.8 / len(shown), label=NAMES[system])
        axis.set_xticks([place + 0.3 for place in range(len(points))],
                        [f"{grid}, {most} x {most} tiles" for grid, _ in points])
        page.finish(axis, "Cholesky, kernels asleep, 1 Gbit/s", "", "s")

    def draw_gain(self, axis):
        for grid in self.values("cholesky", "grid"):
            points = [{"tiles": tiles, "gain": 100 * (1 - ratio(at["trees"], at["star"]))}
                      for which, tiles, at in self.points()
                      if which == grid and at["trees"] and at["star"]]
            if points:
                page.curve(axis, points, "tiles", "gain", label=f"{grid} measured")
            at = {(tiles, system): seconds for which, tiles, system, _, seconds, _ in
                  self.simulated() if which == grid}
            sizes = sorted({tiles for tiles, _ in at})
            axis.plot(sizes, [gain(at[tiles, "trees"], at[tiles, "star"]) for tiles in sizes],
                      linestyle="--", label=f"{grid} simulated")
        page.finish(axis, "less time by trees than by star", "tiles a side", "%")

    def draw_clusters(self, axis):
        for index, (name, best) in enumerate(self.best_gains().items()):
            lines = sorted(self.of("clusters", machine=name), key=lambda line: line["tiles"])
            for tree, style in (("binomial", "-"), ("auto", "--")):
                axis.plot([320 * line["tiles"] for line in lines],
                          [gain(line[tree], line["star"]) for line in lines], linestyle=style,
                          color=f"C{index}", marker="o", label=f"{name}, {tree}")
            axis.axhline(best, color=f"C{index}", linewidth=0.7, linestyle=":")
        page.finish(axis, "less time than by star, simulated; dotted: the paper's best",
                    "order of the matrix", "%", "x-small")
