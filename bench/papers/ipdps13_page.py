# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/ipdps13 computes from what was measured and simulated, and its
picture."""

import page

TIMES = ("work_s", "overhead_s", "search_s", "idle_s")
SYNC = {"strict": "barrier, strict", "fuzzy": "barrier, fuzzy", "reduction": "reduction"}
CELLS = 1.856e6 * 1.92e6  # of Table IV


def counts_of(shape):
    """Ranks and workers."""
    return [int(part) for part in shape.split("x")]


def times_of(line):
    return [line.get(name) for name in TIMES]


class Page(page.Page):
    # ---- barriers, reductions, messages --------------------------------------------------------

    def synchronisation(self):
        """Table II. The records are those of bench/syncbench: sync_<kind>_<ranks>x<workers>."""
        for line in self.of("synchronisation"):
            _, kind, shape = line["benchmark"].split("_")
            ranks, workers = counts_of(shape)
            crowded = ", oversubscribed" if ranks * workers > self.results["cores"] else ""
            yield (SYNC[kind], shape + crowded, line["system"], line["median_ns"] / 1e3,
                   line["min_ns"] / 1e3)

    def dates(self):
        return sorted({line.get("date", self.results["date"])
                       for line in self.of("synchronisation")})

    def faster(self):
        """(other system, rows in which imbrex is faster, rows)."""
        at = self.frame("synchronisation").pivot(index="benchmark", columns="system",
                                                 values="median_ns")
        for other in ("MPI", "MPI+OpenMP"):
            if other in at and "imbrex" in at:
                both = at[["imbrex", other]].dropna()
                if len(both):
                    yield other, (both.imbrex < both[other]).sum(), len(both)

    def published_sync(self):
        """(columns of Table II, its rows, {kind: columns in which HCMPI is not beaten})."""
        table = {kind: page.frame_of(systems)
                 for kind, systems in self.published["table2"].items() if kind != "note"}
        columns = list(table["strict"].index)
        lines = [(SYNC[kind], "HCMPI" if system == "imbrex" else system,
                  *at[system].reindex(columns))
                 for kind, at in table.items() for system in at]
        wins = {SYNC[kind]: (at.imbrex <= at.drop(columns="imbrex").min(axis=1)).sum()
                for kind, at in table.items()}
        return columns, lines, wins

    def threads(self):
        return sorted((line["benchmark"].removeprefix("message_"), line["workers"],
                       line["system"], line["median_ns"]) for line in self.of("threads"))

    # ---- UTS -----------------------------------------------------------------------------------

    def uts(self):
        for line in sorted(self.of("uts"), key=lambda line: (line["tree"], line["system"],
                                                            line["shape"])):
            ranks, workers = counts_of(line["shape"])
            alone = self.one("uts", tree=line["tree"], system="sequential")
            cores = min(ranks * workers, self.results["cores"])
            yield (line["tree"], line["system"], line["shape"], line["seconds"],
                   line["nodes"] / line["seconds"] / 1e6,
                   alone and alone["seconds"] / line["seconds"] / cores, *times_of(line),
                   line.get("fails"), line["repetitions"])

    def uts_timed(self):
        return [(line["shape"], line["system"], line["seconds"], *times_of(line),
                 line.get("fails_of_all"), line["repetitions"]) for line in self.of("uts_timed")]

    def published_uts(self):
        return [(*row, row[2] / row[7]) for row in self.published["table3"]["rows"]]

    def published_speed_up(self, cores):
        """That of the table on 1,024 nodes."""
        return next(row[2] / row[7] for row in self.published["table3"]["rows"]
                    if row[:2] == [1024, cores])

    def grid(self, **wanted):
        return self.frame("grid", **wanted).pivot(index="chunk", columns="interval",
                                                  values="seconds")

    def communication_worker(self):
        for line in sorted(self.of("communication_worker"),
                           key=lambda line: (line["name"], line["seconds"])):
            ranks, workers = counts_of(line["shape"])
            shape = line["shape"] if line["progress"] != "dedicated-thread" else \
                f"{ranks} x ({workers - 1} + 1)"
            yield (line["name"], line["system"], line["progress"], shape, line["seconds"],
                   page.runs_of(line), line.get("work_s"), line.get("search_s"))

    def worker_to_auto(self):
        """(program, time with a communication worker by that of `auto`)."""
        for name in self.values("communication_worker", "name"):
            at = self.by("progress", "communication_worker", name=name, system="imbrex")
            if {"auto", "dedicated-thread"} <= set(at):
                yield name, at["dedicated-thread"]["seconds"] / at["auto"]["seconds"]

    def table3(self):
        for nodes, cores, *known in self.published["table3"]["rows"]:
            line = self.one("pool", tree="T1XXL", nodes=nodes, cores=cores)
            if line:
                yield (nodes, cores, line["seconds"], known[5],
                       page.off_by(line["seconds"], known[5]), line["seconds"] * line["in_task"],
                       known[6])

    def strong_scaling(self):
        """Figures 16 to 19: of each tree the seconds, and the per cent of the time in tasks."""
        trees = self.values("pool", "tree", cores=16)
        for nodes in self.values("pool", "nodes", cores=16):
            at = self.by("tree", "pool", nodes=nodes, cores=16)
            yield nodes, 16 * nodes, *(
                value for tree in trees for value in (
                    (at[tree]["seconds"], 100 * at[tree]["in_task"]) if tree in at
                    else (None, None)))

    # ---- Smith-Waterman ------------------------------------------------------------------------

    def alignments(self, part):
        """The fastest of the tiles and distributions that were tried."""
        lines = self.frame(part).sort_values("seconds", kind="stable")
        best = lines.groupby(["size", "shape", "system"], as_index=False).first()
        best = best.merge(best[best.system == "forkjoin"][["size", "shape", "seconds"]],
                          how="left", on=["size", "shape"], suffixes=("", "_forkjoin"))
        best["gcups"] = best.cells / best.seconds / 1e9
        best["to_it"] = best.seconds_forkjoin / best.seconds
        return best[["size", "shape", "system", "seconds", "gcups", "outer", "inner",
                     "distribution", "to_it", "repetitions"]]

    def published_alignments(self):
        """Of Table IV, by cores: on each number of nodes seconds and GCUPS."""
        return [(cores, *(value for seconds in times
                          for value in (seconds, CELLS / seconds / 1e9)))
                for cores, times in self.published["table4"]["cores"].items()]

    def table4(self):
        """By cores: on each number of nodes the simulated seconds, the paper's, and how far off."""
        paper = self.published["table4"]
        for cores, times in paper["cores"].items():
            at = self.by("nodes", "table4", cores=int(cores))
            yield cores, *(
                value for nodes, known in zip(paper["nodes"], times)
                for seconds in [at[nodes]["seconds"] if nodes in at else None]
                for value in (seconds, known, page.off_by(seconds, known)))

    def off_of_table4(self):
        """In per cent, of each point."""
        paper = self.published["table4"]
        return [100 * abs(line["seconds"] / paper["cores"][str(line["cores"])][
            paper["nodes"].index(line["nodes"])] - 1) for line in self.of("table4")]

    # ---- the picture ---------------------------------------------------------------------------

    def draw_on(self, axes):
        self.draw_shares(axes[0][0])
        self.draw_pool(axes[0][1])
        self.draw_alignment(axes[1][0])
        self.draw_synchronisation(axes[1][1])

    def draw_shares(self, axis):
        """Draws Table III as bars: how each system spends its time."""
        lines = [line for line in self.of("uts") if line["system"] != "sequential"]
        labels = [f"{line['tree']} {line['system']} {line['shape']}" for line in lines]
        left = [0.0] * len(lines)
        for name in TIMES:
            widths = [line.get(name) or 0.0 for line in lines]
            axis.barh(labels, widths, left=left, label=name.removesuffix("_s"))
            left = [a + b for a, b in zip(left, widths)]
        page.finish(axis, "UTS: where the time of a core goes", "s")

    def draw_pool(self, axis):
        for tree in self.values("pool", "tree", cores=16):
            lines = self.of("pool", tree=tree, cores=16)
            page.curve(axis, lines, "nodes", "seconds", label=tree)
            at = sorted((line["nodes"], line["seconds"]) for line in lines)
            axis.plot([at[0][0], at[-1][0]], [at[0][1], at[0][1] * at[0][0] / at[-1][0]],
                      color="grey", linewidth=0.5)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        page.finish(axis, "UTS, simulated; grey: ideal", "nodes of 16 cores", "s")

    def draw_alignment(self, axis):
        bars = {}
        for line in self.of("smith_waterman"):
            label = f"{line['size']}\n{line['system']} {line['shape']}"
            bars[label] = max(bars.get(label, 0.0), line["cells"] / line["seconds"] / 1e9)
        axis.barh(list(bars), list(bars.values()))
        page.finish(axis, "Smith-Waterman: the best of each", "GCUPS")

    def draw_synchronisation(self, axis):
        lines = self.of("synchronisation")
        axis.barh([f"{line['benchmark'].removeprefix('sync_')} {line['system']}"
                   for line in lines], [line["median_ns"] / 1e3 for line in lines])
        axis.tick_params(axis="y", labelsize="x-small")
        page.finish(axis, "barriers and reductions", "us")
