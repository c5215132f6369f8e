# SPDX-License-Identifier: BSD-3-Clause
"""check_trace_kinds.py directory command...: runs the command (life_cases all_kinds on two ranks)
with IMBREX_TRACE=directory, and checks that each message of each kind is in the trace once on
either side, with the task that sent or received it, and that the collective is there.
"""
import collections
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
from imbrex_trace import history, reader  # noqa: E402

directory = pathlib.Path(sys.argv[1])
shutil.rmtree(directory, ignore_errors=True)
subprocess.run(sys.argv[2:], check=True, env=dict(os.environ, IMBREX_TRACE=str(directory)))

for rank in reader.read_run(directory):
    seen = history.replay(rank)
    found = collections.Counter()
    for message in seen.messages:
        task = rank.names[seen.tasks[message.task].name].name
        found[message.sent, message.tag, message.peer, message.bytes, task] += 1
    peer = 1 - rank.rank
    exchanges = (8, 19, 20, 21)  # MPI_Sendrecv and its kin
    expected = {(True, tag, peer, 4, "sends"): 1 for tag in range(1, 22)}
    expected |= {(False, tag, peer, 4, "sends" if tag in exchanges else "receives"): 1
                 for tag in range(1, 22)}
    if found != expected:
        sys.exit(f"rank {rank.rank}: missing {expected.keys() - found.keys()}, beyond "
                 f"{found - collections.Counter(expected)}")
    calls = [(rank.names[one.name].name, one.bytes, one.end >= one.start)
             for one in seen.collectives
             if rank.names[seen.tasks[one.task].name].name == "reduces"]
    if calls != [("MPI_Allreduce", 4, True)]:
        sys.exit(f"rank {rank.rank}: collectives {calls}")
