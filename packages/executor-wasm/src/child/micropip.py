"""Installs packages, as the module of Pyodide that has this name. The host chooses, fetches and unpacks them."""

import importlib
import sys

_place = "/lib/python3.14/site-packages"


async def install(requirements, keep_going=False):
    """Installs packages, each given by its name and perhaps its version: `await install(["attrs", "rich>=13"])`."""
    wanted = [requirements] if isinstance(requirements, str) else [str(each) for each in requirements]
    asked = {"op": "install", "requirements": wanted, "installed": freeze()}
    answer, _ = sys.modules["_fenced"]._ask(asked)
    importlib.invalidate_caches()
    if "error" in answer:
        raise ValueError(answer["error"] if answer["error"] != "EINVAL" else "These are no names of packages.")


def freeze():
    """The packages that are installed, as requirements."""
    import importlib.metadata

    found = importlib.metadata.distributions(path=[_place])
    return sorted("%s==%s" % (each.metadata["Name"], each.version) for each in found)


def list():
    """The versions of the packages that are installed, by their names."""
    return dict(each.split("==") for each in freeze())
