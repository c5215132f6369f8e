# SPDX-License-Identifier: BSD-3-Clause
"""One to three sentences about a run: what its length was lost for, and what may be done about it.

Each finding has a share, of the critical path or of the workers' time, and is told if that is large
enough. Used by report and page. A sentence is a list of texts; names in it are of class Name.
"""
import collections
import dataclasses

from imbrex_trace import blame, lending, words
from imbrex_trace.blame import OVERHEAD, Why
from imbrex_trace.history import State

SIGNIFICANT = 0.15  # of the critical path, or of the workers' time
IDLE_MUCH = 0.25  # of the workers' time: that no more could run at a time
ALONE = 0.5  # of the run, outside of what is reported
SPAN_MIN_NS = 5_000_000  # below that, start and end of the runtime are most of it
HANDED_ON_NS = 100_000  # what it may take to wake up a worker
SHORT_NS = 20_000  # a task below that is short for what it costs to make and run it
SENTENCES_MAX = 3
MAIN = "main"


class Name(str):
    """A name within a sentence, which the page sets in another type."""


@dataclasses.dataclass
class Finding:
    share: float
    words: list  # the sentence


def sentences(report):
    """The verdict, as lists of texts and Names; never empty."""
    facts = Facts(report)
    said = list(outside(facts))
    if not facts.path or not facts.workers_time:
        return said + [["Nothing ran in the recorded time."]]
    if report.span < SPAN_MIN_NS:
        return said + [[f"The run is too short to judge: {words.duration(report.span)}."]]
    if facts.path < (1 - SIGNIFICANT) * report.span:
        said.append([f"What the run waited for is known for {share(facts.path / report.span)} of "
                     f"the time only; workers were idle for {share(facts.idle)} of theirs."])
        if facts.path < SIGNIFICANT * report.span:
            return said
    found = [finding for part in (busy, messages, woken, crowded, unnamed, main_alone, long_task,
                                  balance, unevenly_loaded, few_ready, overhead)
             for finding in part(facts)]
    found = [finding for finding in found if finding.share >= SIGNIFICANT]
    found.sort(key=lambda finding: -finding.share)
    said += [finding.words for finding in found[:SENTENCES_MAX - len(said)]]
    return said if found else said + [nothing(facts)]


def text(sentence):
    return "".join(f"`{part}`" if isinstance(part, Name) else part for part in sentence)


def share(part):
    return f"{words.percent(part, 1)} %"


def name(text_):
    return Name(words.short(text_))


class Facts:
    """The measurements that the findings use; times in ns."""

    def __init__(self, report):
        self.report, self.run = report, report.run
        self.steps = report.path
        self.path = sum(step.end - step.start for step in report.path)
        self.computing = collections.Counter()  # name -> time on the path
        for step in report.path:
            if step.why is Why.TASK:
                self.computing[blame.name_of_task(self.run, step.rank, step.task)] += \
                    step.end - step.start
        self.state = collections.Counter()  # State -> time of all workers
        self.in_tasks = collections.Counter()  # rank -> time of its workers in tasks
        for history in report.histories:
            for worker, pieces in history.pieces.items():
                for piece in pieces:
                    if piece.state is State.IDLE and worker in history.rank.spare_workers:
                        continue  # its processor was with its owner
                    self.state[piece.state] += piece.end - piece.start
                    if piece.state is State.TASK:
                        self.in_tasks[history.rank.rank] += piece.end - piece.start
        self.workers_time = sum(self.state.values())
        self.workers = sum(len(history.pieces) for history in report.histories)
        self.idle = self.of_workers(self.state[State.IDLE])
        self.crowd = crowd(report.histories)
        self.more = "processors" if is_full(report.histories) else "workers"  # that would help

    def of_path(self, time):
        return time / self.path

    def of_workers(self, time):
        return time / self.workers_time

    def waits(self, why):
        return [step for step in self.steps if step.why is why]

    def overhead_on_path(self):
        """Returns how long the path waited while no worker was idle or in a task."""
        return sum(step.ran[OVERHEAD] for step in self.steps if step.ran)

    def is_short(self, what):
        """Returns whether tasks of that name are short on average."""
        row = self.report.names.get(what)
        return row is not None and 0 < row.count and row.total < row.count * SHORT_NS


