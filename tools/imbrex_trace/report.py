# SPDX-License-Identifier: BSD-3-Clause
"""The figures of `imbrex report`, and the tables that print them. The page shows the same ones."""
import collections
import dataclasses
import functools
import pathlib
import textwrap

from imbrex_trace import blame, copies, summary, verdict, words
from imbrex_trace.graph import united
from imbrex_trace.history import State
from imbrex_trace.reader import describe_gaps, describe_unrecorded
from imbrex_trace.words import duration, number_of, percent

WIDTH = 100  # of lines of text
HOSTS_MAX = 4  # that are named
ROWS_MAX = 15  # of names of tasks, and of what the critical path consists of


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
    cropped_to_tasks: bool  # else as the user has said, or not at all

    @property
    def gaps(self):
        """Returns a sentence about the missing part of the run, if it ended early."""
        return describe_gaps([history.rank for history in self.histories])

    @property
    def unrecorded(self):
        """Returns a sentence about what the trace does not contain; empty if there is nothing."""
        what = describe_unrecorded(history.rank.unrecorded for history in self.histories)
        return f"not recorded, and so not in this report: {what}" if what else ""

    @property
    def histories(self):
        return list(self.run.histories.values())

    @property
    def end(self):
        return max(history.end for history in self.histories)

    @property
    def span(self):
        return self.end - self.run.start

    @property
    def first(self):
        """The start of the whole run."""
        return min((one.whole or one).start for one in self.histories)

    @property
    def last(self):
        return max((one.whole or one).end for one in self.histories)

    @property
    def before(self):
        """Returns how much time of the run before the reported part is left out."""
        return max(0, self.run.start - self.first)

    @property
    def after(self):
        return max(0, self.last - self.end)

    @functools.cached_property
    def names(self):
        return summary.by_name(self.histories)

    @functools.cached_property
    def flights(self):
        """Messages that arrived in the time that is reported."""
        return [flight for flight in self.run.flights
                if self.run.start <= flight.received <= self.end]

    @functools.cached_property
    def verdict(self):
        return verdict.sentences(self)


def make(label, histories, cropped_to_tasks=False):
    run = blame.Run(histories)
    policies = sorted({history.rank.policy for history in histories})
    return Report(label, ", ".join(policies), run, run.critical_path(), blame.losses(run),
                  cropped_to_tasks and histories[0].whole is not None)


# ---- what run it is ------------------------------------------------------------------------------

def program(report):
    """The name of the program; empty if the trace does not say."""
    command = report.histories[0].rank.command
    return pathlib.PurePath(command[0]).name if command else ""


def command(report):
    return " ".join(report.histories[0].rank.command)


def title(report):
    """Program, ranks, hosts and date."""
    ranks = [history.rank for history in report.histories]
    hosts = list(dict.fromkeys(rank.host for rank in ranks))
    more = f" and {len(hosts) - HOSTS_MAX} more" if len(hosts) > HOSTS_MAX else ""
    many = number_of(ranks[0].ranks, "rank")
    return (f"{program(report) or report.label}, {many} on {', '.join(hosts[:HOSTS_MAX])}{more}, "
            f"{words.date(report.first)}")


def about(report):
    """Sizes of the run, in a line."""
    workers = [len(history.pieces) for history in report.histories]
    tasks = sum(row.count for row in report.names.values() if not row.root)
    each = (f"{number_of(workers[0], 'worker')} each" if len(set(workers)) == 1
            else f"{min(workers)} to {max(workers)} workers each") if len(workers) > 1 \
        else number_of(workers[0], "worker")
    return (f"{each}, policy {report.policy}, {number_of(tasks, 'task')}, "
            f"{number_of(len(report.flights), 'message')}, {duration(report.span)}")


def left_out(report):
    """Returns a sentence about the parts of the run outside the report; empty if there are none."""
    if not report.before and not report.after:
        return ""
    part = "between the first task and the last" if report.cropped_to_tasks else "as --crop says"
    return (f"{duration(report.span)} of {duration(report.last - report.first)}, {part}: without "
            f"{duration(report.before)} before and {duration(report.after)} after")


# ---- the text ------------------------------------------------------------------------------------

