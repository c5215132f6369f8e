# SPDX-License-Identifier: BSD-3-Clause
"""check_trace.py directory command...: runs the command (life_cases messages on two ranks) with
IMBREX_TRACE=directory, and checks that each rank's trace holds the messages that it sent and
received.
"""
import collections
import os
import pathlib
import shutil
import struct
import subprocess
import sys

RECORD = struct.Struct("<QQIIQQQ")  # docs/design/trace-format.md
SENT, RECEIVED = 7, 8

directory = pathlib.Path(sys.argv[1])
shutil.rmtree(directory, ignore_errors=True)
subprocess.run(sys.argv[2:], check=True, env=dict(os.environ, IMBREX_TRACE=str(directory)))

communicators = []
for rank in (0, 1):
    seen = collections.defaultdict(set)
    for record in RECORD.iter_unpack((directory / f"rank-{rank}.events").read_bytes()):
        _, _, _, kind, size, peer_and_tag, communicator = record
        if kind in (SENT, RECEIVED):
            seen[kind].add((size, peer_and_tag & 0xFFFFFFFF, peer_and_tag >> 32,
                            communicator & 0xFFFFFFFF))
    # Once in MPI_COMM_WORLD, once in a communicator with the ranks reversed: the peer is the same.
    for kind in (SENT, RECEIVED):
        if {message[:3] for message in seen[kind]} != {(4, 1 - rank, 5)} or len(seen[kind]) != 2:
            sys.exit(f"rank {rank}, kind {kind}: {seen[kind]}")
    communicators.append({message[3] for kind in seen for message in seen[kind]})
if communicators[0] != communicators[1] or 0 not in communicators[0]:
    sys.exit(f"the ranks name their communicators differently: {communicators}")
