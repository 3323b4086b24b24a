/**
 * Python source (3.8 or later, standard library only) of the process that runs a session's Python code: it keeps the
 * variables, and answers with the value of the last expression. Part of the supervisor's program.
 */
export const pythonWorker: string = String.raw`
class Cells:
    """Runs pieces of code one after another in one module."""

    def __init__(self):
        import builtins, types

        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = self.module
        self.count = 0
        self.shown = []

    def run(self, code):
        self.count += 1
        self.shown = []
        if "IPython" in code:
            offer_display(self)
        name = "<cell %d>" % self.count
        try:
            steps = self.compile(code, name)
        except BaseException as error:
            return self.failed(error, None)
        try:
            exec(steps[0], self.module.__dict__)
            value = eval(steps[1], self.module.__dict__) if steps[1] else None
            return {"status": "Succeeded", "result": self.result(value)}
        except BaseException as error:
            return self.failed(error, error.__traceback__.tb_next)

    def compile(self, code, name):
        import ast, linecache

        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval", dont_inherit=True)
        return compile(tree, name, "exec", dont_inherit=True), last

    def result(self, value):
        image = self.image(value)
        if image is not None:
            self.shown.append(image)
        self.shown.extend(self.figures())
        if self.shown:
            picture = {"type": "image", "format": "png", "base64_data": base64.b64encode(self.shown[-1]).decode()}
            return picture
        try:
            json.dumps(value, allow_nan=False)
            return value
        except (TypeError, ValueError, RecursionError):
            return repr(value)

    def image(self, value):
        show = getattr(type(value), "_repr_png_", None)
        picture = show(value) if callable(show) else None
        if isinstance(picture, str):
            return base64.b64decode(picture)
        return picture if isinstance(picture, bytes) else None

    def figures(self):
        plots = sys.modules.get("matplotlib.pyplot")
        pictures = []
        for number in plots.get_fignums() if plots else []:
            import io

            buffer = io.BytesIO()
            plots.figure(number).savefig(buffer, format="png", bbox_inches="tight")
            pictures.append(buffer.getvalue())
        if plots:
            plots.close("all")
        return pictures

    def failed(self, error, trace):
        import traceback

        text = "".join(traceback.format_exception(type(error), error, trace))
        print(text, end="", file=sys.stderr, flush=True)
        summary = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[-1]
        return {"status": "Failed", "error": {"code": "ExecutionFailed", "message": summary}}


def offer_display(cells):
    """Shows what code hands to IPython's display, as the service's kernels do; stands in where there is no IPython."""
    import types

    def display(*values, **_options):
        for value in values:
            picture = cells.image(value)
            if picture is None:
                print(repr(value))
            else:
                cells.shown.append(picture)

    try:
        import IPython.core.display_functions, IPython.display

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

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.Image, module.display, package.display = Image, display, module
    sys.modules["IPython"], sys.modules["IPython.display"] = package, module


def python_worker(tasks, replies):
    import warnings

    warnings.filterwarnings("ignore", message=".*non-interactive.*")
    sys.stdin = open(0, encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape", write_through=True)
    sys.path.insert(0, "")
    own = os.getpid()
    cells = Cells()
    while True:
        try:
            line = tasks.readline()
            if not line:
                os._exit(0)
            reply = cells.run(json.loads(line)["code"])
            sys.stdout.flush()
            sys.stderr.flush()
        except KeyboardInterrupt:
            continue
        except BaseException as error:
            reply = {"status": "Failed", "error": {"code": "ExecutionFailed", "message": repr(error)}}
        # A child that the code forked ends here, or it would take the session's next task for itself.
        if os.getpid() != own:
            os._exit(0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()
`;
