# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the parts of the `imbrex` command: the error class, and the search for a program."""
import os


class CommandError(Exception):
    """An error that the user can mend: in the arguments, or in the files that `imbrex` found."""


def which(name):
    """The path of a command, or None. shutil.which loads half of Python's library."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
