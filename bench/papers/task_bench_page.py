# SPDX-License-Identifier: BSD-3-Clause
"""The page of bench/papers/task_bench: METG(50 %) of each variant, in Markdown, and the curves of
efficiency over granularity as pictures."""

import math
import statistics

import page
from page import of, table, values

VARIANTS = {"mpi": "MPI", "openmp": "MPI+OpenMP", "tasks": "imbrex, tasks", "data": "imbrex, data",
            "starpu": "StarPU"}
PATTERNS = ("trivial", "no_communication", "stencil_1d", "stencil_1d_periodic", "dom", "tree",
            "fft", "all_to_all", "nearest", "spread", "random_nearest")
SILENT = ("trivial", "no_communication")  # patterns without messages
SHAPES = ("1x1", "1x2", "2x1", "2x2", "2x1-network")  # ranks x workers
NETWORK = {"rate": "1gbit", "mtu": 9000, "bytes": 16384}  # of tools/netlab, and of an output
GOAL = 0.5  # of the best rate
# A sweep on the network is left out, whatever the variant, if its longest tasks (1 ms) have less
# than this share of the pattern's best rate of such tasks: another program used the processors.
DISTURBED = 0.7
FASTER = 0.98  # of the other program's time; less of a difference is noise


# ---- from sweeps to METG -----------------------------------------------------------------------


def shape_of(text):
    """Ranks and workers."""
    ranks, workers = text.removesuffix("-network").split("x")
    return int(ranks), int(workers)


def is_network(shape):
    return shape.endswith("-network")


def cores_of(shape, cores):
    ranks, workers = shape_of(shape)
    return min(ranks * workers, cores)


def curve(points, best, cores):
    """[(granularity in us, efficiency)] of a sweep's (rounds, tasks, work, seconds), from short
    tasks to long ones."""
    return [(1e6 * seconds * cores / tasks, work / seconds / best)
            for _, tasks, work, seconds in sorted(points)]


def metg(points, best, cores):
    """The granularity in us of the shortest tasks that reach the goal, interpolated to the next
    shorter ones; and a mark: "", ">" where no tasks are long enough, "<" where all are."""
    found = curve(points, best, cores)
    reached = [place for place, (_, efficiency) in enumerate(found) if efficiency >= GOAL]
    if not reached:
        return found[-1][0], ">"
    if reached[0] == 0:
        return found[0][0], "<"
    (low_us, low), (high_us, high) = found[reached[0] - 1], found[reached[0]]
    share = (math.log(GOAL) - math.log(low)) / (math.log(high) - math.log(low))
    return math.exp(math.log(low_us) + share * (math.log(high_us) - math.log(low_us))), ""


def best_rate(lines, cores, all_cores):
    """The best rate of kernels, of medians over repetitions, that any variant reaches with any
    pattern on so many cores."""
    rates = {}
    for line in lines:
        if cores_of(line["shape"], all_cores) != cores:
            continue
        for rounds, _, work, seconds in line["points"]:
            key = (line["part"], line["variant"], line["shape"], rounds)
            rates.setdefault(key, []).append(work / seconds)
    return max(statistics.median(found) for found in rates.values())


def undisturbed(lines):
    """All but the sweeps on the network that another program has disturbed."""
    def rate(line):
        _, _, work, seconds = max(line["points"])
        return work / seconds

    best = {}
    for line in lines:
        if is_network(line["shape"]):
            best[line["part"]] = max(rate(line), best.get(line["part"], 0.0))
    return [line for line in lines if not is_network(line["shape"])
            or rate(line) >= DISTURBED * best[line["part"]]]