def crowd(histories):
    """Returns (workers, processors) of the host with most workers for each processor, if it has
    more workers than processors; else None. Older traces do not hold the processors."""
    workers, processors = collections.Counter(), collections.defaultdict(set)
    for history in histories:
        workers[history.rank.host] += sum(1 for _ in history.own_pieces())
        processors[history.rank.host] |= set(history.rank.processors)
    pairs = [(count, len(processors[host])) for host, count in workers.items()
             if 0 < len(processors[host]) < count]
    return max(pairs, key=lambda pair: pair[0] / pair[1], default=None)


def is_full(histories):
    """Returns whether each rank has as many workers as processors."""
    return all(0 < len(history.rank.processors) <= len(history.pieces) for history in histories)


# ---- the findings ------------------------------------------------------------------------------

def outside(facts):
    """Finds that most of the run is not in the report."""
    report = facts.report
    left_out = report.before + report.after
    if report.cropped_to_tasks and left_out >= ALONE * (left_out + report.span):
        yield [f"{share(left_out / (left_out + report.span))} of the run lay before the first task "
               f"and after the last one; the report covers the {words.duration(report.span)} "
               "between."]


def busy(facts):
    """Finds that the path waited while all workers that could go on with it ran other tasks."""
    ran, why, waited = collections.Counter(), collections.Counter(), collections.Counter()
    for step in facts.steps:
        if step.why is not Why.TASK:
            time = sum(step.ran.values()) - step.ran[OVERHEAD]
            ran.update(step.ran)
            why[step.why] += time
            waited[blame.name_of_task(facts.run, step.rank, step.task)] += time
    del ran[OVERHEAD]
    time = sum(ran.values())
    if not time:
        return
    other = "a message" if why[Why.MESSAGE] >= why[Why.WAIT] else "an event"
    for_what = ("for a free worker, which" if why[Why.READY] >= 0.8 * time else
                f"for a free worker or {other} while the workers")
    names, most = [], ran.most_common(2)
    if most[0][1] >= 0.95 * time:
        names = [name(most[0][0])]
    else:
        for what, part in most:
            names += [" and " if names else "", name(what), f" ({share(part / time)})"]
    yield Finding(facts.of_path(time),
                  [f"{share(facts.of_path(time))} of the critical path waited {for_what} ran ",
                   *names, ": ", *remedy(facts, most[0][0], waited)])


def remedy(facts, what, waited):
    """Returns advice that may shorten the wait for workers that run tasks named `what`."""
    first = waited.most_common(1)[0][0]
    if facts.is_short(what):
        return [f"fewer, larger tasks or more {facts.more}."]
    if facts.idle >= SIGNIFICANT and first not in (what, MAIN):
        return ["as workers were idle at other times, give ", name(first),
                ", which waited, a higher priority, or divide ", name(what), "."]
    if what == MAIN:
        return ["turn the work of ", name(MAIN), f" into tasks, or use more {facts.more}."]
    return [f"more {facts.more} or less work in ", name(what), " would shorten the run."]


def messages(facts):
    """Finds messages and collectives in flight while a worker was idle."""
    steps = facts.waits(Why.MESSAGE)
    time = sum(step.idle for step in steps)
    if not time:
        return
    ways, count, total = collections.Counter(), 0, 0
    for step in steps:
        ways[step.call, step.peer, step.rank] += step.idle
        if not step.call:
            count, total = count + 1, total + step.bytes
    calls = collections.Counter()
    for (call, _, _), part in ways.items():
        calls[call] += part
    call, most = calls.most_common(1)[0]
    if call:
        kind = ["collectives, most of it in ", name(call)] if most < time else [name(call)]
    else:
        (_, source, target), part = max(((way, part) for way, part in ways.items() if not way[0]),
                                        key=lambda entry: entry[1])
        most = f", most from rank {source} to rank {target}" if part < time else \
            f" from rank {source} to rank {target}"
        kind = [f"{words.number_of(count, 'message')} of {words.size(round(total / count))}"
                f"{' on average' if count > 1 else ''}{most}"]
    start = f"{share(facts.of_path(time))} of the critical path waited for "
    advice = ", with nothing else to run: send earlier, send less, or have other tasks meanwhile."
    yield Finding(facts.of_path(time), [start, *kind, advice])


