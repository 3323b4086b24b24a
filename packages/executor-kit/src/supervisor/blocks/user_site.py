"""Creates the directory in which pip installs a user's packages, before a Python interpreter starts. Python 3.8 or later, standard
library only.

Python searches that directory only if it exists when the interpreter starts. So a program could otherwise not import what it has
just installed, and a long-lived interpreter never could.
"""

import os
import sys

import _fenced_processes as processes

# Directories that were created in a home directory that lasts, deepest first.
made = []
versions = {}


def create(variables, program, lasting):
    """Creates it for the Python that `program` is, if it is one. `lasting`: whether the home directory outlives the session."""
    key = program, variables.get("PATH", os.defpath)
    if key not in versions:
        versions[key] = version(processes.which(*key))
    if versions[key] is None:
        return
    base = variables.get("PYTHONUSERBASE") or os.path.join(variables.get("HOME", ""), ".local")
    directory = os.path.join(base, "lib", versions[key], "site-packages")
    if not os.path.isabs(directory) or os.path.isdir(directory):
        return
    missing = directory
    while not os.path.lexists(missing):
        if lasting and missing not in made:
            made.append(missing)
        missing = os.path.dirname(missing)
    made.sort(key=len, reverse=True)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError:
        pass


def remove():
    """Removes the directories that are still empty."""
    for directory in made:
        try:
            os.rmdir(directory)
        except OSError:
            pass


def version(program):
    """Returns the name of the interpreter's library directory, such as `python3.12`; `None` if it is unknown."""
    if not program:
        return None
    real = os.path.realpath(program)
    if real == os.path.realpath(sys.executable):
        return "python%d.%d%s" % (sys.version_info[0], sys.version_info[1], "t" if "t" in sys.abiflags else "")
    name = os.path.basename(real)
    for kind in ("python", "pypy"):
        number = name[len(kind) :].rstrip("t")
        if name.startswith(kind) and "." in number and number.replace(".", "", 1).isdigit():
            return name
    return None
