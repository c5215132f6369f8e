#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what a program can check of the project's style; prints `file:line: what` for each breach.

Layers (src/imbrex.layers), sizes, SPDX lines, stray thread-locals, leftovers, dead files, paths of
one machine, that every block of code in the documentation is cut from a file that is compiled, that
links lead to every page and to the answers of users' questions, and that every public function says
what it does.
"""
import argparse
import ast
import json
import pathlib
import posixpath
import re
import sys

import check_interface
import check_words

# Serial stand-ins for functions that other headers describe.
SERIAL = {"include/imbrex/detail/serial.h", "include/imbrex/detail/serial.hpp"}
COLUMNS_MAX, FUNCTION_LINES_MAX, FILE_LINES_MAX, FOLDER_NAMES_MAX = 100, 70, 800, 12
RING_FILES_MAX = 4
COLUMNS_OF_TABLE_MAX, LINKS_OF_CELL_MAX = 5, 3
QUESTIONS, LINKS_TO_ANSWER_MAX, SCREEN_LINES = "docs/design/documentation.md", 2, 40
TEMPLATES = "bench/papers/templates/"  # of pages, on which links and tables are checked
# Programs include these by name: one for each concept, and no folder between.
PUBLIC_NAMES_MAX = 24
# The worker of a thread; how deep a thread is in calls of MPI, and its handler, in which nothing
# suspends; objects that it keeps, in functions that are not inlined into what suspends.
# No header: what is inlined into a caller may keep the address over a suspension.
THREAD_LOCAL_FILES = ("src/sched/run/current.cpp", "src/omp/region/context.cpp",
                      "src/mpi/abi/next.cpp",
                      "src/mpi/engine/handlers.cpp", "src/mpi/messages/matching/receive.cpp",
                      "src/mpi/messages/requests/generalized_request.cpp")
THREAD_ID_FILE = "src/base/arch.hpp"
THREAD_ID = re.compile(r"\b(pthread_self|this_thread::get_id|gettid|SYS_gettid|thrd_current)\b")
MUST_BE_USED = re.compile(
    r"\(void\)\s*(?:::|std::)?(f?truncate|p?write|p?read|writev|readv|f?chdir|pipe|fread"
    r"|fwrite|fgets|fscanf|f?chown|realpath|getcwd|system|nice|v?asprintf|lockf|symlink|link"
    r"|readlink|dup|set[ug]id|freopen|mkstemp|realloc|posix_memalign)\(")
FAKE_MPI = "src/testing/fake_mpi/mpi.h"
FOR_PLUG_INS = {f"imbrex/detail/{name}.hpp" for name in ("plug_ins", "groups", "observation")}
CPP = {".hpp", ".cpp", ".h", ".c"}
FORTRAN = {".f90", ".F90", ".F"}
SOURCE = CPP | FORTRAN | {".def", ".py", ".cmake", ".sh", ".layers", ".in"}
TEXT = SOURCE | {".md", ".json", ".txt", ".yml"}
LEFT_OVER = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(\(\w+\): \S+)?")  # not one itself
MACHINE_PATH = re.compile(r"/(?:work|root|farm|home/\w+|tmp/bash_jobs[\w.]*)/")
PRESETS_IN_TEXT = re.compile(r"\bpresets?((?:(?:\s|,|\band\b)+`[\w-]+`)+)", re.IGNORECASE)
PRESET_OF_COMMAND = re.compile(r"\b(cmake --build|cmake --workflow|ctest|cmake) [^\n`\"$]*?"
                               r"--preset[ =]([a-z][\w-]*)")
WORD = re.compile(r"[A-Za-z_]\w*")
NAME_OF_CODE = re.compile(r"\b[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+|\b[A-Za-z_]\w*(?=\(\))")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NAMED_FUNCTION = re.compile(r"(?:\w+::)*([A-Za-z_]\w*)\(\)")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
SYSTEM_FUNCTION = re.compile(r"std::|pthread_")
DEFINED = re.compile(r"\b(?:struct|class|enum|using)\s+(\w+)|\b(\w+)\s*\(")
FORWARD_ONLY = re.compile(r"(?:\s*(?:class|struct)\s+\w+;)+\s*")
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class Tree:
    """The files of the project, read once; breaches are gathered here."""

    def __init__(self, root):
        self.root = root
        self.texts = {}  # path below the root -> content
        self.breaches = []
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if skipped(name) or not path.is_file() or path.is_symlink():
                continue
            if path.suffix in TEXT or path.name == "CMakeLists.txt" or is_script(path):
                self.texts[name] = path.read_text(encoding="utf-8", errors="replace")

    def report(self, name, line, what):
        self.breaches.append((name, line, what))

    def of(self, suffixes, *folders):
        return [(name, text) for name, text in self.texts.items()
                if pathlib.PurePath(name).suffix in suffixes
                and (not folders or name.startswith(folders))]


def skipped(name):
    parts = pathlib.PurePath(name).parts
    return (re.fullmatch(r"build([-_].*)?", parts[0]) is not None or "__pycache__" in parts
            or ".git" in parts)


def is_script(path):
    if path.suffix:
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def is_source(name):
    path = pathlib.PurePath(name)
    return path.suffix in SOURCE or not path.suffix or path.name == "CMakeLists.txt"


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, help="the tree to check (default: this tree)",
                        default=pathlib.Path(__file__).resolve().parent.parent)
    tree = Tree(parser.parse_args().root.resolve())
    for check in (check_licence_lines, check_sizes, check_cpp_functions, check_python_functions,
                  check_folders, check_layers, check_rings, check_header_names, check_namespaces,
                  check_narrow_waist, check_thread_locals, check_thread_ids,
                  check_ignored_results, check_leftovers,
                  check_dead_files, check_machine_paths, check_links, check_reached,
                  check_tables, check_questions, check_code_in_docs, check_names_in_docs,
                  check_names_in_comments, check_presets, check_interface_comments, check_openings):
        check(tree)
    for name, line, what in sorted(tree.breaches):
        print(f"{name}:{line}: {what}")
    print(f"tools/check.py: {len(tree.texts)} files, {len(tree.breaches)} breaches")
    return 1 if tree.breaches else 0


# ---- single files ------------------------------------------------------------------------------

def check_licence_lines(tree):
    for name, text in tree.texts.items():
        if not is_source(name):
            continue
        lines = text.splitlines()
        at = 1 if lines and lines[0].startswith("#!") else 0
        if len(lines) <= at or "SPDX-License-Identifier: BSD-3-Clause" not in lines[at]:
            tree.report(name, at + 1, "no `SPDX-License-Identifier: BSD-3-Clause` in this line")
        elif re.search(r"BSD-3-Clause\s+\w", lines[at]):
            tree.report(name, at + 1, "a text behind the licence, in one line")


def check_sizes(tree):
    for name, text in tree.texts.items():
        if not is_source(name):
            continue
        lines = text.splitlines()
        if len(lines) > FILE_LINES_MAX:
            tree.report(name, FILE_LINES_MAX + 1, f"{len(lines)} lines: split the file, "
                        f"{FILE_LINES_MAX} are the limit")
        if name.endswith(".def"):
            continue  # a table: a row is a line
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                tree.report(name, number, f"{len(line)} columns: {COLUMNS_MAX} are the limit")


def check_cpp_functions(tree):
    for name, text in tree.of(CPP):
        for first, last in cpp_functions(without_comments(text)):
            report_length(tree, name, first, last)


def check_python_functions(tree):
    for name, text in tree.texts.items():
        if not (name.endswith(".py") or re.match(r"#!.*\bpython3", text)):
            continue
        for node in ast.walk(ast.parse(text, name)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                report_length(tree, name, node.lineno, node.end_lineno)


def report_length(tree, name, first, last):
    length = last - first + 1
    if length > FUNCTION_LINES_MAX:
        tree.report(name, first, f"a function of {length} lines: {FUNCTION_LINES_MAX} are the "
                    "limit")


def without_comments(text):
    """C++ with comments, literals and preprocessor lines blanked; lines stay where they are."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def cpp_functions(code):
    """First and last line of each function's signature and body: braces are counted, and what
    stands before an opening one tells a function from a namespace, a class or a list of values."""
    depth_of_function, depth, start, first, after_function = None, 0, 0, 0, False
    for match in re.finditer(r"[{};]", code):
        head = code[start:match.start()].strip()
        if depth_of_function is None:
            start = match.end()
        if match.group() == "{":
            if depth_of_function is None and is_function(head, after_function):
                depth_of_function = depth
                first = line_of(code, match.start() - len(head) if head else match.start())
            depth += 1
        elif match.group() == "}":
            depth -= 1
            after_function = depth == depth_of_function
            if after_function:
                depth_of_function = None
                start = match.end()
                yield first, line_of(code, match.start())