def woken(facts):
    """Finds that a task was ready and a worker idle."""
    steps = [step for step in facts.waits(Why.READY) if step.idle]
    time = sum(step.idle for step in steps)
    if not time or facts.crowd:
        return
    mean = time / len(steps)
    advice = ("fewer, larger tasks would be handed on less often."
              if mean < HANDED_ON_NS else
              "the task could not run on that worker, or the system gave it no processor.")
    yield Finding(facts.of_path(time),
                  [f"For {share(facts.of_path(time))} of the critical path the next task was ready "
                   f"and a worker idle ({words.number_of(len(steps), 'time')}, "
                   f"{words.duration(mean)} on average): {advice}"])


def crowded(facts):
    """Finds more workers than processors."""
    if facts.crowd is None:
        return
    part = facts.of_workers(facts.state[State.OVERHEAD])
    late = facts.of_path(sum(step.idle for step in facts.waits(Why.READY)) +
                         facts.overhead_on_path())
    yield Finding(max(part, late),
                  [f"{facts.crowd[0]} workers shared "
                   f"{words.number_of(facts.crowd[1], 'processor')} and were neither in tasks nor "
                   f"idle for {share(part)} of their time: start as many workers as there are "
                   "processors."])


def unnamed(facts):
    """Finds waits for events, promises, names."""
    time, what = 0, collections.Counter()
    for step in facts.waits(Why.WAIT):
        time += step.idle
        what[step.waits_for] += step.idle
    if not time:
        return
    most = what.most_common(1)[0][0]
    yield Finding(facts.of_path(time),
                  [f"{share(facts.of_path(time))} of the critical path waited for an event whose "
                   "origin the trace does not hold",
                   *([", most of it in ", name(most)] if most else []), "."])


def main_alone(facts):
    """Finds that main computes and the other workers have nothing to do."""
    time = around = idle = 0
    for step in facts.waits(Why.TASK):
        history = facts.run.histories[step.rank]
        if step.task in history.tasks and history.tasks[step.task].root:
            time += step.end - step.start
            for other in facts.report.histories:
                for worker, pieces in other.pieces.items():
                    if (other, worker) != (history, step.worker):
                        around += step.end - step.start
                        idle += idle_within(pieces, step.start, step.end)
    if around and idle >= 0.5 * around:
        yield Finding(facts.of_path(time),
                      [f"{share(facts.of_path(time))} of the critical path is the code of ",
                       name(MAIN), ", and the other workers were idle for "
                       f"{share(idle / around)} of that: make tasks of it."])


def idle_within(pieces, start, end):
    return sum(min(piece.end, end) - max(piece.start, start)
               for piece in blame.within(pieces, start, end) if piece.state is State.IDLE)


def long_task(facts):
    """Finds a single task that is much of the path while other workers are idle."""
    time = collections.Counter()
    for step in facts.waits(Why.TASK):
        task = facts.run.histories[step.rank].tasks.get(step.task)
        if task is not None and not task.root:
            time[step.rank, step.task] += step.end - step.start
    if not time or facts.idle < SIGNIFICANT:
        return
    (rank, task), most = time.most_common(1)[0]
    where = facts.run.histories[rank].rank.names[facts.run.histories[rank].tasks[task].name].where
    place = [f" ({where})"] if where else []
    if len(facts.run.histories) > 1:
        place.append(f" on rank {rank}")
    yield Finding(facts.of_path(most),
                  [f"A single task, ", name(blame.name_of_task(facts.run, rank, task)), *place,
                   f", is {share(facts.of_path(most))} of the critical path, and workers were idle "
                   f"for {share(facts.idle)} of their time: divide it, or start it earlier."])


