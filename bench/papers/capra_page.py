# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/capra computes from what was measured and simulated, and its
picture."""

import page
from page import number


def times_text(line):
    if line["repetitions"] < 2:
        return f"{number(line['us'], 0)} (one run)"
    least, most = number(line["least_us"], 0), number(line["most_us"], 0)
    return f"{number(line['us'], 0)} ({least} to {most})"


class Page(page.Page):
    def receive(self, mpi):
        """By bytes: IW and both, then each way."""
        lines = self.of("receive", mpi=mpi)
        frame = page.frame_of([{**line, "text": times_text(line)} for line in lines])
        ways = frame.pivot(index="bytes", columns="way", values="text")
        return frame.groupby("bytes")[["communication_us", "blocking_us"]].first().join(
            ways.reindex(columns=["ICW", "ITCW", "tester", "imbrex"])).reset_index()

    def costs_of_tasks(self):
        """What ten tasks and their wait take longer than ITCW, by MPI and bytes: us, per cent."""
        at = self.frame("receive", "mpi", "bytes", "way", "us").pivot(
            index=["mpi", "bytes"], columns="way", values="us").reindex(columns=["ITCW", "imbrex"])
        more = at.dropna()
        return more.imbrex - more.ITCW, 100 * (more.imbrex / more.ITCW - 1)

    def stencil(self):
        lines = self.frame("stencil").sort_values("seconds", kind="stable")
        lines["to_block"] = lines.seconds / lines.seconds[lines.variant == "block"].max()
        return lines[["variant", "seconds", "runs", "to_block"]]

    def chunks(self):
        both = self.frame("chunks", "chunks", "seconds", "runs", variant="tasks").merge(
            self.frame("chunks", "chunks", "seconds", "runs", variant="block"), on="chunks",
            suffixes=("", "_block"))
        both["to_block"] = both.seconds / both.seconds_block
        return both.sort_values("chunks", ascending=False)

    def gains(self, part, name):
        """By nodes or bytes of a message: for each noise the times of loops and tasks in ms, and by
        how many per cent tasks take less time."""
        lines = self.frame(part)
        lines["bytes"] = 8 * lines["ghost"] if "ghost" in lines else None
        lines["less"] = 100 * (1 - lines.tasks_s / lines.loops_s)
        lines[["loops_s", "tasks_s"]] *= 1e3
        at = lines.pivot(index=name, columns="noise", values=["loops_s", "tasks_s", "less"])
        at = at.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
        return at.reset_index()

    def draw_on(self, axes):
        for axis, mpi in zip(axes[0], self.values("receive", "mpi")):
            for way in ("ICW", "ITCW", "imbrex"):
                page.curve(axis, self.of("receive", mpi=mpi, way=way), "bytes", "us", label=way)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            page.finish(axis, f"Figure 1: {mpi}", "bytes", "us")
        self.draw_gain(axes[1][0], "scaling", "nodes", "Figure 2 a, simulated")
        self.draw_gain(axes[1][1], "sizes", "ghost", "Figure 2 b, simulated")

    def draw_gain(self, axis, part, name, title):
        for noise in self.values(part, "noise"):
            lines = [{**line, "less": 100 * (1 - line["tasks_s"] / line["loops_s"])}
                     for line in self.of(part, noise=noise)]
            page.curve(axis, lines, name, "less", label=f"noise {noise}")
        axis.axhline(0, color="grey", linewidth=0.5)
        axis.set_xscale("log", base=2)
        page.finish(axis, title, name, "% less time by tasks")
