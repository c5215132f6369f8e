# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the parts of the `imbrex` command: the error class, the length of messages, and the
search for a program."""
import os
import re


class CommandError(Exception):
    """An error that the user can mend: in the arguments, or in the files that `imbrex` found."""


def brief(message):
    """A message of one line: only the start of a word of more than 300 characters stays."""
    return re.sub(r"\S{300,}", lambda word: f"{word[0][:37]}...", str(message))


def which(name):
    """The path of a command, or None. shutil.which loads half of Python's library."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
