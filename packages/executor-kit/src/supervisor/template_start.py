"""Notes what a new interpreter has imported, before the template imports more. Python 3.8 or later, standard library only."""

import os
import sys

known = [name for name in sys.modules if not name.startswith("_fenced_")]
# From Python 3.13 on, `-c` imports this one; from the current directory, too, so the template starts in one where nobody can put a
# module.
extra = {"linecache"} if known[-1] == "linecache" else set()
if sys.path[:1] == [""]:
    del sys.path[0]
sys.path_importer_cache.pop(os.getcwd(), None)


def own_modules():
    """The modules that a new interpreter would not have."""
    return extra | (set(sys.modules) - set(known))