def lines(reports):
    """The text, line by line, without line ends."""
    for report in reports:
        if report.unrecorded:
            yield from textwrap.wrap(report.unrecorded, WIDTH)
        yield f"{report.label}: {title(report)}"
        yield about(report)
        if left_out(report):
            yield left_out(report) + (" (--whole: all)" if report.cropped_to_tasks else "")
        if report.gaps:
            yield report.gaps
        waits = sorted(wait for one in report.histories for wait in one.waits)
        if waits:
            yield (f"long messages that waited in imbrex for their turn: {len(waits)}, for "
                   f"{duration(waits[len(waits) // 2])} in the median, {duration(waits[-1])} at "
                   "most")
        yield ""
        yield from textwrap.wrap(" ".join(verdict.text(one) for one in report.verdict), WIDTH,
                                 break_long_words=False, break_on_hyphens=False)
        for table in tables(report):
            yield ""
            yield table.title
            yield from summary.aligned([table.head, *table.rows], left=table.left)
            if table.note:
                yield from textwrap.wrap(f"({table.note})", WIDTH)
        yield ""


def tables(report):
    yield name_table(report)
    yield path_table(report)
    if any(step.ran for step in report.path):
        yield busy_table(report)
    yield time_table(report)
    if len(report.histories) > 1:
        yield peer_table(report)
    if report.losses.by_task:
        yield worst_table(report)
    if report.flights:
        yield matrix_table(report, "Messages", lambda flight: 1, str)
        yield matrix_table(report, "Bytes", lambda flight: flight.bytes, words.size)
    every = [hop for hop in copies.hops(report.histories)
             if report.run.start <= hop.sent <= report.end]
    if every:
        yield data_table(every)


# ---- the parts ---------------------------------------------------------------------------------

def time_table(report):
    rows, everything, hidden = [], collections.Counter(), Hidden()
    for history in report.histories:
        time = collections.Counter()
        for pieces in history.pieces.values():
            time += summary.time_by_state(pieces)
        everything += time
        mine = hidden_of(report.run, history)
        hidden += mine
        rows.append((str(history.rank.rank), *shares(time), mine.text()))
    if len(rows) > 1:
        rows.append(("all", *shares(everything), hidden.text()))
    return Table("Time of the workers",
                 ("rank", "in tasks", "%", "idle", "%", "overhead", "%", "hidden %"), rows,
                 note="idle: no task is ready; overhead: the rest of the time; hidden: share of "
                      "the time with messages or collectives in flight to the rank in which its "
                      "workers were not idle")


def shares(time):
    total = sum(time.values())
    for state in (State.TASK, State.IDLE, State.OVERHEAD):
        yield duration(time[state])
        yield percent(time[state], total)


@dataclasses.dataclass
class Hidden:
    """Time of workers while communication was in flight, and their idle time within it."""
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


def common(first, second):
    """Returns how much of both overlaps; each is in order and does not overlap itself."""
    total = one = other = 0
    while one < len(first) and other < len(second):
        total += max(0, min(first[one][1], second[other][1]) -
                     max(first[one][0], second[other][0]))
        if first[one][1] < second[other][1]:
            one += 1
        else:
            other += 1
    return total


def name_table(report):
    total = sum(row.total for row in report.names.values())
    rows = [(name, str(row.count), duration(row.total / row.count) if row.count else "-",
             duration(row.total), percent(row.total, total), row.where)
            for name, row in list(report.names.items())[:ROWS_MAX]]
    rest = list(report.names.values())[ROWS_MAX:]
    if rest:
        time = sum(row.total for row in rest)
        rows.append((f"({number_of(len(rest), 'more name')})", str(sum(row.count for row in rest)),
                     "-", duration(time), percent(time, total), ""))
    return Table("Time by task name", ("task", "count", "mean", "total", "%", "from"), rows,
                 left=(0, 5), note="%: share of the time of all workers in tasks; count: tasks "
                                   "that began in the shown time; from: the line that creates "
                                   "the tasks")


def path_table(report):
    """Returns the parts of the critical path, tasks by name."""
    time, count = collections.Counter(), collections.Counter()
    for step in report.path:
        for what, part in parts_of(report, step):
            time[what] += part
            count[what] += 1
    total = sum(time.values())
    order = sorted(time, key=lambda key: (-time[key], key))
    rows = [(what, str(count[what]), duration(time[what]), percent(time[what], total))
            for what in order[:ROWS_MAX]]
    if order[ROWS_MAX:]:
        rest = sum(time[what] for what in order[ROWS_MAX:])
        rows.append((f"({len(order) - ROWS_MAX} more)",
                     str(sum(count[what] for what in order[ROWS_MAX:])), duration(rest),
                     percent(rest, total)))
    ranks = len({step.rank for step in report.path})
    return Table(f"Critical path: {duration(total)}, through {ranks} of "
                 f"{number_of(len(report.histories), 'rank')}", ("what", "steps", "time", "%"),
                 rows,
                 note="each step is the last one for which its successor waited, from the end of "
                      "the run back")


