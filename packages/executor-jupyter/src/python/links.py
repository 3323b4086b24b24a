"""The connections of programs to the keeper: each travels in messages of the control channel, as bytes that this module does not
understand. Everything but `add` runs on the thread of that channel, also while a cell runs. Python 3.8 or later, Linux, standard
library only.
"""

import socket
import struct

READ = 262144
MOST_LINKS = 16


class Link:
    """A program's connection to the keeper."""

    def __init__(self, name, ours, holder):
        self.name, self.socket, self.holder = name, ours, holder
        ours.setblocking(False)
        self.waiting = bytearray()
        self.send = None
        self.watched = 0

    def close(self):
        self.socket.close()
        if self.holder is not None:
            self.holder.close()


class Links:
    def __init__(self, loop, name):
        """`name`: the abstract socket of the keeper."""
        self.loop, self.name = loop, name
        self.all = {}

    def add(self, name, ours, holder=None):
        """A connection whose other end the keeper has. `holder`: what lives as long as that."""
        link = self.all[name] = Link(name, ours, holder)
        return link

    def begin(self):
        for link in self.all.values():
            self.watch(link)

    def sockets(self):
        return [link.socket for link in self.all.values()]

    def take(self, send, parent):
        """A message about a connection, with bytes for the keeper. `send` sends those that come back."""
        content = parent["content"]
        name = content["link"]
        link = self.all.get(name)
        if link is None and content.get("first") and len(self.all) < MOST_LINKS:
            link = self.connect(name)
        if link is None:
            if content.get("first"):
                send({"link": name, "ended": True})
            return
        for other in [self.all[each] for each in content.get("drop", []) if each in self.all]:
            self.drop(other)
        if link.send is None:
            # Those whose programs are connected to the server have a WebSocket each; it knows how many there are.
            send({"link": name, "others": [each for each in self.all if each != name]})
        link.send = send
        if content.get("ended"):
            self.drop(link)
            return
        for piece in parent["buffers"]:
            link.waiting += bytes(piece)
        self.ready(link, self.loop.WRITE)

    def connect(self, name):
        ours, theirs = socket.socketpair()
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        holder.setblocking(False)
        try:
            holder.connect("\0" + self.name)
            rights = struct.pack("=2i", theirs.fileno(), theirs.fileno())
            holder.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except OSError:
            ours.close()
            holder.close()
            return None
        finally:
            theirs.close()
        link = self.add(name, ours, holder)
        self.watch(link)
        return link

    def watch(self, link):
        wanted = self.loop.READ | (self.loop.WRITE if link.waiting else 0)
        if wanted == link.watched:
            return
        if link.watched:
            self.loop.update_handler(link.socket, wanted)
        else:
            self.loop.add_handler(link.socket, lambda _, events: self.ready(link, events), wanted)
        link.watched = wanted

    def ready(self, link, events):
        if link.name not in self.all:
            return
        try:
            if events & self.loop.WRITE and link.waiting:
                del link.waiting[: link.socket.send(link.waiting)]
            if events & ~self.loop.WRITE:
                piece = link.socket.recv(READ)
                if not piece:
                    self.drop(link)
                    return
                if link.send is not None:
                    link.send({"link": link.name}, [piece])
        except BlockingIOError:
            pass
        except OSError:
            self.drop(link)
            return
        self.watch(link)

    def drop(self, link):
        del self.all[link.name]
        self.loop.remove_handler(link.socket)
        link.close()
        if link.send is not None:
            link.send({"link": link.name, "ended": True})
