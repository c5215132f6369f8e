# SPDX-License-Identifier: BSD-3-Clause
"""The mutants of a C++ file: small changes, each a mistake that a person could have made.

tools/mutate builds and tests them. This file knows tokens and no grammar: some mutants do not
compile. Comments, texts, preprocessor lines, asserts and what only puts a message together are
never changed, nor are memory orders: no test on x86 sees a weaker one.
"""
import bisect
import collections
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<text>(?:u8|[uUL])?R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*")
  | (?P<number>\d(?:'?[\w.])*)
  | (?P<character>'(?:\\.|[^'\\\n])+')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><=>|<<=|>>=|\.\.\.|::|->|\+\+|--|&&|\|\||[=!<>+*/%&|^-]=|<<|\[\[|\]\]|[^\s\w])
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
# Operators of two values stand between spaces in the project's style, and other uses do not.
BINARY = {
    "compare": {"==": ["!="], "!=": ["=="], "<": ["<=", ">="], "<=": ["<", ">"],
                ">": [">=", "<="], ">=": [">", "<"]},
    "logic": {"&&": ["||"], "||": ["&&"]},
    "arithmetic": {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-="],
                   "-=": ["+="]},
    "bits": {"&": ["|"], "|": ["&"], "^": ["|"], "<<": [">>"], "|=": ["&="], "&=": ["|="],
             "^=": ["|="]},
}
WORDS = {"boolean": {"true": "false", "false": "true"}, "extreme": {"min": "max", "max": "min"}}
# Arguments of these calls are text for a reader, or check other code.
MESSAGES = re.compile(r"IMBREX_\w+|static_assert|assert|format\w*|v?s?n?f?printf|fputs|perror")
# A statement that begins with one of these is not a mere call or assignment.
KEYWORDS = set("""return throw delete new using goto break continue case default if else for while
    do switch try catch const constexpr static auto struct class enum union namespace template
    typename typedef extern inline friend public private protected explicit virtual operator sizeof
    alignas mutable volatile noexcept unsigned signed int bool void char long short double
    float co_return""".split())
ASSIGNMENTS = {"=", "+=", "-=", "|=", "&=", "^=", "<<=", ">>=", "*=", "/=", "%="}
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}", "[[": "]]"}, {")", "]", "}", "]]"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int      # where the change begins, from 1 on
    operator: str  # with `.2` and so on where the line has several of it
    start: int     # what is replaced, in characters of the file
    end: int
    instead: str
    text: str      # the line as it was, without the spaces around
    change: str    # what stands there instead of what, for a reader

    @property
    def name(self):
        return f"{self.file}:{self.line}:{self.operator}"

    @property
    def key(self):
        """A name that stays when lines are added above the mutant."""
        return self.file, self.operator, self.text

    def applied_to(self, source):
        return source[:self.start] + self.instead + source[self.end:]


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens_of(source):
    """All but spaces, comments and preprocessor lines."""
    return [Token(match.lastgroup if match.lastgroup != "mark" else "text", match.group(),
                  match.start(), match.end()) for match in TOKEN.finditer(source)
            if match.lastgroup not in ("comment", "directive")]


def partners_of(tokens):
    """Of each opening parenthesis, bracket or brace, where the closing one is."""
    partners, open_ones = {}, []
    for at, token in enumerate(tokens):
        if token.text in OPENING and token.kind == "sign":
            open_ones.append(at)
        elif token.text in CLOSING and token.kind == "sign":
            # `]]` also ends two indices.
            while open_ones and OPENING[tokens[open_ones[-1]].text][0] == token.text[0]:
                partners[open_ones.pop()] = at
                if len(token.text) == 1 or tokens[at].text == "]]" and (
                        not open_ones or tokens[open_ones[-1]].text != "["):
                    break
    return partners


def mutants_of(file, source):
    """All mutants of a file, in the order of its lines."""
    tokens = tokens_of(source)
    partners = partners_of(tokens)
    silent = silent_ones(tokens, partners)
    changes = []
    for at in range(len(tokens)):
        if at not in silent:
            changes += token_changes(source, tokens, at)
            changes += condition_changes(source, tokens, partners, at)
            changes += statement_changes(source, tokens, partners, at)
    lines = [0] + [match.end() for match in re.finditer("\n", source)]
    counts, mutants = collections.Counter(), []
    for operator, start, end, instead in sorted(changes, key=lambda change: change[1]):
        if source[start:end] == instead:
            continue
        line = bisect.bisect_right(lines, start)
        counts[line, operator] += 1
        nth = counts[line, operator]
        text = source[lines[line - 1]:].partition("\n")[0].strip()
        mutants.append(Mutant(file, line, operator if nth == 1 else f"{operator}.{nth}", start, end,
                              instead, text, f"`{source[start:end]}` is `{instead.strip()}`"))
    return mutants


