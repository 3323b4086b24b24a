"""Keeps files of the work directory from shadowing the interpreter's own modules. Python 3.8 or later."""

import os
import sys

safe = os.environ.get("PYTHONSAFEPATH")
if safe == "fenced":
    # Set by the supervisor, not by the user.
    del os.environ["PYTHONSAFEPATH"]
if os.environ.get("GLIBC_TUNABLES") == "glibc.malloc.hugetlb=0x1":
    # Likewise, for large arrays.
    del os.environ["GLIBC_TUNABLES"]
if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]


def allow():
    """Lets blocks import from the work directory unless the user has forbidden it."""
    if safe in (None, "", "fenced"):
        sys.path.insert(0, "")
