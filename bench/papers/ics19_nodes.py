# SPDX-License-Identifier: BSD-3-Clause
"""The section of 16 to 128 simulated nodes, of the page of bench/papers/ics19."""

from page import number, of, one, per_cent, published_text, ratio_text, table, values


def scaling(results, published, titles):
    return (scaling_of_exchanges(results) + "\n" + beside_measured(results) + "\n" +
            scaling_of_solvers(results, published, titles))


EXCHANGES = ("partial-blocks", "partial-receive", "messages")


def scaling_of_exchanges(results):
    lines = of(results, "scaling", program="fft2d", by="nodes")
    rows = []
    for ratio in values(lines, "ratio"):
        for nodes in values(lines, "nodes"):
            at = {line["system"]: line for line in lines
                  if line["nodes"] == nodes and line["ratio"] == ratio}
            base = at.get("blocking")
            if base is not None:
                rows.append((f"{ratio:g}", nodes, f"{base['n']}^2", number(base["seconds"], 3), *(
                    published_text(100 * (base["seconds"] / at[system]["seconds"] - 1)
                                   if system in at else None) for system in EXCHANGES)))
    return ("The transform in 2-D, simulated by `imbrex simulate exchange`, which has the variants "
            "of `fft`: four ranks of a node share an Omni-Path port, each rank has one worker as "
            "fast as eight and sees arrivals at once, and a rank has as many points on all "
            "numbers of nodes (section 5.2.3). Computing takes 1 / ratio times as long as the "
            "port needs for the bytes: that is put in, and so are latency and rate of the "
            "network. The speed-up over `blocking` is not put in. `partial-blocks` is the paper's "
            "way. The paper measures +26.8 % for 65536^2 on 128 nodes, and differences of 4 "
            "points at most between 16 and 128 nodes.\n\n" +
            table(("ratio", "nodes", "size", "`blocking`, s",
                   *(f"`{system}`" for system in EXCHANGES)), rows) +
            "\n`messages` on 64 and 128 nodes would be 17 and 67 million messages, and was not "
            "simulated; from 32 nodes on, their overhead exceeds what they hide. The blocks of all "
            "ranks share a port evenly in the simulator and arrive nearly together, which limits "
            "`partial-blocks`. A group of `partial-receive` is one message to each rank. On 16 "
            "nodes it has more than 64 KiB and takes turns with the others to its rank; on more "
            "nodes it is shorter, and groups arrive in their order. With "
            "shorter messages on 16 nodes (`--parts 48`) `imbrex simulate` gives +37 % at ratio "
            "0.5.\n")


def beside_measured(results):
    """The simulator on the network of the measured runs."""
    rows = []
    for ranks in (2, 4):
        measured = {name: one(results, "fft", program="fft2d", ranks=ranks, ratio=1, system=name)
                    for name in ("blocking, packed", *EXCHANGES)}
        for system in ("blocking", *EXCHANGES):
            line = one(results, "scaling", program="fft2d", by="ranks", ranks=ranks, system=system)
            known = measured["blocking, packed" if system == "blocking" else system]
            if line is not None and known is not None:
                rows.append((ranks, f"`{system}`", number(line["seconds"], 3),
                             number(known["seconds"], 3),
                             ratio_text(line["seconds"], known["seconds"])))
    return ("The simulator on the network and with the kernels of the first table of this page, "
            "beside the measured times there:\n\n" +
            table(("ranks", "variant", "simulated, s", "measured, s", "off by"), rows) +
            "\nThe messages of `messages` have 64 KiB at most. Open MPI buffers them, and their "
            "order by need is lost ([why](../design/partial-collectives.md#how-parts-are-sent)). "
            "The simulator keeps it.\n")


def scaling_of_solvers(results, published, titles):
    rows = []
    for name, known in published["modes"].items():
        for place, nodes in enumerate(published["nodes"]):
            at = {line["system"]: line
                  for line in of(results, "scaling", program=name, nodes=nodes)}
            poll = at.get("poll")
            if poll is None:
                continue
            polled, given = known["poll"][place], known["dedicated-thread"][place]
            of_paper = None if given is None else 100 * ((100 + given) / (100 + polled) - 1)
            rows.append((titles[name], nodes, number(poll["seconds"], 3),
                         per_cent(100 * poll["idle"]), *(
                             published_text(100 * (poll["seconds"] / at[mode]["seconds"] - 1)
                                            if mode in at else None)
                             for mode in ("auto", "dedicated-thread")), published_text(of_paper)))
    return ("HPCG and miniFE by `imbrex simulate`, 160^3 points of a rank (the paper: 161^3), "
            "eight workers and 56 blocks of a rank, five iterations. Kernels take as long as "
            "memory needs for their bytes, at an assumed 200 GB/s of a node. The simulator has no "
            "tasks that block a core, and so not the paper's baseline. It compares modes: the "
            "speed-up over `poll` (EV-PO), and the paper's of CT-DE over EV-PO.\n\n" +
            table(("program", "nodes", "`poll`, s", "idle", "`auto`", "`dedicated-thread`",
                   "paper: CT-DE to EV-PO"), rows) +
            "\nIn the simulator a poll costs no time, and an idle worker polls. So a thread of its "
            "own costs a worker of eight and brings nothing: what the paper gains by it, earlier "
            "polls among long tasks and fewer threads in MPI, is not simulated.\n")
