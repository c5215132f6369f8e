# SPDX-License-Identifier: BSD-3-Clause
"""What the parts of the `imbrex` command raise for mistakes of the user; tools/imbrex prints it."""


class CommandError(Exception):
    """What the user must change, of what `imbrex` and its compiler wrappers were given or found."""
