# SPDX-License-Identifier: BSD-3-Clause
"""site_test.py [Parts|Built]: the parts of tools/site, on headers and pages that are made up; then
the site, which is built, opened in a headless browser, and searched as a reader does. Exit status
77 without a browser, or where Zensical cannot be installed."""
import functools
import http.server
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))
import site_headers  # noqa: E402
from imbrex_trace.browser import Browser, find  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("imbrex_site", str(TOOLS / "site"))
site = importlib.util.module_from_spec(importlib.util.spec_from_loader("imbrex_site", LOADER))
LOADER.exec_module(site)

HEADER = """// SPDX-License-Identifier: BSD-3-Clause
// What it is for.
#pragma once
namespace demo {
namespace detail {
/// Hidden.
void inner();
}  // namespace detail
class Later;
/// Adds `a[i]` and <b>.
template <class T>
  requires(sizeof(T) > 1)
inline T add(T a, T b) { return a + b; }
T subtract(T a, T b);
/// A pair.
class Pair {
 public:
  /// Makes one.
  explicit Pair(int a) : a_(a) {}

 private:
  /// Not for programs.
  int secret();
  int a_;
};
}  // namespace demo
"""
# Types words into the search field, and returns the addresses that are found.
SEARCH = """(async () => {
  const pause = ms => new Promise(done => setTimeout(done, ms));
  const deep = (root, selector) => {
    const found = [...root.querySelectorAll(selector)];
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) found.push(...deep(one.shadowRoot, selector));
    }
    return found;
  };
  for (let tries = 0; tries < 300; ++tries) {
    const field = deep(document, "dialog input")[0];
    if (!field) {
      document.querySelector(".md-search__button")?.click();
    } else if (field.value !== "WORDS") {
      field.focus();
      field.value = "WORDS";
      field.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
    }
    const found = deep(document, "a[href]").map(one => one.href)
                      .filter(one => one.includes("?h="));
    if (found.length) return found;
    await pause(100);
  }
  return [];
})()"""
WIDER = """[...document.querySelectorAll("article *")].filter(
  one => one.getBoundingClientRect().right > innerWidth + 1 &&
         !one.closest(".md-typeset__scrollwrap, pre, .highlight, svg")).length"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Parts(unittest.TestCase):
    def test_a_header_has_its_functions_and_no_private_ones(self):
        page = site_headers.page("demo.hpp", HEADER)
        self.assertIn("What it is for.", page)
        self.assertIn("### `add`", page)
        self.assertIn("inline T add(T a, T b);\nT subtract(T a, T b);\n```", page)
        self.assertIn("Adds `a[i]` and &lt;b>.", page)
        self.assertIn("explicit Pair(int a);", page)
        for hidden in ("inner", "Hidden", "secret", "Not for programs", "return", "Later"):
            self.assertNotIn(hidden, page)

    def test_lists_are_indented_by_four_columns(self):
        text = "Text:\n- a\n  more\n  - b\n\n    c\n- d\nend\n"
        self.assertEqual(site.nested(text),
                         "Text:\n\n- a\n    more\n\n    - b\n\n        c\n- d\nend\n")
        self.assertEqual(site.nested("1. a\n   ```sh\n   - x\n   ```\n2. b\n"),
                         "1. a\n    ```sh\n    - x\n    ```\n2. b\n")

    def test_dead_links_and_names_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "b").mkdir()
            (folder / "a.html").write_text(
                '<h1 id="x"></h1><a href="b/#there"></a><a href="#x"></a><a href="#y"></a>'
                '<a href="b/#gone"></a><img src="c.png"><a href="https://example.org/z"></a>')
            (folder / "b/index.html").write_text('<h2 id="there"></h2>')
            self.assertEqual(sorted(line.split()[-1] for line in site.dead_links(folder)),
                             ["#y", "b/#gone", "c.png"])


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([sys.executable, "-B", TOOLS / "site"], check=True)
        cls.html = TOOLS.parent / "build/site/html"
        serve = functools.partial(Quiet, directory=cls.html)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.address = f"http://127.0.0.1:{server.server_port}/"

    def test_a_search_finds_a_function(self):
        with Browser(self.address) as browser:
            found = browser.run(SEARCH.replace("WORDS", "when_arrived"))
        self.assertTrue(any("headers/imbrex/mpi.hpp/" in one for one in found), found)
        others = [url for url in browser.requests if not url.startswith(
            (self.address, "data:", "blob:"))]
        self.assertEqual(others, [])

    def test_no_page_is_wider_than_the_screen(self):
        for width in (1280, 400):
            for page in ("", "user/options/", "user/mpi/", "headers/imbrex/task.hpp/", "design/"):
                with self.subTest(page=page, width=width), \
                        Browser(self.address + page, width, 900) as browser:
                    self.assertEqual(browser.run(WIDER), 0)
                    self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), width)


if __name__ == "__main__":
    if sys.argv[1:] != ["Parts"]:
        if not find():
            print("site_test.py: no browser: tools/install_dependencies --browser")
            sys.exit(77)
        try:
            site.install(TOOLS.parent / "build/site/venv")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"site_test.py: Zensical is not there and cannot be installed: {error}")
            sys.exit(77)
    unittest.main()
