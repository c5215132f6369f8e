# SPDX-License-Identifier: BSD-3-Clause
"""The figures of `imbrex report`, and the tables that print them. The page shows the same ones."""
import collections
import dataclasses

from imbrex_trace import blame, copies
from imbrex_trace.history import State
from imbrex_trace.reader import describe_gaps
from imbrex_trace.summary import aligned, time_by_state


@dataclasses.dataclass
class Table:
    title: str
    head: tuple
    rows: list  # of tuples of texts, as long as `head`
    note: str = ""
    left: tuple = (0,)  # columns of words


@dataclasses.dataclass
class Report:
    label: str  # of the run: its directory
    policy: str
    run: blame.Run
    path: list  # of blame.Step
    losses: blame.Losses

    @property
    def gaps(self):
        """What is missing of the run, if it ended before its end."""
        return describe_gaps([history.rank for history in self.histories])

    @property
    def histories(self):
        return list(self.run.histories.values())


def make(label, histories):
    run = blame.Run(histories)
    policies = sorted({history.rank.policy for history in histories})
    return Report(label, ", ".join(policies), run, run.critical_path(), blame.losses(run))


def lines(reports):
    """The text, line by line, without line ends."""
    for report in reports:
        first = report.histories[0]
        span = max(one.end for one in report.histories) - report.run.start
        yield (f"{report.label}: {len(report.histories)} ranks, policy {report.policy}, "
               f"{span / 1e9:.6f} s, {sum(len(one.tasks) for one in report.histories)} tasks, "
               f"{len(report.run.flights)} messages" +
               ("" if len(report.histories) > 1 else f", on {first.rank.host}"))
        if report.gaps:
            yield report.gaps
        waits = sorted(wait for one in report.histories for wait in one.waits)
        if waits:
            yield (f"{len(waits)} long messages waited in imbrex for their turn, "
                   f"{waits[len(waits) // 2] / 1e6:.1f} ms in the median, "
                   f"{waits[-1] / 1e6:.1f} at most")
        for table in tables(report):
            yield ""
            yield table.title
            yield from aligned([table.head, *table.rows], left=table.left)
            if table.note:
                yield f"({table.note})"
        yield ""


def tables(report):
    yield time_table(report)
    yield path_table(report)
    if len(report.histories) > 1:
        yield peer_table(report)
    yield worst_table(report)
    if report.run.flights:
        yield matrix_table(report, "Messages", lambda flight: 1)
        yield matrix_table(report, "Bytes", lambda flight: flight.bytes)
    every = copies.hops(report.histories)
    if every:
        yield data_table(every)


# ---- the parts ---------------------------------------------------------------------------------

def time_table(report):
    rows, everything, hidden = [], collections.Counter(), Hidden()
    for history in report.histories:
        time = collections.Counter()
        for pieces in history.pieces.values():
            time += time_by_state(pieces)
        everything += time
        mine = hidden_of(report.run, history)
        hidden += mine
        rows.append((str(history.rank.rank), history.rank.policy, *shares(time), mine.text()))
    if len(rows) > 1:
        rows.append(("all", report.policy, *shares(everything), hidden.text()))
    return Table("Time of the workers",
                 ("rank", "policy", "in-task s", "%", "idle s", "%", "overhead s", "%",
                  "hidden %"), rows, left=(0, 1),
                 note="idle: nothing is ready; overhead: the rest; hidden: of the time with "
                      "messages or collectives on their way to the rank, what its workers were "
                      "not idle")


def shares(time):
    total = sum(time.values())
    for state in (State.TASK, State.IDLE, State.OVERHEAD):
        yield seconds(time[state])
        yield percent(time[state], total)


@dataclasses.dataclass
class Hidden:
    """Time of workers while communication was under way, and what they were idle of it."""
    under_way: int = 0
    idle: int = 0

    def __add__(self, other):
        return Hidden(self.under_way + other.under_way, self.idle + other.idle)

    def text(self):
        return percent(self.under_way - self.idle, self.under_way)


def hidden_of(run, history):
    spans = [(flight.sent, flight.received) for flight in run.flights
             if flight.target == history.rank.rank and flight.source != flight.target]
    spans += [(one.start, one.end) for one in history.collectives if one.end >= 0]
    spans = [(max(start, history.start), min(end, history.end)) for start, end in spans]
    busy = united(span for span in spans if span[1] > span[0])
    result = Hidden(len(history.pieces) * sum(end - start for start, end in busy))
    for pieces in history.pieces.values():
        idle = [(piece.start, piece.end) for piece in pieces if piece.state is State.IDLE]
        result.idle += common(idle, busy)
    return result


