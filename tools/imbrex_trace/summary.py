# SPDX-License-Identifier: BSD-3-Clause
"""Tables of a traced run: one row per worker, one row per name of tasks."""
import collections
import dataclasses

from imbrex_trace.history import State


def lines(histories):
    """The text, line by line, without line ends."""
    yield from worker_table(histories)
    yield "(in-task: in bodies of tasks; idle: nothing was ready; overhead: the rest, that is the"
    yield " runtime's own work and what the system took; tasks: begun there; suspensions: how often"
    yield " a task there had to wait)"
    yield ""
    yield from name_table(histories)
    yield "(count: begun; total: in their bodies, on all workers; from: where they are made)"


def worker_table(histories):
    rows = [("rank", "worker", "in-task s", "%", "idle s", "%", "overhead s", "%", "tasks",
             "suspensions")]
    everything, tasks, suspensions = [], 0, 0
    for history in histories:
        begun, suspended = counts(history)
        for number, pieces in sorted(history.pieces.items()):
            borrowed = " (borrowed)" if number in history.rank.spare_workers else ""
            rows.append((str(history.rank.rank), f"{number}{borrowed}", *shares(pieces),
                         str(begun[number]), str(suspended[number])))
            everything += pieces
        tasks += sum(begun.values())
        suspensions += sum(suspended.values())
    rows.append(("all", "", *shares(everything), str(tasks), str(suspensions)))
    return aligned(rows, left=(0,))


def shares(pieces):
    time = time_by_state(pieces)
    total = sum(time.values())
    for state in (State.TASK, State.IDLE, State.OVERHEAD):
        yield f"{time[state] / 1e9:.6f}"
        yield f"{100 * time[state] / total:.1f}" if total else "-"


def time_by_state(pieces):
    time = collections.Counter()
    for piece in pieces:
        time[piece.state] += piece.end - piece.start
    return time


def counts(history):
    """Counts for each worker the tasks that began and suspended there, in the time shown."""
    begun, suspended = collections.Counter(), collections.Counter()
    for task_slice in history.slices:
        if is_begun_here(history, task_slice) and not history.tasks[task_slice.task].root:
            begun[task_slice.worker] += 1
        if task_slice.waits_for >= 0 and history.start < task_slice.end <= history.end:
            suspended[task_slice.worker] += 1
    return begun, suspended


def is_begun_here(history, task_slice):
    return task_slice.part == 1 and history.start <= task_slice.start <= history.end


@dataclasses.dataclass
class NameRow:
    """All tasks of one name."""
    where: str
    root: bool  # main's code, which no task made
    count: int = 0  # begun in the time shown
    total: int = 0  # ns in their bodies


def by_name(histories):
    """name -> NameRow, most time first."""
    rows = {}
    for history in histories:
        names = history.rank.names

        def row_of(task, position, names=names, history=history):
            name = names[position]
            if name.name not in rows:
                rows[name.name] = NameRow(name.where, history.tasks[task].root)
            return rows[name.name]
        for pieces in history.pieces.values():
            for piece in pieces:
                if piece.state is State.TASK:
                    row_of(piece.task, piece.name).total += piece.end - piece.start
        for task_slice in history.slices:
            if is_begun_here(history, task_slice):
                row_of(task_slice.task, history.tasks[task_slice.task].name).count += 1
    return dict(sorted(rows.items(), key=lambda entry: (-entry[1].total, entry[0])))


def name_table(histories):
    rows = [("task", "count", "mean us", "total s", "from")]
    for name, row in by_name(histories).items():
        mean = f"{row.total / row.count / 1e3:.3f}" if row.count else "-"  # begun earlier
        rows.append((name, str(row.count), mean, f"{row.total / 1e9:.6f}", row.where))
    return aligned(rows, left=(0, 4))


def aligned(rows, left):
    """`left`: the columns of words; the others are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [text.ljust(widths[column]) if column in left else text.rjust(widths[column])
                 for column, text in enumerate(row)]
        yield "  ".join(cells).rstrip()
