# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/ics19 computes from what was measured, modelled and simulated, and
its picture."""

import statistics

import ics19_model as model
import page
from page import ratio, yes_no

TITLES = {"fft2d": "Fourier transform, 2-D", "fft3d": "Fourier transform, 3-D",
          "wordcount": "word count", "matvec": "matrix-vector product", "hpcg": "HPCG",
          "minife": "miniFE"}
COLLECTIVE = {"fft": ("fft2d", "fft3d"), "mapreduce": ("wordcount", "matvec")}
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
               "wordcount": [f"{n} million words" for n in (262, 524, 1048)],
               "matvec": [f"{n}^2" for n in (1024, 2048, 4096)]}
SIZE_TEXTS = {"fft2d": "{}^2", "fft3d": "{}^3", "matvec": "{}^2", "wordcount": "{} x"}
SIZES_SYSTEMS = ("CT-DE", "partial-blocks", "partial-receive", "partial")
BURST = 66_000         # bytes that a link of netlab lets pass at once after a pause
EXCHANGES = ("partial-blocks", "partial-receive", "messages")


def speed_ups_text(line, other):
    """The speed-up over the other, with least and most of the repetitions; None: not measured."""
    if line is None or other is None:
        return None
    each = sorted(100 * (page.ratios(other, line) - 1))
    text = page.signed(speed_up(line, other))
    return f"{text} ({each[0]:+.0f} to {each[-1]:+.0f})" if len(each) > 1 else text


def less(line, other):
    """Per cent less time than the other."""
    return 100 * (1 - ratio(line, other))


def speed_up(line, other):
    """Per cent by which the other takes longer, as the paper counts."""
    return 100 * (1 / ratio(line, other) - 1)


def baseline(at):
    """The faster blocking one. `library` of a word count that computes is none: a thread maps its
    chunks as one, and so sends a word once, where the others send it once a chunk."""
    found = [at[name] for name in BASELINES if name in at and not (
        name == "library" and "words" in at[name])]
    return min(found, key=lambda line: line["seconds"]) if found else None


# ---- the model of a run ------------------------------------------------------------------------


def times_of(at):
    """(computing, exchange, line) in seconds, of the fastest baseline that tells them; None if none
    does."""
    known = [(line["seconds"], line.get("transpose_s", line.get("exchange_s")), line)
             for name, line in at.items() if name in BASELINES]
    known = [(seconds - exchange, exchange, line) for seconds, exchange, line in known
             if exchange is not None and 0 < exchange < seconds]
    return min(known, key=lambda entry: entry[2]["seconds"], default=None)


def model_of(setting, line, stages, exchanges):
    """The program of ics19_model whose stages and exchanges take these seconds."""
    name, ranks, _ = setting
    if name == "fft2d":
        return model.fft_2d(*stages, *exchanges, ranks, line["n"], int(line["parts"]))
    if name == "fft3d":
        return model.fft_3d(stages, exchanges, (2, ranks // 2), line["n"], int(line["parts"]))
    return model.map_reduce(*stages, *exchanges, ranks, int(line["chunks"]))


def program_of(setting, at):
    """The model of the measured times; None if times are missing."""
    times = times_of(at)
    if times is None:
        return None
    computing, exchange, line = times
    if setting[0] in ("fft2d", "fft3d"):
        dims = int(setting[0][3])
        return model_of(setting, line, (computing / dims,) * dims,
                        (exchange / (dims - 1),) * (dims - 1))
    if "map_us" not in line:  # real kernels
        return None
    maps = line["map_us"] / (line["map_us"] + line["reduce_us"])
    return model_of(setting, line, (maps * computing, (1 - maps) * computing), (exchange,))


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
    if name in ("fft2d", "fft3d"):
        dims = int(name[3])
        return (1e-6 * line.get("line_us", 0) * line["n"] ** (dims - 1) / ranks,) * dims
    return tuple(1e-6 * line["chunks"] * line.get(kernel, 0) for kernel in ("map_us", "reduce_us"))


def least_s(setting, line):
    """No run of the program takes less: kernels take their time, and links carry the bytes."""
    sizes = exchange_bytes(setting, line)
    if sizes is None:
        return None
    links = tuple(8e-6 * max(0, size - BURST) / line["rate_mbit"] for size in sizes)
    return model.bound_s(model_of(setting, line, kernels_s(setting, line), links))


def bound(setting, base):
    """Per cent less time than the baseline that is possible."""
    least = least_s(setting, base) if base else None
    return None if least is None else 100 * (1 - least / base["seconds"])


def most_hidden(blocking):
    """Per cent of speed-up if nothing but the kernels of the blocking run takes time."""
    return model.hidden(1 - blocking["kernel_share"])


def link_s(line):
    """Seconds that the halos of a rank need on its link."""
    if "port_bytes" not in line:
        return None
    return 8e-6 * line["port_bytes"] * line["iterations"] / line["rate_mbit"]


class Page(page.Page):
    TITLES = TITLES

    def settings(self, part, **wanted):
        """((program, ranks, ratio), {system: its result})."""
        names = ("program", "ranks", "ratio")
        for setting in sorted({tuple(line[name] for name in names)
                               for line in self.of(part, **wanted)}):
            yield setting, self.by("system", part, **dict(zip(names, setting)))

    def gains(self, part):
        """(setting, system, line, measured gain, scheme, what the model gives) of all but
        baselines."""
        for setting, at in self.settings(part):
            base, program = baseline(at), program_of(setting, at)
            for system, line in sorted(at.items()):
                if base is not None and system not in BASELINES:
                    scheme = SCHEMES[setting[0]].get(system)
                    yield (setting, system, line, less(line, base), scheme,
                           model.saved(program, scheme) if program and scheme else None)

    # ---- goals ---------------------------------------------------------------------------------

    def goals(self):
        """(what, measured, at least, whether it is reached)."""
        return [(what, value, least, yes_no(value >= least)) for what, value, least in
                (*self.collective_goals(), *self.solver_goals()) if value is not None]

    def collective_goals(self):
        """In per cent less time."""
        for part in COLLECTIVE:
            for (name, ranks, asked), system, _, measured, scheme, modelled in self.gains(part):
                if asked != 1 or modelled is None or system in BY_HAND:
                    continue
                what = f"{TITLES[name]}, {ranks} ranks, `{system}`: per cent less time"
                if (name, ranks, scheme) in GOALS:
                    yield what, measured, GOALS[name, ranks, scheme]
                yield (f"{what}, of the model's {modelled:.1f}",
                       100 * measured / modelled if modelled > 0 else None, OF_MODEL)

    def solver_goals(self):
        for (name, ranks, asked), at in self.settings("solvers"):
            if not {"blocking", "auto"} <= set(at) or at["blocking"]["mpi_share"] < LEAST_SHARE:
                continue
            what = f"{TITLES[name]}, {ranks} ranks, communication {asked:g} x computing: "
            yield (what + "t_blocking / t - 1, per cent", speed_up(at["auto"], at["blocking"]),
                   OF_HIDDEN * model.hidden(at["blocking"]["mpi_share"]))
            yield (what + "share outside of MPI after, per cent",
                   100 * (1 - at["auto"]["mpi_share"]), 100 * (1 - MOST_SHARE_AFTER))

    def alone_goals(self):
        """(what, measured, at most, whether it is reached)."""
        for line in self.of("alltoall"):
            what = f"MPI_Alltoall alone, {line['ranks']} ranks, blocks of {line['bytes']:,} bytes: "
            goal = (what + "time to the library's", line["ratio"], ALONE)
            if line["bytes"] < LEAST_BYTES:
                goal = (what + "calls that went block by block", line["decomposed"], 0)
            yield *goal, yes_no(goal[1] <= goal[2])

    # ---- collectives ---------------------------------------------------------------------------

    def collectives(self, part):
        found = {(setting, system): more for setting, system, _, *more in self.gains(part)}
        for setting, at in self.settings(part):
            most = bound(setting, baseline(at))
            for system, line in sorted(at.items(), key=lambda item: -item[1]["seconds"]):
                measured, scheme, modelled = found.get((setting, system), (None, None, None))
                yield (TITLES[setting[0]], setting[1], setting[2] or None, system,
                       line["seconds"], page.runs_of(line), measured, scheme, modelled, most)

    def times(self, part):
        for (name, ranks, _), at in self.settings(part):
            times = times_of(at)
            if times is not None:
                computing, exchange, line = times
                yield (TITLES[name], ranks, line["system"], computing, exchange,
                       exchange / computing)

    def left_out(self, part):
        """{variant that the page knows and the programs did not list: titles of the programs}."""
        missing = {}
        for name in COLLECTIVE[part]:
            known = self.by("system", part, program=name)
            for system in SCHEMES[name] if known else ():
                if system not in known:
                    missing.setdefault(system, []).append(TITLES[name])
        return missing

    def published_collectives(self, part):
        for name in COLLECTIVE[part]:
            at = self.published["collectives"][name]
            best = page.signed(at["callback_best"])
            best += f" ({at['best_at']})" if at["best_at"] else ""
            yield TITLES[name], at["callback_average"], best, at["dedicated_thread"]

    def limits_of_blocks(self):
        """Why a gain by blocks is lost on 4 ranks: exchanges of the baselines alone differ by
        more."""
        for setting, at in self.settings("mapreduce"):
            times = [at[name]["exchange_s"] for name in BASELINES if name in at]
            program, base = program_of(setting, at), baseline(at)
            sizes = base and exchange_bytes(setting, base)
            if len(times) == 2 and program and sizes:
                yield (TITLES[setting[0]], setting[1], 8e-6 * sizes[0] / base["rate_mbit"],
                       min(times), max(times), 100 * (max(times) - min(times)) / base["seconds"],
                       model.saved(program, "RB"))

    def sizes(self):
        """(program, size, the paper's size, blocking line, {system: its line})."""
        for name in PAPER_SIZES:
            for place, size in enumerate(self.values("sizes", "size", program=name)):
                at = self.by("system", "sizes", program=name, size=size)
                if "blocking" in at:
                    yield (name, SIZE_TEXTS[name].format(size),
                           next(iter(PAPER_SIZES[name][place:]), None), at["blocking"], at)

    def sizes_table(self):
        for name, size, of_paper, base, at in self.sizes():
            yield (TITLES[name], size, of_paper, base["seconds"], page.runs_of(base),
                   *(speed_ups_text(at.get(system), base) for system in SIZES_SYSTEMS))

    def averages_of_sizes(self):
        for name in PAPER_SIZES:
            if self.of("sizes", program=name):
                gained = [[speed_up(at[system], base) for which, _, _, base, at in self.sizes()
                           if which == name and system in at] for system in SIZES_SYSTEMS]
                known = self.published["collectives"][name]
                yield (TITLES[name], *(statistics.mean(some) if some else None for some in gained),
                       known["dedicated_thread"], known["callback_average"])

    def without_sizes(self):
        return [TITLES[name] for name in PAPER_SIZES if not self.of("sizes", program=name)]

    def alltoall(self):
        columns = ["ranks", "bytes", "library_ms", "imbrex_ms", "ratio", "decomposed"]
        return self.frame("alltoall", *columns).sort_values(["ranks", "bytes"])

    # ---- solvers -------------------------------------------------------------------------------

    def solvers(self):
        for (name, ranks, asked), at in self.settings("solvers"):
            blocking = at.get("blocking")
            for system, line in sorted(at.items(), key=lambda item: -item[1]["seconds"]):
                gains = (None, None) if blocking in (None, line) else \
                    (speed_up(line, blocking), most_hidden(blocking))
                yield (TITLES[name], ranks, asked, system, line.get("progress"), line["seconds"],
                       page.runs_of(line), *gains, 100 * line["mpi_share"],
                       100 * line["kernel_share"])

    def costs_of_auto(self):
        """The default beside the fastest mode that leaves each processor to the workers."""
        for (name, ranks, _), at in self.settings("solvers"):
            others = [at[mode] for mode in ("poll", "callback", "shared-thread") if mode in at]
            if "auto" in at and others:
                best = min(others, key=lambda line: line["seconds"])
                each = page.ratios(at["auto"], best)
                yield TITLES[name], ranks, best["system"], each.median(), each.min(), each.max()

    def published_modes(self):
        return [(TITLES[name], mode, *at) for name, modes in self.published["modes"].items()
                for mode, at in modes.items()]

    def decomposition(self):
        """(program, blocks, line of `blocking-tasks`, line of `auto`)."""
        for name in self.values("decomposition", "program"):
            for blocks in self.values("decomposition", "blocks"):
                at = self.by("system", "decomposition", program=name, blocks=blocks)
                if {"blocking-tasks", "auto"} <= set(at):
                    yield name, blocks, at["blocking-tasks"], at["auto"]

    def decomposition_table(self):
        for name, blocks, base, tasks in self.decomposition():
            yield (TITLES[name], blocks, base["seconds"], page.runs_of(base), tasks["seconds"],
                   page.runs_of(tasks), speed_ups_text(tasks, base), link_s(base))

    def best_decompositions(self):
        """(program, the blocks with which each system is fastest, the speed-up between the two)."""
        for name in self.values("decomposition", "program"):
            found = [(blocks, base["seconds"], tasks["seconds"])
                     for which, blocks, base, tasks in self.decomposition() if which == name]
            if found:
                base, tasks = (min(found, key=lambda line, place=place: line[place])
                               for place in (1, 2))
                yield TITLES[name], base[0], tasks[0], 100 * (base[1] / tasks[2] - 1)

    def polls(self):
        for (name, ranks, _), at in self.settings("solvers"):
            for system in ("poll", "callback", "test-each"):
                line = at.get(system, {})
                ms = {what: 1e3 * line[what] for what in ("timed_polls_s", "timed_callbacks_s")
                      if what in line}
                if line:
                    yield (TITLES[name], ranks, system, *({**line, **ms}.get(what) for what in (
                        "timed_polls", "timed_polls_s", "timed_callbacks", "timed_callbacks_s",
                        "progress_notices", "tests", "suspensions")))

    def polls_to_callbacks(self):
        """Of two runs: the polls of mode `poll` to the callbacks of mode `callback`."""
        for (name, ranks, _), at in self.settings("solvers"):
            poll, callback = at.get("poll", {}), at.get("callback", {})
            if poll.get("timed_polls_s") and callback.get("timed_callbacks_s"):
                yield (TITLES[name], ranks, poll["timed_polls"] / callback["timed_callbacks"],
                       poll["timed_polls_s"] / callback["timed_callbacks_s"])

    def polls_to_events(self):
        """The paper calls back once for an event; here an event is the end of a wait of a task."""
        for (name, ranks, _), at in self.settings("solvers"):
            line = at.get("poll", {})
            if line.get("suspensions") and line.get("timed_polls"):
                yield (TITLES[name], ranks, line["timed_polls"], line["suspensions"],
                       line["timed_polls"] / line["suspensions"])

    def tampi(self):
        for (name, ranks, _), at in self.settings("solvers"):
            ours = [line for system, line in at.items()
                    if system not in ("blocking", "blocking-tasks", "test-each")]
            if {"blocking", "test-each"} <= set(at) and ours:
                best = min(ours, key=lambda line: line["seconds"])
                known = self.published["tampi"][name]
                yield (TITLES[name], ranks, speed_up(at["test-each"], at["blocking"]),
                       speed_up(best, at["blocking"]), best["system"], known["tampi"],
                       known["events"])

    # ---- 16 to 128 simulated nodes -------------------------------------------------------------

    def scaled_exchanges(self):
        """(ratio, nodes, points, seconds of blocking, speed-up of each of EXCHANGES)."""
        wanted = {"program": "fft2d", "by": "nodes"}
        for asked in self.values("scaling", "ratio", **wanted):
            for nodes in self.values("scaling", "nodes", ratio=asked, **wanted):
                at = self.by("system", "scaling", ratio=asked, nodes=nodes, **wanted)
                base = at.get("blocking")
                if base:
                    yield (asked, nodes, base["n"], base["seconds"], *(
                        100 * (base["seconds"] / at[system]["seconds"] - 1) if system in at
                        else None for system in EXCHANGES))

    def simulated_beside_measured(self):
        for ranks in (2, 4):
            measured = self.by("system", "fft", program="fft2d", ranks=ranks, ratio=1)
            at = self.by("system", "scaling", program="fft2d", by="ranks", ranks=ranks)
            for system in ("blocking", *EXCHANGES):
                known = measured.get("blocking, packed" if system == "blocking" else system)
                if system in at and known:
                    yield (ranks, system, at[system]["seconds"], known["seconds"],
                           page.off_by(at[system]["seconds"], known["seconds"]))

    def scaled_solvers(self):
        for name, known in self.published["modes"].items():
            for place, nodes in enumerate(self.published["nodes"]):
                at = self.by("system", "scaling", program=name, nodes=nodes)
                polled, given = known["poll"][place], known["dedicated-thread"][place]
                if "poll" in at:
                    poll = at["poll"]["seconds"]
                    yield (TITLES[name], nodes, poll, 100 * at["poll"]["idle"],
                           *(100 * (poll / at[mode]["seconds"] - 1) if mode in at else None
                             for mode in ("auto", "dedicated-thread")),
                           given and 100 * ((100 + given) / (100 + polled) - 1))

    def sent(self, line):
        """Bytes from each rank to each."""
        return page.frame_of(line["bytes"]).reset_index()

    # ---- the picture ---------------------------------------------------------------------------

    def draw_on(self, axes):
        for axis, part in zip(axes[0], COLLECTIVE):
            self.draw_collective(axis, part)
        for axis, program in zip(axes[1], ("hpcg", "minife")):
            self.draw_solvers(axis, program)

    def draw_collective(self, axis, part):
        bars = [(f"{TITLES[name]}, {ranks}, {asked:g}: {system}", measured, modelled)
                for (name, ranks, asked), system, _, measured, scheme, modelled in self.gains(part)
                if scheme is not None]
        places = list(range(len(bars)))
        axis.barh(places, [measured for _, measured, _ in bars], label="measured")
        known = [(modelled, place) for place, (_, _, modelled) in zip(places, bars)
                 if modelled is not None]
        if known:
            axis.plot(*zip(*known), "k|", markersize=12, label="model")
            axis.legend(fontsize="small")
        axis.set_yticks(places, [label for label, _, _ in bars], fontsize="x-small")
        axis.set_xlabel("% less time")
        axis.set_title("ranks, communication to computing: variant")

    def draw_solvers(self, axis, name):
        bars = [(f"{ranks} ranks: {system}", speed_up(line, at["blocking"]))
                for (_, ranks, _), at in self.settings("solvers", program=name)
                if "blocking" in at
                for system, line in sorted(at.items()) if system != "blocking"]
        axis.barh(range(len(bars)), [gain for _, gain in bars])
        axis.set_yticks(range(len(bars)), [label for label, _ in bars], fontsize="x-small")
        axis.set_xlabel("% speed-up over blocking")
        axis.set_title(TITLES[name])
