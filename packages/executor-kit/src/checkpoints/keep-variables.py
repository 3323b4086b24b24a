"""Writes the variables of this interpreter, one by one, for a checkpoint. Runs as a block; Python 3.8 or later.

The block calls it with its variables and a plan: `directory`, where a file for each variable and a report appear, `limit`, the size of
one file, `total`, of all of them, and `most`, their number. The report says how each variable was written, or why not.
"""


def _fenced_keep_variables(variables, plan):
    import io
    import json
    import keyword
    import os
    import pickle
    import sys
    import types

    def pickler_module():
        for name in ("cloudpickle", "dill"):
            try:
                return name, __import__(name)
            except Exception:
                pass
        return "pickle", pickle

    class TooLarge(Exception):
        pass

    class Limited(io.RawIOBase):
        """A file that must not get larger than this."""

        def __init__(self, file, left):
            self.file, self.left = file, left

        def writable(self):
            return True

        def write(self, data):
            data = memoryview(data).cast("B")
            self.left -= len(data)
            if self.left < 0:
                raise TooLarge()
            return self.file.write(data)

    class Plain(pickle.Pickler):
        """Pickles nothing that only its name would stand for, since a new interpreter does not have it."""

        def reducer_override(self, value):
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
                raise pickle.PicklingError(
                    "%s is defined in the session; cloudpickle or dill would keep it" % value.__qualname__
                )
            return NotImplemented

    format, module = pickler_module()

    def write(value, file, left):
        target = Limited(file, left)
        if format == "pickle":
            Plain(target, protocol=4).dump(value)
        else:
            module.dump(value, target, protocol=4)

    def is_own(name, value):
        # Those of the interpreter, of IPython, which replaces `open`, and of Fenced.
        if name == "open":
            return callable(value) and getattr(value, "__module__", "") != "__main__"
        return name.startswith("_") or name in ("In", "Out", "exit", "quit", "get_ipython")

    def reason_of(error):
        try:
            return ("%s: %s" % (type(error).__name__, error))[:300]
        except Exception:
            return type(error).__name__[:300]

    kept, left_out, total = [], [], plan["total"]
    for name, value in sorted(
        ((n, v) for n, v in list(variables.items()) if isinstance(n, str)), key=lambda item: item[0]
    ):
        before = len(kept)
        path = os.path.join(plan["directory"], str(before))
        limit = min(plan["limit"], total)
        # Whatever is asked of a value may run its own code.
        try:
            if is_own(name, value):
                continue
            if before >= plan["most"]:
                left_out.append([name, "There are more than %d variables" % plan["most"]])
                continue
            if not name.isidentifier() or keyword.iskeyword(name):
                left_out.append([name[:300], "Its name is not an identifier"])
                continue
            if isinstance(value, types.ModuleType):
                kept.append([name, "module", value.__name__])
                continue
            with open(path, "xb") as file:
                write(value, file, limit)
            total -= os.stat(path).st_size
            kept.append([name, format, None])
        except TooLarge:
            left_out.append([name, "It takes more than %d bytes" % limit])
        except RecursionError:
            left_out.append([name, "It is nested too deeply"])
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            left_out.append([name, reason_of(error)])
        if len(kept) == before:
            try:
                os.unlink(path)
            except OSError:
                pass
    version = "%s %d.%d" % (sys.implementation.name, *sys.version_info[:2])
    report = {"interpreter": version, "kept": kept, "leftOut": left_out[:1000]}
    with open(os.path.join(plan["directory"], "report"), "x") as file:
        json.dump(report, file)
