/** The module by which a session is recognised: it is there as long as the session's process lives. */
const moduleName = "__fenced__";

const helperSource = `
import importlib, json, os, sys

LIMIT = 134217728


class Log:
    """What blocks print, piece by piece: a letter for the stream, four bytes for the length, the text."""

    def __init__(self):
        self.file = None
        self.left = 0

    def open(self, path):
        self.close()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        try:
            self.file = os.open(path, flags, 0o600)
        except OSError:
            self.file = None
        self.left = LIMIT

    def close(self):
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def add(self, letter, text):
        if self.file is None or not text:
            return
        data = text.encode("utf-8", "replace")
        if len(data) > self.left:
            letter, data = b"t", b""
        self.left -= len(data)
        try:
            os.write(self.file, letter + len(data).to_bytes(4, "big") + data)
        except OSError:
            pass
        if letter == b"t":
            self.close()


class Recorded:
    """An output stream whose text also goes into the log."""

    def __init__(self, stream, letter):
        self._fenced = (stream, letter)

    def write(self, text):
        stream, letter = self._fenced
        written = stream.write(text)
        log.add(letter, text)
        return written

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._fenced[0], name)

    def __iter__(self):
        return iter(self._fenced[0])


log = Log()
saved = {}


def begin(path, variables):
    for name, value in saved.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    saved.clear()
    for name, value in json.loads(variables).items():
        saved[name] = os.environ.get(name)
        os.environ[name] = value
    importlib.invalidate_caches()
    for name, letter in (("stdout", b"o"), ("stderr", b"e")):
        stream = getattr(sys, name)
        if not isinstance(stream, Recorded):
            setattr(sys, name, Recorded(stream, letter))
    log.open(path)
    `;

/**
 * Python code (3.8 or later) that puts a helper into the session: it writes down what blocks print, in order and
 * uncut, and sets a block's environment variables. It leaves no names behind and may be run again, also for another
 * executor: then it takes over from the helper before, whose log and environment variables end.
 */
export const installHelper: string = `
def _fenced_install(source):
    import os, sys, types
    module = types.ModuleType("${moduleName}")
    exec(source, module.__dict__)
    old = sys.modules.get("${moduleName}")
    if old is not None:
        old.log.close()
        module.saved.update(old.saved)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        while type(stream).__name__ == "Recorded":
            stream = stream._fenced[0]
        setattr(sys, name, stream)
    sys.modules["${moduleName}"] = module
    os.makedirs("/mnt/data", exist_ok=True)
    os.chdir("/mnt/data")
    if "" not in sys.path:
        sys.path.insert(0, "/mnt/data")
_fenced_install(SOURCE)
del _fenced_install
`.replace("SOURCE", () => JSON.stringify(helperSource));

/** Code to be run before each block. It fails with a KeyError that names the helper where the session is another one. */
export function beginBlock(logPath: string, env: Readonly<Record<string, string>>): string {
  const variables = JSON.stringify(JSON.stringify(env));
  return `__import__("sys").modules["${moduleName}"].begin("/mnt/data/${logPath}", ${variables})`;
}

/** Whether a failure of `beginBlock` says that the session has no helper. */
export function hasNoHelper(stderr: string): boolean {
  return stderr.includes("KeyError") && stderr.includes(moduleName);
}
