#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes pages of docs/papers from stored results, and their pictures.

The text of a page is templates/NAME.md: Markdown with the marks of Jinja2. NAME_page.py has the
class Page, whose members a template names: each computes what a table or a sentence says."""

import argparse
import functools
import importlib
import io
import itertools
import json
import pathlib
import platform
import re
import sys
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import records  # noqa: E402 (found by the line before)

PAPERS = ("capra", "europar20", "ics19", "ipdps13", "iwomp21", "task_bench")
DEBIAN = "/usr/lib/python3/dist-packages"  # where another Python than the system's does not look


def library(name):
    """A module of Debian's, wherever it is installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.path.append(DEBIAN)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].lower()
        raise SystemExit(f"bench: no page: {error}. Install python3-{package} (Debian: "
                         "tools/install_dependencies --bench)") from None


def machine():
    model = next((line.split(":", 1)[1].strip()
                  for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return f"{model}, {records.CORES} cores"


# ---- cells and sentences -----------------------------------------------------------------------


def is_missing(value):
    return value is None or value != value


def number(value, digits=2):
    return "-" if is_missing(value) else f"{value:,.{digits}f}"


def signed(value):
    return "-" if is_missing(value) else f"{value:+.1f} %"


def off_by(value, other):
    """Per cent by which `value` differs from `other`; None if one of them is missing."""
    if is_missing(value) or not other:
        return None
    return f"{round(100 * (value / other - 1)):+d} %".replace("+0 %", "0 %")


def runs_of(line):
    """Least and most of the repetitions; a single one has no range."""
    if line.get("repetitions", 1) < 2:
        return "one run"
    return f"{number(line.get('least_s'), 3)} to {number(line.get('most_s'), 3)}"


def yes_no(reached):
    return "yes" if reached else "NO"


def head(names):
    """The first two lines of a table with these columns."""
    return "| " + " | ".join(map(str, names)) + " |\n|" + "---|" * len(names)


def rows(lines, form):
    """A line of a table for each of `lines`, whose values take the places {} of `form` in turn.
    In a cell with a format a text replaces the cell; a missing value is "-". `form` may end with
    "...": all further cells are as the last one."""
    *cells, last = form.strip("| ").split(" | ")
    cells = [*cells, *(itertools.repeat(cells[-1], 100) if last == "..." else [last])]
    lines = lines.itertuples(index=False) if hasattr(lines, "itertuples") else lines
    return "\n".join("| " + " | ".join(row_cells(iter(line), cells)) + " |" for line in lines)


def row_cells(values_left, cells):
    for cell in cells:
        some = list(itertools.islice(values_left, cell.count("{")))
        if not some:
            return
        if any(is_missing(value) for value in some):
            yield "-"
        else:
            yield some[0] if ":" in cell and isinstance(some[0], str) else cell.format(*some)


def unfolded(text):
    """A paragraph or an item is one line, as a table's row is; code stays as it is."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [re.sub(r"(?<=[^\n|])\n *(?=[^\s|#-])", " ", part) for part in parts[::2]]
    return "".join(parts)


@functools.cache
def templates():
    jinja = library("jinja2")
    found = jinja.Environment(
        loader=jinja.FileSystemLoader(HERE / "templates"), undefined=jinja.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, autoescape=False)
    found.filters |= {each.__name__: each for each in (head, number, rows, signed)}
    return found


def rendered(template, names):
    """The text of a template, with no more than one empty line between paragraphs."""
    text = templates().get_template(template).render(names)
    return re.sub("\n{3,}", "\n\n", text).rstrip("\n") + "\n"


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


# ---- results -----------------------------------------------------------------------------------


def of(lines, part, /, **wanted):
    return [line for line in lines if line["part"] == part
            and all(line.get(name) == value for name, value in wanted.items())]


def values(lines, name):
    return sorted({line[name] for line in lines})


def ratios(line, other):
    """The times of a line by those of another in the same repetition: neighbours in time, so that
    the machine's drift cancels. Without a common repetition, the ratio of the medians."""
    if line is None or other is None:
        return frame_of([], "none").none
    series = library("pandas").Series
    both = (series(line["each_s"]) / series(other["each_s"])).dropna()
    return both if len(both) else series([line["seconds"] / other["seconds"]])


def ratio(line, other):
    """The median of the ratios; NaN if a line is missing."""
    return ratios(line, other).median()


def frame_of(lines, *columns):
    return library("pandas").DataFrame(lines, columns=columns or None)


class Page:
    """A page of a paper. A template may name all members; a paper adds its own."""
    is_unfolded = True  # paragraphs of the template become lines of the page

    def __init__(self, results, published=None, path=None):
        self.results, self.published = results, published
        self.paper = type(self).__module__.removesuffix("_page")
        self.path = path or path_of(self.paper)
        self.picture = self.path.with_suffix(".png").name

    def origin(self):
        return origin(self.results)

    def of(self, part, /, **wanted):
        """The results of this part that have these values."""
        return of(self.results["results"], part, **wanted)

    def one(self, part, /, **wanted):
        return next(iter(self.of(part, **wanted)), None)

    def by(self, name, part, /, **wanted):
        """{value of this name: the result with it}."""
        return {line[name]: line for line in self.of(part, **wanted)}

    def values(self, part, name, /, **wanted):
        return values(self.of(part, **wanted), name)

    def frame(self, part, *columns, **wanted):
        """The results as a table of pandas, with these columns."""
        return frame_of([{**line, "runs": runs_of(line)} for line in self.of(part, **wanted)],
                        *columns)

    def part(self, name, caller):
        """{% call part("name") %}: a section whose part may not have been measured."""
        return caller() if self.of(name) else "Not measured.\n"

    def text(self):
        text = rendered(f"{self.paper}.md", {
            name: getattr(self, name) for name in dir(self) if not name.startswith("_")})
        return unfolded(text) if self.is_unfolded else text

    def write(self):
        text = self.text()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(text)
        self.draw()

    def draw(self):
        figure, axes = pyplot().subplots(2, 2, figsize=(13, 9))
        self.draw_on(axes)
        figure.tight_layout()
        save_picture(figure, self.path.with_name(self.picture))


# ---- pictures ----------------------------------------------------------------------------------


def pyplot():
    library("matplotlib").use("Agg")
    return library("matplotlib.pyplot")


def finish(axis, title, x="", y="", legend="small"):
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=legend)


def curve(axis, lines, x, y, **how):
    """A curve through the values of these names, from the least x to the most."""
    points = sorted((line[x], line[y]) for line in lines)
    axis.plot([at for at, _ in points], [value for _, value in points], marker="o", **how)


def save_picture(figure, path):
    """Of 64 colours: a third of the size, and no difference to the eye."""
    with io.BytesIO() as whole:
        figure.savefig(whole, format="png", dpi=80)
        library("PIL.Image").open(whole).convert("RGB").quantize(64).save(path, optimize=True)


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


# ---- main --------------------------------------------------------------------------------------


def stored(paper, part="results"):
    """What the file of a paper has: its results, or with `published` the paper's own figures."""
    name = f"{part}_{paper}.json" if part == "published" else f"{paper}_{part}.json"
    return json.loads((HERE / name).read_text()) if (HERE / name).exists() else None


def path_of(paper):
    return records.SOURCE / "docs" / "papers" / f"{paper.replace('_', '-')}.md"


def page_of(paper, results=None, published=None, path=None):
    """The page of a paper, by default from what is stored."""
    kind = importlib.import_module(f"{paper}_page").Page
    return kind(results or stored(paper), published or stored(paper, "published"), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="+", choices=PAPERS, metavar="NAME",
                        help="pages to write, of " + ", ".join(PAPERS))
    for paper in parser.parse_args().papers:
        shown = page_of(paper)
        shown.write()
        records.say(f"page: {shown.path}")


if __name__ == "__main__":
    main()
