# SPDX-License-Identifier: BSD-3-Clause
"""What the page of bench/papers/task_bench computes: METG(50 %) of each variant, and the curves of
efficiency over granularity as pictures."""

import math
import statistics

import page

VARIANTS = {"mpi": "MPI", "openmp": "MPI+OpenMP", "tasks": "imbrex, tasks",
            "iterate": "imbrex, iterate", "data": "imbrex, data", "starpu": "StarPU"}
OURS = ("tasks", "iterate", "data")
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
    rates = page.frame_of([
        (line["part"], line["variant"], line["shape"], rounds, work / seconds)
        for line in lines if cores_of(line["shape"], all_cores) == cores
        for rounds, _, work, seconds in line["points"]])
    return rates.groupby([0, 1, 2, 3])[4].median().max()


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
        measured = [line for line in results["results"] if line["kernel"] == kernel]
        self.cores = results["cores"]
        self.best = {cores: best_rate(measured, cores, self.cores)
                     for cores in {cores_of(line["shape"], self.cores) for line in measured}}
        self.lines = undisturbed(measured)
        self.left_out = len(measured) - len(self.lines)  # all of them are of the network
        # In the order of the program's table.
        self.patterns = [pattern for pattern in PATTERNS if page.of(self.lines, pattern)]

    def sweeps(self, pattern, variant, shape):
        return [line["points"]
                for line in page.of(self.lines, pattern, variant=variant, shape=shape)]

    def curve(self, pattern, variant, shape):
        """Point by point the median over the repetitions."""
        cores = cores_of(shape, self.cores)
        curves = [curve(points, self.best[cores], cores)
                  for points in self.sweeps(pattern, variant, shape)]
        return [[statistics.median(values) for values in zip(*points)] for points in zip(*curves)]

    def times(self, pattern, variant, shape):
        """{rounds: microseconds of a task on its core}, medians over the repetitions."""
        runs = page.frame_of([(rounds, 1e6 * seconds * cores_of(shape, self.cores) / tasks)
                              for points in self.sweeps(pattern, variant, shape)
                              for rounds, tasks, _, seconds in points], "rounds", "us")
        return runs.groupby("rounds").us.median()

    def of(self, pattern, variant, shape):
        """(median, least, most, mark, repetitions); None: not measured."""
        cores = cores_of(shape, self.cores)
        found = sorted(metg(points, self.best[cores], cores)
                       for points in self.sweeps(pattern, variant, shape))
        if not found:
            return None
        middle = found[len(found) // 2]
        return middle[0], found[0][0], found[-1][0], middle[1], len(found)


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
    text = page.yes_no(ours[0] < theirs[0])
    if text == "yes" and ours[2] >= theirs[1]:
        text = "yes, within the spread"
    return f"{text} ({ours[0] / theirs[0]:.2f})"


def faster_at(metgs, pattern, shape, plain):
    """The granularities of MPI's runs in which the better of imbrex's variants takes less time for
    as many rounds, and the least ratio of the times."""
    theirs = metgs.times(pattern, "mpi", plain)
    ratios = page.library("pandas").concat(
        [metgs.times(pattern, variant, shape) / theirs for variant in OURS],
        axis=1).min(axis=1).dropna()
    if not len(ratios):
        return "not measured"
    found = [figure(us) for us in sorted(theirs[ratios.index[ratios < FASTER]])]
    if not found:
        return "nowhere"
    return f"{' to '.join(dict.fromkeys((found[0], found[-1])))} us ({ratios.min():.2f})"


class Section(Metgs):
    """The part of the page for one shape and kernel."""

    def __init__(self, results, kernel, shape):
        super().__init__(results, kernel)
        self.kernel, self.shape, self.is_network = kernel, shape, is_network(shape)
        self.ranks, self.workers = shape_of(shape)
        # The shape of plain MPI that uses as many cores: a rank is one thread.
        self.plain = shape if self.is_network else f"{cores_of(shape, self.cores)}x1"
        self.sends = self.plain != "1x1"
        self.is_measured = any(line["shape"] == shape for line in self.lines)
        self.suffix = shape if kernel == "compute" else f"{kernel}_{shape}"

    def shape_for(self, variant):
        return self.plain if variant == "mpi" else self.shape

    def metgs(self):
        for pattern in self.patterns:
            yield pattern, *(cell(self.of(pattern, variant, self.shape_for(variant)))
                             for variant in VARIANTS)

    def goals(self):
        for pattern in self.patterns:
            ours = [self.of(pattern, variant, self.shape) for variant in OURS]
            best = min((found for found in ours if found is not None), default=None)
            yield pattern, verdict(best, self.of(pattern, "openmp", self.shape)), *(
                ["no messages"] * 2 if pattern in SILENT or not self.sends else
                [verdict(best, self.of(pattern, "mpi", self.plain)),
                 faster_at(self, pattern, self.shape, self.plain)])

    def draw(self, path):
        """A curve for each variant, one axis for each pattern."""
        across = min(4, len(self.patterns))
        down = (len(self.patterns) + across - 1) // across
        canvas, axes = page.pyplot().subplots(down, across, figsize=(3.6 * across, 2.9 * down),
                                              squeeze=False, sharex=True, sharey=True)
        for axis, pattern in zip(axes.flat, self.patterns):
            for number, (variant, name) in enumerate(VARIANTS.items()):
                points = self.curve(pattern, variant, self.shape_for(variant))
                if points:
                    axis.plot([us for us, _ in points], [100 * share for _, share in points],
                              marker=".", color=f"C{number}", label=name)
            axis.axhline(100 * GOAL, color="grey", linewidth=0.5)
            axis.set_xscale("log")
            axis.set_title(pattern, fontsize="medium")
        for axis in axes.flat[len(self.patterns):]:
            axis.axis("off")
        for axis in axes[-1]:
            axis.set_xlabel("granularity, us")
        for row in axes:
            row[0].set_ylabel("% of the best rate")
        axes.flat[0].legend(fontsize="small")
        canvas.tight_layout()
        page.save_picture(canvas, path)


class Page(page.Page):
    is_unfolded = False

    def sections(self):
        """What is measured, and of the kernel `compute` also what is not."""
        kernels = page.values(self.results["results"], "kernel") or ["compute"]
        found = [Section(self.results, kernel, shape) for kernel in kernels for shape in SHAPES]
        return [section for section in found if section.is_measured or section.kernel == "compute"]

    def picture_of(self, section):
        return f"{self.path.stem}_{section.suffix}.png"

    def draw(self):
        for section in self.sections():
            if section.is_measured:
                section.draw(self.path.with_name(self.picture_of(section)))
