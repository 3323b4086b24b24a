/** Python programs that end, fail and print in their own ways; their standard input has two lines. */
export const pythonPrograms: Readonly<Record<string, string>> = {
  "an exception": "def f():\n    raise ValueError('text')\n\ntry:\n    f()\nexcept ValueError:\n    1 / 0",
  "a syntax error": "x = (\n",
  "an encoding declared": "# -*- coding: latin-1 -*-\nprint(ascii('\\xe9é'))",
  "a NUL character": "print(1)\n\0",
  nothing: "",
  "exit codes": "import sys\nsys.exit(7)",
  "an exit with a text": "import sys\nsys.exit('reason')",
  "an exit without a code": "raise SystemExit",
  "an exit past clean-up": "import atexit, os\natexit.register(print, 'never')\nos._exit(9)",
  "clean-up": "import atexit\natexit.register(lambda: print('bye'))\nprint('hello', end=' ')",
  "an exit within clean-up": "import atexit, sys\natexit.register(sys.exit, 3)",
  "an interrupt": "raise KeyboardInterrupt",
  SIGINT: "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(100)",
  SIGTERM: "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
  SIGSEGV: "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
  "a handled signal":
    "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('handled'))\nos.kill(os.getpid(), signal.SIGUSR1)",
  SIGCHLD:
    "import os, signal\nsignal.signal(signal.SIGCHLD, lambda *_: print('child'))\nif os.fork() == 0: os._exit(4)\nprint(os.wait()[1])",
  "an alarm": "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\ntime.sleep(100)",
  "standard input": "import sys\nprint(input())\nprint(sys.stdin.read(), sys.stdin.tell())",
  "binary streams":
    "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read(3))\nsys.stderr.write('\\udcff' if 0 else 'é')",
  "a closed output": "import os, sys\nsys.stdout.close()\nos.close(1)",
  "an output that cannot be flushed":
    "import os, sys\nsys.stdout = open(1, 'w', closefd=False)\nprint('x')\nos.close(1)",
  "threads that outlive the program":
    "import threading\ndef late():\n    threading.main_thread().join()\n    print('late')\nthreading.Thread(target=late).start()\nprint('end')",
  "an exit in a thread":
    "import sys, threading\nt = threading.Thread(target=sys.exit, args=(5,))\nt.start()\nt.join()\nprint('on')",
  "an exception in a thread":
    "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start()\nt.join()",
  "a subprocess":
    "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv); sys.exit(6)'], capture_output=True))\nprint(subprocess.getoutput('echo $PPID | wc -w'))",
  "multiprocessing by fork":
    "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]))",
  "multiprocessing by spawn":
    "import multiprocessing as m\ndef f(q): q.put((__name__, 6 * 7))\nif __name__ == '__main__':\n    c = m.get_context('spawn'); q = c.Queue(); p = c.Process(target=f, args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)",
  asyncio:
    "import asyncio, signal\nasync def main():\n    p = await asyncio.create_subprocess_exec('true')\n    print(await p.wait())\nasyncio.run(main())",
  "endless recursion": "def f(): f()\ntry: f()\nexcept RecursionError as e: print(e)\nf()",
  "the stack as it prints it":
    "import traceback, inspect, warnings\ndef f():\n    traceback.print_stack()\n    print(len(inspect.stack()))\n    warnings.warn('w', stacklevel=2)\nf()\nwarnings.warn('top', stacklevel=2)",
  "objects that speak at the end":
    "class A:\n    def __init__(self, name): self.name = name\n    def __del__(self): print('end of', self.name)\na, b = A('a'), A('b')\nb.own = b\nimport sys\nsys.own = A('sys')",
  "an object without a place for more that speaks at the end":
    "class A(int):\n    __slots__ = ()\n    def __del__(self): print('end')\na = A(5)",
  "files that are not closed":
    "import json, os, zipfile\nif os.fork():\n    os.wait()\n    print(open('left').read(), zipfile.ZipFile('left.zip').namelist())\n    os.remove('left'); os.remove('left.zip')\nelse:\n    json.left = open('left', 'w')\n    json.left.write('text')\n    archive = zipfile.ZipFile('left.zip', 'w')\n    archive.writestr('name', 'text')",
  "files that are not closed, after an exception":
    "import os\nif os.fork():\n    os.wait()\n    print(open('left').read())\n    os.remove('left')\nelse:\n    left = open('left', 'w')\n    left.write('text')\n    1 / 0",
  "generators that do not end":
    "def f():\n    try: yield 1\n    finally: print('left')\ng = f()\nnext(g)\nasync def h(): pass\nc = h()",
  "weak references":
    "import weakref\nclass A: pass\na, b = A(), A()\nr = weakref.ref(a, lambda _: print('gone'))\nweakref.finalize(b, print, 'finalized')",
  "a hidden object": "import gc\nclass A:\n    def __del__(self): print('end')\nA.one = A()\ndel A\ngc.freeze()",
  "threads that are still there at the end":
    "import threading, time, concurrent.futures\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\npool = concurrent.futures.ThreadPoolExecutor()\npool.submit(lambda: (time.sleep(0.05), print('done')))",
  "a profiler at the end":
    "import atexit, sys\natexit.register(print, 'last')\nsys.setprofile(lambda frame, event, arg: None)",
  "clean-up that fails":
    "import atexit\natexit.register(print, 'first')\natexit.register(lambda: 1 / 0)\natexit.register(print, 'last')",
  "clean-up that starts work":
    "import atexit, sys\nclass A:\n    def __del__(self): print('end')\natexit.register(lambda: setattr(sys, 'own', A()))",
  "another output":
    "import sys\nclass Out:\n    def write(self, text): sys.__stdout__.write(text.upper())\n    def flush(self): sys.__stdout__.write('flushed')\nsys.stdout = Out()\nprint('text')",
  "a full disk": "import sys\nsys.stdout = open('/dev/full', 'w')\nprint('x')",
  "a database that is not closed":
    "import os, sqlite3\nif os.fork():\n    os.wait()\n    print(sorted(each for each in os.listdir('.') if each.startswith('base')))\n    os.remove('base')\nelse:\n    base = sqlite3.connect('base')\n    base.execute('pragma journal_mode=wal')\n    base.execute('create table t (x)')\n    base.commit()",
  "clean-up of the C library's": "import ctypes\nlibrary = ctypes.CDLL(None)\nlibrary.on_exit(library.abort, None)",
  "text in the C library": "import ctypes\nctypes.CDLL(None).printf(b'text')",
  "an object that complains":
    "class A:\n    def __del__(self): raise ValueError('x')\nA()\nimport sys\nprint(sys.exc_info())",
  "a hook for exceptions":
    "import sys\nsys.excepthook = lambda *a: print(a[:2], [t.tb_lineno for t in [a[2]]], a[2].tb_next)\n1 / 0",
  "a failing hook": "import sys\nsys.excepthook = 1\n1 / 0",
  "a dump by faulthandler":
    "import faulthandler, sys\nfaulthandler.enable()\nfaulthandler.dump_traceback(all_threads=False)",
  "the extensions that waiting needs":
    "import ctypes, socket, signal, array\nprint(ctypes.c_int(5), ctypes.CDLL(None).getpid() > 0, ctypes.sizeof(ctypes.c_void_p))\na, b = socket.socketpair()\na.sendall(b'x')\nprint(b.recv(1), socket.AF_UNIX, hasattr(socket, 'SCM_RIGHTS'))\ntry: socket.getaddrinfo('256.1.1.1', None, flags=socket.AI_NUMERICHOST)\nexcept socket.gaierror as e: print(type(e), isinstance(e, OSError))",
  "a module of its own directory": "import neighbour\nprint(neighbour.__file__, neighbour.VALUE)",
  "pickle and __main__":
    "import pickle, sys\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__, sys.modules['__main__'].A is A)",
};
