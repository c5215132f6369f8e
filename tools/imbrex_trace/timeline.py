# SPDX-License-Identifier: BSD-3-Clause
"""A picture (SVG) of one or more runs: one row per worker, one time scale, gaps visible.

Its size is bounded whatever the number of tasks: what is narrower than MIN_WIDTH shares a strip
with its neighbours, coloured by what took most of that strip's time.
"""
import collections
import dataclasses
from xml.sax.saxutils import escape

from imbrex_trace import copies
from imbrex_trace.history import State
from imbrex_trace.words import duration

WIDTH = 1400  # of the drawing, without the labels at the left
LEFT, RIGHT, TOP = 130, 30, 20
ROW, GAP = 26, 6  # height of a worker's row, and what lies between two
MIN_WIDTH = 1.0  # narrower pieces are gathered in strips of this width
LEGEND_NAMES = 12
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#117733",
           "#882255", "#44aa99", "#999933", "#332288")  # told apart by the colour-blind too
IDLE, OVERHEAD, OTHER = "#ffffff", "#b8b8b8", "#555555"
BY_ROOT, BY_RELAY = "#000000", "#cc3311"  # lines of copies of data
COPIES_MAX = 2000  # lines in a panel: those of most bytes


@dataclasses.dataclass
class Panel:
    label: str
    histories: list  # of history.History, one for each rank

    @property
    def start(self):
        return min(history.start for history in self.histories)

    @property
    def span(self):
        return max(1, max(history.end for history in self.histories) - self.start)


@dataclasses.dataclass
class Box:
    left: float
    width: float
    colour: str
    hint: str


def lines(panels, title):
    """The file, line by line."""
    colours = colours_of(panels)
    scale = WIDTH / max(panel.span for panel in panels)  # the same for all: lengths compare
    body, y = [], TOP
    if title:
        body.append(text(LEFT, y + 16, title, size=18, weight="bold"))
        y += 34
    for panel in panels:
        part, y = draw_panel(panel, scale, colours, y)
        body += part
    part, y = draw_legend(colours, y, any(copies_of(panel) for panel in panels))
    body += part
    width = LEFT + WIDTH + RIGHT
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:.0f}" '
           f'viewBox="0 0 {width} {y:.0f}" font-family="sans-serif">\n')
    yield '<rect width="100%" height="100%" fill="#fafafa"/>\n'
    for line in body:
        yield line + "\n"
    yield "</svg>\n"


def colours_of(panels):
    """Name -> colour, most time first; what does not fit in the legend shares one colour."""
    time = collections.Counter()
    for panel in panels:
        for history in panel.histories:
            for pieces in history.pieces.values():
                for piece in pieces:
                    if piece.state is State.TASK:
                        time[history.rank.names[piece.name].name] += piece.end - piece.start
    names = [name for name, _ in time.most_common()]
    kept = names if len(names) <= LEGEND_NAMES else names[:LEGEND_NAMES - 1]
    colours = dict.fromkeys(names, OTHER)
    colours.update(zip(kept, COLOURS))
    return colours


def draw_panel(panel, scale, colours, y):
    part = [text(LEFT, y + 14, panel_heading(panel), size=14, weight="bold")]
    y += 24
    top = y
    rows = {}  # (rank, worker) -> the middle of its row
    for history in panel.histories:
        for worker, pieces in sorted(history.pieces.items()):
            label = f"rank {history.rank.rank}, worker {worker}"
            label += " (borrowed)" if worker in history.rank.spare_workers else ""
            part.append(text(LEFT - 8, y + ROW / 2 + 4, label, size=11, anchor="end"))
            part += draw_row(history, pieces, panel, scale, colours, y)
            rows[history.rank.rank, worker] = y + ROW / 2
            y += ROW + GAP
    part += draw_copies(panel, scale, rows)
    part += draw_axis(panel, scale, top, y)
    return part, y + 38


def panel_heading(panel):
    time = collections.Counter()
    for history in panel.histories:
        for pieces in history.pieces.values():
            for piece in pieces:
                time[piece.state] += piece.end - piece.start
    total = max(1, sum(time.values()))
    shares = ", ".join(f"{state.value} {100 * time[state] / total:.1f} %" for state in State)
    return f"{panel.label}: {duration(panel.span)} ({shares})"


def draw_row(history, pieces, panel, scale, colours, y):
    width = (history.end - history.start) * scale
    left = LEFT + (history.start - panel.start) * scale
    yield (f'<rect x="{left:.2f}" y="{y}" width="{width:.2f}" height="{ROW}" fill="{IDLE}" '
           'stroke="#888" stroke-width="0.5"/>')
    for box in boxes(history, pieces, panel, scale, colours):
        rectangle = (f'<rect x="{LEFT + box.left:.2f}" y="{y}" width="{box.width:.2f}" '
                     f'height="{ROW}" fill="{box.colour}"')
        if box.width > 3:  # neighbours of one colour stay apart
            rectangle += ' stroke="#000" stroke-opacity="0.25" stroke-width="0.4"'
        if box.hint:
            yield f'{rectangle}><title>{escape(box.hint)}</title></rect>'
        else:
            yield f"{rectangle}/>"


