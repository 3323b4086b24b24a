"""Reads the variables of a checkpoint, one by one, in the place where the code runs. Runs as a block; Python 3.8 or later.

The block calls it with its variables and a plan: `directory`, in which there is a file for each variable, `interpreter`, which wrote
them, and `variables`, the name, format and module of each. The report says which variables are there again.
"""


def _fenced_restore_variables(variables, plan):
    import importlib
    import json
    import os
    import pickle
    import sys

    def read(format, module, path):
        if format == "module":
            return importlib.import_module(module)
        reader = pickle if format == "pickle" else importlib.import_module(format)
        with open(path, "rb") as file:
            return reader.load(file)

    kept, left_out = [], []
    version = "%s %d.%d" % (sys.implementation.name, *sys.version_info[:2])
    for index, (name, format, module) in enumerate(plan["variables"]):
        if version != plan["interpreter"]:
            left_out.append([name, "It was written by %s, and this is %s" % (plan["interpreter"], version)])
            continue
        try:
            variables[name] = read(format, module, os.path.join(plan["directory"], str(index)))
            kept.append([name])
        except BaseException as error:
            left_out.append([name, ("%s: %s" % (type(error).__name__, error))[:300]])
    with open(os.path.join(plan["directory"], "report"), "x") as file:
        json.dump({"interpreter": version, "kept": kept, "leftOut": left_out}, file)
