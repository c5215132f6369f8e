# SPDX-License-Identifier: BSD-3-Clause
"""The parts that the pages of bench/papers share: lines of results, tables in Markdown, the frame
of page and picture, and the name of the machine."""

import io
import pathlib
import platform
import xml.etree.ElementTree

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


def one(results, part, **wanted):
    found = of(results, part, **wanted)
    return found[0] if found else None


def values(lines, name):
    return sorted({line[name] for line in lines})


# ---- Markdown ----------------------------------------------------------------------------------


def table(head, rows):
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def number(value, digits=2):
    return "-" if value is None else f"{value:,.{digits}f}"


def per_cent(value):
    return "-" if value is None else f"{value:.1f} %"


def published_text(value):
    return "-" if value is None else f"{value:+.1f} %"


def origin(results):
    """When, where and at which commits the lines were measured or simulated."""
    lines = results["results"]
    days = values([line for line in lines if "date" in line], "date") or [results["date"]]
    text = "the results of " + (days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}")
    machines = values([line for line in lines if "on" in line], "on")
    text += f" on {' and on '.join(machines)}" if machines else ""
    commits = sorted({line["commit"] for line in lines if line.get("commit")})
    if len(commits) > 4:
        return text + f" ({len(commits)} commits; each result of the file names its own)"
    return text + (f" (commit {', '.join(commits)})" if commits else "")


def ratio_text(value, other):
    """Per cent by which `value` differs from `other`."""
    if value is None or not other:
        return "-"
    percent = round(100 * (value / other - 1))
    return f"{percent:+d} %" if percent else "0 %"


def runs_text(line):
    """Least and most of the repetitions; a single one has no range."""
    if line.get("repetitions", 1) < 2:
        return "one run"
    return f"{number(line['least_s'], 3)} to {number(line['most_s'], 3)}"


def picture_of(path):
    return path.with_suffix(".png")


def write(path, title, text, picture):
    """`text`: lines of the page; `picture(axes)` draws on four axes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(title, text))
    figure, axes = pyplot().subplots(2, 2, figsize=(13, 9))
    picture(axes)
    figure.tight_layout()
    save_picture(figure, picture_of(path))


def text_of(title, lines):
    return "\n".join(["<!-- SPDX-License-Identifier: BSD-3-Clause -->", f"# {title}", "", *lines])


def describe(parts, results, published):
    """A section for each of `parts`, {part: (title, function)}."""
    measured = {line["part"] for line in results["results"]}
    text = []
    for part, (title, function) in parts.items():
        text += [f"## {title}", ""]
        text += [function(results, published) if part in measured else "Not measured.\n"]
    return text


# ---- pictures ----------------------------------------------------------------------------------


def pyplot():
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("bench: no picture: matplotlib is missing (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot as found
    return found


def save_picture(figure, path):
    """Of 64 colours: a third of the size, and no difference to the eye."""
    from PIL import Image
    with io.BytesIO() as whole:
        figure.savefig(whole, format="png", dpi=80)
        Image.open(whole).convert("RGB").quantize(64).save(path, optimize=True)


def draw_timeline(svg, path):
    """The rectangles, lines and texts that `imbrex timeline` writes, as a picture at `path`."""
    root = xml.etree.ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    figure = pyplot().figure(figsize=(width / 100, height / 100))
    axis = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axis.axis("off")
    for each in root:
        kind = each.tag.rpartition("}")[2]
        if kind == "rect" and each.get("x"):
            x, y, w, h = (float(each.get(name)) for name in ("x", "y", "width", "height"))
            edge = "none" if each.get("stroke-opacity") else each.get("stroke", "none")
            axis.fill((x, x + w, x + w, x), (y, y, y + h, y + h), facecolor=each.get("fill"),
                      edgecolor=edge, linewidth=0.5)
        elif kind == "line":
            x1, y1, x2, y2 = (float(each.get(name)) for name in ("x1", "y1", "x2", "y2"))
            axis.plot((x1, x2), (y1, y2), color=each.get("stroke"), linewidth=0.5,
                      linestyle=":" if each.get("stroke-dasharray") else "-")
        elif kind == "text":
            align = {"start": "left", "middle": "center", "end": "right"}[each.get("text-anchor")]
            axis.text(float(each.get("x")), float(each.get("y")), each.text, ha=align,
                      fontsize=0.72 * float(each.get("font-size")), weight=each.get("font-weight"))
    save_picture(figure, path)
