"""Compiles the modules that it reads from standard input, as JSON. Writes what `load_compiled.py` takes: which Python this is, a NUL
character, and the modules."""

import json
import marshal
import sys

magic = getattr(sys.modules.get("_frozen_importlib_external"), "MAGIC_NUMBER", b"")
python = "%s %d %s" % (sys.implementation.cache_tag, sys.hexversion, magic.hex())
modules = [(name, compile(source, "<" + name + ">", "exec")) for name, source in json.load(sys.stdin).items()]
sys.stdout.buffer.write(python.encode() + b"\0" + marshal.dumps(modules))
