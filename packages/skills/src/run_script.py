"""Runs a script of a skill in an interpreter that may live on: its arguments and paths come back at the end."""


def _fenced_run_script(directory, path, missing, args):
    import os
    import runpy
    import sys

    directory = os.path.abspath(directory)
    script = os.path.join(directory, path)
    if not os.path.isfile(script):
        print(missing)
        raise SystemExit(127)
    argv, paths, own = sys.argv, list(sys.path), os.environ.get("SKILL_DIR")
    sys.argv = [script, *args]
    # Scripts import modules beside them.
    sys.path.insert(0, os.path.dirname(script))
    os.environ["SKILL_DIR"] = directory
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    finally:
        sys.argv, sys.path[:] = argv, paths
        if own is None:
            del os.environ["SKILL_DIR"]
        else:
            os.environ["SKILL_DIR"] = own
