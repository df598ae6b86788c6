"""An HTTP server that plays one behaviour of the table, for one run of one program.

Everything that it does is in the table: see behaviours.json, whose keys are explained in `Answer` and `Condition`. Texts of
the table are sent as UTF-8; a byte that is not UTF-8 is written as a lone surrogate, "\\udce9" for E9. In texts of heads and
URLs `{name}` stands for a value: see `Request.values`.
"""

import asyncio
import dataclasses
import gzip
import http
import re
import socket
import struct
import time

# Bytes that are handed to the system at once. Small, so that a rate is even and a cut is where it should be.
PIECE = 16 << 10
# Bytes of a request's head. segdl and curl send less than one KiB.
HEAD_MAX = 64 << 10


@dataclasses.dataclass
class Answer:
    """One response, as the table describes it. A rule's answer that is not a page has the behaviour's own values, changed."""

    # A page in place of the file: its status, its text, and the value of its Location (whose status is 302 if none is given).
    status: int | None = None
    page: str = "not the file\n"
    location: str | None = None
    # The status line, its fields before those of the framing, further fields, and what ends the head's lines.
    line: str | None = None
    head: list = dataclasses.field(default_factory=lambda: ['ETag: "v1"', "Accept-Ranges: bytes"])
    add: list = dataclasses.field(default_factory=list)
    eol: str = "\r\n"
    # What is sent before the head.
    before: str = ""
    # How the end of the body is stated: "length", "chunked" or "close". The fields that state it, if not the usual ones.
    framing: str = "length"
    fields: list | None = None
    # Chunks: the format of the size, what ends lines, bytes in each, and the text after them.
    chunk: str = "%x"
    chunk_eol: str = "\r\n"
    chunk_bytes: int = 60_000
    last: str = "0\r\n\r\n"
    # Ranges: whether they are served; bytes of a 206 at most, and bytes that are sent beyond the wanted ones; the
    # value of Content-Range (none: without it); the status and content type of a part; whether If-Range is ignored.
    ranges: bool = True
    range_max: int | None = None
    range_extra: int = 0
    range_step: int = 1
    content_range: str | None = "bytes {first}-{last}/{total}"
    partial_status: int = 206
    multipart: bool = False
    if_range: bool = True
    # The body: whether it is compressed with gzip; the place after which it is cut, bytes a second, seconds before the head, and what is sent after it.
    gzip: bool = False
    cut: int | None = None
    rate: int | None = None
    delay: float = 0
    after: str = ""
    # What follows the response: "keep", "close" or "reset". With `silent` it is all that happens.
    end: str = "keep"
    silent: bool = False

    @property
    def is_page(self):
        return self.status is not None or self.location is not None


@dataclasses.dataclass
class Condition:
    """What a request must be for a rule to apply: everything that is given."""

    # Regular expressions: found in the target; found in a line of the head; found in no line of it.
    path: str | None = None
    has: str | None = None
    lacks: str | None = None
    # The number of the request, from 1: at most, more than, even.
    upto: int | None = None
    beyond: int | None = None
    even: bool | None = None
    # Other answers on their way; earlier requests for the same target, and seconds since the first; the second port; whether
    # the connection had a request before.
    busy: int | None = None
    uses: int | None = None
    age: float | None = None
    other: bool | None = None
    reused: bool | None = None

    def holds(self, request):
        lines = re.IGNORECASE | re.MULTILINE
        return all((
            self.path is None or re.search(self.path, request.target),
            self.has is None or re.search(self.has, request.head, lines),
            self.lacks is None or not re.search(self.lacks, request.head, lines),
            self.upto is None or request.number <= self.upto,
            self.beyond is None or request.number > self.beyond,
            self.even is None or (request.number % 2 == 0) == self.even,
            self.busy is None or request.busy >= self.busy,
            self.uses is None or request.uses >= self.uses,
            self.age is None or request.age >= self.age,
            self.other is None or request.is_other == self.other,
            self.reused is None or request.is_reused == self.reused,
        ))


@dataclasses.dataclass
class Request:
    """What was requested, and what happened before."""

    head: str
    target: str
    number: int
    connection: int
    uses: int
    age: float
    busy: int
    is_other: bool
    is_reused: bool

    def field(self, name):
        found = re.search(rf"^{name}:[ \t]*(.*?)\r?$", self.head, re.IGNORECASE | re.MULTILINE)
        return found[1] if found else None


class Reset(Exception):
    """The connection is to be reset."""


def filled(text, values):
    """The bytes of a text of the table, with the values that it names. Other braces stay."""
    text = re.sub(r"\{(\w+)\}", lambda name: str(values.get(name[1], name[0])), text)
    return text.encode("utf-8", "surrogateescape")