def is_function(head, after_function):
    head = re.sub(r"template\s*<[^{]*?>\s*(?=\w)|\balignas\s*\([^)]*\)|\[\[.*?\]\]", "", head)
    head = re.sub(r"^(?:\w+\s*:(?!:)\s*)*(?:inline\s+)?", "", head.strip())  # public: and so on
    if re.match(r"(?:namespace|class|struct|union|enum|extern)\b", head):
        if "(" not in re.sub(r"<[^{]*>", "", head):
            return False
    # After `a_{x}` of a constructor's list, which looks like a function, its body follows.
    return "(" in head or (head == "" and after_function)


def check_thread_locals(tree):
    for name, text in tree.of(CPP, "src/", "include/"):
        code = without_comments(text)
        for match in re.finditer(r"\b(thread_local|__thread|_Thread_local)\b", code):
            if name not in THREAD_LOCAL_FILES:
                tree.report(name, line_of(code, match.start()), f"{match.group()}: allowed only in "
                            f"{THREAD_LOCAL_FILES[0]}, for a fiber may go on in another thread")


# Debian builds packages with _FORTIFY_SOURCE: GCC then warns of these, in spite of the cast.
def check_ignored_results(tree):
    for name, text in tree.of(CPP, "src/", "include/", "apps/"):
        code = without_comments(text)
        for match in MUST_BE_USED.finditer(code):
            tree.report(name, line_of(code, match.start()), f"{match.group(1)}: its result must be "
                        "used: no cast to void hides that where _FORTIFY_SOURCE is set")


