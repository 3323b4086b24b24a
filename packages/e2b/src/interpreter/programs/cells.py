"""Makes the kit's interpreter show values and errors as the code interpreter's clients expect them. Python 3.8 or later.

Libraries are changed when code imports them, not before.
"""

import importlib.util
import os
import re
import signal
import sys
import traceback

import _fenced_charts as charts
import _fenced_displays as displays
import _fenced_notebook as notebook
import _fenced_run_source as runner

# Values of a table that are sent as data.
MOST_VALUES = 200_000
has_shell = importlib.util.find_spec("IPython") is not None


def present(value):
    """Shows the value of a cell's last expression."""
    runner.main.__dict__["_"] = value
    if displays.shell is not None:
        bundle, _ = displays.shell.display_formatter.format(value)
    else:
        bundle = notebook.bundle_of(value)
    if bundle:
        displays.tell({"data": bundle, "main": True})


def additions(value):
    """What clients can have of a value besides what notebooks show."""
    found = {}
    for kind, take in (("e2b/data", table), ("e2b/chart", chart), ("application/json", plain)):
        content = take(value)
        if content is not None:
            found[kind] = content
    return found


def table(value):
    pandas = sys.modules.get("pandas")
    frame = getattr(pandas, "DataFrame", None)
    if not isinstance(frame, type) or not isinstance(value, frame) or value.size > MOST_VALUES:
        return None
    return {str(name): [cell(each) for each in column] for name, column in value.to_dict(orient="list").items()}


def cell(value):
    if value is None or value is getattr(sys.modules.get("pandas"), "NaT", None):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value


def chart(value):
    figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
    if not isinstance(figure, type) or not isinstance(value, figure):
        return None
    try:
        return charts.chart_of(value)
    except Exception:
        # Whatever cannot be read of a figure, its picture is still shown.
        return None


def plain(value):
    """Lists and dictionaries, if they are JSON as they are."""
    return value if isinstance(value, (dict, list)) and is_json(value, 0) else None


def is_json(value, depth):
    if isinstance(value, dict):
        return depth < 50 and all(isinstance(name, str) and is_json(each, depth + 1) for name, each in value.items())
    if isinstance(value, list):
        return depth < 50 and all(is_json(each, depth + 1) for each in value)
    return value is None or isinstance(value, (str, int, float, bool))


def take_error(kind, error, trace):
    try:
        text = str(error)
    except Exception:
        text = "<exception str() failed>"
    told = {"name": kind.__name__, "value": text, "traceback": "".join(traceback.format_exception(kind, error, trace))}
    if not displays.tell({"error": told}):
        traceback.print_exception(kind, error, trace)


def transform(source):
    """Understands what notebooks have besides Python: indented cells, `!command`, `%pip` and `%matplotlib`."""
    lines = source.lstrip("\n").split("\n")
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join(magic(line[len(indent) :] if line.startswith(indent) else line) for line in lines)


def magic(line):
    found = re.match(r"(\s*)([!%])(.*)$", line)
    if not found:
        return line
    space, sign, command = found.groups()
    if sign == "%" and command.split()[:1] == ["matplotlib"]:
        return space + "pass"
    if sign == "%" and command.split()[:1] == ["pip"]:
        command = '"%s" -m %s' % (sys.executable, command)
    elif sign == "%":
        return line
    return "%s__import__('os').system(%r)and None" % (space, command)


def changing(name, change):
    """Calls `change` with a module once code has imported it."""

    class Finder:
        def find_spec(self, wanted, path=None, target=None):
            if wanted != name:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                load = spec.loader.exec_module

                def exec_module(module):
                    load(module)
                    change(module)

                spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, Finder())


def change_matplotlib(module):
    # A variable would also reach the programs that the cell starts, which do not have this backend.
    if not has_shell and "MPLBACKEND" not in os.environ:
        module.rcParams["backend"] = "module://_fenced_plots"


def change_image(module):
    """Shows the pictures that code saves under a name."""
    save = module.Image.save

    def save_and_show(self, fp, format=None, **options):
        save(self, fp, format, **options)
        if isinstance(fp, str):
            display(self)

    module.Image.save = save_and_show


def change_image_show(module):
    class Viewer(module.Viewer):
        def show(self, image, **options):
            display(image)
            return True

    module.register(Viewer, 0)


def display(value):
    if displays.shell is not None:
        bundle, _ = displays.shell.display_formatter.format(value)
    else:
        bundle = notebook.bundle_of(value)
    if bundle:
        displays.display(bundle)


def use_shell():
    """Makes IPython's displays include the same."""
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    def formatter(kind, take, parent):
        class Formatter(BaseFormatter):
            format_type = Unicode(kind)
            print_method = ObjectName("_fenced_no_such_method_")

            def __call__(self, value):
                return take(value)

        return Formatter(parent=parent)

    parent = displays.shell.display_formatter
    for kind, take in (("e2b/data", table), ("e2b/chart", chart)):
        parent.formatters[kind] = formatter(kind, take, parent)
    others = parent.formatters["application/json"]
    parent.formatters["application/json"] = formatter(
        "application/json", lambda value: others(value) if plain(value) is None else value, parent
    )


def execute(source, name):
    """Only a cell can be interrupted."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return run(source, name)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def finish():
    if not has_shell:
        notebook.finish()
    end_cell()


def start_shell(main):
    start(main)
    use_shell()


# The interpreter calls these by their modules.
displays.present = present
runner.take_error, runner.transform = take_error, transform
run, runner.execute = runner.execute, execute
end_cell, displays.finish = displays.finish, finish
start, displays.start_shell = displays.start_shell, start_shell
if not has_shell:
    notebook.prepare(displays.tell, notebook.PLOTS, additions)
changing("matplotlib", change_matplotlib)
changing("PIL.Image", change_image)
changing("PIL.ImageShow", change_image_show)
