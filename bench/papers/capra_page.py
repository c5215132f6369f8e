# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/capra: what was measured and simulated beside what Capra et al. find, in
Markdown, and its picture."""

import page
from page import number, of, runs_text, table, values

WAYS = {"IW": "`MPI_Irecv`, `MPI_Wait`: no computation", "ICW": "`MPI_Irecv`, computation, "
        "`MPI_Wait`", "ITCW": "as ICW, with `MPI_Test` every 50 us of the computation",
        "tester": "one thread tests while another computes: the paper's ITCW",
        "imbrex": "a task calls `MPI_Recv`, beside tasks of 50 us that compute"}


def one(results, part, **wanted):
    found = of(results, part, **wanted)
    return found[0] if found else None


def times_text(line):
    if line is None:
        return "-"
    if line["repetitions"] < 2:
        return f"{number(line['us'], 0)} (one run)"
    least, most = number(line["least_us"], 0), number(line["most_us"], 0)
    return f"{number(line['us'], 0)} ({least} to {most})"


# ---- the parts ---------------------------------------------------------------------------------


def receive(results, published):
    paper = published["figure1"]
    text = ("Microseconds of one message between two ranks in shared memory, beside a computation "
            f"of {paper['computation_us']} us: the median of the runs, and the least and most, "
            "each the median of 30 rounds. *Both* is the computation after the message, with "
            "nothing hidden. The ways:\n\n" +
            "".join(f"- *{name}*: {what}.\n" for name, what in WAYS.items()) +
            f"\nThe paper (figure only): {paper['finding']}.\n")
    for mpi in values(of(results, "receive"), "mpi"):
        rows = []
        for size in values(of(results, "receive", mpi=mpi), "bytes"):
            at = {line["way"]: line for line in of(results, "receive", mpi=mpi, bytes=size)}
            some = next(iter(at.values()))
            rows.append((f"{size:,}", number(some["communication_us"], 1),
                         number(some["blocking_us"], 0),
                         *(times_text(at.get(way)) for way in ("ICW", "ITCW", "tester", "imbrex"))))
        text += f"\n{mpi}:\n\n" + table(("bytes", "IW", "both", "ICW", "ITCW", "tester", "imbrex"),
                                        rows)
    return text + "\n" + cost_of_a_task(results) + (
        "In shared memory a processor moves the bytes, so there is nothing to hide but the wait: "
        "compare each column with *both*. Here ICW is within the spread of ITCW with both MPIs, so "
        "the paper's finding does not show in shared memory. [Over a network](../user/overlap.md) "
        "tasks hide 95 % and more.\n")


def costs_of_tasks(results):
    """What ten tasks and their wait take longer than ITCW: us, and per cent, of each size."""
    for line in of(results, "receive", way="imbrex"):
        plain = one(results, "receive", way="ITCW", mpi=line["mpi"], bytes=line["bytes"])
        if plain:
            yield line["us"] - plain["us"], 100 * (line["us"] / plain["us"] - 1)


def cost_of_a_task(results):
    costs = [sorted(column) for column in zip(*costs_of_tasks(results))]
    if not costs:
        return ""
    us, percent = costs
    return (f"The column imbrex takes {number(us[0], 0)} to {number(us[-1], 0)} us longer than "
            f"ITCW, {percent[0]:.0f} to {percent[-1]:.0f} %: that is the price of ten computing "
            "tasks, one that receives, and the wait for them.\n\n")


def stencil(results, published):
    lines = of(results, "stencil")
    base = one(results, "stencil", variant="block")
    rows = [(f"`{line['variant']}`", number(line["seconds"], 3), runs_text(line),
             number(line["seconds"] / base["seconds"]) if base else "-")
            for line in sorted(lines, key=lambda line: line["seconds"])]
    return (f"`stencil1d`, {published['figure2']['cells']:,} cells, ghost layers of "
            f"{published['figure2']['ghost']:,}, {lines[0]['steps']} steps, 2 ranks of one worker "
            "in shared memory. `block` overlaps nothing, `bulk` is the loop of the paper, `tasks` "
            "its tasks.\n\n" + table(("variant", "seconds", "least to most", "to `block`"), rows))


def chunks(results, _):
    rows = []
    for count in sorted(values(of(results, "chunks"), "chunks"), reverse=True):
        tasks, block = (one(results, "chunks", chunks=count, variant=name)
                        for name in ("tasks", "block"))
        if tasks and block:
            rows.append((count, number(tasks["seconds"], 3), runs_text(tasks),
                         number(block["seconds"], 3), runs_text(block),
                         number(tasks["seconds"] / block["seconds"])))
    return ("On two ranks of one machine messages take next to no time, so the number of tasks of "
            "a rank's core in a step decides what tasks cost or gain. With 64 of them, over a "
            "network and 1,000 steps, tasks once took [5.32 s and blocking calls 5.11 s]"
            "(../user/overlap.md), within the spread of both. A wide range means that other "
            "programs ran on the machine.\n\n" +
            table(("chunks", "tasks, s", "least to most", "block, s", "least to most",
                   "tasks to block"), rows))


def gain_rows(results, part, name):
    noises = values(of(results, part), "noise")
    for value in values(of(results, part), name):
        cells = []
        for noise in noises:
            line = one(results, part, **{name: value, "noise": noise})
            cells += [number(1e3 * line["loops_s"], 2), number(1e3 * line["tasks_s"], 2),
                      f"{100 * (1 - line['tasks_s'] / line['loops_s']):+.0f} %"] if line else \
                ["-"] * 3
        yield value, cells


def gain_head(results, part):
    return [text for noise in values(of(results, part), "noise")
            for text in (f"noise {noise}: loops, ms", "tasks, ms", "less time")]


def scaling(results, published):
    rows = [(nodes, *cells) for nodes, cells in gain_rows(results, "scaling", "nodes")]
    paper = published["figure2"]
    steps = of(results, "scaling")[0]["steps"]
    return (f"Simulated, {steps} steps on nodes of 16 workers. Tasks are those of `imbrex simulate "
            "stencil1d`; loops are a model, `bench/papers/capra_model.py`, with the same network "
            "and noise. Assumed, and not measured: 1 ns for a cell, 5 us for a parallel loop, "
            "latency and overheads of the network `edr`, and the noise, an exponential "
            "distribution whose mean is so many latencies of 0.9 us. The noise is an input: the "
            "paper names noise as the reason and tells no number.\n\nThe paper (figure only): "
            f"{paper['finding_a']}.\n\n" +
            table(("nodes", *gain_head(results, "scaling")), rows) +
            "\nThe finding holds in part. With noise tasks win on all nodes, also below 16, "
            "because no core is given up for progress here. The gain falls where each step waits "
            "for the noise of a message, which no order of tasks hides. Without noise tasks gain a "
            "few per cent up to 32 nodes. They lose on 64, probably because 18 tasks keep all 16 "
            "workers busy: busy workers poll every 50 us at most, and a step takes less.\n")


def sizes(results, published):
    rows = [(f"{8 * ghost:,}", *cells) for ghost, cells in gain_rows(results, "sizes", "ghost")]
    return ("As before, on 64 nodes, by the bytes of a message. A larger message is a larger ghost "
            f"layer.\n\nThe paper (figure only): {published['figure2']['finding_b']}.\n\n" +
            table(("bytes", *gain_head(results, "sizes")), rows) +
            "\nThe simulation does not show this finding. In `stencil1d` the border of a side is "
            "one task, and a chunk is no shorter than a ghost layer. With large layers most of the "
            "16 workers of a node therefore have no task, while the loops of the model divide each "
            "border among all of them.\n")


PARTS = {"receive": ("A message beside a computation (Figure 1, a and b)", receive),
         "stencil": ("The stencil on two ranks (Figure 2, measured)", stencil),
         "chunks": ("Tasks against blocking calls on two ranks", chunks),
         "scaling": ("The stencil by nodes (Figure 2 a, simulated)", scaling),
         "sizes": ("The stencil by size of messages (Figure 2 b, simulated)", sizes)}


# ---- the picture -------------------------------------------------------------------------------


def draw_receive(axis, results, mpi):
    for way in ("ICW", "ITCW", "imbrex"):
        lines = sorted(of(results, "receive", mpi=mpi, way=way), key=lambda line: line["bytes"])
        axis.plot([line["bytes"] for line in lines], [line["us"] for line in lines], marker="o",
                  label=way)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("bytes")
    axis.set_ylabel("us")
    axis.set_title(f"Figure 1: {mpi}")
    if axis.lines:
        axis.legend(fontsize="small")


def draw_gain(axis, results, part, name, title):
    for noise in values(of(results, part), "noise"):
        lines = sorted(of(results, part, noise=noise), key=lambda line: line[name])
        axis.plot([line[name] for line in lines],
                  [100 * (1 - line["tasks_s"] / line["loops_s"]) for line in lines], marker="o",
                  label=f"noise {noise}")
    axis.axhline(0, color="grey", linewidth=0.5)
    axis.set_xscale("log", base=2)
    axis.set_xlabel(name)
    axis.set_ylabel("% less time by tasks")
    axis.set_title(title)
    if of(results, part):
        axis.legend(fontsize="small")


def write(path, results, published):
    text = ["This page compares imbrex with the results of " + published["source"] + ": messages "
            "beside computations, and a stencil with loops and with tasks. "
            f"`bench/papers/capra` wrote it from {page.origin(results)}.", "", "```sh",
            "bench/papers/capra", "```", "", f"![picture]({page.picture_of(path).name})", ""]
    limits = ["## Limits", "",
              f"The paper's machine: {published['machine']}. It draws all results and tells no "
              "number, so findings stand beside the tables. Figure 1 c, on InfiniBand, cannot be "
              "had here.\n"]

    def picture(axes):
        mpis = values(of(results, "receive"), "mpi")
        for axis, mpi in zip(axes[0], mpis):
            draw_receive(axis, results, mpi)
        draw_gain(axes[1][0], results, "scaling", "nodes", "Figure 2 a, simulated")
        draw_gain(axes[1][1], results, "sizes", "ghost", "Figure 2 b, simulated")

    page.write(path, "Progress by tasks: measured, simulated and published",
               text + page.describe(PARTS, results, published) + limits, picture)