# The C library declares pthread_self() const, so its value would outlive a suspension.
def check_thread_ids(tree):
    for name, text in tree.of(CPP, "src/", "include/"):
        code = without_comments(text)
        for match in THREAD_ID.finditer(code) if name != THREAD_ID_FILE else ():
            tree.report(name, line_of(code, match.start()), f"{match.group()}: ask "
                        f"{THREAD_ID_FILE}, for a task may go on in another thread")


def check_leftovers(tree):
    for name, text in tree.texts.items():
        for match in LEFT_OVER.finditer(text):
            if match.group(1)[0] != "T" or match.group(2) is None:
                tree.report(name, line_of(text, match.start()), f"{match.group(1)} without a "
                            "reason: write `TO" "DO(name): reason`, or do it")


def check_machine_paths(tree):
    for name, text in tree.texts.items():
        for match in MACHINE_PATH.finditer(text):
            tree.report(name, line_of(text, match.start()),
                        f"a path of one machine: {match.group()}")


# ---- the tree ----------------------------------------------------------------------------------

def check_folders(tree):
    names = {}
    for name, _ in tree.of(CPP | {".def"}, "src/", "include/"):
        path = pathlib.PurePath(name)
        names.setdefault(path.parent, set()).add(re.sub("_test$", "", path.stem))
    for folder, stems in names.items():
        most = PUBLIC_NAMES_MAX if str(folder) == "include/imbrex" else FOLDER_NAMES_MAX
        if len(stems) > most:
            tree.report(str(folder), 1, f"{len(stems)} names: {most} are the limit")