def united(spans):
    """The same moments as spans that do not overlap, in order."""
    result = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def common(first, second):
    """How much of both; each is in order and does not overlap itself."""
    total = one = other = 0
    while one < len(first) and other < len(second):
        total += max(0, min(first[one][1], second[other][1]) -
                     max(first[one][0], second[other][0]))
        if first[one][1] < second[other][1]:
            one += 1
        else:
            other += 1
    return total


def path_table(report):
    """What the critical path consists of, tasks by name."""
    time, count = collections.Counter(), collections.Counter()
    for step in report.path:
        what = (task_name(report, step.rank, step.task) if step.why is blame.Why.TASK
                else f"({step.why.value})")
        time[what] += step.end - step.start
        count[what] += 1
    total = sum(time.values())
    rows = [(what, str(count[what]), seconds(time[what]), percent(time[what], total))
            for what in sorted(time, key=lambda key: (-time[key], key))]
    ranks = len({step.rank for step in report.path})
    return Table(f"Critical path: {seconds(total)} s, through {ranks} of "
                 f"{len(report.histories)} ranks", ("what", "steps", "s", "%"), rows,
                 note="from the end of the run back: each step is what the next one waited for "
                      "last")


def peer_table(report):
    """One row for each rank that waits."""
    ranks = sorted(report.run.histories)
    losses = report.losses
    peers = [peer for peer in ranks if any(losses.by_peer[rank, peer] for rank in ranks)]
    rows = [(str(rank), *(seconds(losses.by_peer[rank, peer]) for peer in peers),
             seconds(losses.local[rank]), seconds(losses.unknown[rank])) for rank in ranks]
    return Table("Idle for, s",
                 ("rank", *(f"rank {peer}" for peer in peers), "itself", "unknown"), rows,
                 note="idle time of a rank's workers by the rank whose message ended it; itself: "
                      "it ended by a task of the same rank")


def worst_table(report):
    rows = []
    for (rank, number), time in report.losses.worst(10):
        task = report.run.histories[rank].tasks.get(number)
        rows.append((task_name(report, rank, number), str(rank), str(number),
                     seconds(own_time(report, rank, number)), seconds(time),
                     where_of(report, rank, task)))
    return Table("The tasks that delayed others most",
                 ("task", "rank", "id", "ran s", "others idle s", "from"), rows, left=(0, 5),
                 note="others idle: workers of any rank had nothing to run until it had run, or "
                      "until what it kept waiting had")


def data_table(every, most=10):
    """What has travelled of data with owners."""
    rows = []
    for name, one in list(copies.by_datum(every).items())[:most]:
        times = sorted(one.times)
        rows.append((name, str(one.copies), str(one.relayed), str(one.bytes),
                     seconds(times[len(times) // 2]) if times else "-",
                     seconds(times[-1]) if times else "-"))
    return Table(f"Data that travelled: {len(every)} copies, "
                 f"{sum(hop.is_relayed for hop in every)} of them passed on by relays",
                 ("datum", "copies", "by relays", "bytes", "median s", "longest s"), rows,
                 note="those of most bytes; the time is from the announcement of a copy by its "
                      "source or relay until it is there and its reader is inserted")


def matrix_table(report, title, value):
    ranks = sorted(report.run.histories)
    sums = matrix(report.run, value)
    rows = [(str(source), *(str(sums[source, target]) for target in ranks),
             str(sum(sums[source, target] for target in ranks))) for source in ranks]
    return Table(f"{title} from (row) to (column)",
                 ("rank", *(str(target) for target in ranks), "all"), rows)


def matrix(run, value):
    sums = collections.Counter()
    for flight in run.flights:
        sums[flight.source, flight.target] += value(flight)
    return sums


# ---- words -------------------------------------------------------------------------------------

def task_name(report, rank, number):
    history = report.run.histories[rank]
    task = history.tasks.get(number)
    return history.rank.names[task.name].name if task else "(no task)"


def where_of(report, rank, task):
    return report.run.histories[rank].rank.names[task.name].where if task else ""


def own_time(report, rank, number):
    return sum(one.end - one.start for one in report.run.ranks[rank].parts.get(number, ()))


def seconds(nanoseconds):
    return f"{nanoseconds / 1e9:.6f}"


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"
