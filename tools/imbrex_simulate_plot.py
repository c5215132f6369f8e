# SPDX-License-Identifier: BSD-3-Clause
"""Rankings of simulations, as text and as a picture. Needs nothing but Python's library."""
from xml.sax.saxutils import escape

COLUMNS = 40
WIDTH, LEFT, RIGHT, LINE = 720, 150, 120, 22
BARS = ("#4878a8", "#9db7d0")  # the fastest; others


class Ranking:
    """Simulations that differ in one setting, the fastest first."""

    def __init__(self, title, name, records):
        self.title, self.name = title, name
        self.records = sorted(records, key=lambda record: record["seconds"])
        self.best = self.records[0]["seconds"]
        self.slowest = self.records[-1]["seconds"]

    def ratio(self, record):
        return record["seconds"] / self.best if self.best else 1.0

    def part(self, record):
        """Of the slowest one's time."""
        return record["seconds"] / self.slowest if self.slowest else 1.0


def rankings(records, first, name):
    """One for each group of records that differ in nothing but the value of `name`."""
    groups = {}
    for record in records:
        key = tuple((other, record[other]) for other in (first, "ranks", "workers", "policy")
                    if other != name)
        groups.setdefault(key, []).append(record)
    return [Ranking(title_of(key), name, group) for key, group in groups.items() if len(group) > 1]


def title_of(key):
    words = dict(key)
    ranks = words.pop("ranks", None)
    workers = words.pop("workers", None)
    machine = [f"{ranks} ranks of {workers}" if ranks and workers else
               f"{ranks} ranks" if ranks else f"{workers} workers a rank" if workers else ""]
    return ", ".join([f"{name} = {value}" for name, value in words.items() if name != "policy"] +
                     [word for word in machine if word] +
                     [f"policy {words['policy']}" for _ in range("policy" in words)])


def all_of(records, first, name):
    """All records, named by what tells them apart."""
    named = [record | {"sweep": f"{record[first]}, {record['ranks']} ranks, {record['policy']}"}
             for record in records]
    return Ranking(f"all simulations, by {name}", name, named)


def print_ranking(ranking):
    print(f"\n{ranking.title}:")
    width = max(9, *(len(record["sweep"]) for record in ranking.records))
    for record in ranking.records:
        print(f"  {record['sweep']:<{width}} {ranking.ratio(record):>6.3f}  "
              f"{'#' * round(COLUMNS * ranking.part(record))}")


# ---- SVG ---------------------------------------------------------------------------------------

def bars(all_rankings):
    """One bar for each simulation, with its seconds."""
    lines, top = [], 10
    for ranking in all_rankings:
        lines.append(text(10, top + 14, ranking.title, "font-weight='bold'"))
        top += LINE + 4
        for record in ranking.records:
            length = max(1.0, ranking.part(record) * (WIDTH - LEFT - RIGHT))
            colour = BARS[0] if record is ranking.records[0] else BARS[1]
            lines.append(text(LEFT - 8, top + 14, record["sweep"], "text-anchor='end'"))
            lines.append(f"<rect x='{LEFT}' y='{top + 2}' width='{length:.1f}' "
                         f"height='{LINE - 6}' fill='{colour}'/>")
            lines.append(text(LEFT + length + 6, top + 14,
                              f"{record['seconds']:.4g} s ({ranking.ratio(record):.2f})"))
            top += LINE
        top += 12
    return svg(WIDTH, top, lines)


def text(x, y, words, more=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{escape(words)}</text>"


def svg(width, height, lines):
    head = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
            "font-family='sans-serif' font-size='12'>")
    ground = f"<rect width='{width}' height='{height}' fill='white'/>"
    return "\n".join([head, ground, *lines, "</svg>", ""])