def check_layers(tree):
    layers = read_layers(tree)
    divided = {layer.partition("/")[0] for layer in layers if "/" in layer}
    for name, text in tree.of(CPP):
        layer = layer_of(name, layers)
        folder = str(pathlib.PurePath(name).parent).removeprefix("src/")
        if name.startswith("src/") and name.count("/") > 1 and layer != "testing" and (
                layer not in layers or folder != layer):
            tree.report(name, 1, f"folder {folder} is not in src/imbrex.layers")
        if layer not in layers:
            continue
        allowed = layers[layer] | {layer}
        if name.endswith("_test.cpp"):  # of its own part a test may see all
            part = layer.partition("/")[0]
            allowed = allowed | {"testing"} | {one for one in layers if one.split("/")[0] == part}
        for match in INCLUDE.finditer(text):
            line, target = line_of(text, match.start(1)), target_of(match.group(1), layers)
            if target is not None and target not in allowed:
                tree.report(name, line, f"{layer} includes {match.group(1)}: {layer} may see "
                            f"{' '.join(sorted(allowed))} (src/imbrex.layers)")
            if target is None and layer.partition("/")[0] in divided:
                check_include_root(tree, name, line, match.group(1))


def check_include_root(tree, name, line, included):
    """Checks that an include in a folder of several layers is named from src/ on."""
    folder = "/".join(name.split("/")[:2])
    whole = next((path for path in tree.texts
                  if path.startswith(folder + "/") and path.endswith("/" + included)), None)
    if whole is not None:
        tree.report(name, line, f'say "{whole.removeprefix("src/")}": includes begin at src/')


def check_rings(tree):
    """Files of src/ that need each other in a circle, each .cpp joined to its header: at most 4."""
    texts = {name: text for name, text in tree.of(CPP, "src/") if not name.endswith("_test.cpp")}
    needs = {}
    for name, text in texts.items():
        unit, folder = stem_of(name), pathlib.PurePath(name).parent.as_posix()
        paths = [path for one in INCLUDE.findall(text)
                 for path in (f"src/{one}", f"{folder}/{one}")]
        needs.setdefault(unit, set()).update(stem_of(path) for path in paths if path in texts)
    for ring in rings_of(needs):
        first = min(ring)
        if len(ring) > RING_FILES_MAX:
            name = next(name for name in sorted(texts) if stem_of(name) == first)
            tree.report(name, 1, f"{len(ring)} files need each other in a ring, {RING_FILES_MAX} "
                        f"are the limit: {' '.join(sorted(ring))}")


def stem_of(name):
    return name.rpartition(".")[0]


def rings_of(needs):
    """The strongly connected components of a graph, by Kosaraju's algorithm without recursion."""
    def reach(start, edges, seen):
        """Returns the nodes reached from `start`, each after all nodes that it leads to."""
        path, order = [(start, iter(sorted(edges.get(start, ()))))], []
        seen.add(start)
        while path:
            following = next((node for node in path[-1][1] if node not in seen), None)
            if following is None:
                order.append(path.pop()[0])
            else:
                seen.add(following)
                path.append((following, iter(sorted(edges.get(following, ())))))
        return order

    users, seen, order = {}, set(), []
    for node, others in needs.items():
        for other in others:
            users.setdefault(other, set()).add(node)
    for node in sorted(needs):
        if node not in seen:
            order += reach(node, needs, seen)
    seen = set()
    return [reach(node, users, seen) for node in reversed(order) if node not in seen]


