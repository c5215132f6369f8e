# SPDX-License-Identifier: BSD-3-Clause
"""One HTML file with a timeline to zoom into, the tables of the report, and the matrix of messages.

The file needs nothing else and no network: page.html, page.css, page.js and the library d3 are put
into it, and the events as columns of numbers, compressed. page.js says how they are drawn.
"""
import array
import base64
import collections
import gzip
import html
import json
import os
import pathlib

from imbrex_trace import blame, verdict
from imbrex_trace import report as figures
from imbrex_trace.history import State
from imbrex_trace.reader import NO_WORKER, TraceError

HERE = pathlib.Path(__file__).resolve().parent
# A copy beside the tool, as it is installed; where Debian's package has it; what the user says.
D3_PLACES = (str(HERE / "d3.min.js"), "/usr/share/nodejs/d3/dist/d3.min.js")


def d3_text():
    wanted = os.environ.get("IMBREX_D3")
    places = (wanted,) if wanted else D3_PLACES
    for place in places:
        if pathlib.Path(place).is_file():
            return pathlib.Path(place).read_text(encoding="utf-8")
    raise TraceError(f"the page needs the library d3, which is not at {' or '.join(places)}: "
                     "install it (Debian: node-d3; tools/install_dependencies does), or "
                     "set IMBREX_D3 to a d3.min.js of version 5 to 7, or ask for other outputs by "
                     "--write")


def lines(report):
    """The file, in parts."""
    library = d3_text()
    columns, head = pack(report)
    # Neither "</script" nor "<!--" may stand in a script.
    text = json.dumps(head, separators=(",", ":")).replace("<", "\\u003c")
    fill = {"TITLE": html.escape(figures.title(report)), "CSS": read("page.css"),
            "ABOUT": about(report), "VERDICT": verdict_of(report), "TABLES": tables(report),
            "D3": library, "HEAD": text, "SCRIPT": read("page.js"),
            "DATA": base64.b64encode(gzip.compress(columns, 6, mtime=0)).decode("ascii")}
    for part in read("page.html").split("@@"):
        yield fill.get(part, part)


def read(name):
    return (HERE / name).read_text(encoding="utf-8")


# ---- texts and tables ----------------------------------------------------------------------------

def about(report):
    lines_ = [f"<p id=about>{html.escape(figures.about(report))}</p>"]
    if report.unrecorded:
        lines_.insert(0, f"<p class=gaps>{html.escape(report.unrecorded)}</p>")
    if figures.left_out(report):
        lines_.append(f"<p>{html.escape(figures.left_out(report))}</p>")
    if figures.command(report):
        lines_.append(f"<p>command: <code>{html.escape(figures.command(report))}</code></p>")
    lines_.append(f"<p>trace: <code>{html.escape(report.label)}</code></p>")
    if report.gaps:
        lines_.append(f"<p class=gaps>{html.escape(report.gaps)}</p>")
    return "\n".join(lines_)


def verdict_of(report):
    return " ".join("".join(f"<code>{html.escape(part)}</code>" if isinstance(part, verdict.Name)
                            else html.escape(part) for part in sentence)
                    for sentence in report.verdict)


def tables(report):
    return "<div id=tables>" + "\n".join(table_of(table) for table in figures.tables(report)
                     if not table.title.endswith("(column)")) + "</div>"  # the matrix is drawn


def table_of(table):
    cells = "".join(f"<th{side(table, at)}>{html.escape(text)}</th>"
                    for at, text in enumerate(table.head))
    rows = "".join("<tr>" + "".join(cell(table, at, text) for at, text in enumerate(row)) +
                   "</tr>\n" for row in table.rows)
    note = f"<p class=note>{html.escape(table.note)}</p>" if table.note else ""
    return (f"<section><h2>{html.escape(table.title)}</h2><div class=wide><table><thead><tr>{cells}"
            f"</tr></thead><tbody>\n{rows}</tbody></table></div>{note}</section>")


def cell(table, column, text):
    """Of a place in the source only the file and line; the rest is its title."""
    start = f"<td{side(table, column)}"
    if table.head[column] == "from" and "/" in text:
        return (f'{start} title="{html.escape(text)}">{html.escape(text.rpartition("/")[2])}</td>')
    return f"{start}>{html.escape(text)}</td>"


