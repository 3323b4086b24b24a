import { childKinds, type ChildKind, type FixtureLanguage } from "./fixture-language.ts";

// A JSON string is also a Python literal, as long as it contains no lone surrogates.
const quote = (text: string): string => JSON.stringify(text);
const indent = (source: string): string => source.replaceAll(/^(?=.)/gm, "    ");

const beats = 3600;
const beatLoop = (file: string) => `for _beat in range(${beats}):
    with open(${quote(file)}, "a") as _file: _file.write(".")
    time.sleep(0.05)`;

const beatProgram = (file: string) => `import os, time
with open(${quote(`${file}.pid`)}, "w") as _file: _file.write(str(os.getpid()))
${beatLoop(file)}`;

const startPython = (program: string, options = "") =>
  `subprocess.Popen([sys.executable, "-c", ${quote(program)}]${options})`;

const startBeating: Readonly<Record<ChildKind, (program: string) => string>> = {
  child: (program) => startPython(program),
  "new-session": (program) => startPython(program, ", start_new_session=True"),
  "double-fork": (program) =>
    `${startPython(`import subprocess, sys\n${startPython(program, ", start_new_session=True")}`)}.wait()`,
  "no-environment": (program) => startPython(program, ", env={}"),
  "no-traces": (program) => startPython(program, ", start_new_session=True, env={}"),
};

const serverProgram = (portFile: string) => `import os, socket, threading
threading.Timer(180, os._exit, [0]).start()
server = socket.create_server(("127.0.0.1", 0))
with open(${quote(`${portFile}.new`)}, "w") as file: file.write(str(server.getsockname()[1]))
os.rename(${quote(`${portFile}.new`)}, ${quote(portFile)})
while True:
    connection = server.accept()[0]
    print("called", flush=True)
    connection.sendall(b"pong")
    connection.close()`;

const until = (condition: string) => `for _wait in range(6000):
    if ${condition}: break
    time.sleep(0.02)`;
const awaitFile = (path: string) => until(`os.path.exists(${quote(path)})`);
const awaitBeat = (path: string) => until(`os.path.exists(${quote(path)}) and os.path.getsize(${quote(path)}) > 0`);

const write = (expression: string, to: "stdout" | "stderr" = "stdout") =>
  `sys.${to}.write(${expression}); sys.${to}.flush()`;

/** Fixture programs in Python, for plain interpreters and for IPython kernels. */
export const python: FixtureLanguage = {
  name: "python",
  extension: "py",
  comment: "#",
  childKinds,

  program: (...statements) => ({
    language: "python",
    code: ["import os, signal, socket, subprocess, sys, time", ...statements, ""].join("\n"),
  }),
  nothing: () => "pass",
  print: (text) => `print(${quote(text)}, flush=True)`,
  write: (text, to) => write(quote(text), to),
  writeBytes: (bytes) => `sys.stdout.buffer.write(bytes(${JSON.stringify(bytes)})); sys.stdout.buffer.flush()`,
  fill: (character, count, to) => write(`${quote(character)} * ${count}`, to),
  lines: (count) => `for _line in range(${count}): print("line %d" % _line)`,
  fail: (message) => `raise RuntimeError(${quote(message)})`,
  exit: (code) => `sys.exit(${code})`,
  sleep: (milliseconds) => `time.sleep(${milliseconds / 1000})`,

  printLineRead: () => `print("read:" + input(), flush=True)`,
  printInputLength: () => `print("length:%d" % len(sys.stdin.read()), flush=True)`,
  printVariable: (name) => `print(${quote(`${name}=`)} + os.environ.get(${quote(name)}, "(unset)"), flush=True)`,

  assign: (name, value) => `${name} = ${quote(value)}`,
  printAssigned: (name) => `print(${name}, flush=True)`,
  moduleSource: (value) => `VALUE = ${quote(value)}\n`,
  printImported: (path) =>
    `from ${path.replace(/\.py$/, "").replaceAll("/", ".")} import VALUE; print(VALUE, flush=True)`,
  printCall: (module, name, ...parameters) =>
    `from ${module} import ${name}\nprint(${name}(${parameters.join(", ")}), flush=True)`,

  writeFile: (path, text) =>
    `with open(${quote(path)}, "w", encoding="utf-8", newline="") as _file: _file.write(${quote(text)})`,
  printFile: (path) => `with open(${quote(path)}, encoding="utf-8", newline="") as _file: ${write("_file.read()")}`,
  printExists: (path) => `print("exists" if os.path.lexists(${quote(path)}) else "missing", flush=True)`,
  makeDirectory: (path) => `os.makedirs(${quote(path)}, exist_ok=True)`,
  removeDirectory: (path) => `import shutil; shutil.rmtree(${quote(path)})`,
  symlink: (target, link) => `os.symlink(${quote(target)}, ${quote(link)})`,
  awaitFile,

  beat: beatLoop,
  beatStubbornly: (
    file,
  ) => `for _name in ("SIGTERM", "SIGINT", "SIGHUP"): signal.signal(getattr(signal, _name), signal.SIG_IGN)
for _beat in range(${beats}):
    try:
        with open(${quote(file)}, "a") as _file: _file.write(".")
        time.sleep(0.05)
    except BaseException: pass`,
  spawnBeating: (file, kind) => `_child = ${startBeating[kind](beatProgram(file))}\n${awaitBeat(file)}`,
  flood: (file, times) => `for _flood in range(${times}):
${indent(write('"y" * 65535 + "\\n"'))}
    with open(${quote(file)}, "a") as _file: _file.write(".")`,

  spawnServer: (portFile) => `_server = ${startPython(serverProgram(portFile))}\n${awaitFile(portFile)}`,
  callServer: (portFile) => `try:
    with open(${quote(portFile)}) as _file: _port = int(_file.read())
    with socket.create_connection(("127.0.0.1", _port), 20) as _connection: print(_connection.recv(16).decode(), flush=True)
except OSError: print("no answer", flush=True)`,
};