class Server:
    """Plays a behaviour on two ports of its own, until it is closed."""

    def __init__(self, behaviour, content):
        self.file = behaviour.get("file", {})
        Answer(**self.file)
        self.rules = []
        for rule in behaviour.get("rules", []):
            answer = dict(rule)
            self.rules.append((Condition(**answer.pop("if", {})), answer))
            Answer(**answer)
        self.content = content
        self.requests = 0
        self.connections = 0
        self.busy = 0
        self.targets = {}
        self.tasks = set()

    async def __aenter__(self):
        self.listeners = [await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=HEAD_MAX) for _ in range(2)]
        self.port, self.other = [listener.sockets[0].getsockname()[1] for listener in self.listeners]
        return self

    async def __aexit__(self, *_):
        for listener in self.listeners:
            listener.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def places(self):
        """The values of a URL of the table."""
        return {"port": self.port, "host": f"127.0.0.1:{self.port}", "other": f"127.0.0.1:{self.other}"}

    async def serve(self, reader, writer):
        """Answers the requests of one connection."""
        task = asyncio.current_task()
        self.tasks.add(task)
        self.connections += 1
        connection, is_reused = self.connections, False
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("utf-8", "surrogateescape")
                request = self.received(head, connection, is_reused, writer)
                is_reused = True
                if not await self.answer(request, writer):
                    break
            # Without what it has not read: the client would see a reset.
            if writer.can_write_eof():
                writer.write_eof()
            await asyncio.wait_for(reader.read(), 5)
        except Reset:
            # A reset, not an end.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, asyncio.TimeoutError):
            pass  # The client has closed the connection.
        except asyncio.CancelledError:
            pass  # The run is over. asyncio would report it as an error of the server.
        finally:
            writer.close()
            self.tasks.discard(task)

    def received(self, head, connection, is_reused, writer):
        target = head.split(" ", 2)[1]
        self.requests += 1
        times = self.targets.setdefault(target, [])
        times.append(time.monotonic())
        return Request(
            head=head, target=target, number=self.requests, connection=connection, uses=len(times) - 1,
            age=times[-1] - times[0], busy=self.busy, is_reused=is_reused,
            is_other=writer.get_extra_info("sockname")[1] == self.other,
        )

    async def answer(self, request, writer):
        """Answers a request. Returns whether the connection goes on."""
        answer = Answer(**self.file)
        for condition, changes in self.rules:
            if condition.holds(request):
                rule = Answer(**changes)
                answer = Answer(**{**{"head": []}, **changes}) if rule.is_page else Answer(**{**self.file, **changes})
                break
        self.busy += 1
        try:
            await asyncio.sleep(answer.delay)
            if not answer.silent:
                await self.send(answer, request, writer)
        finally:
            self.busy -= 1
        if answer.end == "reset":
            raise Reset
        return answer.end == "keep" and answer.framing != "close" and answer.cut is None

    async def send(self, answer, request, writer):
        values = self.places() | {
            "n": request.number, "connection": request.connection, "target": request.target, "total": len(self.content),
        }
        status, head, body = self.page(answer) if answer.is_page else self.part(answer, request, values)
        body = gzip.compress(body) if answer.gzip else body
        values |= {"status": status, "length": len(body)}
        usual = {"length": ["Content-Length: {length}"], "chunked": ["Transfer-Encoding: chunked"], "close": []}
        try:
            reason = http.HTTPStatus(status).phrase
        except ValueError:
            reason = "Unknown"
        line = answer.line if answer.line is not None else f"HTTP/1.1 {{status}} {reason}"
        fields = usual[answer.framing] if answer.fields is None else answer.fields
        lines = [line, *head, *answer.add, *fields, "", ""]
        writer.write(filled(answer.before, values) + filled(answer.eol.join(lines), values))
        if request.head.startswith("HEAD "):
            return
        if answer.cut is not None:
            body = body[:answer.cut]
        if answer.framing == "chunked":
            body = chunks(answer, body)
        body += answer.after.encode()
        for start in range(0, len(body), PIECE):
            writer.write(body[start:start + PIECE])
            await writer.drain()
            if answer.rate:
                await asyncio.sleep(PIECE / answer.rate)
        await writer.drain()

    def page(self, answer):
        if answer.location is None:
            return answer.status, answer.head, answer.page.encode()
        return answer.status or 302, [*answer.head, "Location: " + answer.location], answer.page.encode()

    def part(self, answer, request, values):
        """The status, fields and body of the file, or of the range that is requested."""
        total = len(self.content)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.field("Range") or "")
        condition = request.field("If-Range")
        if condition and answer.if_range:
            validators = [filled(line, values).decode("utf-8", "surrogateescape") for line in answer.head]
            if condition not in [line.split(": ", 1)[-1] for line in validators if re.match("etag|last-modified", line, re.I)]:
                wanted = None
        if not wanted or not answer.ranges:
            return 200, answer.head, self.content
        first = int(wanted[1]) // answer.range_step * answer.range_step
        last = min(int(wanted[2] or total) + answer.range_extra, total - 1)
        if first >= total:
            return 416, [*answer.head, f"Content-Range: bytes */{total}"], b""
        if answer.range_max:
            last = min(last, first + answer.range_max - 1)
        values |= {"first": first, "last": last, "beyond": last + 1, "wanted": request.field("Range")[6:]}
        body = self.content[first:last + 1]
        if answer.multipart:
            head = f"--x\r\nContent-Type: a/b\r\nContent-Range: bytes {first}-{last}/{total}\r\n\r\n"
            return 206, [*answer.head, "Content-Type: multipart/byteranges; boundary=x"], head.encode() + body + b"\r\n--x--\r\n"
        stated = [] if answer.content_range is None else ["Content-Range: " + answer.content_range]
        return answer.partial_status, [*answer.head, *stated], body


def chunks(answer, body):
    """The body in chunks, without its end if it is cut."""
    eol = answer.chunk_eol.encode()
    pieces = [body[start:start + answer.chunk_bytes] for start in range(0, len(body), answer.chunk_bytes)]
    text = b"".join((answer.chunk % len(piece)).encode() + eol + piece + eol for piece in pieces)
    return text if answer.cut is not None else text + answer.last.encode()