def check_header_names(tree):
    """Checks that no two headers have one name, so that a message of the compiler means one file.
    The fake of MPI has MPI's name."""
    first = {}
    for name, _ in tree.of({".hpp", ".h"}, "include/", "src/"):
        other = first.setdefault(pathlib.PurePath(name).name, name)
        if other != name and name != FAKE_MPI:
            tree.report(name, 1, f"{other} has the same name: a header has one of its own")


def check_namespaces(tree):
    """A namespace is its folder: imbrex::mpi::check for src/mpi/check, or for that and what lies
    in it. A header may have one of its own name, and declare types of others. `imbrex` and
    `imbrex::detail` are for what include/ declares."""
    public = {word for _, text in tree.of(CPP, "include/")
              for word in WORD.findall(without_comments(text))}
    headers = {stem_of(name) for name, _ in tree.of({".hpp", ".h"}, "src/")}
    for name, text in tree.of({".hpp", ".cpp"}, "src/"):
        code = without_comments(text)
        folder = pathlib.PurePath(name).parent
        folders = pathlib.PurePath(name.replace("src/testing/", "src/")).parts[1:-1]
        for start, end, space in namespaces_of(code):
            if FORWARD_ONLY.fullmatch(code[start:end]):
                continue
            parts = space.split("::")
            if parts in (["imbrex"], ["imbrex", "detail"]):
                if public.isdisjoint(word for pair in DEFINED.findall(code[start:end])
                                     for word in pair):
                    tree.report(name, line_of(code, start), f"include/ declares nothing of what "
                                f"this defines in {space}: a namespace is its folder")
            elif space != "std" and parts[:2] != ["imbrex", folders[0]] or any(
                    part not in folders and f"{folder}/{part}" not in headers
                    for part in parts[2:]):
                tree.report(name, line_of(code, start), f"namespace {space} in {folder}: a "
                            "namespace is its folder, or a header's own")


def namespaces_of(code):
    """First and last position, and the full name, of each namespace that a file opens itself or
    directly in `imbrex`; what is nested deeper is a matter of its own."""
    open_ones = []  # where each brace opens, and the namespace's name; None: another brace's
    for match in re.finditer(r"\bnamespace\s+([\w:]+)\s*\{|[{}]", code):
        if match.group() == "}":
            start, space = open_ones.pop() if open_ones else (0, None)
            outer = [one for _, one in open_ones]
            holds_others = space == "imbrex" and re.search(r"\bnamespace\s+\w",
                                                           code[start:match.start()])
            if space is not None and set(outer) <= {"imbrex"} and not holds_others:
                yield start, match.start(), "::".join(outer + [space])
        else:
            open_ones.append((match.end(), match.group(1)))


def check_narrow_waist(tree):
    """The headers that the public ones include show what these need, and not what plug-ins do."""
    for name, text in tree.of(CPP, "include/imbrex/"):
        if name.removeprefix("include/") in FOR_PLUG_INS:
            continue
        for match in INCLUDE.finditer(text):
            if match.group(1) in FOR_PLUG_INS:
                tree.report(name, line_of(text, match.start(1)), f"a public header includes "
                            f"{match.group(1)}, which is for plug-ins")


