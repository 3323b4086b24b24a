"""
Runs blocks in a thread of the session's interpreter (Python 3.8 or later, Linux). Short executions, the steps, fetch their
output, deliver answers to calls of host functions, and end them. The scribe, a process beside the interpreter, keeps the bytes.
"""

import base64
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback

import __fenced_tools__ as tools
import __fenced_wire__ as wire
import _fenced_block_surroundings as surroundings

STREAMS = {1: "stdout", 2: "stderr"}
STEP, ANSWER = struct.Struct(">IQQIIIBI"), struct.Struct(">IQQI")
# Seconds for ending a block, and between two interrupts of its threads.
PATIENCE, PAUSE = 2.5, 0.5
# The most bytes that an answer carries.
MOST = 524288


class Block:
    """A block that runs, or the last one that ran."""

    def __init__(self, number):
        self.number = number
        self.ended = False
        self.processes = set(tools.descendants(set()))
        self.threads = set(threading.enumerate())
        self.thread = None


class Pump:
    def __init__(self, secret, scribe, arguments):
        self.secret = secret
        self.block = Block(0)
        self.block.ended = True
        self.number = 0
        self.received = bytearray()
        self.telling = threading.Lock()
        self.hooks = []
        self.errands = []
        self.outer = []
        ours, theirs = socket.socketpair()
        (out, self.out), (err, self.err), (messages, self.messages) = os.pipe(), os.pipe(), os.pipe()
        words = [sys.executable or "python3", "-I", "-S", "-c", scribe, str(out), str(err), str(messages)]
        self.scribe = subprocess.Popen(
            words + arguments,
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(out, err, messages),
            cwd="/",
            start_new_session=True,
        )
        for each in (out, err, messages):
            os.close(each)
        theirs.close()
        self.socket = ours
        self.streams = [tools.stream_to(descriptor) for descriptor in (self.out, self.err)]
        # A process that loses its parent becomes a child of this one, where `kill` finds it (PR_SET_CHILD_SUBREAPER).
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)

    def close(self):
        """Ends this pump; another one may take over. The scribe ends when its socket closes."""
        if not self.block.ended:
            self.stop()
        if not self.block.ended:
            # Its thread must not take the streams from a block of the next pump when it ends.
            self.block.ended = True
            self.restore_streams()
        self.socket.close()

    def step(self, text):
        """One exchange with the host. The same step may arrive twice."""
        order = json.loads(text)
        self.check(order["secret"])
        begins = order.get("start")
        # The service may run a step late, after the host has given up on it: a block never begins after its end.
        if begins and begins["number"] > self.block.number:
            self.begin(begins, order["taken"])
        if order.get("stop", 0) > self.block.number:
            self.block = Block(order["stop"])
            self.block.ended = True
        elif order.get("stop") == self.block.number:
            self.exchange(order, wait=0, ends=1)
            self.stop()
        offset, taken, data = self.exchange(order, order["wait"])
        self.run_errands()
        self.hide_figures()
        left = "left" if order.get("stop") and self.survivors() else "fine"
        fields = (self.secret, self.block.number, offset, taken, left, base64.b64encode(data).decode())
        return "fenced %s %d %d %d %s %s" % fields

    def check(self, secret):
        if secret != self.secret:
            raise RuntimeError("fenced: another executor uses this session")

    def exchange(self, order, wait, begins=0, ends=0):
        data = base64.b64decode(order.get("data", ""))
        self.number = number = self.number % 0xFFFFFFFF + 1
        head = (number, order["taken"], order.get("at", 0), wait, MOST, begins, ends, len(data))
        self.socket.sendall(STEP.pack(*head) + data)
        while True:
            # An answer to an interrupted step may still arrive.
            given, offset, taken, length = ANSWER.unpack(self.receive(ANSWER.size))
            self.received = self.received[ANSWER.size :]
            piece = self.receive(length)
            self.received = self.received[length:]
            if given == number:
                return offset, taken, piece

    def receive(self, count):
        """Leaves the bytes in the buffer, because the step may be interrupted before it has them all."""
        while len(self.received) < count:
            piece = self.socket.recv(1048576)
            if not piece:
                raise RuntimeError("fenced: the scribe is gone")
            self.received += piece
        return bytes(self.received[:count])

    def begin(self, start, taken):
        if not self.block.ended:
            self.stop()
        if not self.block.ended:
            raise RuntimeError("fenced: an earlier block does not end")
        session = sys.modules["__fenced__"]
        session.prepare(start["env"], start["functions"])
        surroundings.choose_modules(**start["modules"])
        try:
            self.exchange({"taken": taken}, 0, begins=start["number"])
        except (OSError, RuntimeError) as error:
            raise RuntimeError("fenced: no scribe, so no block: %s" % error) from None
        self.block = block = Block(start["number"])
        self.outer = [(getattr(sys, name), os.dup(place)) for place, name in STREAMS.items()]
        for (place, name), stream in zip(STREAMS.items(), self.streams):
            os.dup2(stream.fileno(), place)
            setattr(sys, name, stream)
        signal.signal = self.set_handler
        block.thread = threading.Thread(target=self.run, args=(block, start), name="fenced-block", daemon=True)
        block.thread.start()

    def run(self, block, start):
        own = os.getpid()
        try:
            exit_code = self.outcome(block, start)
            exit_code = self.show_figures() or exit_code
        except BaseException:
            # An interrupt arrived late.
            exit_code = 130
        if os.getpid() != own:
            # A child that the block forked ends here, or it would end the block.
            os._exit(exit_code)
        while not block.ended:
            try:
                self.end(block, exit_code)
            except BaseException:
                continue

    def outcome(self, block, start):
        name = "<block %d>" % block.number
        try:
            shell = tools.shell_for(self)
            value = tools.evaluate(start["code"], name, shell)
            data = None if value is None else tools.bundle_of(value, shell)
            if data:
                self.show(data, quiet=start["quiet"], value=True)
            return 0
        except SystemExit as error:
            if error.code is None or isinstance(error.code, int):
                return (error.code or 0) & 255
            print(error.code, file=sys.stderr)
            return 1
        except BaseException as error:
            trace = error.__traceback__
            while trace and trace.tb_frame.f_code.co_filename != name:
                trace = trace.tb_next
            if not block.ended:
                # Otherwise the output belongs to another pump's block.
                traceback.print_exception(type(error), error, trace)
            return 1

    def end(self, block, exit_code):
        for stream in (sys.__stdout__, sys.__stderr__):
            # They may still buffer output that bypassed the streams of blocks.
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        self.restore_streams()
        try:
            self.tell(wire.EXIT, json.dumps({"exit": exit_code}).encode())
        except OSError:
            # The next step fails, which tells the host.
            self.socket.close()
        block.ended = True

    def restore_streams(self):
        while self.outer:
            place = len(self.outer)
            outer, descriptor = self.outer.pop()
            if getattr(sys, STREAMS[place]) is self.streams[place - 1]:
                setattr(sys, STREAMS[place], outer)
            os.dup2(descriptor, place)
            os.close(descriptor)
        signal.signal = set_handler

    def tell(self, kind, payload):
        with self.telling:
            left = memoryview(struct.pack(">IBI", len(payload) + 5, kind, self.block.number) + payload)
            while left:
                left = left[os.write(self.messages, left) :]

    def stop(self):
        """Ends child processes, and threads as soon as they run Python."""
        deadline, again = time.monotonic() + PATIENCE, 0
        while time.monotonic() < deadline:
            for pid, _ in tools.descendants(self.block.processes):
                tools.kill(pid)
            threads = self.survivors()
            if not threads:
                return
            if time.monotonic() >= again:
                again = time.monotonic() + PAUSE
                for each in threads:
                    tools.interrupt(each, KeyboardInterrupt)
            threads[0].join(0.02)

    def survivors(self):
        return [each for each in threading.enumerate() if each not in self.block.threads and each.is_alive()]

    def set_handler(self, number, handler):
        """`signal.signal` for blocks: only the main thread may set handlers, so the next step does it there."""
        if threading.current_thread() is threading.main_thread():
            return set_handler(number, handler)
        errand = {"number": number, "handler": self.guarded(handler), "done": threading.Event()}
        self.errands.append(errand)
        self.tell(wire.PONG, b"")
        while not errand["done"].wait(0.1):
            pass
        if "error" in errand:
            raise errand["error"]
        return errand["before"]

    def run_errands(self):
        while self.errands:
            errand = self.errands.pop(0)
            try:
                errand["before"] = set_handler(errand["number"], errand["handler"])
            except Exception as error:
                errand["error"] = error
            errand["done"].set()

    def guarded(self, handler):
        """The handler runs in the main thread, but exceptions that it raises go to the block."""
        if not callable(handler):
            return handler

        def handle(*given):
            try:
                handler(*given)
            except BaseException as error:
                tools.interrupt(self.block.thread, type(error))

        return handle

    def show(self, data, **fields):
        """Displays something. Waits until the scribe has it, so that displays and output keep the block's order."""
        self.tell(wire.DISPLAY, tools.message(data, **fields))
        while struct.unpack("i", fcntl.ioctl(self.messages, termios.FIONREAD, bytes(4)))[0]:
            time.sleep(0.0005)

    def show_figures(self):
        """Shows the figures that the block made, as at the end of a cell; returns 1 if that fails."""
        self.hide_figures()
        hooks, self.hooks = self.hooks, []
        try:
            for each in hooks:
                each()
            return 0
        except BaseException:
            traceback.print_exc()
            return 1
        finally:
            callbacks = tools.figure_callbacks()
            callbacks.extend(each for each in hooks if each not in callbacks)

    def hide_figures(self):
        """A step must not show and close figures that the block still draws."""
        callbacks = tools.figure_callbacks()
        for each in [each for each in callbacks if getattr(each, "__name__", "") == "flush_figures"]:
            callbacks.remove(each)
            self.hooks.append(each)


set_handler = signal.signal


def start(secret, scribe, journal, mark, directory):
    """Creates the pump of this session. The directory for the socket must belong to this user."""
    os.makedirs(directory, mode=0o700, exist_ok=True)
    if os.path.islink(directory) or os.stat(directory).st_uid != os.getuid():
        raise RuntimeError("fenced: %s belongs to somebody else" % directory)
    return Pump(secret, scribe, [journal, mark, directory])
