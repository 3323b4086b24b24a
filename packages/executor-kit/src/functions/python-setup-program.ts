import type { SetupPlan } from "./function-setup.ts";

/**
 * A Python program (3.8 or later) that installs missing packages, writes the functions' module, imports it and
 * reports. It runs as a block, and so works wherever Python blocks run; every name is local to one function, which
 * leaves nothing behind in a session that keeps variables.
 */
export function pythonSetupProgram(plan: SetupPlan): string {
  return program.replace("PLAN", () => JSON.stringify(JSON.stringify(plan)));
}

const program = String.raw`
def _fenced_set_up(plan):
    import importlib, importlib.util, json, os, re, shutil, subprocess, sys, traceback

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
            return "neither pip nor uv is there to install them with"
        target = ["--target", plan["packagesDirectory"]] if plan.get("packagesDirectory") else []
        done = subprocess.run(
            command + target + packages,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return None if done.returncode == 0 else done.stdout.decode("utf-8", "replace")

    if plan["module"] in getattr(sys, "stdlib_module_names", sys.builtin_module_names):
        return report(failed="name", reason="it is a module of Python's standard library")
    missing = [each for each in plan["packages"] if not satisfied(each)]
    problem = install(missing) if missing else None
    if problem is not None:
        return report(failed="packages", packages=", ".join(missing), reason=problem)
    os.makedirs(plan["directory"], exist_ok=True)
    with open(os.path.join(plan["directory"], plan["module"] + ".py"), "w", encoding="utf-8", newline="\n") as file:
        file.write(plan["source"])
    for place in (plan.get("packagesDirectory"), plan["directory"]):
        if place and place not in sys.path:
            sys.path.insert(0, place)
    importlib.invalidate_caches()
    sys.modules.pop(plan["module"], None)
    try:
        importlib.import_module(plan["module"])
    except BaseException:
        return report(failed="module", reason=traceback.format_exc())
    report()


import json as _fenced_json

_fenced_set_up(_fenced_json.loads(PLAN))
del _fenced_set_up, _fenced_json
`;
