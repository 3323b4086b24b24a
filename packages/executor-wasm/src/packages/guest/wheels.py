"""Reads wheels, which may be hostile: every size, name and number is checked before it is used."""

import importlib.util
import io
import json
import marshal
import stat
import warnings
import zipfile

ENTRIES = 20_000
METADATA = 2 << 20
UNPACKED = 1 << 30
# Longer sources are compiled when they are imported.
COMPILED = 1 << 20
PIECE = 1 << 19
DEEPEST = 64


class Refused(Exception):
    """A refusal whose message is for the caller."""


class HostFile(io.RawIOBase):
    """A file of the host, read in pieces."""

    def __init__(self, ask, number, size):
        self.ask, self.number, self.size, self.at = ask, number, size, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = max(0, offset + (0, self.at, self.size)[whence])
        return self.at

    def readinto(self, buffer):
        length = min(len(buffer), PIECE, max(0, self.size - self.at))
        if length == 0:
            return 0
        _, piece = self.ask({"op": "bytes", "file": self.number, "at": self.at, "length": length})
        buffer[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


class Wheel:
    """A wheel that contains only a bounded number of regular files with plain names."""

    def __init__(self, name, file):
        self.name = name
        try:
            self.zip = zipfile.ZipFile(io.BufferedReader(file, PIECE))
            self.entries = self.zip.infolist()
        except Exception as error:
            raise Refused(f"{name} is not a wheel: {describe(error)}") from None
        if len(self.entries) > ENTRIES:
            raise Refused(f"{name} has more than {ENTRIES} entries")
        for entry in self.entries:
            self.check(entry)
        self.unpacked = sum(entry.file_size for entry in self.entries)
        if self.unpacked > UNPACKED:
            raise Refused(f"{name} would be larger than {UNPACKED >> 20} MiB when unpacked")

    def check(self, entry):
        path = entry.filename
        parts = path.removesuffix("/").split("/")
        what = f"{self.name} has an entry {path[:200]!r}"
        plain = all(part not in ("", ".", "..") and len(part.encode("utf-8", "replace")) <= 255 for part in parts)
        if not plain or len(parts) > DEEPEST or not path.isprintable() or "\\" in path or parts[0].endswith(":"):
            raise Refused(f"{what}, which is not the path of a file in a package")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.create_system == 3 and kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Refused(f"{what}, which is a link or a special file")
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused(f"{what}, which is encrypted or compressed in a way that wheels do not use")

    def metadata(self):
        """The text of METADATA."""
        found = [each for each in self.entries if each.filename.endswith(".dist-info/METADATA")]
        found = [each for each in found if each.filename.count("/") == 1]
        if len(found) != 1:
            raise Refused(f"{self.name} must have exactly one METADATA file")
        if found[0].file_size > METADATA:
            raise Refused(f"{self.name} has a METADATA of {found[0].file_size} bytes; the maximum is {METADATA}")
        return b"".join(self.pieces(found[0]))

    def files(self):
        """Each entry with its path below site-packages."""
        for entry in self.entries:
            if entry.is_dir():
                continue
            first, _, rest = entry.filename.partition("/")
            if first.endswith(".data"):
                # Scripts, headers and the like are of no use here.
                first, _, rest = rest.partition("/")
                if first in ("purelib", "platlib") and rest:
                    yield rest, entry
            else:
                yield entry.filename, entry

    def pieces(self, entry):
        try:
            with self.zip.open(entry) as file:
                yield from iter(lambda: file.read(PIECE), b"")
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"{self.name} is damaged at {entry.filename!r}: {describe(error)}") from None


class Image:
    """Writes files one after another, and a list of their positions at the end."""

    def __init__(self, ask):
        self.ask, self.files, self.size = ask, {}, 0
        self.waiting = bytearray()

    def add(self, path, pieces):
        start = self.size
        for piece in pieces:
            self.size += len(piece)
            if self.size > UNPACKED:
                raise too_large()
            self.waiting += piece
            if len(self.waiting) >= PIECE:
                self.flush()
        *parents, name = path.split("/")
        directory = self.files
        for parent in parents:
            directory = directory.setdefault(parent, {})
            if not isinstance(directory, dict):
                raise Refused(f"{path!r} is in a directory that is also a file")
        if isinstance(directory.get(name), dict):
            raise Refused(f"{path!r} is both a file and a directory")
        directory[name] = [start, self.size - start]

    def flush(self, **fields):
        view = memoryview(bytes(self.waiting))
        for at in range(0, len(view), PIECE):
            answer, _ = self.ask({"op": "put", **fields}, view[at : at + PIECE])
            if "error" in answer:
                raise Refused(answer["error"])
        self.waiting.clear()

    def finish(self):
        self.flush()
        self.waiting += json.dumps(self.files, separators=(",", ":")).encode("utf-8", "replace")
        self.flush(index=True)


def too_large():
    return Refused(f"The packages would be larger than {UNPACKED >> 20} MiB when unpacked")


def pack(wheels, image):
    # No entry unpacks to more than it says.
    if sum(wheel.unpacked for wheel in wheels) > UNPACKED:
        raise too_large()
    for wheel in wheels:
        for path, entry in wheel.files():
            if path.endswith(".py") and entry.file_size <= COMPILED and "tests" not in path.split("/"):
                source = b"".join(wheel.pieces(entry))
                image.add(path, [source])
                add_compiled(image, path, source)
            else:
                image.add(path, wheel.pieces(entry))


def add_compiled(image, path, source):
    """Adds bytecode, compiled once here instead of at each start. It is never compared with the source, which cannot change."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(source, f"/lib/python3.14/site-packages/{path}", "exec", dont_inherit=True)
        content = marshal.dumps(code)
    except Exception:
        # Templates, or syntax of other Python versions: importing it reports the error.
        return
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
    image.add(importlib.util.cache_from_source(path), [head, content])


def describe(error):
    return "it needs too much memory" if isinstance(error, MemoryError) else str(error) or type(error).__name__