class Metgs:
    """METG of each (pattern, variant, shape) of one kernel: a median, a least and a most value."""

    def __init__(self, results, kernel):
        self.lines = [line for line in results["results"] if line["kernel"] == kernel]
        self.cores = results["cores"]
        self.best = {}
        for cores in {cores_of(line["shape"], self.cores) for line in self.lines}:
            self.best[cores] = best_rate(self.lines, cores, self.cores)
        measured = len(self.lines)
        self.lines = undisturbed(self.lines)
        self.left_out = measured - len(self.lines)  # all of them are of the network

    def curves(self, **wanted):
        return [curve(line["points"], self.best[cores_of(line["shape"], self.cores)],
                      cores_of(line["shape"], self.cores)) for line in self.lines
                if all(line[name] == value for name, value in wanted.items())]

    def times(self, pattern, variant, shape):
        """{rounds: microseconds of a task on its core}, medians over the repetitions."""
        found = {}
        for line in self.lines:
            if (line["part"], line["variant"], line["shape"]) == (pattern, variant, shape):
                for rounds, tasks, _, seconds in line["points"]:
                    us = 1e6 * seconds * cores_of(shape, self.cores) / tasks
                    found.setdefault(rounds, []).append(us)
        return {rounds: statistics.median(us) for rounds, us in found.items()}

    def of(self, pattern, variant, shape):
        """(median, least, most, mark, repetitions); None: not measured."""
        cores = cores_of(shape, self.cores)
        found = sorted(metg(line["points"], self.best[cores], cores) for line in self.lines
                       if (line["part"], line["variant"], line["shape"])
                       == (pattern, variant, shape))
        if not found:
            return None
        middle = found[len(found) // 2]
        return middle[0], found[0][0], found[-1][0], middle[1], len(found)


def plain_shape(shape, cores):
    """The shape of plain MPI that uses as many cores: a rank is one thread."""
    return shape if is_network(shape) else f"{cores_of(shape, cores)}x1"


# ---- the page ----------------------------------------------------------------------------------


def figure(value):
    return f"{value:.2f}" if value < 9.95 else f"{value:.1f}" if value < 99.5 else f"{value:.0f}"


def cell(found):
    if found is None:
        return "not measured"
    median, least, most, mark, repetitions = found
    sign = {"": "", "<": "below ", ">": "above "}[mark]
    if repetitions == 1:
        return f"{sign}{figure(median)} (one run)"
    return f"{sign}{figure(median)} ({figure(least)} to {figure(most)})"


def verdict(ours, theirs):
    """Whether the goal is reached, and the ratio of the medians."""
    if ours is None or theirs is None:
        return "not measured"
    text = "NO" if ours[0] >= theirs[0] else "yes"
    if text == "yes" and ours[2] >= theirs[1]:
        text = "yes, within the spread"
    return f"{text} ({ours[0] / theirs[0]:.2f})"


def faster_at(metgs, pattern, shape, plain):
    """The granularities of MPI's runs in which the better of imbrex's variants takes less time for
    as many rounds, and the least ratio of the times."""
    theirs = metgs.times(pattern, "mpi", plain)
    ratios = {}
    for variant in ("tasks", "data"):
        for rounds, us in metgs.times(pattern, variant, shape).items():
            if rounds in theirs:
                ratios[rounds] = min(ratios.get(rounds, math.inf), us / theirs[rounds])
    if not ratios:
        return "not measured"
    found = sorted(theirs[rounds] for rounds, ratio in ratios.items() if ratio < FASTER)
    if not found:
        return "nowhere"
    least = f"{min(ratios.values()):.2f}"
    if len(found) == 1:
        return f"{figure(found[0])} us ({least})"
    return f"{figure(found[0])} to {figure(found[-1])} us ({least})"


def patterns_of(lines):
    """In the order of the program's table."""
    return [pattern for pattern in PATTERNS if any(line["part"] == pattern for line in lines)]


def title_of(shape, cores, kernel="compute"):
    ranks, workers = shape_of(shape)
    which = "" if kernel == "compute" else f"of {kernel} tasks "
    return (f"## METG(50 %) {which}on {ranks} rank{'s' if ranks > 1 else ''} x {workers} "
            f"worker{'s' if workers > 1 else ''}" +
            (", on a network of 1 Gbit/s" if is_network(shape) else
             ", oversubscribed" if ranks * workers > cores else ""))


def shape_section(metgs, shape, kernel, name):
    plain = plain_shape(shape, metgs.cores)
    rows, goals, sends = [], [], plain != "1x1"
    for pattern in patterns_of(metgs.lines):
        cells = [cell(metgs.of(pattern, variant, plain if variant == "mpi" else shape))
                 for variant in VARIANTS]
        rows.append((f"`{pattern}`", *cells))
        ours = [metgs.of(pattern, variant, shape) for variant in ("tasks", "data")]
        best = min((found for found in ours if found is not None), default=None)
        goal = [f"`{pattern}`", verdict(best, metgs.of(pattern, "openmp", shape))]
        if not sends or pattern in SILENT:
            goal += ["no messages"] * (2 if sends else 1)
        else:
            goal += [verdict(best, metgs.of(pattern, "mpi", plain)),
                     faster_at(metgs, pattern, shape, plain)]
        goals.append(tuple(goal))
    text = [title_of(shape, metgs.cores, kernel), "",
            "Microseconds: the median of the repetitions, the least and the most." +
            (f" The column MPI has {plain}, which uses as many cores." if plain != shape else "") +
            (f" {metgs.left_out} sweeps that were disturbed are left out ([limits](#limits))."
             if is_network(shape) else ""),
            "",
            table(("pattern", *VARIANTS.values()), rows),
            "The goal: the better of imbrex's variants is below MPI+OpenMP in every pattern, and "
            "below plain MPI where plain MPI sends messages. The number is the ratio to the other "
            "program." + (FASTER_TEXT if sends else ""), "",
            table(("pattern", "below MPI+OpenMP", "below MPI",
                   *(["faster than MPI at"] if sends else [])), goals),
            f"![Efficiency over granularity on {shape}]({name})", ""]
    return text


FASTER_TEXT = (" The last column has the granularities of plain MPI at which imbrex takes at least "
               "2 % less time for the same tasks, and the least ratio of the two times.")

HEAD = """\
Task Bench (Slaughter et al., SC20) compares runtimes by *METG(50 %)*: the smallest granularity of
tasks at which a program computes at half of the best rate. This page shows METG(50 %) of imbrex
beside plain MPI, MPI+OpenMP and StarPU, for every pattern of
[`task_bench`](../user/task-bench.md).
"""

METHOD = """\
## How METG is measured

A program runs a graph with many numbers of rounds of its kernel, from long tasks to short ones.
The *granularity* is the time of a run times its cores, divided by its tasks. The *efficiency* is
the rate of the kernels, in rounds a second, divided by the best rate. The best rate is the highest
one that any variant reaches with any pattern on as many cores, a median over the repetitions.
METG(50 %) is the granularity of the shortest tasks that reach 50 %: between them and the next
shorter tasks, the logarithms are interpolated.

Every task checks that each of its inputs is the right output of the step before.

The *network* is that of [netlab](../user/netlab.md): 1 Gbit/s for both directions together, packets
of 9000 bytes, TCP through the loopback. An output has 16 KiB there, two packets: 131 microseconds
at that rate, 164 one way in a ping-pong of plain MPI (one run). Runs have up to 100 steps.
*Imbalanced* tasks have random numbers of rounds, from none to twice the average.
"""

# Written from callgrind's counts of 2026-11-28 (runs of 600 steps minus runs of 200) and from the
# tables of that day: read them again after a new measurement.
WHY = """\
## Why

A task of one round costs these instructions under callgrind, on one worker (imbrex's variant
`tasks`, plain MPI's loop). About 370 of them are the kernel, the output, and reading the graph.

- 1,383 with one access (`trivial`), 1,592 with two (`no_communication`; the loop: 439), 2,395 with
  six (`nearest`; 521), 7,827 with 17 (`all_to_all`; 785). Creation, queue and end take 1,000, an
  access 200. The loop stores no task and looks up no access, since its order is the dependence.
- `all_to_all` spends 1,800 in `malloc()` and `free()`: tasks with more than about 12 accesses.
- A message in a task costs [2,500](../design/sends.md#costs), a suspension 240 to 510 more.
- On the network METG is 0.91 to 1.09 of plain MPI's: a step's messages decide. imbrex is faster in
  7 of 9 patterns, from 41 us (`stencil_1d`) to 319 us (`tree`) on; with shorter tasks the network
  is always busy.
- Next: larger slots for descriptors; one call that creates all tasks of a step; more repetitions.
"""

LITERATURE = """\
## Published results

The paper gives its results as pictures of up to 256 nodes. Its finding in one sentence: at scale,
no system runs tasks efficiently that are much shorter than 100 microseconds. This page has no
simulated figures.
"""

LIMITS = """\
## Limits

- The ranks of this page share one machine. A message is a copy through shared memory, or TCP
  through the kernel, which costs each rank's processor microseconds for each message.
- StarPU is measured on one rank alone. On several ranks it has a thread that polls MPI beside each
  rank's workers, and this machine has fewer cores than all of these threads. Its graphs have 40
  steps, and its points are further apart.
- The network was measured three times. A sweep whose tasks of 1 ms have less than 70 % of the
  pattern's best rate is left out, whatever the variant: another program used the processors.
- Imbalanced tasks were measured once. MPI+OpenMP and imbrex's data on 1 rank x 2 workers were
  disturbed, since their kernels ran at half of the others' rate: "not measured".
"""


def write(path, results):
    """The page at `path`, and a picture for each shape beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->",
            "# Task Bench: the smallest tasks that are worth it", "", HEAD,
            "```sh",
            "bench/papers/task_bench          # about 10 minutes; goes on where it stopped",
            "bench/papers/task_bench --again  # measures everything again",
            "bench/papers/task_bench --kernels imbalanced --shapes 1x2 2x1", "```", ""]
    if results["results"]:
        text += [f"`bench/papers/task_bench` wrote this page from {page.origin(results)}, with "
                 f"{results['mpi']}. Graphs have {results['width']} columns and up to "
                 f"{results['steps']} steps; an output has 16 bytes, and 16 KiB on a network.", ""]
    text += [METHOD]
    for kernel in values(results["results"], "kernel") or ["compute"]:
        metgs = Metgs(results, kernel)
        for shape in SHAPES:
            if not any(line["shape"] == shape for line in metgs.lines):
                if kernel == "compute":
                    text += [title_of(shape, metgs.cores), "", "Not measured.", ""]
                continue
            suffix = shape if kernel == "compute" else f"{kernel}_{shape}"
            picture = path.with_name(f"{path.stem}_{suffix}.png")
            text += shape_section(metgs, shape, kernel, picture.name)
            draw(metgs, shape, picture)
    text += [WHY, LITERATURE, LIMITS]
    path.write_text("\n".join(text).rstrip("\n") + "\n")


# ---- the pictures ------------------------------------------------------------------------------


def median_curve(curves):
    """Point by point, over repetitions."""
    return [(statistics.median(point[0] for point in points),
             statistics.median(point[1] for point in points)) for points in zip(*curves)]


def draw(metgs, shape, path):
    """A curve for each variant, one axis for each pattern."""
    patterns = patterns_of(metgs.lines)
    across = min(4, len(patterns))
    down = (len(patterns) + across - 1) // across
    canvas, axes = page.pyplot().subplots(down, across, figsize=(3.6 * across, 2.9 * down),
                                          squeeze=False, sharex=True, sharey=True)
    for axis, pattern in zip(axes.flat, patterns):
        for number, (variant, name) in enumerate(VARIANTS.items()):
            at = plain_shape(shape, metgs.cores) if variant == "mpi" else shape
            curves = metgs.curves(part=pattern, variant=variant, shape=at)
            if not curves:
                continue
            points = median_curve(curves)
            axis.plot([us for us, _ in points], [100 * share for _, share in points], marker=".",
                      color=f"C{number}", label=name)
        axis.axhline(100 * GOAL, color="grey", linewidth=0.5)
        axis.set_xscale("log")
        axis.set_title(pattern, fontsize="medium")
    for axis in axes.flat[len(patterns):]:
        axis.axis("off")
    for axis in axes[-1]:
        axis.set_xlabel("granularity, us")
    for row in axes:
        row[0].set_ylabel("% of the best rate")
    axes.flat[0].legend(fontsize="small")
    canvas.tight_layout()
    page.save_picture(canvas, path)
