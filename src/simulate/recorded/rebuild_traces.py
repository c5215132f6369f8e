# SPDX-License-Identifier: BSD-3-Clause
"""rebuild_traces.py: for recorded_test.cpp. Each line of standard input is a folder with a trace.
The steps of its run go to the file `steps` there. The answer is a line: why the trace was refused,
or nothing.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
from imbrex_trace import reader, steps  # noqa: E402

for line in sys.stdin:
    folder = pathlib.Path(line.rstrip("\n"))
    try:
        steps.write(reader.read_heads(folder), folder / "steps")
        print(flush=True)
    except reader.TraceError as refusal:
        print(refusal, flush=True)
