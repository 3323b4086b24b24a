"""The environment of a block in an interpreter that outlives it. Python 3.8 or later, standard library only."""

import os
import sys


def set_variables(variables):
    """Sets a block's environment variables; returns what to pass to `restore_variables` afterwards."""
    outer = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    return outer


def restore_variables(outer):
    for name, value in outer.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def choose_modules(root, directory, names, packages=None):
    """Makes blocks import the function modules `names` from a directory in or below `root` instead of an earlier call's.
    `packages`: the directory with the packages that functions require, which is searched next."""
    sys.path[:] = [each for each in sys.path if each not in (directory, packages) and os.path.dirname(each) != root]
    sys.path[:0] = [directory] if packages is None else [directory, packages]
    for name in names:
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        if file.startswith(root + os.sep) and os.path.dirname(file) != directory:
            del sys.modules[name]


def user_packages():
    """Returns the directory in which pip installs its user's packages; `None` if this interpreter does not use it."""
    site = sys.modules.get("site")
    return getattr(site, "USER_SITE", None) if getattr(site, "ENABLE_USER_SITE", False) else None


def search_user_packages():
    """Makes the interpreter import what pip installs for its user, if the directory for that did not exist when it started."""
    directory = user_packages()
    if directory is None or directory in sys.path or not os.path.isdir(directory):
        return
    site = sys.modules["site"]
    system = [at for at, each in enumerate(sys.path) if each in site.getsitepackages()]
    sys.path.insert(min(system, default=len(sys.path)), directory)
    # For the `.pth` files in it.
    site.addsitedir(directory)


def create_user_packages():
    """Creates that directory, so that a block can import what it has just installed. Returns the directories that were missing,
    deepest first."""
    place = directory = user_packages()
    made = []
    while place is not None and not os.path.lexists(place):
        made.append(place)
        place = os.path.dirname(place)
    try:
        if made:
            os.makedirs(directory)
    except OSError:
        pass
    search_user_packages()
    return made