def read_layers(tree):
    layers, name = {}, "src/imbrex.layers"
    for number, line in enumerate(tree.texts.get(name, "").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        layer, _, below = line.partition(":")
        layers.setdefault(layer, set())
        for word in below.split():
            other = word.removesuffix("+")
            if other not in layers or other == layer:
                tree.report(name, number, f"{layer} may include {other}, which is not above this "
                            "line: arrows go down")
            layers[layer] |= {other} | (layers.get(other, set()) if word != other else set())
    if not layers:
        tree.report(name, 1, "missing or empty")
    return layers


def layer_of(name, layers):
    if name.startswith("include/"):
        return target_of(name.removeprefix("include/"), layers)
    if not name.startswith("src/"):
        return name.partition("/")[0]
    inside = name.removeprefix("src/")
    return target_of(inside, layers) or inside.partition("/")[0]


def target_of(included, layers):
    """Returns the layer of an included file: the layer that names most of its path; None for
    headers of the system and of the file's own folder."""
    if included.startswith("imbrex/"):
        folder = included.split("/")[1]
        return {"detail": "waist", "values": "waist", "compat": "compat"}.get(folder, "public")
    folders = [str(folder) for folder in pathlib.PurePath(included).parents]
    return next((folder for folder in folders if folder in layers), None)


def check_interface_comments(tree):
    """Every function that a program can call says what it does: tools/check_interface.py."""
    for name, text in tree.of({".h", ".hpp"}, "include/imbrex/"):
        if name not in SERIAL:
            for line, what in check_interface.breaches(name, text):
                tree.report(name, line, what)


def check_openings(tree):
    """Sentences of comments and pages, and names of tests: tools/check_words.py."""
    for name, text in tree.texts.items():
        for line, words in check_words.openings(name, text):
            tree.report(name, line, f'"{words}": a sentence names its subject (docs/style.md)')
    for name, text in tree.of(CPP | {".py"}):
        for line, words in check_words.test_names(text):
            tree.report(name, line, f"{words}: the name of a test is a sentence with a subject")


def check_dead_files(tree):
    """A .cpp must be named, with or without its suffix, in a CMakeLists.txt or .cmake of its own
    folder or one above; a .hpp must be included, and installed if it is public."""
    included = {pathlib.PurePath(target).name for _, text in tree.of(CPP)
                for target in INCLUDE.findall(text)}
    for name, _ in tree.of({".hpp", ".h"}):
        if pathlib.PurePath(name).name not in included and not name.startswith("include/imbrex/"):
            tree.report(name, 1, "dead: no file includes it")
    installed = set(tree.texts.get("include/CMakeLists.txt", "").replace(")", " ").split())
    for name, _ in tree.of({".hpp", ".h"}, "include/"):
        if name.removeprefix("include/") not in installed:
            tree.report(name, 1, "not installed: in no FILE_SET of include/CMakeLists.txt")
    for name, _ in tree.of({".cpp", ".c"} | FORTRAN):
        if not any(is_named(tree, name, folder) for folder in pathlib.PurePath(name).parents):
            tree.report(name, 1, "dead: in no CMakeLists.txt of its folder or of one above")


def is_named(tree, name, folder):
    path = pathlib.PurePath(name).relative_to(folder)
    ours = {str(path), str(path.with_suffix("")), path.name, path.stem}
    for file, text in tree.texts.items():
        is_build = file.endswith(("CMakeLists.txt", ".cmake"))
        if not is_build or pathlib.PurePath(file).parent != folder:
            continue
        text = re.sub(r"#[^\n]*", "", text)
        words = set(re.findall(r"(?:[\w./+*-]|\$\{\w+\})+", text))
        if ours & {re.sub(r"^\$\{\w+\}/", "", word) for word in words}:
            return True
        if "GLOB" in text and any(path.match(word) for word in words if "*" in word):
            return True
        if any(is_made(made, word, words) for word in words if "${" in word
               for made in (str(path), path.name)):
            return True
    return False


def is_made(name, word, words):
    """Returns whether a word such as ${part}_test.cpp, in a loop over parts, can become `name`."""
    pattern = re.sub(r"\\\$\\{\w+\\}", r"([\\w/]+)", re.escape(word))
    match = re.fullmatch(pattern, name)
    return match is not None and set(match.groups()) <= words


# ---- documentation -----------------------------------------------------------------------------

def check_links(tree):
    for name, text in tree.of({".md"}):
        if name.startswith(TEMPLATES):
            continue
        for match in re.finditer(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            target = match.group(1)
            if ":" not in target and not (tree.root / name).parent.joinpath(target).exists():
                tree.report(name, line_of(text, match.start()), f"a link to {target}, which is not "
                            "there")
        for match in re.finditer(r"\]\(([^)#\s:]*)#([^)\s]+)\)", text):
            page = path_from(name, match.group(1)) if match.group(1) else name
            if page.endswith(".md") and match.group(2) not in anchors_of(tree.texts.get(page, "")):
                tree.report(name, line_of(text, match.start()), f"no heading of {page} is "
                            f"#{match.group(2)}")


def anchors_of(page):
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page), re.MULTILINE)
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def links_of(name, text):
    """The files of the tree that a page links to, by their paths from the root."""
    return [path_from(name, target) for target in
            re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) if ":" not in target]


