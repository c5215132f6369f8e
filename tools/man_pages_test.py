# SPDX-License-Identifier: BSD-3-Clause
"""Tests man_pages.py: each option and subcommand of a command is in its page, with its text."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import man_pages


class ManPages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        man_pages.main(self.folder, "1.2.3")

    def plain(self, name):
        """The page without the marks of roff, in one line."""
        text = (self.folder / f"{name}.1").read_text(encoding="utf-8")
        text = re.sub(r"^\.[A-Z]{1,2} ?", "", text, flags=re.MULTILINE)
        return " ".join(re.sub(r"\\&|\\(?=-)", "", text).split())

    def test_the_page_has_the_text_of_help(self):
        words = {"imbrex": [(), *((name,) for name in (
            "run", "config", "simulate", "calibrate", "doctor", "explain", "top", "timeline",
            "summary", "report"))]}
        for name in man_pages.NAMES:
            text = self.plain(name)
            for command in words.get(name, [()]):
                said = man_pages.help_of(name, *command)
                options = set(re.findall(r"(?<![\w-])--?[a-z][a-z+-]*", said))
                missing = {option for option in options if option not in text}
                self.assertEqual(missing, set(), f"{name} {command}")
                for paragraph in man_pages.parts_of(said)[1]:
                    last = paragraph.split()[-3:]
                    self.assertIn(" ".join(last).replace("'", "\\(aq").replace("`", "\\(ga"), text)
        self.assertIn("IMBREX_POLICY, which selects the ready task", self.plain("imbrex"))
        self.assertIn("imbrex 1.2.3", self.plain("netlab"))

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_has_no_complaint(self):
        for page in self.folder.iterdir():
            said = subprocess.run(["groff", "-man", "-Tascii", "-ww", page], capture_output=True,
                                  text=True, check=False)
            self.assertEqual((said.returncode, said.stderr), (0, ""), page.name)


if __name__ == "__main__":
    unittest.main()
