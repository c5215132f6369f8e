# SPDX-License-Identifier: BSD-3-Clause
"""Copies of data with owners: each hop from rank to rank, found in the records of both ends."""
import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Hop:
    datum: str
    root: int
    source: int  # another rank than the root: a relay
    target: int
    sent: int  # ns since 1970
    arrived: int  # -1: it had not, at the end of the trace
    bytes: int
    workers: tuple  # of the source when it left, and of the target when it was there

    @property
    def is_relayed(self):
        return self.source != self.root


def hops(histories):
    """All, in order of their departures. A copy that was sent twice, since a rank on its way has
    handed it back, is the one sent last."""
    names = {key: name for history in histories for key, name in history.data.items()}
    sent, arrived = {}, {}
    for history in histories:
        for copy in history.copies:
            target = copy.peer if copy.sent else history.rank.rank
            key = (copy.datum, copy.root, copy.ticket, target)
            (sent if copy.sent else arrived)[key] = (history.rank.rank, copy)
    result = []
    for (datum, root, _, target), (source, copy) in sent.items():
        end = arrived.get((datum, root, copy.ticket, target))
        result.append(Hop(names.get(datum, "a text of the runtime's"), root, source, target,
                          copy.time, end[1].time if end else -1, copy.bytes,
                          (copy.worker, end[1].worker if end else 0)))
    return sorted(result, key=lambda hop: (hop.sent, hop.target))


@dataclasses.dataclass
class Sum:
    """Counts of the copies of one datum."""
    copies: int = 0
    relayed: int = 0
    bytes: int = 0
    times: list = dataclasses.field(default_factory=list)  # ns from departure to arrival


def by_datum(every):
    """Name -> Sum, most bytes first."""
    sums = collections.defaultdict(Sum)
    for hop in every:
        one = sums[hop.datum]
        one.copies += 1
        one.relayed += hop.is_relayed
        one.bytes += hop.bytes
        if hop.arrived >= 0:
            one.times.append(max(0, hop.arrived - hop.sent))
    return dict(sorted(sums.items(), key=lambda entry: (-entry[1].bytes, entry[0])))