def silent_ones(tokens, partners):
    """The tokens that are never changed."""
    silent = set()
    for at, token in enumerate(tokens):
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind == "word" and MESSAGES.fullmatch(token.text) and following == "(":
            silent.update(range(at, partners.get(at + 1, at) + 1))
        elif token.text == "[[":
            silent.update(range(at, partners.get(at, at) + 1))
        elif token.text in ("throw", "template", "using", "operator", "enum"):
            end = end_of_statement(tokens, at)
            silent.update(range(at, (partners.get(end, end) if token.text == "enum" else end) + 1))
    return silent


def end_of_statement(tokens, at):
    """The next semicolon or opening brace, or what follows the list of a template or the sign of
    an operator."""
    if tokens[at].text == "operator":
        return at + 1
    depth = 0
    for end in range(at + 1, len(tokens)):
        if tokens[at].text == "template":
            depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[end].text, 0)
            if depth <= 0:
                return end
        elif tokens[end].text in (";", "{") or tokens[end].text == "}":
            return end
    return len(tokens) - 1


# ---- operators ---------------------------------------------------------------------------------

def token_changes(source, tokens, at):
    token = tokens[at]
    if token.kind == "number":
        yield from number_changes(token)
    for operator, words in WORDS.items():
        if token.kind == "word" and token.text in words:
            yield operator, token.start, token.end, words[token.text]
    if token.kind != "sign" or token.start == 0:
        return
    if source[token.start - 1].isspace() and source[token.end:token.end + 1].isspace():
        for operator, signs in BINARY.items():
            for instead in signs.get(token.text, ()):
                yield operator, token.start, token.end, instead
    if token.text in ("++", "--"):
        yield "arithmetic", token.start, token.end, {"++": "--", "--": "++"}[token.text]
    if token.text == "!":
        yield "not", token.start, token.end, ""


def number_changes(token):
    digits = re.fullmatch(r"(\d+)([uUlL]*)", token.text)
    if digits is None:
        return
    value, suffix = int(digits[1]), digits[2]
    yield "number", token.start, token.end, f"{value + 1}{suffix}"
    if value > 0:
        yield "number", token.start, token.end, f"{value - 1}{suffix}"


def condition_changes(source, tokens, partners, at):
    """A condition that never, or always, holds."""
    word = tokens[at].text
    if word not in ("if", "while") or at + 1 not in partners or tokens[at + 1].text != "(":
        return
    inside = tokens[at + 2:partners[at + 1]]
    if not inside or any(token.text in (";", "=") for token in inside):
        return  # it declares what it looks at
    start, end = inside[0].start, inside[-1].end
    condition = source[start:end]
    yield "never", start, end, f"({condition}) && false"
    if word == "if":
        yield "always", start, end, f"({condition}) || true"


def statement_changes(source, tokens, partners, at):
    """A call, or an assignment, that is not there."""
    if not begins_statement(tokens, at):
        return
    kind, last = simple_statement(tokens, partners, at)
    if kind is not None:
        start, end = tokens[at].start, tokens[last].end
        yield kind, start, end, "{}" + "\n" * source.count("\n", start, end)


def begins_statement(tokens, at):
    if at == 0 or tokens[at].kind not in ("word", "sign"):
        return False
    if [token.text for token in tokens[max(at - 3, 0):at]] == ["(", "void", ")"]:
        return False  # it has begun there
    return tokens[at - 1].text in (";", "{", "}", ")", "else", "do", "]]")


def simple_statement(tokens, partners, at):
    """Returns the kind of the statement that begins here, and the place of its semicolon; (None,
    None) if it is neither a call nor an assignment."""
    none = None, None
    if [token.text for token in tokens[at:at + 3]] == ["(", "void", ")"]:
        at += 3
    while tokens[at].text in ("*", "::", "("):
        if tokens[at].text == "(":
            return none
        at += 1
    if tokens[at].kind != "word" or tokens[at].text in KEYWORDS:
        return none
    kind, before = None, None
    while at < len(tokens):
        token = tokens[at]
        if token.text == ";":
            return (kind, at) if kind == "assignment" or before == ")" else none
        if token.kind == "sign" and token.text in CLOSING:
            return none  # the head of a loop
        if kind == "call" or kind is None:
            if token.text == "=" and tokens[at + 1].text in ("default", "delete"):
                return none
            if token.text in ASSIGNMENTS and token.kind == "sign":
                kind = "assignment"
            elif token.kind == "word" and before in (None, "::", ".", "->"):
                kind = None
            elif token.text == "(":
                kind = "call"
            elif token.text not in ("::", ".", "->", "[", "<", ">"):
                return none
        before = token.text
        if at in partners:
            at = partners[at]
            before = tokens[at].text
        at += 1
    return none
