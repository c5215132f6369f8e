# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/iwomp21: what was counted and simulated beside what Pereira et al.
(IWOMP 2021) publish, in Markdown, and its picture."""

import page
from page import number, values

POLICIES = ("fifo", "ma1", "ma2", "sa", "fa")
SPREADS = ("16-48", "32-24", "64-12", "128-6")


def of(results, part, **wanted):
    return [line for line in results["results"] if line["part"] == part
            and all(line.get(name) == value for name, value in wanted.items())]


def one(results, part, **wanted):
    found = of(results, part, **wanted)
    return found[0] if found else None


def table(head, rows):
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def ratio_text(value, other):
    """Per cent by which `value` differs from `other`."""
    if value is None or not other:
        return "-"
    percent = round(100 * (value / other - 1))
    return f"{percent:+d} %" if percent else "0 %"


def describe(parts, results, published):
    """A section for each of `parts`, {part: (title, function)}."""
    measured = {line["part"] for line in results["results"]}
    text = []
    for part, (title, function) in parts.items():
        text += [f"## {title}", ""]
        text += [function(results, published) if part in measured else "Not measured.\n"]
    return text


def found_in(results, part):
    """The policies of this part, in their order."""
    return [name for name in POLICIES if of(results, part, policy=name)]


# ---- the parts ---------------------------------------------------------------------------------


def same(value, other):
    return "yes" if value == other else "NO"


def counts(results, published):
    rows = []
    paper = published["table2"]["communication"]
    for spread in SPREADS:
        line = one(results, "counts", n=131072, ranks=int(spread.split("-")[0]))
        if line:
            rows.append((spread, number(line["communication"], 0), number(paper[spread], 0),
                         same(line["communication"], paper[spread])))
    text = ("`tiled cholesky --count-only` creates the tasks of every rank without a matrix. "
            "Communication tasks of Table 2, n = 131,072 in tiles of 512, by ranks and threads of "
            "each:\n\n")
    text += table(("ranks-threads", "imbrex", "paper", "equal"), rows)
    rows, paper = [], published["table4"]
    for place, (ranks, n) in enumerate(zip(paper["ranks"], paper["n"])):
        line = one(results, "counts", n=n, ranks=ranks)
        if line:
            both = ("computation", "communication")
            rows.append((ranks, number(n, 0), *(number(line[name], 0) for name in both),
                         *(number(paper[name][place], 0) for name in both),
                         same([line[name] for name in both],
                              [paper[name][place] for name in both])))
    return text + "\nTasks of Table 4:\n\n" + table(
        ("ranks", "n", "computation", "communication", "paper: computation", "communication",
         "equal"), rows)


def weak(results, published):
    paper, policies = published["table3"], found_in(results, "weak")
    alone = {name: one(results, "weak", ranks=1, policy=name) for name in policies}
    rows, shares = [], []
    for place, ranks in enumerate(paper["ranks"]):
        at = {name: one(results, "weak", ranks=ranks, policy=name) for name in policies}
        if not any(at.values()):
            continue
        cells = []
        for name in policies:
            seconds = at[name] and at[name]["seconds"]
            known = paper[name][place] if name in paper else None
            cells += [number(seconds), number(known) if known else "figure only"]
            if name in paper:
                cells.append(ratio_text(seconds, known))
        rows.append((ranks, *cells))
        shares.append((ranks, *(
            text for name in policies for text in (
                share(alone[name] and alone[name]["seconds"], at[name] and at[name]["seconds"]),
                share(paper[name][0], paper[name][place]) if name in paper else "figure only"))))
    head = ["ranks"]
    for name in policies:
        head += [f"`{name}`, s", "paper"] + (["off by"] if name in paper else [])
    text = ("Simulated: `imbrex simulate cholesky` with 24 workers a rank, two ranks a node, the "
            "network `edr`, tiles of 512, and the largest n of whole tiles. Two constants are "
            "fitted to `fifo`: a gemm takes 6.24 ms on one rank, which has half of a node, and "
            "6.64 ms on two ranks, which share a node. All rows from 4 ranks on are predictions. "
            "The paper has no number for MA-1 and MA-2, and finds that they do not improve on "
            "FIFO.\n\n" + table(head, rows))
    text += ("\nEfficiency of Figure 5, the time on one rank divided by that on as many as the row "
             "says, each for its policy:\n\n")
    return text + table(("ranks", *(cell for name in policies for cell in (f"`{name}`", "paper"))),
                        shares) + "\n" + gains(results, paper) + gap_of_weak(results, published)


def share(alone, seconds):
    return f"{100 * alone / seconds:.0f} %" if alone and seconds else "-"


def gains(results, paper):
    """By how much `sa` and `fa` take less time than `fifo`, beside the paper."""
    names, rows = ("sa", "fa"), []
    for place, ranks in enumerate(paper["ranks"]):
        base = one(results, "weak", ranks=ranks, policy="fifo")
        cells = []
        for name in names:
            line = one(results, "weak", ranks=ranks, policy=name)
            cells += [less_time(line and line["seconds"], base and base["seconds"]),
                      less_time(paper[name][place], paper["fifo"][place])]
        if base:
            rows.append((ranks, *cells))
    if not rows:
        return ""
    return ("Time that `sa` and `fa` save of that of `fifo`:\n\n" +
            table(("ranks", *(cell for name in names for cell in (f"`{name}`", "paper"))), rows) +
            "\n")


def less_time(seconds, base):
    if not seconds or not base:
        return "-"
    return f"{round(100 * (1 - seconds / base), 1) + 0.0:.1f} %"  # + 0.0: no negative zero


def gap_of_weak(results, published):
    """A sentence for each policy whose last point is far from the paper's."""
    paper, text = published["table3"], ""
    for name, why in (
            ("fifo", "the order of tasks is that of their creation in both, and what differs is "
             "the network and the runtime"),
            ("sa", "communication costs the simulated workers nothing but the overheads"),
            ("fa", "as for `sa`. The simulation once took 42.1 s here and so found a defect: `fa` "
             "remembered only the last 65,536 tasks of a rank that had not begun")):
        line = one(results, "weak", ranks=paper["ranks"][-1], policy=name)
        if line:
            off = ratio_text(line["seconds"], paper[name][-1])
            text += f"- `{name}` on {paper['ranks'][-1]} ranks, {off}: {why}.\n"
    return text


