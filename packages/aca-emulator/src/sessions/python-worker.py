"""
The process that runs a session's Python code (Python 3.8 or later, standard library only): it keeps the variables, and
answers with the value of the last expression, as IPython prints it.
"""

import ast
import base64
import builtins
import json
import linecache
import os
import sys
import traceback
import types
import warnings

# Maximum characters of a value in an answer.
LARGEST_VALUE = 16 * 1024 * 1024


class Cells:
    """Runs pieces of code one after another in one module."""

    def __init__(self, magics):
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        self.magics = magics
        self.shell = magics.Shell(self.module)
        self.shell.run = self.evaluate
        self.shell.display_pub = Publisher(self)
        self.shell.display_formatter = Formatter()
        self.shell.events.callbacks["post_execute"].append(self.flush_figures)
        self.module.__dict__["get_ipython"] = lambda: self.shell
        self.count = 0
        self.shown = []

    def run(self, code):
        self.count += 1
        self.shown = []
        if "IPython" in code:
            offer_display(self)
        try:
            value = self.evaluate(self.magics.translate(code))
        except BaseException as error:
            return self.failed(error, own_part(error.__traceback__))
        try:
            return {"status": "Succeeded", "result": self.result(value)}
        except BaseException as error:
            return self.failed(error, error.__traceback__)

    def evaluate(self, code):
        name = "<cell %d>" % self.count
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval", dont_inherit=True)
        exec(compile(tree, name, "exec", dont_inherit=True), self.module.__dict__)
        return eval(last, self.module.__dict__) if last else None

    def result(self, value):
        image = self.image(value)
        if image is not None:
            self.shown.append(image)
        for callback in self.shell.events.callbacks["post_execute"][:]:
            callback()
        if self.shown:
            if len(self.shown[-1]) > LARGEST_VALUE:
                return "<picture of %d bytes>" % len(self.shown[-1])
            return {"type": "image", "format": "png", "base64_data": base64.b64encode(self.shown[-1]).decode()}
        if value is None:
            return None
        text = printed(value)
        if len(text) > LARGEST_VALUE:
            return text[: LARGEST_VALUE // 2] + "..."
        try:
            # Numbers, for example, print as JSON.
            return json.loads(text, parse_constant=lambda word: word)
        except (ValueError, RecursionError):
            return text

    def image(self, value):
        show = getattr(type(value), "_repr_png_", None)
        picture = show(value) if callable(show) else None
        if isinstance(picture, str):
            return base64.b64decode(picture)
        return picture if isinstance(picture, bytes) else None

    def flush_figures(self):
        plots = sys.modules.get("matplotlib.pyplot")
        for number in plots.get_fignums() if plots else []:
            import io

            buffer = io.BytesIO()
            plots.figure(number).savefig(buffer, format="png", bbox_inches="tight")
            self.shell.display_pub.publish({"image/png": buffer.getvalue(), "text/plain": repr(plots.figure(number))})
        if plots:
            plots.close("all")

    def failed(self, error, trace):
        text = "".join(traceback.format_exception(type(error), error, trace))
        print(text, end="", file=sys.stderr, flush=True)
        summary = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[-1]
        return {"status": "Failed", "error": {"code": "ExecutionFailed", "message": summary[:4000]}}


class Publisher:
    """Receives what code displays: pictures become part of the cell's answer, and text is printed."""

    def __init__(self, cells):
        self.cells = cells

    def publish(self, data, metadata=None, **_options):
        picture = data.get("image/png")
        if picture is not None:
            self.cells.shown.append(base64.b64decode(picture) if isinstance(picture, str) else picture)
        else:
            print(data.get("text/plain", ""))

    def clear_output(self, wait=False):
        pass


METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
}


class Formatter:
    """Formats values by IPython's rules."""

    def format(self, value, include=None, exclude=None):
        shows_itself = method_of(value, "_ipython_display_")
        if shows_itself:
            shows_itself()
            return {}, {}
        data = {"text/plain": printed(value)}
        whole = method_of(value, "_repr_mimebundle_")
        found = whole() if whole else None
        if found is not None:
            data.update(found[0] if isinstance(found, tuple) else found)
            return data, {}
        for kind, name in METHODS.items():
            method = method_of(value, name)
            content = method() if method else None
            if content is not None:
                data[kind] = content[0] if isinstance(content, tuple) else content
        return data, {}


def method_of(value, name):
    method = None if isinstance(value, type) else getattr(value, name, None)
    return method if callable(method) else None


def own_part(trace):
    """A traceback that begins with the code's first frame."""
    while trace and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
        trace = trace.tb_next
    return trace


def printed(value):
    """A value as IPython shows it."""
    try:
        from IPython.lib.pretty import pretty

        return pretty(value)
    except ImportError:
        from pprint import pformat

        return repr(value) if isinstance(value, str) else pformat(value, width=79, sort_dicts=False)


def offer_display(cells):
    """Shows what code passes to IPython's display, as the service's kernels do; provides a substitute if IPython is missing."""

    def display(*values, raw=False, display_id=None, update=False, **_options):
        for value in values:
            data = value if raw else cells.shell.display_formatter.format(value)[0]
            if data:
                cells.shell.display_pub.publish(data, transient={"display_id": display_id}, update=update)

    try:
        import IPython.core.display_functions
        import IPython.display

        IPython.display.display = IPython.core.display_functions.display = display
        return
    except ImportError:
        pass

    class Image:
        def __init__(self, data=None, filename=None, format="png", **_options):
            self.data = open(filename, "rb").read() if data is None else data
            self.format = format

        def _repr_png_(self):
            return self.data if self.format == "png" else None

    def kind(name, method):
        def start(self, data=None, **_options):
            self.data = data

        members = {"__init__": start, method: lambda self: self.data, "__module__": "IPython.display"}
        setattr(module, name, type(name, (), members))

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    for name, method in (
        ("HTML", "html"),
        ("Markdown", "markdown"),
        ("Latex", "latex"),
        ("SVG", "svg"),
        ("JSON", "json"),
    ):
        kind(name, "_repr_%s_" % method)
    module.Image, module.display, package.display = Image, display, module
    package.get_ipython = lambda: cells.shell
    sys.modules["IPython"], sys.modules["IPython.display"] = package, module


def work(tasks, replies, magics):
    """Runs tasks one after another until there are none left."""
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    sys.stdin = open(0, encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape", write_through=True)
    sys.path.insert(0, "")
    own = os.getpid()
    cells = Cells(magics)
    while True:
        try:
            line = tasks.readline()
            if not line:
                os._exit(0)
            reply = cells.run(json.loads(line)["code"])
            # As text, because not everybody on the way keeps the digits of numbers.
            reply["result"] = json.dumps(reply.get("result"))
            sys.stdout.flush()
            sys.stderr.flush()
        except KeyboardInterrupt:
            continue
        except BaseException as error:
            reply = {"status": "Failed", "error": {"code": "ExecutionFailed", "message": repr(error)[:4000]}}
        # A child that the code forked exits here; otherwise it would take the session's next task.
        if os.getpid() != own:
            os._exit(0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
