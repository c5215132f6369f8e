# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/iwomp21 computes from what was counted and simulated, and its
picture."""

import page
from page import off_by

POLICIES = ("fifo", "ma1", "ma2", "sa", "fa")
SPREADS = ("16-48", "32-24", "64-12", "128-6")
INSTRUCTIONS = {"launch": "on launch", "first_suspension": "on the first suspension",
                "later_suspension": "on each later suspension"}
UNKNOWN = "figure only"


def beside(value, known):
    """The published number, and by how much `value` differs from it."""
    return (known, off_by(value, known)) if known else (UNKNOWN, None)


def less_time(line, base):
    """Per cent less time than the other; None if one of them is missing."""
    return None if not line or not base else round(100 * (1 - line / base), 1) + 0.0  # no -0.0


class Page(page.Page):
    def policies(self, part):
        """The policies of this part, in their order."""
        return [name for name in POLICIES if self.of(part, policy=name)]

    def seconds(self, part, **wanted):
        """{policy: seconds}."""
        return {name: line["seconds"] for name, line in self.by("policy", part, **wanted).items()}

    # ---- counts --------------------------------------------------------------------------------

    def counts(self):
        """Table 2: communication tasks here and in the paper."""
        paper = self.published["table2"]["communication"]
        for spread in SPREADS:
            line = self.one("counts", n=131072, ranks=int(spread.split("-")[0]))
            if line:
                yield (spread, line["communication"], paper[spread],
                       page.yes_no(line["communication"] == paper[spread]))

    def counts_of_weak(self):
        """Table 4: computation and communication tasks here and in the paper."""
        paper, both = self.published["table4"], ("computation", "communication")
        for place, (ranks, n) in enumerate(zip(paper["ranks"], paper["n"])):
            line = self.one("counts", n=n, ranks=ranks)
            if line:
                ours, known = [line[name] for name in both], [paper[name][place] for name in both]
                yield ranks, n, *ours, *known, page.yes_no(ours == known)

    # ---- weak scaling --------------------------------------------------------------------------

    def weak_points(self):
        """(ranks, seconds by policy, the paper's by policy) of Table 3."""
        paper = self.published["table3"]
        return [(ranks, self.seconds("weak", ranks=ranks),
                 {name: paper[name][place] for name in POLICIES if name in paper})
                for place, ranks in enumerate(paper["ranks"]) if self.of("weak", ranks=ranks)]

    def weak(self):
        """The columns and the rows. A policy without published numbers is off by nothing."""
        width = {name: 3 if name in self.published["table3"] else 2
                 for name in self.policies("weak")}
        columns = [cell for name in width
                   for cell in (f"`{name}`, s", "paper", "off by")[:width[name]]]
        return columns, [
            (ranks, *(cell for name in width for cell in
                      (at.get(name), *beside(at.get(name), known.get(name)))[:width[name]]))
            for ranks, at, known in self.weak_points()]

    def efficiencies(self):
        """Of each policy the time on one rank by that on so many, and the paper's; in per cent."""
        def share(alone, seconds):
            return 100 * alone / seconds if alone and seconds else None

        alone, paper = self.seconds("weak", ranks=1), self.published["table3"]
        for ranks, at, known in self.weak_points():
            yield ranks, *(cell for name in self.policies("weak") for cell in (
                share(alone.get(name), at.get(name)),
                share(paper[name][0], known[name]) if name in known else UNKNOWN))

    def gains(self):
        """By how many per cent `sa` and `fa` take less time than `fifo`, beside the paper."""
        return [(ranks, *(cell for name in ("sa", "fa") for cell in (
            less_time(at.get(name), at["fifo"]), less_time(known[name], known["fifo"]))))
            for ranks, at, known in self.weak_points() if "fifo" in at]

    def off_at_last(self):
        """{policy: how far it is off the paper's last point}."""
        last = self.published["table3"]["ranks"][-1]
        return {name: f"{ranks} ranks, {off_by(at[name], known[name])}"
                for ranks, at, known in self.weak_points() if ranks == last
                for name in known if name in at}

    # ---- ranks against threads -----------------------------------------------------------------

    def spread(self):
        for name in SPREADS:
            for policy, line in sorted(self.by("policy", "spread", spread=name).items(),
                                       key=lambda item: POLICIES.index(item[0])):
                known = self.published["figure4"].get(name, {}).get(policy, {})
                time, idle = line["seconds"], line["seconds"] * line["idle"]
                yield (name, policy, time, time * line["in_task"], idle, time * line["overhead"],
                       *beside(time, known.get("seconds")), *beside(idle, known.get("idle_s")))

    def orders_of_spreads(self):
        """Where the paper's fastest spread stands: (policy, its place of how many, the fastest, by
        how many per cent the fastest takes less time)."""
        for policy in self.policies("spread"):
            at = {name: line["seconds"] for name in SPREADS
                  for line in self.of("spread", spread=name, policy=policy)}
            if len(at) >= 2 and "32-24" in at:
                order = sorted(at, key=at.get)
                yield (policy, order.index("32-24"), len(at), order[0],
                       less_time(at[order[0]], at["32-24"]))

    def fa_to_sa(self):
        points = [(name, self.seconds("spread", spread=name)) for name in SPREADS]
        return [(name, at["fa"] / at["sa"]) for name, at in points if {"fa", "sa"} <= set(at)]

    def idle(self):
        for grid in self.values("idle", "grid"):
            for policy in self.policies("idle"):
                line = self.one("idle", grid=grid, policy=policy)
                yield grid, policy, 1e3 * line["seconds"], 100 * line["idle"]

    def instructions(self):
        lines = self.by("what", "instructions")
        return [(text, lines[what]["instructions"], self.published["instructions"][what])
                for what, text in INSTRUCTIONS.items() if what in lines]

    # ---- the picture ---------------------------------------------------------------------------

    def draw_on(self, axes):
        self.draw_weak(axes[0][0])
        for axis, name in zip((axes[0][1], *axes[1]), ("fifo", "sa", "fa")):
            self.draw_spread(axis, name)

    def draw_weak(self, axis):
        paper = self.published["table3"]
        for index, name in enumerate(self.policies("weak")):
            page.curve(axis, self.of("weak", policy=name), "ranks", "seconds", color=f"C{index}",
                       label=f"{name}, simulated")
            if name in paper:
                axis.plot(paper["ranks"], paper[name], color=f"C{index}", linestyle=":",
                          label=f"{name}, paper")
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        page.finish(axis, "weak scaling (Table 3)", "ranks of 24 workers", "s", "x-small")

    def draw_spread(self, axis, policy):
        """Bars as in Figure 4."""
        lines = [line for name in SPREADS for line in self.of("spread", spread=name, policy=policy)]
        left = [0.0] * len(lines)
        for part in ("in_task", "idle", "overhead"):
            heights = [line["seconds"] * line[part] for line in lines]
            axis.bar([line["spread"] for line in lines], heights, bottom=left, label=part)
            left = [a + b for a, b in zip(left, heights)]
        page.finish(axis, f"ranks-threads, {policy} (Figure 4)", "", "s")
