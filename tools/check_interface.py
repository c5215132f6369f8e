# SPDX-License-Identifier: BSD-3-Clause
"""Reads the public headers for check.py: which functions a program can call, the comment above
each, and its signature. Knows C++ only as far as the headers need it: namespaces, classes with
their access, and declarations that end in a semicolon or a body."""

import dataclasses
import re

HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|"
                    r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]", re.DOTALL)
ACCESS = {"public", "private", "protected"}
NO_FUNCTION = re.compile(r"^(using|typedef|friend|static_assert|namespace|enum|concept)\b")
REQUIRES = re.compile(r"\brequires\s*(\([^()]*\)\s*)?$")
# Functions whose meaning is obvious.
OBVIOUS = re.compile(r"~|=\s*(?:default|delete)\s*$|\boperator=\s*\(|"
                     r"^\W*(?:constexpr\s+)?(\w+)\s*\((?:const\s+)?\1\s*&{1,2}\s*\w*\)")


@dataclasses.dataclass
class Function:
    line: int       # where it begins
    last: int       # where its declaration ends
    signature: str


@dataclasses.dataclass
class Scope:
    kind: str       # "namespace", "class" or "body"
    visible: bool   # to a program
    function: int = 0  # the line where the function begins whose body this is


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


def opened(head, scopes):
    inside = scopes[-1]
    begin = plain(head)
    if begin.startswith(("namespace", "inline namespace")) or re.match(r"extern\s*$", begin):
        return Scope("namespace", inside.visible and "detail" not in begin)
    if re.match(r"(class|struct|union)\b", begin) and not is_function(head):
        return Scope("class", inside.visible and inside.kind != "body")
    return Scope("body", False)


def public_functions(text):
    code = blanked(text)
    scopes = [Scope("namespace", True)]
    access = [True]  # of each scope: what is declared now can be called
    begin, position = 0, 0
    line_of = lambda at: code.count("\n", 0, at) + 1
    first = lambda: begin + len(code[begin:position]) - len(code[begin:position].lstrip())

    def seen():
        return scopes[-1].kind != "body" and scopes[-1].visible and access[-1]

    while position < len(code):
        char = code[position]
        head = code[begin:position]
        if char == ":" and head.strip() in ACCESS:
            access[-1] = head.strip() == "public"
            begin = position + 1
        elif char == "(" and scopes[-1].kind != "body":
            position = end_of_parentheses(code, position)
        elif char == ";":
            if seen() and is_function(head):
                yield Function(line_of(first()), line_of(position), signature_of(head))
            begin = position + 1
        elif char == "{" and REQUIRES.search(head):
            position = end_of_braces(code, position)
        elif char == "{":
            scope = opened(head, scopes)
            if scope.kind == "body" and seen() and is_function(head):
                scope.function = line_of(first())
                scopes.append(scope)
                access.append(True)
                signature = signature_of(head)
                end = end_of_braces(code, position)
                scopes.pop()
                access.pop()
                yield Function(scope.function, line_of(end), signature)
                begin = position = end + 1
                continue
            visible = scope.visible and access[-1]
            scopes.append(Scope(scope.kind, visible))
            access.append(not (scope.kind == "class" and plain(head).startswith("class")))
            begin = position + 1
        elif char == "}":
            if len(scopes) > 1:
                scopes.pop()
                access.pop()
            begin = position + 1
        position += 1


def breaches(name, text):
    """The line and what is wrong there: a function without a comment, or one whose signature names
    what no program may name. Functions that follow each other without an empty line share the
    comment above the first."""
    lines = text.splitlines()
    in_c = name.endswith(".h")
    last, described = 0, False
    for function in public_functions(text):
        if re.search(r"\bdetail::\w+\s*\(", function.signature.split("(")[0] + "("):
            continue  # the body of a function that no program calls
        above = line_above(lines, function.line)
        if in_c:
            own = above.endswith("*/") or "/*" in lines[function.last - 1]
            other = False
        else:
            own = above.startswith("///")
            other = above.startswith("//") and not own
        described = own or (described and not other and last == function.line - 1)
        last = function.last
        if not described and not OBVIOUS.search(plain(function.signature)):
            wanted = "a comment" if in_c else "a /// block"
            yield function.line, f"a public function has {wanted} above it, or above its group"
        if "detail::" in function.signature:
            yield function.line, "a public signature names nothing of detail::"


def line_above(lines, line):
    """Of the function that begins in `line`, or of the macros above it, which call it."""
    above = line - 2
    while above >= 0 and (lines[above].startswith("#define") or
                          (above > 0 and lines[above - 1].endswith("\\"))):
        above -= 1
    return lines[above].strip() if above >= 0 else ""


def end_of_parentheses(code, position):
    return end_of(code, position, "(", ")")


def end_of_braces(code, position):
    return end_of(code, position, "{", "}")


def end_of(code, position, opening, closing):
    depth = 0
    for at in range(position, len(code)):
        if code[at] == opening:
            depth += 1
        elif code[at] == closing:
            depth -= 1
            if depth == 0:
                return at
    return len(code) - 1
