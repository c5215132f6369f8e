# SPDX-License-Identifier: BSD-3-Clause
"""Reads the public headers for check_interface.py and site_headers.py: what they declare to
programs, and the comments above. Knows C++ only as far as the headers need it: namespaces, classes
with their access, and declarations that end in a semicolon or a body."""
import dataclasses
import re

HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|"
                    r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.DOTALL)
NO_FUNCTION = re.compile(r"^(using|typedef|friend|static_assert|namespace|enum|concept)\b")
REQUIRES = re.compile(r"\brequires\s*(\([^()]*\)\s*)?$")
TYPE = re.compile(r"(?:typedef\s+)?(class|struct|union|enum(?:\s+class)?)\b\s*(\w*)")
OPENS_NAMESPACE = re.compile(r'\s*(?:inline\s+)?(?:namespace\b[^{};]*|extern "C"\s*)\{', re.ASCII)
LABEL = re.compile(r"\s*(public|private|protected):")
SECTION = re.compile(r"/\* -{2,} (.*?) -{2,} \*/|// -{2,} (.*?) -{2,}$")


@dataclasses.dataclass
class Entry:
    """A declaration; or the title of a section, which has no code."""
    name: str
    prose: str          # the comment above it
    code: str           # without bodies of functions
    line: int           # where it begins, from 0
    end: int            # the line behind it
    function: str = ""  # the signature, without comments, of a function
    shown: bool = True  # not within the code of an entry before it


class Header:
    """`intro`: the comment at its begin; `entries`: in their order."""

    def __init__(self, name, text):
        self.text, self.code = text, blanked(text)
        self.lines = text.splitlines()
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.describes = "/*" if name.endswith(".h") else "///"
        self.entries = []
        has_intro = self.lines[1:] and not self.lines[1].startswith("///")
        self.intro, first = self.comment(1) if has_intro else ("", 1)
        self.read(first, len(self.lines))

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

    def read(self, at, last, inside="", hidden=False, shown=True):
        """Entries of the lines from `at` to before `last`, in the class `inside`, if any."""
        prose = ""
        while at < last:
            line, words = self.lines[at], ""
            label = LABEL.match(line)
            if label:
                hidden, at = label[1] != "public", at + 1
            elif re.match(r"\s*(//|/\*)", line):
                section = SECTION.search(line)
                if section:
                    self.entries.append(Entry(section[1] or section[2], "", "", at, at))
                elif line.lstrip().startswith(self.describes):
                    words = self.comment(at)[0]
                at = self.comment(at)[1]
            elif not line.strip() or re.match(r"\s*[})]", line):
                at += 1
            elif OPENS_NAMESPACE.match(line):
                at = self.behind_namespace(at, line)
            elif line.startswith("#"):
                at = self.read_macro(at, prose)
            else:
                at = self.read_declaration(at, inside, prose, hidden, shown)
            prose = words

    def behind_namespace(self, at, line):
        if not re.search(r"\bdetail\b|\bstd\b|\bnamespace\s*\{", line):
            return at + 1
        opening = self.code.index("{", self.starts[at])
        return self.line_at(end_of(self.code, opening)) + 1

    def read_macro(self, at, prose):
        first = at
        while self.lines[at].endswith("\\"):
            at += 1
        name = re.match(r"#\s*define (\w+)(.*)", self.lines[first])
        if name and (prose or name[2]):
            self.add(name[1], prose, "\n".join(self.lines[first:at + 1]), first, at + 1)
        return at + 1

    def read_declaration(self, at, inside, prose, hidden, shown):
        """Adds the declaration that begins in line `at`; returns the line behind it."""
        begin = position = self.starts[at]
        while position < len(self.code) and (self.code[position] not in ";{" or
                                             REQUIRES.search(self.code, begin, position)):
            if self.code[position] in "({":
                position = end_of(self.code, position)
            position += 1
        if position >= len(self.code):
            return len(self.lines)
        head = self.code[begin:position]
        end = position if self.code[position] == ";" else end_of(self.code, position)
        last = self.line_at(end) + 1
        if hidden:
            return last
        kind = TYPE.match(plain(head))
        names = inside + "::" if inside else ""
        if is_function(head):
            code = signature_of(self.text[begin:position]).rstrip() + ";"
            name = re.findall(r"(operator\s*\W+|operator\s+\w+|~?\w+)\s*\(", plain(head) + "(")[0]
            self.add(names + name.strip(), prose, code, at, last, signature_of(head), shown)
            return last
        if not kind or end > position or prose or "typedef" in head:  # else it is for later
            behind = max(end, self.code.find(";", end))
            whole = self.text[begin:behind + 1]
            last = self.line_at(behind) + 1
            opens = kind and end > position and "///" in whole
            words = re.findall(r"\w+", re.split(r"[={]", plain(head))[0])
            closing = re.search(r"\}\s*(\w+)\s*;$", whole)
            name = (kind and kind[2]) or (closing and closing[1]) or (words or ["constants"])[-1]
            name = names + ("constants" if name == "enum" else name)
            code = self.text[begin:position].rstrip() + ";" if opens else whole
            self.add(name, prose, code, at, last, shown=shown)
            if kind and end > position and not kind[1].startswith("enum"):
                self.read(self.line_at(position) + 1, last, name, kind[1] == "class",
                          shown and opens)
        return last

    def add(self, name, prose, code, at, end, function="", shown=True):
        code = re.sub(r"(?m)^" + re.match(r" *", code)[0], "", code).rstrip()
        self.entries.append(Entry(name, prose, code, at, end, function, shown))


def blanked(text):
    """The code alone, in its places."""
    return HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def without_angles(head):
    """Without what stands in < and >, which may have parentheses."""
    head = re.sub(r"operator\s*(<=>|<<|>>|->|<=|>=|<|>)", "operator_", head).replace("->", "  ")
    while (inner := re.sub(r"<[^<>]*>", " ", head)) != head:
        head = inner
    return head


def plain(head):
    """The declaration without attributes, template parameters and what it requires."""
    head = without_angles(ATTRIBUTE.sub(" ", head))
    head = re.sub(r"^\s*template\b", " ", head)
    head = re.sub(r"^\s*requires\s+(?!requires)[\w:]+(\s*&&\s*[\w:]+)*\s+(?=\w)", " ", head)
    head = re.sub(r"^\s*requires\s+requires\s*\([^()]*\)\s*\{[^{}]*\}", " ", head)
    return re.sub(r"^\s*requires\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", head).strip()


def is_function(head):
    head = plain(head)
    if NO_FUNCTION.match(head) or re.match(r"(class|struct|union)\b[^(]*$", head):
        return False
    declared = re.split(r"(?<![=!<>])=(?!=)", head)[0] if "operator" not in head else head
    return "(" in declared and not re.match(r"[^(]*\(\s*\*", declared)


def signature_of(head):
    """Without the initialisers of a constructor."""
    return re.split(r"(?<=\))\s*(?:noexcept\s*)?:(?!:)", head)[0]


def end_of(code, position):
    """Where the bracket closes that opens at `position`."""
    opening, depth = code[position], 0
    closing = {"(": ")", "{": "}"}[opening]
    for at in range(position, len(code)):
        depth += (code[at] == opening) - (code[at] == closing)
        if depth == 0:
            return at
    return len(code) - 1
