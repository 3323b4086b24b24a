"""Records what a new interpreter has imported before the template imports more. Python 3.8 or later, standard library only."""

import os
import sys

known = [name for name in sys.modules if not name.startswith("_fenced_")]
# Since Python 3.13, `-c` imports this module, possibly from the current directory, so the template starts in a directory where
# nobody can put a module.
extra = {"linecache"} if known[-1] == "linecache" else set()
if sys.path[:1] == [""]:
    del sys.path[0]
sys.path_importer_cache.pop(os.getcwd(), None)


def own_modules():
    """Returns the modules that a new interpreter would not have imported."""
    return extra | (set(sys.modules) - set(known))