def parts_of(report, step):
    """Yields (text, ns) for each part of a step on the path."""
    if step.why is blame.Why.TASK:
        yield blame.name_of_task(report.run, step.rank, step.task), step.end - step.start
        return
    idle, busy = WAITS[step.why]
    for what, part in ((idle, step.idle), (busy, step.end - step.start - step.idle)):
        if part:
            yield what, part


WAITS = {  # names of a wait while a worker is idle, and while none is
    blame.Why.MESSAGE: ("(messages in flight)", "(messages in flight, no worker idle)"),
    blame.Why.READY: ("(ready, and a worker was idle)", "(ready, but no worker was free)"),
    blame.Why.WAIT: ("(waits for an event that the trace does not name)",
                     "(waits for an event that the trace does not name, no worker idle)")}


def busy_table(report):
    """Returns the tasks that the workers ran while the path waited and no worker was idle."""
    ready, other = collections.Counter(), collections.Counter()
    for step in report.path:
        if step.ran:
            (ready if step.why is blame.Why.READY else other).update(step.ran)
    every = ready + other
    total = sum(every.values())
    rows = [(what if what != blame.OVERHEAD else "(no task: overhead)", duration(ready[what]),
             duration(other[what]), percent(time, total)) for what, time in every.most_common(10)]
    return Table("What the workers ran while the critical path waited",
                 ("task", "no worker free", "message or event", "%"), rows,
                 note="no worker free: the next task on the path was ready; message or event: the "
                      "next task was not ready, and no worker was idle")


def peer_table(report):
    """Returns a table with one row for each rank that waits."""
    ranks = sorted(report.run.histories)
    losses = report.losses
    peers = [peer for peer in ranks if any(losses.by_peer[rank, peer] for rank in ranks)]
    rows = [(str(rank), *(duration(losses.by_peer[rank, peer]) for peer in peers),
             duration(losses.local[rank]), duration(losses.unknown[rank])) for rank in ranks]
    return Table("Idle time by the rank that was waited for",
                 ("rank", *(f"rank {peer}" for peer in peers), "itself", "unknown"), rows,
                 note="idle time of a rank's workers by the rank whose message ended it; itself: "
                      "a task of the same rank ended it")


def worst_table(report):
    rows = []
    for (rank, number), time in report.losses.worst(10):
        task = report.run.histories[rank].tasks.get(number)
        iteration = f", iteration {task.iteration}" if task and task.iteration >= 0 else ""
        rows.append((blame.name_of_task(report.run, rank, number) + iteration, str(rank),
                     str(number), duration(own_time(report, rank, number)), duration(time),
                     where_of(report, rank, task)))
    return Table("The tasks that delayed others most",
                 ("task", "rank", "id", "ran", "others idle", "from"), rows, left=(0, 5),
                 note="others idle: time in which workers of any rank had nothing to run until "
                      "this task, or a task that waited for it, had run")


def data_table(every, most=10):
    """Returns the transfers of data with owners."""
    rows = []
    for name, one in list(copies.by_datum(every).items())[:most]:
        times = sorted(one.times)
        rows.append((name, str(one.copies), str(one.relayed), words.size(one.bytes),
                     duration(times[len(times) // 2]) if times else "-",
                     duration(times[-1]) if times else "-"))
    return Table(f"Data sent between ranks: {len(every)} copies, "
                 f"{sum(hop.is_relayed for hop in every)} of them passed on by relays",
                 ("datum", "copies", "by relays", "bytes", "median", "longest"), rows,
                 note="the data of most bytes; the time runs from the announcement of a copy by "
                      "its source or relay until it has arrived and its reader is inserted")


def matrix_table(report, what, value, shown):
    ranks = sorted(report.run.histories)
    sums = matrix(report, value)
    rows = [(str(source), *(shown(sums[source, target]) for target in ranks),
             shown(sum(sums[source, target] for target in ranks))) for source in ranks]
    return Table(f"{what} from (row) to (column)",
                 ("rank", *(str(target) for target in ranks), "all"), rows)


def matrix(report, value):
    sums = collections.Counter()
    for flight in report.flights:
        sums[flight.source, flight.target] += value(flight)
    return sums


# ---- single tasks --------------------------------------------------------------------------------

def where_of(report, rank, task):
    return report.run.histories[rank].rank.names[task.name].where if task else ""


def own_time(report, rank, number):
    return sum(one.end - one.start for one in report.run.ranks[rank].parts.get(number, ()))
