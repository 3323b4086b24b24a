"""The parts of IPython's syntax that code in sessions needs: `!command` and `%magic` (Python 3.8 or later)."""

import ast
import os
import re
import shlex
import subprocess
import sys
import timeit
import time

LINE = re.compile(
    r"(?P<indent>[ \t]*)(?:(?P<target>[\w., \t]+?)[ \t]*=[ \t]*)?(?P<mark>!!?|%)(?P<rest>[^%!].*)$", re.DOTALL
)


class UsageError(Exception):
    pass


def translate(code):
    """Translates a cell to Python. Only lines that Python rejects are translated, so a `%` or `!` inside a string stays."""
    if code.lstrip().startswith("%%"):
        return "get_ipython().run_cell_magic(%r)\n" % code.lstrip()
    lines = code.split("\n")
    done = set()
    while True:
        try:
            ast.parse("\n".join(lines))
            return "\n".join(lines)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            at = (getattr(error, "lineno", None) or 0) - 1
        found = LINE.match(lines[at]) if 0 <= at < len(lines) and at not in done else None
        if not found:
            return "\n".join(lines)
        done.add(at)
        lines[at] = rewrite(**found.groupdict())


def rewrite(indent, target, mark, rest):
    if mark == "%":
        call = "get_ipython().run_line_magic(%r)" % rest.strip()
    elif target or mark == "!!":
        call = "get_ipython().getoutput(%r)" % rest.strip()
    else:
        call = "get_ipython().system(%r)" % rest.strip()
    return "%s%s%s" % (indent, "%s = " % target if target else "", call)


class Events:
    """The callbacks to call after each cell."""

    def __init__(self):
        self.callbacks = {"post_execute": []}


class Shell:
    """A substitute for IPython's shell, which `get_ipython()` returns."""

    def __init__(self, module):
        self.user_ns = module.__dict__
        self.run = None
        self.events = Events()
        self.display_pub = None

    def transform_cell(self, code):
        return translate(code)

    def fill_in(self, text):
        """Replaces `{expression}` and `$name` with their values."""

        def value(match):
            try:
                return str(eval(match.group(1) or match.group(2), self.user_ns))
            except Exception:
                return match.group(0)

        return re.sub(r"\{([^{}]+)\}|\$([A-Za-z_]\w*)", value, text)

    def system(self, command):
        done = subprocess.run(self.fill_in(command), shell=True, stdin=subprocess.DEVNULL)
        self.user_ns["_exit_code"] = done.returncode

    def getoutput(self, command):
        text = subprocess.run(
            self.fill_in(command),
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ).stdout.decode("utf-8", "replace")
        return text.splitlines()

    def run_line_magic(self, line, rest=None):
        name, _, words = line.partition(" ") if rest is None else (line, "", rest)
        magic = getattr(self, "line_" + name, None)
        if magic is None:
            raise UsageError("Line magic function `%%%s` not found." % name)
        return magic(words.strip())

    def run_cell_magic(self, cell):
        head, _, body = cell[2:].partition("\n")
        name, _, words = head.strip().partition(" ")
        magic = getattr(self, "cell_" + name, None)
        if magic is None:
            raise UsageError("Cell magic `%%%%%s` not found." % name)
        return magic(words.strip(), body)

    def line_pip(self, words):
        subprocess.run([sys.executable, "-m", "pip"] + shlex.split(words), stdin=subprocess.DEVNULL)

    def line_cd(self, words):
        os.chdir(os.path.expanduser(words or "~"))
        print(os.getcwd())

    def line_pwd(self, words):
        return os.getcwd()

    def line_ls(self, words):
        self.system("ls " + words)

    def line_env(self, words):
        name, given, value = re.match(r"(\w*)\s*([= ]?)\s*(.*)", words).groups()
        if not name:
            return dict(os.environ)
        if not given:
            return os.environ.get(name)
        os.environ[name] = self.fill_in(value)
        print("env: %s=%s" % (name, os.environ[name]))

    def line_matplotlib(self, words):
        pass

    def line_config(self, words):
        pass

    def line_autoreload(self, words):
        pass

    def line_load_ext(self, words):
        if words != "autoreload":
            raise ModuleNotFoundError("No module named %r" % words)

    def line_who(self, words):
        print(*[name for name in self.user_ns if not name.startswith("_")], sep="\t")

    def line_time(self, words):
        return self.cell_time("", words)

    def line_timeit(self, words):
        timer = timeit.Timer(words, globals=self.user_ns)
        count, _ = timer.autorange()
        print("%.3g s per loop (%d loops)" % (timer.timeit(count) / count, count))

    def cell_time(self, words, body):
        start = time.perf_counter()
        value = self.run(body)
        print("Wall time: %.3g s" % (time.perf_counter() - start))
        return value

    def cell_timeit(self, words, body):
        self.line_timeit(body)

    def cell_bash(self, words, body):
        self.program(["bash"], body)

    def cell_sh(self, words, body):
        self.program(["sh"], body)

    def cell_script(self, words, body):
        self.program(shlex.split(words), body)

    def cell_writefile(self, words, body):
        with open(words, "w", encoding="utf-8") as file:
            file.write(body)
        print("Writing " + words)

    def cell_capture(self, words, body):
        import contextlib
        import io

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.run(body)

    def program(self, command, text):
        done = subprocess.run(command, input=text.encode())
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command)
