# SPDX-License-Identifier: BSD-3-Clause
"""check_trace_data.py directory command...: runs the command (data_cases broadcast on three ranks)
with IMBREX_TRACE=directory, and checks that each copy is in the trace, with who has sent it, and
that the report names the datum.
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
from imbrex_trace import copies, history, reader, report  # noqa: E402

directory = pathlib.Path(sys.argv[1])
shutil.rmtree(directory, ignore_errors=True)
subprocess.run(sys.argv[2:], check=True, env=dict(os.environ, IMBREX_TRACE=str(directory)))

histories = [history.replay(rank) for rank in reader.read_run(directory)]
hops = copies.hops(histories)
found = sorted((hop.datum, hop.source, hop.target, hop.root, hop.bytes, hop.arrived >= hop.sent)
               for hop in hops)
pivot, small = 'datum "pivot" of space "factor"', 'datum 1 of space "factor"'
expected = [(pivot, 0, 1, 0, 2_400_000, True), (pivot, 1, 2, 0, 2_400_000, True),
            (small, 2, 0, 2, 8, True)]  # numbers in the order in which data are made
if found != sorted(expected):
    sys.exit(f"found {found}")
if not any(pivot in line for line in report.lines([report.make("run", histories)])):
    sys.exit("the report does not name the datum")