def spread(results, published):
    policies, rows = found_in(results, "spread"), []
    paper = published["figure4"]
    for name in SPREADS:
        for policy in policies:
            line = one(results, "spread", spread=name, policy=policy)
            if line is None:
                continue
            known = paper.get(name, {}).get(policy)
            rows.append((name, f"`{policy}`", *(
                number(value, 1) for value in (
                    line["seconds"], line["seconds"] * line["in_task"],
                    line["seconds"] * line["idle"], line["seconds"] * line["overhead"])),
                *beside(line["seconds"], known and known["seconds"]),
                *beside(line["seconds"] * line["idle"], known and known["idle_s"])))
    text = ("Simulated, n = 131,072 in tiles of 512 on 16 nodes. Times are seconds of a worker: in "
            "tasks, idle, and overhead. In the paper idle time has the progress of communication "
            "in it.\n\n")
    text += table(("ranks-threads", "policy", "time", "in tasks", "idle", "overhead",
                   "paper: time", "off by", "paper: idle", "off by"), rows)
    return text + "\n" + order_of_spreads(results, policies) + fa_to_sa(results, paper)


def beside(value, known):
    """The published number, and by how much `value` differs from it."""
    return (number(known, 1), ratio_text(value, known)) if known else ("figure only", "-")


def order_of_spreads(results, policies):
    """Where the paper's fastest spread stands under each policy."""
    text = ""
    for policy in policies:
        at = {name: line["seconds"] for name in SPREADS
              for line in of(results, "spread", spread=name, policy=policy)}
        if len(at) < 2 or "32-24" not in at:
            continue
        order = sorted(at, key=at.get)
        place = order.index("32-24")
        text += (f"Under `{policy}` 32-24 is " +
                 ("the fastest spread. " if place == 0 else
                  f"{'the slowest spread' if place == len(order) - 1 else 'not the fastest'}, and "
                  f"{order[0]} takes {less_time(at[order[0]], at['32-24'])} less time. "))
    if not text:
        return ""
    return ("The paper's fastest spread is 32-24, and it names the locality of memory as the "
            f"reason. The simulator knows no locality: a kernel takes one time everywhere. {text}"
            "That locality makes up such a difference is an assumption.\n")


def fa_to_sa(results, paper):
    rows, faster = [], []
    for name in SPREADS:
        fa, sa = (one(results, "spread", spread=name, policy=policy) for policy in ("fa", "sa"))
        if fa and sa:
            rows.append((name, number(fa["seconds"] / sa["seconds"], 3)))
            faster += [name] if fa["seconds"] < sa["seconds"] else []
    if not rows:
        return ""
    text = (f"\nTime under `fa` to that under `sa` (the paper: at most "
            f"{1 + paper['fa_to_sa_at_most_percent'] / 100:.2f}, at "
            f"{paper['fa_to_sa_at_most_at']}, and above 1 at each spread):\n\n" +
            table(("ranks-threads", "simulated"), rows))
    if faster:
        text += (f"\nAt {' and '.join(faster)} `fa` is faster than `sa`: that is not the paper's "
                 "order. The simulation gives `fa` no time for what it learns, and the paper's FA "
                 "pays for it.\n")
    return text