def boxes(history, pieces, panel, scale, colours):
    """Idle time is left out: it is the ground on which the others are drawn."""
    strip, strips = None, collections.Counter()  # colour -> ns, in the strip that is being filled
    for piece in pieces:
        left = (piece.start - panel.start) * scale
        width = (piece.end - piece.start) * scale
        colour = colour_of(history, piece, colours)
        place = int(left / MIN_WIDTH)
        if strip is not None and (place != strip or width >= MIN_WIDTH):
            yield from strip_box(strip, strips)
            strip, strips = None, collections.Counter()
        if width < MIN_WIDTH:
            strip = place
            strips[colour] += piece.end - piece.start
        elif colour != IDLE:
            yield Box(left, width, colour, hint_of(history, piece))
    if strip is not None:
        yield from strip_box(strip, strips)


def strip_box(strip, strips):
    colour = max(strips, key=strips.get)
    if colour != IDLE:
        yield Box(strip * MIN_WIDTH, MIN_WIDTH, colour, "")


def colour_of(history, piece, colours):
    if piece.state is State.TASK:
        return colours[history.rank.names[piece.name].name]
    return IDLE if piece.state is State.IDLE else OVERHEAD


def hint_of(history, piece):
    if piece.state is State.OVERHEAD:
        return f"overhead, {duration(piece.end - piece.start)}"
    name = history.rank.names[piece.name]
    where = f" ({name.where})" if name.where else ""
    return f"{name.name}{where}, task {piece.task}, {duration(piece.end - piece.start)}"


def draw_copies(panel, scale, rows):
    """A line for each copy of a datum, from where it left to where it arrived. Copies of
    a thread that is no worker are drawn at the first worker."""
    every = copies_of(panel)
    for hop in every[:COPIES_MAX]:
        x1, x2 = (LEFT + (time - panel.start) * scale for time in (hop.sent, hop.arrived))
        y1, y2 = (rows.get((rank, worker), rows.get((rank, 0), TOP)) for rank, worker in
                  zip((hop.source, hop.target), hop.workers))
        colour = BY_RELAY if hop.is_relayed else BY_ROOT
        hint = (f"{hop.datum}, {hop.bytes} bytes, from rank {hop.source}"
                f"{f' as relay of rank {hop.root}' if hop.is_relayed else ''} to rank "
                f"{hop.target}, {duration(hop.arrived - hop.sent)}")
        yield (f'<line x1="{x1:.2f}" y1="{y1}" x2="{x2:.2f}" y2="{y2}" stroke="{colour}" '
               f'stroke-width="1"><title>{escape(hint)}</title></line>')
    if len(every) > COPIES_MAX:
        yield text(LEFT + WIDTH, TOP - 4, f"{COPIES_MAX} of {len(every)} copies of data are drawn",
                   size=10, anchor="end")


def copies_of(panel):
    """Returns the copies that have arrived within the panel's time; most bytes first."""
    end = panel.start + panel.span
    return sorted((hop for hop in copies.hops(panel.histories)
                   if panel.start <= hop.sent <= hop.arrived <= end), key=lambda hop: -hop.bytes)


def draw_axis(panel, scale, top, bottom):
    step = axis_step(WIDTH / scale)
    for number in range(int(panel.span // step) + 1):
        x = LEFT + number * step * scale
        yield (f'<line x1="{x:.2f}" y1="{top - 3}" x2="{x:.2f}" y2="{bottom}" stroke="#000" '
               'stroke-width="0.4" stroke-dasharray="2 3"/>')
        yield text(x, bottom + 12, duration(number * step), size=10, anchor="middle")


def axis_step(span):
    """A round number of ns, 1, 2 or 5 times a power of ten, that gives 5 to 14 steps."""
    step = 1
    while span / step > 14:
        step *= 2.5 if str(step)[0] == "2" else 2
        step = int(step)
    return step


def draw_legend(colours, y, has_copies):
    entries = [(name, colour) for name, colour in colours.items() if colour != OTHER]
    if OTHER in colours.values():
        entries.append(("other tasks", OTHER))
    entries += [("overhead", OVERHEAD), ("idle", IDLE)]
    if has_copies:
        entries += [("copy of a datum", BY_ROOT), ("passed on by a relay", BY_RELAY)]
    part, x = [], LEFT
    for name, colour in entries:
        width = 42 + 8 * len(name)
        if x > LEFT and x + width > LEFT + WIDTH:
            x, y = LEFT, y + 22
        part.append(f'<rect x="{x}" y="{y}" width="14" height="14" fill="{colour}" '
                    'stroke="#888" stroke-width="0.5"/>')
        part.append(text(x + 20, y + 12, name, size=12))
        x += width
    return part, y + 34


def text(x, y, content, size, weight="normal", anchor="start"):
    return (f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{escape(content)}</text>')
