# SPDX-License-Identifier: BSD-3-Clause
"""What the pages of bench/papers share: lines of results, tables in Markdown, the frame of page and
picture, and the name of the machine."""

import pathlib
import platform

import records


def machine():
    model = next((line.split(":", 1)[1].strip()
                  for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {records.CORES} cores"


# ---- results -----------------------------------------------------------------------------------


def of(results, part, **wanted):
    return [line for line in results["results"] if line["part"] == part
            and all(line.get(name) == value for name, value in wanted.items())]


def values(lines, name):
    return sorted({line[name] for line in lines})


# ---- Markdown ----------------------------------------------------------------------------------


def table(head, rows):
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def number(value, digits=2):
    return "-" if value is None else f"{value:,.{digits}f}"


def write(path, title, text, picture):
    """`text`: lines of the page; `picture(axes)` draws on four axes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = ["<!-- SPDX-License-Identifier: BSD-3-Clause -->", f"# {title}", ""]
    path.write_text("\n".join(head + text))
    draw(path.with_suffix(".svg"), picture)


def describe(parts, results, published):
    """A section for each of `parts`, {part: (title, function)}."""
    measured = {line["part"] for line in results["results"]}
    text = []
    for part, (title, function) in parts.items():
        text += [f"## {title}", ""]
        text += [function(results, published) if part in measured else "Not measured.\n"]
    return text


def draw(path, picture):
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("bench: no picture: matplotlib is missing (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = path.stem
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(2, 2, figsize=(13, 9))
    picture(axes)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