def path_from(name, target):
    """The path from the root of what `name` links to as `target`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def check_reached(tree):
    """Links lead from README.md to every page of docs/."""
    reached, waiting = set(), ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in tree.texts and name.endswith(".md") and name not in reached:
            reached.add(name)
            waiting += links_of(name, tree.texts[name])
    for name, _ in tree.of({".md"}, "docs/"):
        if name not in reached:
            tree.report(name, 1, "no page links to this one, from README.md on")


def check_tables(tree):
    """Tables fit on a screen. Results of papers, which a program writes, are wider."""
    for name, text in tree.of({".md"}):
        if name.startswith(("docs/papers/", TEMPLATES)):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            cells = cells_of(line)
            if len(cells) > COLUMNS_OF_TABLE_MAX:
                tree.report(name, number, f"a table of {len(cells)} columns: "
                            f"{COLUMNS_OF_TABLE_MAX} are the limit")
            if any(cell.count("](") > LINKS_OF_CELL_MAX for cell in cells):
                tree.report(name, number, f"a cell with more than {LINKS_OF_CELL_MAX} links")


def cells_of(line):
    if not line.startswith("|"):
        return []
    line = re.sub(r"\\\||`[^`]*`", lambda code: code.group().replace("|", " "), line.strip())
    return line.removeprefix("|").removesuffix("|").split("|")


def check_questions(tree):
    """QUESTIONS has a table of questions, of links that lead to each answer, and of the words in
    quotes at which it stands: the links are there, and the words are on the page's first screen."""
    for number, line in enumerate(tree.texts.get(QUESTIONS, "").splitlines(), 1):
        cells = cells_of(line)
        words = re.search('"(.+)"', cells[2]) if len(cells) == 3 else None
        if words is None:
            continue
        path = links_of(QUESTIONS, cells[1])
        if not path or path[0] != "README.md" or len(path) > 1 + LINKS_TO_ANSWER_MAX:
            tree.report(QUESTIONS, number, "the path to an answer begins at README.md and has "
                        f"{LINKS_TO_ANSWER_MAX} links at most")
            continue
        for page, following in zip(path, path[1:]):
            if following not in links_of(page, tree.texts.get(page, "")):
                tree.report(QUESTIONS, number, f"{page} has no link to {following}")
        first_screen = tree.texts.get(path[-1], "").splitlines()[:SCREEN_LINES]
        if not any(words[1] in one for one in first_screen):
            tree.report(QUESTIONS, number, f'the first {SCREEN_LINES} lines of {path[-1]} do not '
                        f'have "{words[1]}"')


def check_code_in_docs(tree):
    """A line `// ...` in a block (`# ...` for CMake, `! ...` for Fortran) stands for what was left
    out."""
    sources = [squeezed(text) for name, text in tree.texts.items() if compiled(name)]
    for name, text in tree.of({".md"}):
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            if match.group(1) not in ("cpp", "c", "cmake", "fortran", "python"):
                continue
            cuts = [squeezed(cut) for cut in re.split(r"^\s*(?://|#|!) \.\.\.$", match.group(2),
                                                      flags=re.MULTILINE)]
            if not any(contains_in_order(source, cuts) for source in sources):
                tree.report(name, line_of(text, match.start()) + 1, "this code is cut from no "
                            "file that is compiled (examples/, apps/, tests/, bench/, include/)")


