# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/ics19: what was measured, modelled and simulated beside what Castillo et
al. (ICS 2019) publish, in Markdown, and its picture."""

import statistics

import ics19_model as model
import ics19_nodes
import page
from page import number, of, one, per_cent, published_text, runs_text, table, values

TITLES = {"fft2d": "Fourier transform, 2-D", "fft3d": "Fourier transform, 3-D",
          "wordcount": "word count", "matvec": "matrix-vector product", "hpcg": "HPCG",
          "minife": "miniFE"}
COLLECTIVE = {"fft": ("fft2d", "fft3d"), "mapreduce": ("wordcount", "matvec")}
SOLVERS = ("hpcg", "minife")
BASELINES = ("blocking", "blocking, packed", "library")
BY_HAND = ("blocks", "messages")  # plain messages: what they take is no goal
# The way of the model that a variant follows; other variants work by hand, and are not modelled.
SCHEMES = {
    "fft2d": {"partial-blocks": "RB", "partial-blocks, by lines": "RL", "partial-receive": "RL",
              "partial": "ST", "messages": "ST"},
    "fft3d": {"partial-receive": "RL", "partial": "ST", "messages": "ST"},
    "wordcount": {"partial-receive": "RB", "blocks": "RB", "partial": "ST", "messages": "ST"},
    "matvec": {"partial-receive": "RB", "blocks": "RB", "partial": "ST", "messages": "ST"}}
# Per cent less time than the faster baseline, by program, ranks and scheme.
GOALS = {("fft2d", 2, "RB"): 8, ("fft2d", 2, "RL"): 18, ("fft2d", 2, "ST"): 30,
         ("fft2d", 4, "RB"): 10, ("fft2d", 4, "RL"): 18, ("fft2d", 4, "ST"): 28,
         ("fft3d", 4, "RL"): 22, ("fft3d", 4, "ST"): 30,
         ("wordcount", 2, "ST"): 25, ("wordcount", 4, "RB"): 3, ("wordcount", 4, "ST"): 22,
         ("matvec", 2, "RB"): 9, ("matvec", 2, "ST"): 30, ("matvec", 4, "RB"): 14,
         ("matvec", 4, "ST"): 30}
OF_MODEL = 75          # per cent of what the model gives
OF_HIDDEN = 0.75       # of s / (1 - s), where the share s in MPI is at least
LEAST_SHARE = 0.25
MOST_SHARE_AFTER = 0.04
ALONE = 1.10           # times what MPI_Alltoall takes, block by block
LEAST_BYTES = 1024     # of a block, below which nothing goes block by block
# Sizes of the part `sizes`, as the paper has them: those here are in the ratios of these.
PAPER_SIZES = {"fft2d": [f"{n}^2" for n in (16384, 32768, 65536, 131072, 262144)],
               "fft3d": [f"{n}^3" for n in (1024, 2048, 4096)],
               "matvec": [f"{n}^2" for n in (1024, 2048, 4096)],
               "wordcount": [f"{n} million words" for n in (262, 524, 1048)]}
SIZE_TEXTS = {"fft2d": "{}^2", "fft3d": "{}^3", "matvec": "{}^2", "wordcount": "{} x"}
BURST = 66_000         # bytes that a link of netlab lets pass at once after a pause


def settings(lines):
    return sorted({(line["program"], line["ranks"], line["ratio"]) for line in lines})


def systems(results, part, setting):
    program, ranks, ratio = setting
    return {line["system"]: line
            for line in of(results, part, program=program, ranks=ranks, ratio=ratio)}


def ratio_of(line, other):
    """Of the same repetition: neighbours in time, so that the machine's drift cancels."""
    both = [seconds / other["each_s"][repetition]
            for repetition, seconds in line["each_s"].items() if repetition in other["each_s"]]
    return statistics.median(both) if both else line["seconds"] / other["seconds"]


def ratios_text(line, other):
    """The speed-up over the other, with least and most of the repetitions."""
    if line is None or other is None:
        return "-"
    each = sorted(100 * (other["each_s"][repetition] / seconds - 1)
                  for repetition, seconds in line["each_s"].items()
                  if repetition in other["each_s"])
    text = published_text(speed_up(line, other))
    return f"{text} ({each[0]:+.0f} to {each[-1]:+.0f})" if len(each) > 1 else text


