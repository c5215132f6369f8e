# SPDX-License-Identifier: BSD-3-Clause
"""How much of a run IMBREX_LEND=1 would save: the time in which tasks of one rank were ready and
waited for a worker, while workers of other ranks of the node were idle."""
import collections

from imbrex_trace.history import State

IDLE, WAITING = 0, 1  # positions in the counts of a rank


def saved_by_host(report):
    """host -> ns that the run would be shorter; hosts on which nothing would be saved are left out.

    While a rank with p workers that are not idle uses u processors of other ranks, it does the work
    of 1 + u / p ranks, so each ns saves u / (p + u)."""
    hosts = collections.defaultdict(list)
    for history in report.histories:
        hosts[history.rank.host].append(history)
    saved = {host: saved_on(report, histories) for host, histories in hosts.items()
             if len(histories) > 1 and not any(one.rank.spare_workers for one in histories)}
    return {host: time for host, time in saved.items() if time > 0}


def saved_on(report, histories):
    changes = sorted(change for history in histories for change in changes_of(report, history))
    counts = {history.rank.rank: [0, 0] for history in histories}
    workers = {history.rank.rank: len(history.pieces) for history in histories}
    saved, before = 0.0, 0
    for time, rank, what, by in changes:
        if time > before:
            saved += (time - before) * share_saved(counts, workers)
            before = time
        counts[rank][what] += by
    return saved


def share_saved(counts, workers):
    idle = sum(one[IDLE] for one in counts.values() if not one[WAITING])
    waiting = {rank: one[WAITING] for rank, one in counts.items() if one[WAITING]}
    used = min(idle, sum(waiting.values()))
    busy = sum(workers[rank] - counts[rank][IDLE] for rank in waiting)
    return used / (busy + used) if used and busy else 0.0


def changes_of(report, history):
    """(time, rank, IDLE or WAITING, 1 or -1) of the workers and the tasks of a rank."""
    rank = history.rank.rank
    spans = [(piece.start, piece.end, IDLE) for pieces in history.pieces.values()
             for piece in pieces if piece.state is State.IDLE]
    spans += [(ready, begin, WAITING) for ready, begin in waits_of(report, rank)]
    for start, end, what in spans:
        start, end = max(start, report.run.start), min(end, report.end)
        if start < end:
            yield start, rank, what, 1
            yield end, rank, what, -1


def waits_of(report, rank):
    """(when it could have begun, when it began) of each task of a rank."""
    index = report.run.ranks[rank]
    for task, slices in index.parts.items():
        if index.history.tasks[task].root or slices[0].part != 1:
            continue
        begin = slices[0].start
        _, ready = report.run.maker(index, slices[0], begin)
        arrival = index.last_of(index.history.tasks[task].futures, begin)
        yield max(ready, arrival[0] if arrival is not None else ready), begin
