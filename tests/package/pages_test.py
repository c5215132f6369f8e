# SPDX-License-Identifier: BSD-3-Clause
"""pages_test.py PREFIX WRAPPER PAGE...: what a reader of a page would do is done with an installed
imbrex.

A block of code whose paragraph before it ends in "`NAME`:" is that file. So is a file to which the
paragraph before a block of shell commands has a link at its end: "[`NAME`](PATH):". A block of
shell commands that names one of the page's files is run, and prints what stands in a block `text`
behind it.
PREFIX is $HOME/imbrex to the commands, and its bin/ is in the PATH; an archive of the source in its
place is $HOME/imbrex.tar.gz. WRAPPER is the MPI's mpicc.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w./-]+)`:\s*\Z")
LINKED = re.compile(r"\[`([\w.-]+)`\]\(([\w./-]+)\):\s*\Z")  # a file of the source
FILE_KINDS = {"cpp", "c", "cmake", "fortran"}


def blocks_of(page):
    """(kind, name of the file or None, text) of each block, and of the files that are linked."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        linked = LINKED.search(text[:match.start()])
        if linked and match["kind"] == "sh":
            yield "linked", linked[1], (page.parent / linked[2]).read_text(encoding="utf-8")
        named = NAMED.search(text[:match.start()])
        name = named[1] if named and match["kind"] in FILE_KINDS else None
        yield match["kind"], name, match["text"]


class Page:
    def __init__(self, path, environment):
        self.path, self.environment = path, environment
        self.files, self.commands = {}, []  # commands: (text, what they print or None)
        for kind, name, text in blocks_of(path):
            if name:
                self.files[name] = text
            elif kind == "sh" and any(re.search(rf"(?<![\w/.]){re.escape(file)}\b", text)
                                      for file in self.files):
                self.commands.append([text, None])
            elif kind == "text" and self.commands and self.commands[-1][1] is None:
                self.commands[-1][1] = text

    def check(self):
        """The number of blocks of commands that were run."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in self.files.items():
                (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
            for text, printed in self.commands:
                self.run(folder, text, printed)
        return len(self.commands)

    def run(self, folder, text, printed):
        said = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder, text=True,
                              env=self.environment, stdin=subprocess.DEVNULL, timeout=200,
                              capture_output=True, check=False)
        missing = [line for line in (printed or "").splitlines() if line not in said.stdout]
        if said.returncode != 0 or missing:
            raise SystemExit(f"{self.path}: these commands failed ({said.returncode})"
                             f"{f' or did not print {missing}' if missing else ''}:\n{text}\n"
                             f"{said.stdout}{said.stderr}")


def main(prefix, wrapper, *pages):
    with tempfile.TemporaryDirectory() as home:
        archive = os.path.isfile(prefix)
        os.symlink(prefix, os.path.join(home, "imbrex.tar.gz" if archive else "imbrex"))
        path = [os.path.join(prefix, "bin"), os.path.dirname(wrapper), os.environ["PATH"]]
        environment = dict(os.environ, HOME=home, PATH=":".join(path))
        environment.pop("XDG_CACHE_HOME", None)
        for page in pages:
            count = Page(pathlib.Path(page), environment).check()
            if count == 0:
                raise SystemExit(f"{page}: no commands were found in it")
            print(f"{page}: {count} blocks of commands: ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
