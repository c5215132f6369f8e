# SPDX-License-Identifier: BSD-3-Clause
"""page_test.py [EVENTS]: the page of `imbrex report`, in a headless browser.

Methodology: a synthetic run, of which it is known which task stands where, is opened, zoomed and
moved. With EVENTS 1000000 the printed times are those of docs/user/report.md. Exit status 77
without d3 or a browser."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
from imbrex_trace import page, reader, synthetic  # noqa: E402
from imbrex_trace.browser import Browser, find  # noqa: E402

# Fifty views, from the whole run down to a few tasks, half a screen further each time.
FRAMES = """(() => {
  const times = [];
  for (let i = 0; i < 50; ++i) {
    const wide = head.end / 1.25 ** (i * 0.8), from = (head.end - wide) * (i % 7) / 7;
    zoomTo(from, from + wide);
    const begin = performance.now();
    draw();
    context.getImageData(0, 0, 1, 1);  // waits for what was drawn
    times.push(performance.now() - begin);
  }
  return times.sort((a, b) => a - b);
})()"""
LOAD = """started.then(() => performance.now())"""
# The colour in the middle of the piece of a task, and the right colour.
COLOUR = """(() => {
  byId("whole").checked = true;
  byId("whole").onchange();
  const [[row, i]] = partsOf(%d), start = column.piece_start[i], end = column.piece_end[i];
  for (const id of ["messages", "pauses", "path"]) byId(id).checked = false;
  zoomTo(start - 3 * (end - start), end + 3 * (end - start));
  draw();
  const x = LABELS + shown()(start + 0.8 * (end - start));
  return [Array.from(context.getImageData(x, rowTop(row) + 2, 1, 1).data.slice(0, 3)),
          palette[column.task_name[%d]]];
})()"""


class Page(unittest.TestCase):
    events = 30_000

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.tasks = synthetic.write_large(folder.name, cls.events)
        subprocess.run([sys.executable, "-B", str(TOOLS / "imbrex"), "report", "--write", "page",
                        folder.name], check=True, stdout=subprocess.DEVNULL)
        cls.file = pathlib.Path(folder.name) / "report.html"
        cls.browser = Browser(cls.file)
        cls.browser.__enter__()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.load = cls.browser.run(LOAD)

    def test_it_opens_without_a_network(self):
        others = [url for url in self.browser.requests
                  if not url.startswith(("file:", "data:", "blob:"))]
        self.assertEqual(others, [])
        self.assertEqual(self.browser.run("column.task_id.length - 1"), self.tasks)
        mains = self.browser.run("head.ranks.length")
        self.assertIn(f"{self.tasks - mains} tasks",
                      self.browser.run("byId('about').textContent"))

    def test_a_frame_is_drawn_in_time(self):
        times = self.browser.run(FRAMES)
        print(f"{self.events} events: {self.file.stat().st_size / 1e6:.1f} MB, loaded in "
              f"{self.load:.0f} ms; 50 frames: median {times[25]:.1f} ms, longest "
              f"{times[-1]:.1f} ms")
        self.assertLess(self.load, 60_000)
        self.assertLess(times[25], 1000)

    def test_a_task_is_where_it_should_be_in_its_colour(self):
        for task in (2, 17, self.tasks // 2):
            seen, expected = self.browser.run(COLOUR % (task, task))
            self.assertEqual(seen, expected, task)

    def test_the_whole_run_shows_how_much_of_a_pixel_is_idle(self):
        # Each worker is in tasks 20 of 25 us: a pixel of many tasks is lighter than a task.
        self.browser.run("zoomTo(0, head.end); draw()")
        colour = self.browser.run("Array.from(context.getImageData(LABELS + width / 2, "
                                  "rowTop(0) + 2, 1, 1).data.slice(0, 3))")
        tasks = self.browser.run("palette")
        self.assertNotIn(colour, tasks)
        self.assertNotEqual(colour, [255, 255, 255])

    def test_a_selected_task_says_what_it_is(self):
        self.browser.run("select(5)")
        self.assertRegex(self.browser.run("byId('details').textContent"),
                         r"\w+ #\d+, rank 0, made at \w+\.cpp:1, priority \d")

    def test_search_and_colours_change_the_picture(self):
        self.browser.run("zoomTo(head.end / 2, head.end * 0.52); draw()")
        seen = set()
        for change in ("0", "byId('search').value = 'panel'; search()",
                       "byId('search').value = ''; search(); byId('colour').value = 'priority'",
                       "byId('colour').value = 'state'", "byId('path').checked = true"):
            self.browser.run(change)
            self.browser.run("draw()")
            seen.add(self.browser.run("canvas.toDataURL()"))
        self.browser.run("byId('colour').value = 'name'; byId('path').checked = false")
        self.assertEqual(len(seen), 5)


# Elements that are wider than the screen, and texts that run out of their boxes.
WIDER = """Array.from(document.querySelectorAll('body *')).filter(
    one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        && !one.closest('.wide') && !one.closest('#view') && one.id !== 'tip')
    .map(one => one.tagName + ' ' + one.id + ' ' + one.className)"""
STRANGE = "</script><b id=broken>&<!--<script>"


class SmallPage(unittest.TestCase):
    """A run in which each thing is known, at the width of a telephone and at that of a screen."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        rank = synthetic.RankWriter(folder.name, end=100)
        rank.head["command"] = ["bin/solve", STRANGE, "x" * 300]
        names = [rank.name(STRANGE, "s.cpp:1")] + [rank.name(f"name {n}") for n in range(1, 30)]
        rank.create(0, 0, 1000, names[29])
        for number, name in enumerate(names[:29]):
            rank.create(0, 0, number + 1, name)
        for number, name in enumerate(names[:29]):
            rank.begin(20 + number * 2, 0, number + 1, name)
            rank.end(22 + number * 2, 0, number + 1)
        rank.begin(78, 0, 1000, names[29])
        rank.end(90, 0, 1000)
        rank.write()
        subprocess.run([sys.executable, "-B", str(TOOLS / "imbrex"), "report", "--write", "page",
                        folder.name], check=True, stdout=subprocess.DEVNULL)
        cls.file = pathlib.Path(folder.name) / "report.html"

    def opened(self, width):
        browser = Browser(self.file, width, 900)
        browser.__enter__()
        self.addCleanup(browser.__exit__)
        browser.run("started")
        return browser

    def test_nothing_is_wider_than_the_screen(self):
        for width in (400, 1280):
            browser = self.opened(width)
            self.assertEqual(browser.run(WIDER), [], width)
            self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)
            self.assertEqual([url for url in browser.requests if not url.startswith(
                ("file:", "data:", "blob:"))], [])

    def test_strange_names_are_texts(self):
        browser = self.opened(800)
        self.assertIsNone(browser.run("byId('broken')"))
        self.assertIn(STRANGE, browser.run("document.body.innerText"))
        self.assertIn(STRANGE, browser.run("head.names.map(one => one[0])"))

    def test_the_verdict_stands_above_the_picture(self):
        browser = self.opened(400)
        self.assertIn("waited for a free worker", browser.run(
            "document.querySelector('#verdict p').textContent"))
        self.assertLess(browser.run("byId('verdict').getBoundingClientRect().bottom"),
                        browser.run("byId('canvas').getBoundingClientRect().top"))

    def test_set_up_is_shown_when_asked_for(self):
        browser = self.opened(800)
        self.assertEqual(browser.run("shown().domain().map(Math.round)"), [0, 70000])
        browser.run("byId('whole').click()")
        self.assertEqual(browser.run("shown().domain().map(Math.round)"), [-20000, 80000])

    def test_names_differ_by_more_than_their_colour(self):
        browser = self.opened(800)
        looks = browser.run("order.map(name => palette[name] + textures[name])")
        self.assertEqual(len(set(looks[:28])), 28)
        self.assertEqual(browser.run("order.slice(0, 7).map(name => textures[name]).join('')"), "")

    def test_the_wait_on_the_critical_path_is_drawn_and_told(self):
        browser = self.opened(1280)
        self.assertEqual(browser.run("Array.from(column.path_why).map(why => WAITS[why])"
                                     ".filter(one => one).map(one => one.text)"),
                         ["ready, but waits for a worker"])
        before = browser.run("canvas.toDataURL()")
        browser.run("byId('path').click(); draw()")
        self.assertNotEqual(browser.run("canvas.toDataURL()"), before)
        self.assertIn("no worker free", browser.run(
            "aboutStep(Array.from(column.path_why).findIndex(why => why))"))


if __name__ == "__main__":
    try:
        page.d3_text()
    except reader.TraceError as missing:
        print(missing)
        sys.exit(77)
    if find() is None:
        print("left out: no browser (tools/install_dependencies --browser)")
        sys.exit(77)
    if len(sys.argv) > 1:
        Page.events = int(sys.argv.pop(1))
    unittest.main()