def less(line, other):
    """Per cent less time than the other."""
    return 100 * (1 - ratio_of(line, other))


def speed_up(line, other):
    """Per cent by which the other takes longer, as the paper counts."""
    return 100 * (1 / ratio_of(line, other) - 1)


def baseline(at):
    """The faster blocking one. `library` of a word count that computes is none: a thread maps its
    chunks as one, and so sends a word once, where the others send it once a chunk."""
    found = [at[name] for name in BASELINES if name in at and not (
        name == "library" and "words" in at[name])]
    return min(found, key=lambda line: line["seconds"]) if found else None


# ---- the model of a run ------------------------------------------------------------------------


def times_of(at):
    """(computing, exchange) in seconds, of the fastest baseline that tells them."""
    known = [(line["seconds"], line.get("transpose_s", line.get("exchange_s")), line)
             for name, line in at.items() if name in BASELINES]
    known = [(seconds, exchange, line) for seconds, exchange, line in known
             if exchange is not None and 0 < exchange < seconds]
    if not known:
        return None
    seconds, exchange, line = min(known, key=lambda entry: entry[0])
    return seconds - exchange, exchange, line


def program_of(setting, at):
    """Returns the results of ics19_model for the measured times; None if times are missing."""
    name, ranks, _ = setting
    times = times_of(at)
    if times is None:
        return None
    computing, exchange, line = times
    if name == "fft2d":
        return model.fft_2d(computing / 2, computing / 2, exchange, ranks, line["n"],
                            int(line["parts"]))
    if name == "fft3d":
        return model.fft_3d((computing / 3,) * 3, (exchange / 2,) * 2, (2, ranks // 2), line["n"],
                            int(line["parts"]))
    if "map_us" not in line:  # real kernels
        return None
    maps = line["map_us"] / (line["map_us"] + line["reduce_us"])
    return model.map_reduce(maps * computing, (1 - maps) * computing, exchange, ranks,
                            int(line["chunks"]))


def exchange_bytes(setting, line):
    """Returns the bytes that leave a rank in each exchange; None if the results do not tell."""
    name, ranks, _ = setting
    if name == "fft2d":
        return (16 * line["n"] ** 2 * (ranks - 1) / ranks ** 2,)
    if name == "fft3d":
        return (8 * line["n"] ** 3 / ranks,) * 2
    if "tuple_bytes" not in line:
        return None
    return (line["chunks"] * line["tuple_bytes"] * (ranks - 1) / ranks,)


def kernels_s(setting, line):
    """Of each stage, as the kernels were told to sleep. Kernels that compute count nothing: they
    may be faster in another order."""
    name, ranks, _ = setting
    if name == "fft2d":
        return (1e-6 * line.get("line_us", 0) * line["n"] / ranks,) * 2
    if name == "fft3d":
        return (1e-6 * line.get("line_us", 0) * line["n"] ** 2 / ranks,) * 3
    return tuple(1e-6 * line["chunks"] * line.get(kernel, 0) for kernel in ("map_us", "reduce_us"))


def least_s(setting, line):
    """No run of the program takes less: kernels take their time, and links carry the bytes."""
    name, ranks, _ = setting
    sizes = exchange_bytes(setting, line)
    if sizes is None:
        return None
    links = tuple(8e-6 * max(0, size - BURST) / line["rate_mbit"] for size in sizes)
    kernels = kernels_s(setting, line)
    if name == "fft2d":
        program = model.fft_2d(*kernels, *links, ranks, line["n"], int(line["parts"]))
    elif name == "fft3d":
        program = model.fft_3d(kernels, links, (2, ranks // 2), line["n"], int(line["parts"]))
    else:
        program = model.map_reduce(*kernels, *links, ranks, int(line["chunks"]))
    return model.bound_s(program)


def bound(setting, base):
    """Per cent less time than the baseline that is possible."""
    least = least_s(setting, base) if base else None
    return None if least is None else 100 * (1 - least / base["seconds"])


def most_hidden(blocking):
    """Per cent of speed-up if nothing but the kernels of the blocking run takes time."""
    return model.hidden(1 - blocking["kernel_share"])


def gains(results, part):
    """(setting, system, line, measured gain, scheme, what the model gives) of all but baselines."""
    for setting in settings(of(results, part)):
        at = systems(results, part, setting)
        base = baseline(at)
        program = program_of(setting, at)
        for system, line in sorted(at.items()):
            if base is None or system in BASELINES:
                continue
            scheme = SCHEMES[setting[0]].get(system)
            modelled = model.saved(program, scheme) if program and scheme else None
            yield setting, system, line, less(line, base), scheme, modelled


# ---- goals -------------------------------------------------------------------------------------


def collective_goals(results):
    """(what, measured, at least) in per cent less time."""
    for part in COLLECTIVE:
        for (name, ranks, ratio), system, _, measured, scheme, modelled in gains(results, part):
            if ratio != 1 or modelled is None or system in BY_HAND:
                continue
            what = f"{TITLES[name]}, {ranks} ranks, `{system}`: per cent less time"
            goal = GOALS.get((name, ranks, scheme))
            if goal is not None:
                yield what, measured, goal
            yield (f"{what}, of the model's {modelled:.1f}",
                   100 * measured / modelled if modelled > 0 else None, OF_MODEL)


def solver_goals(results):
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        blocking, auto = at.get("blocking"), at.get("auto")
        if blocking is None or auto is None or blocking["mpi_share"] < LEAST_SHARE:
            continue
        what = f"{TITLES[setting[0]]}, {setting[1]} ranks, communication {setting[2]:g} x computing"
        yield (f"{what}: t_blocking / t - 1, per cent", speed_up(auto, blocking),
               OF_HIDDEN * model.hidden(blocking["mpi_share"]))
        yield f"{what}: share outside of MPI after, per cent", \
            100 * (1 - auto["mpi_share"]), 100 * (1 - MOST_SHARE_AFTER)


def alone_goals(results):
    """(what, measured, at most)."""
    for line in of(results, "alltoall"):
        what = f"MPI_Alltoall alone, {line['ranks']} ranks, blocks of {line['bytes']:,} bytes: "
        if line["bytes"] < LEAST_BYTES:
            yield what + "calls that went block by block", line["decomposed"], 0
        else:
            yield what + "time to the library's", line["ratio"], ALONE


def describe_goals(results):
    rows = [(what, number(value, 1), f">= {least:.1f}", "yes" if value >= least else "NO")
            for what, value, least in (*collective_goals(results), *solver_goals(results))
            if value is not None]
    rows += [(what, number(value), f"<= {most:g}", "yes" if value <= most else "NO")
             for what, value, most in alone_goals(results)]
    return table(("what", "measured", "goal", "reached"), rows)


# ---- the parts ---------------------------------------------------------------------------------


def left_out(results, part):
    """Returns the variants that the page knows and the programs did not list."""
    missing = {}
    for name in COLLECTIVE[part]:
        lines = of(results, part, program=name)
        known = {line["system"] for line in lines}
        for system in SCHEMES[name]:
            if lines and system not in known:
                missing.setdefault(system, []).append(TITLES[name])
    return "".join("A variant was not measured, because the program did not list it or failed: "
                   f"`{system}` ({', '.join(names)}).\n"
                   for system, names in sorted(missing.items()))


def collective_table(results, part):
    rows = []
    found = {(setting, system): (measured, scheme, modelled)
             for setting, system, _, measured, scheme, modelled in gains(results, part)}
    for setting in settings(of(results, part)):
        at = systems(results, part, setting)
        base = baseline(at)
        for system, line in sorted(at.items(), key=lambda item: -item[1]["seconds"]):
            measured, scheme, modelled = found.get((setting, system), (None, None, None))
            rows.append((TITLES[setting[0]], setting[1], f"{setting[2]:g}" if setting[2] else "-",
                         f"`{system}`", number(line["seconds"], 3), runs_text(line),
                         per_cent(measured), scheme or "-", per_cent(modelled),
                         per_cent(bound(setting, base))))
    return table(("program", "ranks", "communication to computing, asked", "variant", "seconds",
                  "least to most", "less time", "way", "model", "bound"), rows)


def times_table(results, part):
    rows = []
    for setting in settings(of(results, part)):
        times = times_of(systems(results, part, setting))
        if times is not None:
            computing, exchange, line = times
            rows.append((TITLES[setting[0]], setting[1], f"`{line['system']}`",
                         number(computing, 3), number(exchange, 3), number(exchange / computing)))
    return table(("program", "ranks", "of", "computing, s", "in exchanges, s", "ratio"), rows)


def collective(results, published, part):
    text = ("*Less time* compares a variant with the faster of the blocking variants, by medians "
            "of ratios within one repetition. *Way* and *model* are those of "
            "`bench/papers/ics19_model.py` with the times of the second table. No order of tasks "
            "can save more than *bound*: kernels sleep as long as they were told to (those that "
            "compute count as nothing), and a link carries its bytes at its rate, but for 64 KiB "
            "that pass at once.\n\n")
    text += collective_table(results, part) + "\n" + times_table(results, part)
    text += "\n" + left_out(results, part)
    rows = []
    for name in COLLECTIVE[part]:
        at = published["collectives"][name]
        best = published_text(at["callback_best"])
        if at["best_at"]:
            best += f" ({at['best_at']})"
        rows.append((TITLES[name], published_text(at["callback_average"]), best,
                     published_text(at["dedicated_thread"])))
    return text + ("\nThe paper's speed-up over its blocking baseline, on 128 nodes with 512 ranks "
                   "of 8 threads (speed-up = 1 / (1 - less time) - 1). The paper's receivers "
                   "compute on the block of a rank, which is way RB:\n\n") + \
        table(("program", "partial, average", "partial, best", "communication thread, dedicated"),
              rows)


def fft(results, published):
    return collective(results, published, "fft")


def sizes(results, published):
    rows, averages, missing = [], [], []
    names = ("CT-DE", "partial-blocks", "partial-receive", "partial")
    for name in ("fft2d", "fft3d", "wordcount", "matvec"):
        gained = {system: [] for system in names}
        lines = of(results, "sizes", program=name)
        for place, size in enumerate(values(lines, "size")):
            at = {line["system"]: line for line in lines if line["size"] == size}
            base = at.get("blocking")
            if base is None:
                continue
            of_paper = PAPER_SIZES[name][place] if place < len(PAPER_SIZES[name]) else "-"
            rows.append((TITLES[name], SIZE_TEXTS[name].format(size), of_paper,
                         number(base["seconds"], 3), runs_text(base),
                         *(ratios_text(at.get(system), base) for system in names)))
            for system in names:
                if system in at:
                    gained[system].append(speed_up(at[system], base))
        if not lines:
            missing.append(TITLES[name])
            continue
        known = published["collectives"][name]
        averages.append((TITLES[name], *(
            published_text(statistics.mean(gained[system]) if gained[system] else None)
            for system in names), published_text(known["dedicated_thread"]),
            published_text(known["callback_average"])))
    return ("The paper's sizes are for 128 nodes; those here are in the same ratios. Ranks have "
            "eight workers, as in the paper: 2 ranks (4 of the 3-D transform), with links of 200 "
            "Mbit/s. Kernels sleep. Computing takes as long as the exchange needs at the rate of "
            "a link, at each size. Only the word count differs, whose maps grow with the text "
            "while its tuples do not. `blocking`, with packed blocks, is the baseline: its "
            "exchange is the only thing to do meanwhile, so it makes no difference whether a task "
            "waits. `CT-DE` is `blocking` with a thread of progress and seven workers (mode "
            "`dedicated-thread`). The other variants run in mode `callback`, which is the paper's "
            "CB-SW. The cells are the speed-up over `blocking`, t_blocking / t - 1, of "
            "neighbouring runs, with the least and the most.\n\n" +
            table(("program", "size", "the paper's", "`blocking`, s", "least to most",
                   *(f"`{system}`" for system in names)), rows) +
            (f"\nMeasured at one size alone, in the tables above: {', '.join(missing)}.\n"
             if missing else "") +
            "\nAverages over the sizes, and those of the paper. Its partial collectives are "
            "`partial-blocks` of the transforms and `partial-receive` of MapReduce:\n\n" +
            table(("program", *(f"`{system}`" for system in names), "paper: CT-DE",
                   "paper: CB-SW"), averages) +
            "\nThe least sizes tell of start and end rather than of overlap: 16 threads share two "
            "processors, and after a pause a link lets 64 KiB pass at once. There are 16 groups of "
            "lines, two for each worker, so at most half of the first stage hides communication in "
            "`partial`. `CT-DE` computes with seven workers of eight, so it can lose 1/8 of the "
            "computing time. The polling threads of all ranks take both processors of this machine "
            "besides, and exchanges take up to twice as long. In mode `callback` nobody polls "
            "while all workers compute. That is a likely reason why `partial-blocks`, whose tasks "
            "are the longest (up to 0.3 s), loses here and gains under `auto` (first table of this "
            "page).\n")


def mapreduce(results, published):
    return collective(results, published, "mapreduce") + what_limits_blocks(results)


def what_limits_blocks(results):
    """Why a gain by blocks is lost on 4 ranks: exchanges of the baselines alone differ by more."""
    rows = []
    for setting in settings(of(results, "mapreduce")):
        at = systems(results, "mapreduce", setting)
        times = [at[name]["exchange_s"] for name in BASELINES if name in at]
        program, sizes = program_of(setting, at), exchange_bytes(setting, baseline(at))
        if len(times) == 2 and program and sizes:
            link = 8e-6 * sizes[0] / baseline(at)["rate_mbit"]
            rows.append((TITLES[setting[0]], setting[1], number(link, 3), number(min(times), 3),
                         number(max(times), 3), per_cent(100 * (max(times) - min(times)) /
                                                         baseline(at)["seconds"]),
                         per_cent(model.saved(program, "RB"))))
    return ("\nWhat limits the way RB (`blocks`, `partial-receive`): one `MPI_Alltoallv` without "
            "any computation takes longer than its bytes need on a link, and its time differs "
            "between the two blocking programs. On 4 ranks that difference is larger than the gain "
            "that the model gives for the word count, so the word count cannot show the gain on "
            "this network.\n\n" +
            table(("program", "ranks", "bytes at the rate, s", "exchange, least, s",
                   "exchange, most, s", "difference, of the time", "model, RB"), rows)
            if rows else "")


def alltoall(results, _):
    rows = [(line["ranks"], f"{line['bytes']:,}", number(line["library_ms"], 3),
             number(line["imbrex_ms"], 3), number(line["ratio"]), number(line["decomposed"], 0))
            for line in sorted(of(results, "alltoall"),
                               key=lambda line: (line["ranks"], line["bytes"]))]
    first = of(results, "alltoall")[0]
    return ("The program makes only this call, with one worker a rank, over links of "
            f"{first['rate_mbit']} Mbit/s, {first['rounds']} turns in one run. The table has "
            "medians, and the median of the ratios of neighbouring turns.\n\n" +
            table(("ranks", "bytes of a block", "library, ms", "`IMBREX_PARTIAL=on`, ms", "ratio",
                   "block by block"), rows))


def real(results, _):
    return ("The kernels compute, on 2 ranks with links of 1 Gbit/s. These runs have no goals. "
            "`library` of the word count is another algorithm, and so no baseline: a thread maps "
            "its chunks as one, so it sends a word once and not once a chunk.\n\n" +
            collective_table(results, "real"))


def solvers(results, published):
    rows = []
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        blocking = at.get("blocking")
        for system, line in sorted(at.items(), key=lambda item: -item[1]["seconds"]):
            gain = speed_up(line, blocking) if blocking and line is not blocking else None
            most = most_hidden(blocking) if gain is not None else None
            rows.append((TITLES[setting[0]], setting[1], f"{setting[2]:g}", f"`{system}`",
                         line.get("progress", "-"), number(line["seconds"], 3), runs_text(line),
                         published_text(gain), published_text(most),
                         per_cent(100 * line["mpi_share"]), per_cent(100 * line["kernel_share"])))
    text = ("Speed-up is t_blocking / t - 1. *Most* is the speed-up if only the kernels take time, "
            "1 / k - 1 with their share k of `blocking`. The goals ask for less: three quarters "
            "of s / (1 - s), with the share s of `blocking` in MPI. A mode with tasks can exceed "
            "s / (1 - s), because tasks also fill the time in which a worker of `blocking` waits "
            "for the last one of a loop. A mode that gives a processor to a thread has one worker "
            "less. *Mode* is the mode that ran: this machine "
            "may refuse the requested one. `blocking` waits outside of tasks; the paper's "
            "baseline, tasks that block a core, is measured under \"Blocks of a worker\". "
            "After a pause netlab lets 64 KiB pass at once. A run that does not send "
            "while it computes therefore sends its halos of some 86 KB faster than the rate. Where "
            "a run is one chain of exchanges (HPCG on two ranks) there is less to hide than "
            "the goals ask for.\n\n")
    text += table(("program", "ranks", "communication to computing, asked", "variant", "mode",
                   "seconds", "least to most", "speed-up", "most", "in MPI", "in kernels"), rows)
    return text + "\n" + cost_of_auto(results) + "\n" + published_solvers(published)


def cost_of_auto(results):
    """The default beside the fastest mode that leaves each processor to the workers."""
    rows = []
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        auto = at.get("auto")
        others = [at[mode] for mode in ("poll", "callback", "shared-thread") if mode in at]
        if auto is None or not others:
            continue
        best = min(others, key=lambda line: line["seconds"])
        each = [seconds / best["each_s"][repetition]
                for repetition, seconds in auto["each_s"].items() if repetition in best["each_s"]]
        rows.append((TITLES[setting[0]], setting[1], f"`{best['system']}`",
                     number(ratio_of(auto, best)),
                     f"{number(min(each))} to {number(max(each))}" if each else "-"))
    return ("Time of the default mode `auto` beside the fastest of `poll`, `callback` and "
            "`shared-thread`, of neighbouring runs:\n\n" +
            table(("program", "ranks", "fastest", "`auto` to it", "least to most"), rows))


def published_solvers(published):
    rows = []
    for name in SOLVERS:
        for mode, at in published["modes"][name].items():
            rows.append((TITLES[name], f"`{mode}`", *(published_text(value) for value in at)))
    text = ("The paper's speed-up over its baseline, by nodes of 4 ranks with 8 threads (without "
            "the bars whose number the text does not give):\n\n")
    text += table(("program", "mode", *published["nodes"]), rows)
    shares = published["mpi_share_percent"]
    return text + "\n" + " ".join(
        f"In the paper {TITLES[name]} spent {shares[name]['baseline']} % of its time in MPI, with "
        f"callbacks {shares[name]['callback']} %." for name in SOLVERS) + (
            " The worst result of HPCG with `shared-thread` was "
            f"{published['shared_thread_at_worst']['hpcg']} %.\n")


def link_s(line):
    """Seconds that the halos of a rank need on its link."""
    if "port_bytes" not in line:
        return None
    return 8e-6 * line["port_bytes"] * line["iterations"] / line["rate_mbit"]


def decomposition(results, _):
    rows, best = [], []
    lines = of(results, "decomposition")
    for name in values(lines, "program"):
        found = {}
        for blocks in values(lines, "blocks"):
            base, tasks = (one(results, "decomposition", program=name, blocks=blocks,
                               system=system) for system in ("blocking-tasks", "auto"))
            if base is None or tasks is None:
                continue
            found[blocks] = (base["seconds"], tasks["seconds"])
            rows.append((TITLES[name], blocks, number(base["seconds"], 3), runs_text(base),
                         number(tasks["seconds"], 3), runs_text(tasks),
                         ratios_text(tasks, base), number(link_s(base), 3)))
        if found:
            least = [min(found, key=lambda blocks, place=place: found[blocks][place])
                     for place in (0, 1)]
            gain = 100 * (found[least[0]][0] / found[least[1]][1] - 1)
            best.append(f"- {TITLES[name]} is fastest with these blocks a worker: `blocking-tasks` "
                        f"{least[0]}, `auto` {least[1]}. Between the two the speed-up is "
                        f"{published_text(gain)}.\n")
    return ("`blocking-tasks` is the paper's baseline: a task that calls MPI blocks its worker, "
            "and a core waits. The table has blocks of a worker from 1 to 16, on 2 ranks of one "
            "worker with links of 100 Mbit/s; kernels sleep. *Link* is the time that "
            "the bytes of a rank need at the rate of its link. The paper reports the best "
            "decomposition of each system, and no numbers.\n\n" +
            table(("program", "blocks a worker", "`blocking-tasks`, s", "least to most",
                   "`auto`, s", "least to most", "speed-up", "link, s"), rows) + "\n" +
            "".join(best) + "\nAll rows but those of the smallest blocks take as long as the link. "
            "After a pause netlab lets 64 KiB of a halo of some 86 KB pass at once, so a run that "
            "computes and sends in turn loses little. The table therefore shows the cost of small "
            "blocks and no gain. Larger halos would show one. Single runs of `blocking-tasks` took "
            "two to three times as long.\n")


def scaling(results, published):
    return ics19_nodes.scaling(results, published, TITLES)


def counts(line):
    def ms(what):
        return number(1e3 * line[what], 2) if what in line else "-"
    return (number(line.get("timed_polls"), 0), ms("timed_polls_s"),
            number(line.get("timed_callbacks"), 0), ms("timed_callbacks_s"),
            *(number(line.get(what), 0) for what in ("progress_notices", "tests", "suspensions")))


def polls_to_callbacks(results):
    """Of two runs: the polls of mode `poll` to the callbacks of mode `callback`."""
    rows = []
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        poll, callback = at.get("poll", {}), at.get("callback", {})
        if poll.get("timed_polls_s") and callback.get("timed_callbacks_s"):
            rows.append((TITLES[setting[0]], setting[1],
                         number(poll["timed_polls"] / callback["timed_callbacks"], 1),
                         number(poll["timed_polls_s"] / callback["timed_callbacks_s"], 1)))
    return table(("program", "ranks", "polls to callbacks, number", "time"), rows) if rows else ""


def polls_to_events(results):
    """The paper calls back once for an event; here an event is the end of a wait of a task."""
    rows = []
    for setting in settings(of(results, "solvers")):
        line = systems(results, "solvers", setting).get("poll", {})
        if line.get("suspensions") and line.get("timed_polls"):
            rows.append((TITLES[setting[0]], setting[1], number(line["timed_polls"], 0),
                         number(line["suspensions"], 0),
                         number(line["timed_polls"] / line["suspensions"], 0)))
    if not rows:
        return ""
    return ("`callback` polls as often as `poll`, and so the first ratio is near 1: this MPI moves "
            "messages only inside a call, so an idle worker polls in both modes, and each poll "
            "runs the hook that is counted as a callback. The paper's network has threads of its "
            "own, and calls back once for an event. The number that corresponds to the paper's is "
            "that of polls for each wait of a task that ended:\n\n" +
            table(("program", "ranks", "polls under `poll`", "waits that ended", "ratio"), rows))


def polls(results, published):
    rows = []
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        for system in ("poll", "callback", "test-each"):
            line = at.get(system)
            if line is not None:
                rows.append((TITLES[setting[0]], setting[1], f"`{system}`", *counts(line)))
    text = ("The counts are those of one run over all ranks: polls by any thread, and their time; "
            "callbacks, and their time (a callback asks MPI for completions or is told of one, "
            "also within a poll); completions that callbacks found; and tests of single requests, "
            "as TAMPI does them.\n\n")
    text += table(("program", "ranks", "variant", "polls", "ms", "callbacks", "ms", "found",
                   "tests", "suspensions"), rows)
    text += "\n" + polls_to_callbacks(results) + "\n" + polls_to_events(results)
    times = published["polling_time_to_callbacks"]
    return text + (f"\nIn the paper all polls take {times['hpcg']} (HPCG) and {times['minife']} "
                   "(miniFE) times as long as all callbacks, and there are about "
                   f"{published['polls_to_callbacks']} times as many polls.\n")


def tampi(results, published):
    rows = []
    for setting in settings(of(results, "solvers")):
        at = systems(results, "solvers", setting)
        blocking, each = at.get("blocking"), at.get("test-each")
        ours = [line for name, line in at.items()
                if name not in ("blocking", "blocking-tasks", "test-each")]
        if blocking is None or each is None or not ours:
            continue
        best = min(ours, key=lambda line: line["seconds"])
        known = published["tampi"][setting[0]]
        rows.append((TITLES[setting[0]], setting[1], published_text(speed_up(each, blocking)),
                     published_text(speed_up(best, blocking)), f"`{best['system']}`",
                     published_text(known["tampi"]), published_text(known["events"])))
    return ("The table has the speed-up over blocking of testing each request, as TAMPI does, and "
            "of the best mode, and then the paper's speed-ups on 128 nodes. For collectives TAMPI "
            "is the baseline, because it knows nothing of their parts.\n\n" +
            table(("program", "ranks", "test-each", "best", "which", "paper: TAMPI",
                   "paper: events"), rows))


def patterns(results, _):
    text = ("The numbers are bytes that tasks of the rank in the row send to the rank in the "
            "column by messages, on 8 ranks, by `IMBREX_TRACE` (the paper draws 512 ranks by "
            "shades).\n")
    for line in of(results, "patterns"):
        count = range(line["ranks"])
        rows = [(source, *(number(line["bytes"][source][target], 0) for target in count))
                for source in count]
        text += f"\n{TITLES[line['program']]}:\n\n" + table(("", *count), rows)
    return text


def traces(results, _):
    line = of(results, "traces")[0]
    return (f"The picture by `imbrex timeline` shows the transform of {line['n']} x {line['n']} "
            f"points, `{line['systems'][0]}` above `{line['systems'][1]}`, on {line['ranks']} "
            f"ranks of {line['workers']} workers, on one time "
            f"scale.\n\n![traces]({line['picture']})\n")


PARTS = {"fft": ("The Fourier transform (Figure 10)", fft),
         "mapreduce": ("MapReduce (Figure 12)", mapreduce),
         "sizes": ("Sizes in the ratios of the paper's, and CT-DE (Figures 10 and 12)", sizes),
         "alltoall": ("MPI_Alltoall alone", alltoall),
         "real": ("Kernels that compute", real),
         "solvers": ("HPCG and miniFE (Figure 9)", solvers),
         "decomposition": ("Blocks of a worker", decomposition),
         "scaling": ("16 to 128 nodes, simulated (Figure 9, section 5.2.3)", scaling),
         "traces": ("Traces (Figure 11)", traces),
         "patterns": ("Who sends how much to whom (Figure 8)", patterns)}


def of_solvers(results, published):
    """Sections that the results of `solvers` give beside their own."""
    if not of(results, "solvers"):
        return []
    return ["## Polls and callbacks", "", polls(results, published),
            "## Beside TAMPI's way (Figure 13)", "", tampi(results, published)]


# ---- the picture -------------------------------------------------------------------------------


def draw_collective(axis, results, part):
    labels, bars, models = [], [], []
    for (name, ranks, ratio), system, _, measured, scheme, modelled in gains(results, part):
        if scheme is not None:
            labels.append(f"{TITLES[name]}, {ranks}, {ratio:g}: {system}")
            bars.append(measured)
            models.append(modelled)
    places = list(range(len(labels)))
    axis.barh(places, bars, label="measured")
    known = [(value, place) for value, place in zip(models, places) if value is not None]
    if known:
        axis.plot(*zip(*known), "k|", markersize=12, label="model")
        axis.legend(fontsize="small")
    axis.set_yticks(places, labels, fontsize="x-small")
    axis.set_xlabel("% less time")
    axis.set_title("ranks, communication to computing: variant")


def draw_solvers(axis, results, name):
    labels, bars = [], []
    for setting in settings(of(results, "solvers", program=name)):
        at = systems(results, "solvers", setting)
        if "blocking" in at:
            for system, line in sorted(at.items()):
                if system != "blocking":
                    labels.append(f"{setting[1]} ranks: {system}")
                    bars.append(speed_up(line, at["blocking"]))
    axis.barh(range(len(labels)), bars)
    axis.set_yticks(range(len(labels)), labels, fontsize="x-small")
    axis.set_xlabel("% speed-up over blocking")
    axis.set_title(TITLES[name])


def write(path, results, published):
    text = ["This page compares imbrex with the results of " + published["source"] + ": how much "
            "time partial collectives and modes of progress save. "
            f"`bench/papers/ics19` wrote it from {page.origin(results)}.", "",
            "```sh", "bench/papers/ics19", "```", "",
            f"![picture]({page.picture_of(path).name})", "",
            "## Goals", "", "In these runs communication takes as long as computing.", "",
            describe_goals(results)]
    limits = ["## Limits", "",
              "The ranks of these measurements share one machine, over `tools/netlab`, and their "
              "kernels sleep, except under \"Kernels that compute\"; the paper had 128 nodes of 48 "
              "cores with Omni-Path. Compare the ratios of variants, not the seconds.\n"]

    def picture(axes):
        draw_collective(axes[0][0], results, "fft")
        draw_collective(axes[0][1], results, "mapreduce")
        draw_solvers(axes[1][0], results, "hpcg")
        draw_solvers(axes[1][1], results, "minife")

    page.write(path, "Partial collectives and progress: measured, simulated and published",
               text + page.describe(PARTS, results, published) + of_solvers(results, published) +
               limits, picture)
