# SPDX-License-Identifier: BSD-3-Clause
"""Finds sentences of comments and pages, and names of tests, that do not name their subject, by how
they begin (docs/style.md, Language). Used by check.py."""
import pathlib
import re

OPENING = re.compile(r"(?:^|(?<=[.!?] )|(?<=[.!?]\) ))(The same|As the next|Of|By(?! default))\b")
OURS = re.compile(r"\bof ours\b", re.IGNORECASE)
TEST_NAME = re.compile(r"(?:\bTEST(?:_F|_P)?\(\w+,\s*|\bdef test_)"
                       r"(?:what|who|whose|whoever|those|that|the_same|of)_\w+")
STYLE = "docs/style.md"  # has them as examples
C = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\''
               r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
HASH = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"'
                  r"|'(?:\\.|[^'\\\n])*'|(?<!\S)#[^\n]*")
FORTRAN = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|![^\n]*')
TOKENS = {**dict.fromkeys((".hpp", ".cpp", ".h", ".c", ".def"), C),
          **dict.fromkeys((".f90", ".F90", ".F"), FORTRAN),
          **dict.fromkeys((".py", ".cmake", ".sh", ".layers"), HASH)}
MARKS = re.compile(r"^(?:///?<?|/\*+|#+|!+<?>?|\*(?!\*))?\s?")
ITEM = re.compile(r"^(?:[-*] |\(?\d+[.)] |> |#+ )+")


def openings(name, text):
    """The (line, words) of each breach in a file."""
    if name == STYLE:
        return []
    suffix = pathlib.PurePath(name).suffix
    if suffix == ".md":
        parts = page_paragraphs(text)
    elif suffix in TOKENS or pathlib.PurePath(name).name == "CMakeLists.txt":
        parts = comment_paragraphs(text, TOKENS.get(suffix, HASH))
    else:
        return []
    return [(lines[joined.count("\n", 0, match.start())], match.group())
            for lines, joined in parts
            for pattern in (OPENING, OURS) for match in pattern.finditer(joined.replace("\n", " "))]


def test_names(text):
    """The (line, name) of each test whose name begins with no subject."""
    return [(text.count("\n", 0, match.end()) + 1, re.search(r"\w+$", match[0])[0])
            for match in TEST_NAME.finditer(text)]


def comment_paragraphs(text, tokens):
    """Comments that follow each other line by line, as (line numbers, text)."""
    rows = []  # line, text, whether the comment has the line to itself
    for match in tokens.finditer(text):
        if not match.group().startswith(("//", "/*", "#", "!")):
            continue
        before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        first = text.count("\n", 0, match.start()) + 1
        for number, row in enumerate(match.group().removesuffix("*/").split("\n"), first):
            rows.append((number, MARKS.sub("", row.strip()), not before.strip()))
    return paragraphs(rows)


def page_paragraphs(text):
    """The paragraphs, items and cells of a page, without its code."""
    rows = []
    is_code = False
    for number, row in enumerate(text.split("\n"), 1):
        is_code ^= row.lstrip().startswith("```")
        if is_code or row.lstrip().startswith("```"):
            rows.append((number, "", True))
        elif row.startswith("|"):
            rows += [(number, cell.strip(), False) for cell in row.strip("|").split("|")]
        else:
            rows.append((number, row.strip(), True))
    return paragraphs(rows)


def paragraphs(rows):
    result = []
    goes_on = False
    before = 0
    for number, row, alone in rows:
        is_item = ITEM.match(row) is not None
        row = ITEM.sub("", row)
        if row and goes_on and alone and not is_item and number == before + 1:
            result[-1][0].append(number)
            result[-1][1].append(row)
        elif row:
            result.append(([number], [row]))
        goes_on = bool(row) and alone
        before = number
    return [(lines, "\n".join(texts)) for lines, texts in result]
