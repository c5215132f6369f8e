# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site about the public headers, from the comments above their declarations."""
import re

import check_interface as interface

TYPE = re.compile(r"\s*(?:typedef\s+)?(?:class|struct|union|enum(?:\s+class)?)\b"
                  r"(?:\s*\[\[.*?\]\])*\s*(\w*)")
OPENS_NAMESPACE = re.compile(r'\s*(?:inline\s+)?(?:namespace\b[^{};]*|extern "C"\s*)\{', re.ASCII)
LABEL = re.compile(r"\s*(public|private|protected):")
SECTION = re.compile(r"/\* -{2,} (.*?) -{2,} \*/|// -{2,} (.*?) -{2,}$")


class Header:
    """The entries of one header, in their order: (name, prose, code), or (title, None, None)."""

    def __init__(self, text):
        self.text, self.code = text, interface.blanked(text)
        self.lines = text.splitlines()
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.entries = []
        self.intro, first = self.comment(1)
        self.read(first, len(self.lines), "")

    def line_at(self, position):
        return self.text.count("\n", 0, position)

    def comment(self, at):
        """The text of the comment that begins in line `at`, and the line behind it."""
        words = []
        if self.lines[at].lstrip().startswith("/*"):
            end = self.line_at(self.text.index("*/", self.starts[at]))
            block = "\n".join(self.lines[at:end + 1]).strip().removeprefix("/*").removesuffix("*/")
            return "\n".join(line.strip() for line in block.splitlines()).strip(), end + 1
        while at < len(self.lines) and re.match(r"\s*//", self.lines[at]):
            words.append(re.sub(r"^\s*///? ?", "", self.lines[at]))
            at += 1
        return "\n".join(words).strip(), at

    def read(self, at, last, inside):
        """Entries of the lines from `at` to before `last`, in the class `inside`, if any."""
        prose, hidden = "", False
        while at < last:
            line = self.lines[at]
            label = LABEL.match(line)
            if label:
                hidden, at = label[1] != "public", at + 1
            elif re.match(r"\s*(//|/\*)", line):
                section = SECTION.search(line)
                if section:
                    self.entries.append((section[1] or section[2], None, None))
                words, at = self.comment(at)
                described = line.lstrip().startswith(("///", "/*")) and not section
                prose = words if described else ""
            elif not line.strip() or re.match(r"\s*[})]", line):
                prose, at = "", at + 1
            elif OPENS_NAMESPACE.match(line):
                prose, at = "", self.behind_namespace(at, line)
            elif line.startswith("#"):
                at = self.read_macro(at, prose)
                prose = ""
            else:
                at = self.read_declaration(at, inside, prose, hidden)
                prose = ""

    def behind_namespace(self, at, line):
        if not re.search(r"\bdetail\b|\bstd\b|\bnamespace\s*\{", line):
            return at + 1
        opening = self.code.index("{", self.starts[at])
        return self.line_at(interface.end_of_braces(self.code, opening)) + 1

    def read_macro(self, at, prose):
        first = at
        while self.lines[at].endswith("\\"):
            at += 1
        name = re.match(r"#\s*define (\w+)(.*)", self.lines[first])
        if name and (prose or name[2]):
            self.add(name[1], prose, "\n".join(self.lines[first:at + 1]), first)
        return at + 1

    def read_declaration(self, at, inside, prose, hidden):
        """Adds the declaration that begins in line `at`; returns the line behind it."""
        begin, position = self.starts[at], self.starts[at]
        while self.code[position] not in ";{" or (
                self.code[position] == "{" and
                interface.REQUIRES.search(self.code[begin:position])):
            if self.code[position] in "({":
                position = interface.end_of(self.code, position, self.code[position],
                                            ")" if self.code[position] == "(" else "}")
            position += 1
            if position >= len(self.code):
                return len(self.lines)
        head = self.code[begin:position]
        end = position
        if self.code[position] == "{":
            end = interface.end_of_braces(self.code, position)
        last = self.line_at(end)
        kind = TYPE.match(re.sub(r"^\s*template\s*<.*?>\s*(requires.*)?\n", "", head,
                                 flags=re.DOTALL))
        names = inside + "::" if inside else ""
        forward = kind and end == position and not prose and "typedef" not in head
        if hidden or forward:
            pass
        elif interface.is_function(head):
            shown = interface.signature_of(self.text[begin:position]).rstrip() + ";"
            called = re.findall(r"(operator\s*\W+|operator\s+\w+|~?\w+)\s*\(",
                                interface.plain(head) + "(")[0].strip()
            self.add(names + called, prose, shown, at)
        elif kind and end > position and "///" in self.text[position:end]:
            self.add(names + kind[1], prose, self.text[begin:position].rstrip() + ";", at)
            public = not re.match(r"\s*class\b", kind[0])
            self.read(at + 1 + self.line_at(position) - at, last, names + kind[1]) if public else \
                self.read_class(self.line_at(position) + 1, last, names + kind[1])
        else:
            after = self.code.find(";", end)
            shown = self.text[begin:max(end, after) + 1]
            last = self.line_at(max(end, after))
            words = re.findall(r"\w+", re.split(r"[={]", interface.plain(head))[0])
            closing = re.search(r"\}\s*(\w+)\s*;$", shown)
            name = (kind and kind[1]) or (closing and closing[1]) or (words or ["constants"])[-1]
            self.add(names + ("constants" if name == "enum" else name), prose, shown, at)
        return last + 1

    def read_class(self, at, last, name):
        """The body of a class: private until it says otherwise."""
        while at < last and not LABEL.match(self.lines[at]):
            at += 1
        self.read(at, last, name)

    def add(self, name, prose, shown, at):
        """Adds code with its comment; code without a comment shares that of the code before it."""
        shown = re.sub(r"(?m)^" + re.match(r" *", shown)[0], "", shown).rstrip()
        follows = not prose and self.entries and self.entries[-1][2] and self.lines[at - 1].strip()
        if follows:
            name, prose, before = self.entries.pop()
            shown = before + "\n" + shown
        self.entries.append((name, prose, shown))


def escaped(prose):
    """Comments are Markdown but for what it would take for HTML and emphasis."""
    parts = re.split(r"(`[^`]*`)", prose)
    parts[::2] = [re.sub(r"([*\[])", r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
                  for part in parts[::2]]
    return "".join(parts)


def page(name, text):
    """`name` is what a program includes."""
    header = Header(text)
    language = "c" if name.endswith(".h") else "cpp"
    said = [f"# {name}", f"```{language}\n#include <{name}>\n```", escaped(header.intro)]
    for title, prose, shown in header.entries:
        if shown is None:
            said.append(f"## {title}")
        else:
            said += [f"### `{title}`", f"```{language}\n{shown}\n```", escaped(prose)]
    return "\n\n".join(part for part in said if part) + "\n"
