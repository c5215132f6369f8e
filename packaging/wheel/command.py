#!python
# SPDX-License-Identifier: BSD-3-Clause
"""A command of the wheel: runs share/imbrex/imbrex of the package `imbrex`, under its own name.

pip writes the interpreter's path into the first line. The package itself is not imported, since
`import imbrex` loads an MPI.
"""
import importlib.machinery
import importlib.util
import sys

sys.dont_write_bytecode = True
package = importlib.util.find_spec("imbrex").submodule_search_locations[0]
loader = importlib.machinery.SourceFileLoader("imbrex_command", f"{package}/share/imbrex/imbrex")
command = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(command)
sys.exit(command.main(sys.argv[1:]))