def balance(facts):
    """Finds that ranks wait for the tasks of one of them."""
    ranks = sorted(facts.run.histories)
    idle = facts.state[State.IDLE]
    blamed = collections.Counter()
    for (rank, _), time in facts.report.losses.by_name.items():
        blamed[rank] += time
    if len(ranks) < 2 or not blamed or not idle:
        return
    rank, time = blamed.most_common(1)[0]
    others = [facts.in_tasks[other] for other in ranks if other != rank]
    mean = sum(others) / len(others)
    if time < 0.4 * idle or facts.in_tasks[rank] < 1.15 * mean:
        return
    what = max((key for key in facts.report.losses.by_name if key[0] == rank),
               key=facts.report.losses.by_name.get)[1]
    yield Finding(facts.of_workers(time),
                  [f"Workers of other ranks were idle for {words.duration(time)}, "
                   f"{share(facts.of_workers(time))} of all workers' time, until rank {rank} had "
                   "run ", name(what), f": it is in tasks for "
                   f"{words.duration(facts.in_tasks[rank])}, the other ranks for "
                   f"{words.duration(mean)} on average."])


def unevenly_loaded(facts):
    """Finds tasks that were ready in one rank while workers of others on its node were idle."""
    saved = lending.saved_by_host(facts.report)
    if not saved:
        return
    host, time = max(saved.items(), key=lambda entry: entry[1])
    yield Finding(time / facts.report.span,
                  [f"Imbalance between ranks of the node {host}: lending would save "
                   f"{share(time / facts.report.span)} (", Name("IMBREX_LEND=1"), ")."])


def few_ready(facts):
    """Finds that the path only computes, and still workers are idle."""
    time = sum(facts.computing.values())
    if facts.idle < IDLE_MUCH or facts.of_path(time) < 0.6 or \
            any(part for check in (main_alone, long_task, balance) for part in check(facts)
                if part.share >= SIGNIFICANT):
        return
    what = facts.computing.most_common(1)[0][0]
    yield Finding(facts.idle,
                  [f"{share(facts.of_path(time))} of the critical path is computing, most of it "
                   "in ", name(what), f", but workers were idle for {share(facts.idle)} of their "
                   "time: too few tasks could run at a time."])


def overhead(facts):
    """Finds time of the workers in which they were neither in tasks nor idle."""
    time = facts.state[State.OVERHEAD]
    rows = [row for row in facts.report.names.values() if not row.root]
    count, total = sum(row.count for row in rows), sum(row.total for row in rows)
    if facts.crowd:
        return  # the system may have had no processor for them
    start = f"{share(facts.of_workers(time))} of the workers' time was spent between tasks"
    if count and total < count * SHORT_NS and time < count * SHORT_NS:
        yield Finding(facts.of_workers(time),
                      [f"{start}, {words.duration(time / count)} for each, where a task takes "
                       f"{words.duration(total / count)} on average: fewer, larger tasks."])
    else:
        yield Finding(facts.of_workers(time),
                      [f"{start}, by the runtime itself or while the system gave the processor to "
                       "others."])


def nothing(facts):
    time = sum(facts.computing.values())
    what, most = facts.computing.most_common(1)[0] if facts.computing else ("", 0)
    if facts.of_path(time) < 0.5 or not what:
        return ["Nothing stands out: the workers were in tasks for "
                f"{share(facts.of_workers(facts.state[State.TASK]))} of their time."]
    in_it = ["in ", name(what)] if most >= 0.95 * time else ["most of it in ", name(what)]
    comma = " " if most >= 0.95 * time else ", "
    return [f"Nothing stands out: {share(facts.of_path(time))} of the critical path is computing"
            f"{comma}", *in_it, "."]