def check_names_in_docs(tree):
    """`a::b` and `f()` on a page of docs/ are in the code. A namespace that is not in it is another
    library's."""
    words = {"std"}
    for name, text in tree.texts.items():
        if not name.endswith((".md", ".json", ".txt")) or name.endswith("CMakeLists.txt"):
            code = without_comments(text) if pathlib.PurePath(name).suffix in CPP else text
            words.update(WORD.findall(code))
    for name, text in tree.of({".md"}, "docs/"):
        without_blocks = BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text)
        for tick in re.finditer(r"`[^`\n]+`", without_blocks):
            for match in NAME_OF_CODE.finditer(tick.group()):
                parts = WORD.findall(match.group())
                foreign = parts[0] == "std" or (len(parts) > 1 and parts[0] not in words)
                if not foreign and not words.issuperset(parts):
                    tree.report(name, line_of(text, tick.start()),
                                f"no code has the name {match.group()}")


def check_names_in_comments(tree):
    """`f()` in a comment of the library is in its code, and not only in its tests or fakes."""
    library = {name: text for name, text in tree.of(CPP)
               if name.startswith(("src/", "include/")) and not name.startswith("src/testing/")
               and not name.endswith("_test.cpp")}
    known = set()
    for text in library.values():
        known.update(WORD.findall(without_comments(text)))
        known.update(MACRO.findall(text))
    for name, text in tree.of({".def", ".py"}, "src/"):
        known.update(WORD.findall(text))
    for name, text in library.items():
        for comment in COMMENT.finditer(text):
            for match in NAMED_FUNCTION.finditer(comment.group()):
                if match.group(1) not in known and not SYSTEM_FUNCTION.match(match.group()):
                    tree.report(name, line_of(text, comment.start() + match.start()),
                                f"the library has no function {match.group()}")


def check_presets(tree):
    """CMakePresets.json has each preset that a page or a script names, for that command."""
    presets = json.loads(tree.texts.get("CMakePresets.json", "{}"))
    kinds = {"cmake": "configure", "cmake --build": "build", "ctest": "test",
             "cmake --workflow": "workflow"}
    there = {(kind, preset["name"]) for kind in kinds.values()
             for preset in presets.get(f"{kind}Presets", []) if not preset.get("hidden")}
    for name, text in tree.texts.items():
        if not (name.endswith((".md", ".sh")) or text.startswith("#!")) or "check" in name:
            continue
        named = [(match.start(), kinds[match.group(1)], match.group(2))
                 for match in PRESET_OF_COMMAND.finditer(text)]
        for match in PRESETS_IN_TEXT.finditer(text) if name.endswith(".md") else ():
            named += [(match.start(), "configure", one)
                      for one in re.findall(r"`([\w-]+)`", match.group(1))]
        for position, kind, preset in named:
            if (kind, preset) not in there:
                tree.report(name, line_of(text, position),
                            f"CMakePresets.json has no {kind} preset {preset}")


def compiled(name):
    if not name.startswith(("examples/", "apps/", "tests/", "bench/", "include/", "src/")):
        return False
    return (pathlib.PurePath(name).suffix in CPP | FORTRAN or name.endswith("CMakeLists.txt")
            or name.startswith("examples/python/"))


def squeezed(text):
    lines = (line.strip() for line in text.splitlines())
    return "\n" + "\n".join(line for line in lines if line) + "\n"


def contains_in_order(source, cuts):
    position = 0
    for cut in cuts:
        if not cut.strip():
            continue
        found = source.find(cut, position)
        if found < 0:
            return False
        position = found + len(cut) - 1
    return True


if __name__ == "__main__":
    sys.exit(main())
