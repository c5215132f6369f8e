# SPDX-License-Identifier: BSD-3-Clause
"""What the parts of the `imbrex` command have in common: mistakes, and where a program is."""
import os


class CommandError(Exception):
    """What the user must change, of what `imbrex` and its compiler wrappers were given or found."""


def which(name):
    """The path of a command, or None. shutil.which loads half of Python's library."""
    folders = [""] if "/" in name else os.environ.get("PATH", os.defpath).split(":")
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