def idle(results, published):
    paper, rows = published["figures1and2"], []
    for grid in values(of(results, "idle"), "grid"):
        for policy in found_in(results, "idle"):
            line = one(results, "idle", grid=grid, policy=policy)
            rows.append((grid, f"`{policy}`", number(1e3 * line["seconds"], 2),
                         f"{100 * line['idle']:.0f} %"))
    return ("Simulated: 4 x 4 tiles on 2 ranks of 2 workers, and all kernels take 1 ms. The idle "
            "time is that of both ranks. The paper draws a part of this graph, for one "
            "distribution of tiles that the text does not tell. There process 0 is idle for "
            f"{paper['fifo']} % under FIFO and for {paper['sends_first']} % if sends go first. "
            "With 20 tasks of computation there is little to choose, so the two are not "
            "comparable.\n\n" +
            table(("grid of ranks", "policy", "ms", "idle, both ranks"), rows))


def instructions(results, published):
    paper, rows = published["instructions"], []
    for what, text in (("launch", "on launch"), ("first_suspension", "on the first suspension"),
                       ("later_suspension", "on each later suspension")):
        line = one(results, "instructions", what=what)
        if line:
            rows.append((text, number(line["instructions"], 0), number(paper[what], 0)))
    return ("`bench/instructions` counts under callgrind what the ability to suspend costs a task. "
            "The paper's numbers are approximate.\n\n" +
            table(("instructions", "imbrex", "paper"), rows))


PARTS = {"counts": ("Numbers of tasks (Tables 2 and 4)", counts),
         "weak": ("Weak scaling (Table 3 and Figure 5)", weak),
         "spread": ("Ranks against threads (Figure 4)", spread),
         "idle": ("Idle time of a small graph (Figures 1 and 2)", idle),
         "instructions": ("Instructions of a context (section 4.1)", instructions)}


# ---- the picture -------------------------------------------------------------------------------


def draw_weak(axis, results, published):
    paper = published["table3"]
    for index, name in enumerate(found_in(results, "weak")):
        lines = sorted(of(results, "weak", policy=name), key=lambda line: line["ranks"])
        axis.plot([line["ranks"] for line in lines], [line["seconds"] for line in lines],
                  marker="o", color=f"C{index}", label=f"{name}, simulated")
        if name in paper:
            axis.plot(paper["ranks"], paper[name], color=f"C{index}", linestyle=":",
                      label=f"{name}, paper")
    axis.set_xscale("log", base=2)
    axis.set_xlabel("ranks of 24 workers")
    axis.set_ylabel("s")
    axis.set_ylim(bottom=0)
    axis.set_title("weak scaling (Table 3)")
    if axis.lines:
        axis.legend(fontsize="x-small")


def draw_spread(axis, results, name):
    """Bars as in Figure 4, for one policy."""
    lines = [line for spread in SPREADS for line in of(results, "spread", spread=spread,
                                                       policy=name)]
    left = [0.0] * len(lines)
    for part in ("in_task", "idle", "overhead"):
        heights = [line["seconds"] * line[part] for line in lines]
        axis.bar([line["spread"] for line in lines], heights, bottom=left, label=part)
        left = [a + b for a, b in zip(left, heights)]
    axis.set_ylabel("s")
    axis.set_title(f"ranks-threads, {name} (Figure 4)")
    if lines:
        axis.legend(fontsize="small")


def text_of(results, published):
    text = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->",
            "# Sends first: simulated, counted and published", "",
            "This page compares imbrex with the results of " + published["source"] + ": policies "
            "that run sends first, in a Cholesky factorisation over 1 to 32 ranks. "
            f"`bench/papers/iwomp21` wrote it from {page.origin(results)}.", "", "```sh",
            "bench/papers/iwomp21", "```", "", f"![picture](iwomp21.png)", ""]
    limits = ["## Limits", "",
              f"The paper's machine: {published['machine']}. Nobody here has such a machine, so "
              "times on it are simulated, with the code of the library's policies "
              "([how](../design/simulator.md), [beside measurements]"
              "(../design/simulator-validation.md)). [Policies]"
              "(../user/policies.md#measured-times-under-each-policy) has what was measured on 4 "
              "ranks. MA-3 is not in the paper's measurements.\n"]

    return "\n".join(text + describe(PARTS, results, published) + limits)


class Page(page.Page):
    def text(self):
        return text_of(self.results, self.published)

    def draw_on(self, axes):
        draw_weak(axes[0][0], self.results, self.published)
        for axis, name in zip((axes[0][1], *axes[1]), ("fifo", "sa", "fa")):
            draw_spread(axis, self.results, name)
