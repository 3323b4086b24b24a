"""Calls host functions from a block, or from any process that a block started. Python 3.8 or later, standard library only.

Each process has one connection, opened by the first call. Calls are numbered, so threads and tasks can call at the same time. As
a program: `NAME JSON` prints what the function returns; `-` instead of the JSON reads it from standard input.
"""

import json
import os
import struct
import sys
import threading

HELLO, CALL, CANCEL, RESULT, ERROR = 1, 2, 3, 16, 17
LONGEST = 1048576


class HostFunctionError(Exception):
    """A host function failed, or could not be called. `name` is the name of the host's error."""

    def __init__(self, message, name="Error"):
        super().__init__("%s: %s" % (name, message))
        self.name = name


class Connection:
    """The connection of this process, and the calls that wait for an answer."""

    def __init__(self, address, token):
        import socket

        self.token = token
        kind, _, place = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            host, _, port = place.rpartition(":")
            place = (host, int(port))
        self.socket.connect(place)
        self.identity = os.fstat(self.socket.fileno())[1:3]
        self.waiting = {}
        self.last = 0
        self.broken = False
        # Guards sending only: if the reader waited for a writer, both could end up waiting for the host.
        self.sending = threading.Lock()
        self.send(HELLO, 0, token.encode())
        threading.Thread(target=self.read, name="fenced-host-calls", daemon=True).start()

    def is_own(self):
        """Returns whether the descriptor is still ours. Programs may close every descriptor that they find, and another file may
        get its number."""
        try:
            return os.fstat(self.socket.fileno())[1:3] == self.identity
        except OSError:
            return False

    def send(self, kind, number, payload):
        self.socket.sendall(struct.pack(">IBI", len(payload) + 5, kind, number) + payload)

    def call(self, payload, future):
        with self.sending:
            if self.broken or not self.is_own():
                self.let_go()
                return False
            self.last = number = self.last + 1
            self.waiting[number] = future
            self.send(CALL, number, payload)
        future.add_done_callback(lambda done: done.cancelled() and self.cancel(number))
        return True

    def cancel(self, number):
        with self.sending:
            if self.waiting.pop(number, None) and not self.broken and self.is_own():
                self.send(CANCEL, number, b"")

    def let_go(self):
        """Detaches the socket instead of closing it, since the number may belong to another file by now."""
        self.broken = True
        self.socket.detach()

    def receive(self, count):
        pieces = []
        while count > 0:
            piece = self.socket.recv(min(count, 262144)) if self.is_own() else b""
            if not piece:
                raise ConnectionError("the connection to the host ended")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def read(self):
        try:
            while True:
                length, kind, number = struct.unpack(">IBI", self.receive(9))
                self.answer(kind, number, self.receive(length - 5))
        except Exception as error:
            self.end(HostFunctionError("%s; the block that called may have ended" % error, "NotConnectedError"))

    def answer(self, kind, number, payload):
        value = json.loads(payload.decode("utf-8"))
        if kind == ERROR and number == 0:
            self.end(HostFunctionError(value["message"], value["name"]))
            return
        future = self.waiting.pop(number, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if kind == ERROR:
            future.set_exception(HostFunctionError(value["message"], value["name"]))
        else:
            future.set_result(value)

    def end(self, error):
        self.broken = True
        waiting, self.waiting = self.waiting, {}
        for future in waiting.values():
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


class ThreadlessConnection(Connection):
    """A connection for an interpreter without sockets and threads, which reads answers while a caller waits."""

    def __init__(self, address, token):
        import _fenced_host

        self.token = token
        self.waiting = {}
        self.last = 0
        self.broken = False
        self.sending = threading.Lock()
        self.received = b""
        self.host = _fenced_host
        self.line = _fenced_host.connect(address.partition(":")[2], self.take)
        self.send(HELLO, 0, token.encode())

    def is_own(self):
        return True

    def send(self, kind, number, payload):
        self.line.send(struct.pack(">IBI", len(payload) + 5, kind, number) + payload)

    def let_go(self):
        self.broken = True
        self.line.close()

    def take(self, data):
        if data is None:
            error = "the connection to the host ended; the block that called may have ended"
            self.end(HostFunctionError(error, "NotConnectedError"))
            return
        self.received += data
        while len(self.received) >= 9:
            length, kind, number = struct.unpack(">IBI", self.received[:9])
            if len(self.received) < length + 4:
                return
            payload, self.received = self.received[9 : length + 4], self.received[length + 4 :]
            self.answer(kind, number, payload)

    def wait(self, future):
        while not future.done():
            self.host.wait(None)


def has_threads():
    return sys.platform != "emscripten"


connection = None
connecting = threading.Lock()


def forget():
    """Gives a forked process its own connection, so that answers go to the process that called."""
    global connection, connecting
    if connection is not None and connection.is_own():
        connection.socket.close()
    connection, connecting = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


def submit(name, arguments):
    """Sends a call; returns the future of its result."""
    global connection
    from concurrent.futures import Future

    # Read for each call: in a session that keeps variables, the next block has another token.
    address, token = os.environ.get("FENCED_HOST_CALLS", ""), os.environ.get("FENCED_HOST_TOKEN", "")
    if not address:
        raise HostFunctionError(
            name + " can only be called by a block, or a process that has its environment", "NotConnectedError"
        )
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise HostFunctionError("%s takes arguments that are JSON: %s" % (name, error), "ArgumentError") from None
    if len(text) > LONGEST:
        advice = "write them to a file in the working directory, and pass its name"
        raise HostFunctionError("The arguments take more than %d bytes: %s" % (LONGEST, advice), "HostCallLimitError")
    future, payload = Future(), name.encode() + b"\n" + text
    try:
        with connecting:
            if connection is None or connection.token != token or not connection.call(payload, future):
                connection = (Connection if has_threads() else ThreadlessConnection)(address, token)
                connection.call(payload, future)
    except OSError as error:
        raise HostFunctionError("The host cannot be reached: %s" % error, "NotConnectedError") from None
    return future


def result(future):
    """Waits for a function's result."""
    if not has_threads():
        connection.wait(future)
    return future.result()


def host_function(name, parameters):
    """Turns a function that consists of a signature and a docstring into one that calls the host."""
    import functools

    def arguments_of(values, named):
        if len(values) > len(parameters):
            raise TypeError("%s() takes %d arguments but %d were given" % (name, len(parameters), len(values)))
        given = dict(zip(parameters, values))
        for key, value in named.items():
            if key in given:
                raise TypeError("%s() got multiple values for argument %r" % (name, key))
            given[key] = value
        return {key: value for key, value in given.items() if value is not ...}

    def decorate(stub):
        @functools.wraps(stub)
        def call(*values, **named):
            return result(submit(name, arguments_of(values, named)))

        async def aio(*values, **named):
            import asyncio

            return await asyncio.wrap_future(submit(name, arguments_of(values, named)))

        call.aio = functools.wraps(stub)(aio)
        return call

    return decorate


def main(words):
    if len(words) not in (1, 2):
        sys.exit("usage: functions NAME [JSON | -]")
    text = words[1] if len(words) == 2 else "{}"
    try:
        arguments = json.loads(sys.stdin.read() if text == "-" else text)
        print(json.dumps(result(submit(words[0], arguments)), ensure_ascii=False))
    except ValueError as error:
        sys.exit("%s: the arguments must be a JSON object: %s" % (words[0], error))
    except HostFunctionError as error:
        sys.exit("%s: %s" % (words[0], error))


if __name__ == "__main__":
    main(sys.argv[1:])
