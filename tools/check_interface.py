# SPDX-License-Identifier: BSD-3-Clause
"""For check.py: every function that a program can call says what it does."""
import re

import headers

# Functions whose meaning is obvious.
OBVIOUS = re.compile(r"~|=\s*(?:default|delete)\s*$|\boperator=\s*\(|"
                     r"^\W*(?:constexpr\s+)?(\w+)\s*\((?:const\s+)?\1\s*&{1,2}\s*\w*\)")


def breaches(name, text):
    """The line and what is wrong there: a function without a comment, or one whose signature names
    what no program may name. Functions that follow each other without an empty line share the
    comment above the first, and that above macros, which call them."""
    header = headers.Header(name, text)
    in_c = name.endswith(".h")
    end, described = 0, False
    for entry in header.entries:
        if re.search(r"\bdetail::\w+\s*\(", entry.function.split("(")[0] + "("):
            continue  # the body of a function that no program calls
        own = entry.prose or (in_c and "/*" in header.lines[entry.end - 1])
        described = bool(own) or (described and end == entry.line)
        end = entry.end if entry.function or entry.code.startswith("#") else 0
        if not entry.function:
            continue
        if not described and not OBVIOUS.search(headers.plain(entry.function)):
            wanted = "a comment" if in_c else "a /// block"
            yield entry.line + 1, f"a public function has {wanted} above it, or above its group"
        if "detail::" in entry.function:
            yield entry.line + 1, "a public signature names nothing of detail::"
