# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site about the public headers, from the comments above their declarations."""
import re

import headers


def escaped(prose):
    """Comments are Markdown but for what it would take for HTML and emphasis."""
    parts = re.split(r"(`[^`]*`)", prose)
    parts[::2] = [re.sub(r"([*\[])", r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
                  for part in parts[::2]]
    return "".join(parts)


def groups(header):
    """(name, prose, code): code without a comment shares that of the code before it."""
    name = prose = code = ""
    for entry in header.entries:
        if not entry.shown:
            continue
        if code and entry.code and not entry.prose and header.lines[entry.line - 1].strip():
            code += "\n" + entry.code
            continue
        if name:
            yield name, prose, code
        name, prose, code = entry.name, entry.prose, entry.code
    if name:
        yield name, prose, code


def page(name, text):
    """`name` is what a program includes."""
    header = headers.Header(name, text)
    language = "c" if name.endswith(".h") else "cpp"
    said = [f"# {name}", f"```{language}\n#include <{name}>\n```", escaped(header.intro)]
    for title, prose, code in groups(header):
        if not code:
            said.append(f"## {title}")
        else:
            said += [f"### `{title}`", f"```{language}\n{code}\n```", escaped(prose)]
    return "\n\n".join(part for part in said if part) + "\n"