def side(table, column):
    return " class=word" if column in table.left else ""


# ---- the events as columns -----------------------------------------------------------------------

class Columns:
    """Arrays of numbers, one after the other."""

    def __init__(self):
        self.arrays = {}

    def add(self, name, code):
        self.arrays[name] = array.array(code)
        return self.arrays[name].append

    def packed(self):
        """All bytes, and where each column stands in them: [type, first byte, length]."""
        data, places = bytearray(), {}
        for name, column in self.arrays.items():
            data += bytes(-len(data) % 8)
            places[name] = [column.typecode, len(data), len(column)]
            data += column.tobytes()
        return bytes(data), places


class Packer:
    """Times are in microseconds from the start of the part that is reported, so that what lies
    before has times below zero; tasks are numbers from 1 on."""

    def __init__(self, report):
        self.report = report
        self.columns = Columns()
        self.rows = []  # [rank, worker, first piece, pieces, on a borrowed processor]
        self.names = {}  # (name, where) -> number
        self.numbers = {}  # (rank, task) -> number
        self.texts = {}  # what the path waited for -> number
        places = [(history.rank.rank, worker) for history in report.histories
                  for worker in sorted(history.pieces)]
        self.row_of = {place: row for row, place in enumerate(places)}
        for history in report.histories:
            rank = history.rank.rank
            self.row_of[rank, NO_WORKER] = self.row_of[rank, 0]
            for task in history.tasks:
                self.numbers[rank, task] = len(self.numbers) + 1

    def micro(self, time):
        return (time - self.report.run.start) / 1000

    def name(self, history, position):
        name = history.rank.names[position]
        return self.names.setdefault((name.name, name.where), len(self.names))

    def pieces(self):
        start, end, task_of, idle = (self.columns.add("piece_" + name, code) for name, code in
                                     (("start", "d"), ("end", "d"), ("task", "I"), ("idle", "B")))
        for history in self.report.histories:
            rank = history.rank.rank
            for worker, pieces in sorted((history.whole or history).pieces.items()):
                first = len(self.columns.arrays["piece_start"])
                for piece in pieces:
                    if piece.state is State.OVERHEAD:
                        continue
                    start(self.micro(piece.start))
                    end(self.micro(piece.end))
                    task_of(self.numbers.get((rank, piece.task), 0))
                    idle(piece.state is State.IDLE)
                self.rows.append([rank, worker, first,
                                  len(self.columns.arrays["piece_start"]) - first,
                                  worker in history.rank.spare_workers])

    def tasks(self):
        names = ("rank", "H"), ("id", "d"), ("name", "H"), ("priority", "i"), ("created", "d"), \
            ("ran", "d"), ("parent", "I"), ("iteration", "d"), ("before_first", "I")
        rank_of, number, name, priority, created, ran, parent, iteration, first = (
            self.columns.add("task_" + column, code) for column, code in names)
        before = self.columns.add("before", "I")
        rank_of(0), number(0), name(0), priority(0), created(0), ran(0), parent(0)
        iteration(-1), first(0)
        for history in self.report.histories:
            rank = history.rank.rank
            index = self.report.run.ranks[rank]
            for task, what in history.tasks.items():
                rank_of(rank)
                number(task)
                name(self.name(history, what.name))
                priority(what.priority)
                created(self.micro(what.created) if what.created >= 0 else -1)
                ran(figures.own_time(self.report, rank, task) / 1000)
                parent(self.numbers.get((rank, what.parent), 0))
                iteration(what.iteration)
                first(len(self.columns.arrays["before"]))
                for earlier in index.before.get(task, ()):
                    before(self.numbers[rank, earlier])
        first(len(self.columns.arrays["before"]))

    def suspensions(self):
        names = ("start", "d"), ("end", "d"), ("task", "I"), ("from", "H"), ("to", "H"), \
            ("name", "H")
        start, end, task_of, left, resumed, name = (self.columns.add("pause_" + column, code)
                                                    for column, code in names)
        found = []
        for history in self.report.histories:
            rank = history.rank.rank
            for task, slices in self.report.run.ranks[rank].parts.items():
                for one, after in zip(slices, slices[1:]):
                    if one.waits_for >= 0:
                        found.append((one.end, after.start, self.numbers[rank, task],
                                      self.row_of[rank, one.worker],
                                      self.row_of[rank, after.worker],
                                      self.name(history, one.waits_for)))
        for one in sorted(found):
            start(self.micro(one[0]))
            end(self.micro(one[1]))
            for append, value in zip((task_of, left, resumed, name), one[2:]):
                append(value)

    def messages(self):
        names = ("sent", "d"), ("received", "d"), ("bytes", "d"), ("tag", "i"), \
            ("communicator", "I"), ("from", "H"), ("to", "H"), ("sender", "I"), ("receiver", "I")
        sent, received, size, tag, communicator, source, target, sender, receiver = (
            self.columns.add("message_" + column, code) for column, code in names)
        for flight in self.report.run.flights:
            sent(self.micro(flight.sent))
            received(self.micro(flight.received))
            size(flight.bytes)
            tag(flight.tag)
            communicator(flight.communicator)
            source(self.row_of[flight.source, flight.send_worker])
            target(self.row_of[flight.target, flight.receive_worker])
            sender(self.numbers.get((flight.source, flight.send_task), 0))
            receiver(self.numbers.get((flight.target, flight.receive_task), 0))

    def path(self):
        names = ("start", "d"), ("end", "d"), ("row", "H"), ("from", "H"), ("why", "B"), \
            ("task", "I"), ("text", "I"), ("idle", "d")
        start, end, row, source, why, task, text, idle = (
            self.columns.add("path_" + column, code) for column, code in names)
        before = 0
        for step in self.report.path:
            here = self.row_of.get((step.rank, step.worker), 0)
            start(self.micro(step.start))
            end(self.micro(step.end))
            row(here)
            source(before if step.why is blame.Why.MESSAGE else here)
            why(list(blame.Why).index(step.why))
            task(self.numbers.get((step.rank, step.task), 0))
            text(self.texts.setdefault(describe(step), len(self.texts)))
            idle(step.idle / 1000)
            before = here

    def name_times(self):
        """Returns how long tasks of each name ran, us: the longest get the first colours."""
        time = collections.Counter()
        for history in self.report.histories:
            for pieces in history.pieces.values():
                for piece in pieces:
                    if piece.state is State.TASK:
                        time[self.name(history, piece.name)] += piece.end - piece.start
        return [time[number] / 1000 for number in range(len(self.names))]


