"""Keeps files of the work directory from shadowing the interpreter's own modules. Python 3.8 or later."""

import os
import sys

safe = os.environ.get("PYTHONSAFEPATH")
if safe == "fenced":
    # Set by the supervisor, not by the user.
    del os.environ["PYTHONSAFEPATH"]
if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]


def allow():
    """Lets blocks import from the work directory unless the user has forbidden it."""
    if safe in (None, "", "fenced"):
        sys.path.insert(0, "")
