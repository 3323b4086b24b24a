"""Installs missing packages, writes the functions' module, imports it and reports how that went. Python 3.8 or later.

It runs as a block, so it works wherever Python blocks run. All names are local to one function, so that they do not stay behind
in a session that keeps variables.
"""


def _fenced_set_up(plan):
    import importlib
    import importlib.util
    import json
    import os
    import re
    import shlex
    import shutil
    import subprocess
    import sys
    import traceback

    def report(**fields):
        print(plan["nonce"] + json.dumps(fields), flush=True)

    def satisfied(requirement):
        import importlib.metadata as metadata

        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement):
            try:
                metadata.version(requirement)
                return True
            except metadata.PackageNotFoundError:
                return False
        try:
            from pip._vendor.packaging.requirements import Requirement
        except ImportError:
            try:
                from packaging.requirements import Requirement
            except ImportError:
                return False
        try:
            wanted = Requirement(requirement)
            if wanted.marker is not None and not wanted.marker.evaluate():
                return True
            if wanted.url or wanted.extras:
                return False
            return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
        except Exception:
            return False

    def installer():
        if importlib.util.find_spec("pip"):
            return [sys.executable, "-m", "pip", "install"]
        if shutil.which("uv"):
            return ["uv", "pip", "install", "--python", sys.executable]
        return None

    def install(packages):
        command = installer()
        if command is None:
            return "neither pip nor uv is available to install them"
        target = ["--target", plan["packagesDirectory"]] if plan.get("packagesDirectory") else []
        done = subprocess.run(
            command + target + packages,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return None if done.returncode == 0 else done.stdout.decode("utf-8", "replace")

    def write(directory, name, text):
        """Replaces a file as a whole, because a block may be importing it."""
        os.makedirs(directory, exist_ok=True)
        place = os.path.join(directory, name)
        with open(place + "~", "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(place + "~", place)
        return place

    def shadowed():
        """Finds what blocks would import from the working directory instead: code of an earlier session may have left it there."""
        import importlib.machinery

        if os.path.realpath(os.getcwd()) == os.path.realpath(plan["directory"]):
            return None
        names = [plan["module"], "_%s_host" % plan["module"]]
        inside = [name + os.sep + "__init__" for name in names]
        endings = importlib.machinery.all_suffixes()
        return next((name + end for name in names + inside for end in endings if os.path.lexists(name + end)), None)

    if plan["module"] in getattr(sys, "stdlib_module_names", sys.builtin_module_names):
        return report(failed="name", reason="Python's standard library has a module of that name")
    shadow = shadowed()
    if shadow is not None:
        return report(failed="name", reason="%s in the working directory would take its place" % shadow)
    missing = [each for each in plan["packages"] if not satisfied(each)]
    problem = install(missing) if missing else None
    if problem is not None:
        return report(failed="packages", packages=", ".join(missing), reason=problem)
    for name, text in plan["files"].items():
        write(plan["directory"], name, text)
    write(plan["directory"], plan["module"] + ".py", plan["source"])
    command = plan.get("command")
    if command:
        runtime = write(command["directory"], command["runtime"]["name"], command["runtime"]["text"])
        words = {"@INTERPRETER@": shlex.quote(sys.executable) + " -I -X utf8", "@RUNTIME@": shlex.quote(runtime)}
        text = re.sub("@[A-Z]+@", lambda found: words[found.group()], command["text"])
        os.chmod(write(command["directory"], command["name"], text), 0o755)
    for place in (plan.get("packagesDirectory"), plan["directory"]):
        if place and place not in sys.path:
            sys.path.insert(0, place)
    importlib.invalidate_caches()
    for name in (plan["module"], "_%s_host" % plan["module"]):
        sys.modules.pop(name, None)
    try:
        importlib.import_module(plan["module"])
    except BaseException:
        return report(failed="module", reason=traceback.format_exc())
    report()
