"""Installs packages, like Pyodide's module of this name. The host chooses, fetches and unpacks them."""

import importlib
import sys

_place = "/lib/python3.14/site-packages"


async def install(requirements, keep_going=False):
    """Installs packages by name, optionally with a version: `await install(["attrs", "rich>=13"])`."""
    wanted = [requirements] if isinstance(requirements, str) else [str(each) for each in requirements]
    asked = {"op": "install", "requirements": wanted, "installed": freeze()}
    answer, _ = sys.modules["_fenced"]._ask(asked)
    importlib.invalidate_caches()
    if "error" in answer:
        raise ValueError(
            answer["error"] if answer["error"] != "EINVAL" else "Pass the names of packages, such as 'rich>=13'."
        )


def freeze():
    """The installed packages, as requirements."""
    import importlib.metadata

    found = importlib.metadata.distributions(path=[_place])
    return sorted("%s==%s" % (each.metadata["Name"], each.version) for each in found)


def list():
    """The versions of the installed packages, by name."""
    return dict(each.split("==") for each in freeze())