def describe(step):
    """Describes the event for which the path waited, and the task that the workers ran most
    meanwhile; empty for a task."""
    if step.why is blame.Why.TASK:
        return ""
    what = {blame.Why.READY: "no worker free" if step.idle * 2 < step.end - step.start else
            "ready, a worker idle",
            blame.Why.MESSAGE: step.call or f"message from rank {step.peer}",
            blame.Why.WAIT: f"waits for {step.waits_for or 'an event'}"}[step.why]
    ran = [name for name, _ in step.ran.most_common(1) if name != blame.OVERHEAD]
    return f"{what}: {ran[0]}" if ran and not step.call else what


def pack(report):
    packer = Packer(report)
    for part in (packer.pieces, packer.tasks, packer.suspensions, packer.messages, packer.path):
        part()
    times = packer.name_times()
    data, places = packer.columns.packed()
    ranks = sorted(report.run.histories)
    sums = {what: figures.matrix(report, value) for what, value in
            (("messages", lambda flight: 1), ("bytes", lambda flight: flight.bytes))}
    return data, {
        "ranks": ranks, "rows": packer.rows, "end": packer.micro(report.end),
        "whole": [packer.micro(report.first), packer.micro(report.last)], "columns": places,
        "texts": list(packer.texts),
        "names": [[name, where, time]
                  for (name, where), time in zip(packer.names, times)],
        "matrix": {what: [[of[source, target] for target in ranks] for source in ranks]
                   for what, of in sums.items()}}
