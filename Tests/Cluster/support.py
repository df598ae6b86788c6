"""What the tests of this directory share: checks, files to fetch, and comparisons."""

import collections
import filecmp
import json
import os
import signal
import sys


# 512 KiB: a connection records its bytes in the manifest whenever so many are written. A kill loses those since its last
# record, whether or not they were synced, and what the server has written into its socket.
CLAIM_LENGTH = 512 << 10


def losses(path):
    """What each run of a task in a log of events had written and the next did not find.

    Yields pairs: the bytes, at least, and the most connections that the run had. The killed run's last progress is up to
    200 ms old.
    """
    done = connections = 0
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            # A kill cuts a line.
            continue
        if event["event"] == "started":
            if connections:
                yield done - event["resumed_from"], connections
            done, connections = event["resumed_from"], 0
        elif event["event"] == "progress":
            done, connections = event["bytes_done"], max(connections, event["connections"])


def expect_small_losses(checks, name, paths):
    """Expects that every run of the tasks with these logs of events resumes what the run before it had written."""
    found = [loss for path in paths for loss in losses(path)]
    facts = ", ".join(f"{lost / (1 << 20):.2f} of {count}" for lost, count in found)
    print(f"        lost in a kill, in MiB, of so many connections: {facts}", flush=True)
    checks.expect(f"{name}: tasks were resumed", found)
    checks.expect(
        f"{name}: a kill loses at most {CLAIM_LENGTH >> 10} KiB of each connection",
        all(lost <= count * CLAIM_LENGTH for lost, count in found), facts)


class Running:
    """A context in which something runs. Subclasses have start() and stop(), which also ends what start() has begun."""

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


def run_tests(arguments, missing, body):
    """Calls `body` with the checks of a run with a seed, and returns the exit status.

    - missing: Why the tests cannot run here; None if they can.
    """
    if missing:
        print(f"skipped: {missing}")
        return 0
    arguments.segdl = os.path.abspath(arguments.segdl)
    print(f"seed {arguments.seed}", flush=True)
    # So that contexts end what they have started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    checks = Checks()
    body(checks)
    return 1 if checks.failed else 0


class Checks:
    """The checks that have failed."""

    def __init__(self):
        self.failed = 0

    def expect(self, what, is_met, facts=""):
        """Prints the result of a check."""
        print(("ok      " if is_met else "FAILED  ") + what + (f": {facts}" if facts and not is_met else ""), flush=True)
        self.failed += not is_met


def make_small_files(directory, count, dice):
    """Creates files of 1 to 4 KiB whose contents differ."""
    os.makedirs(directory)
    for number in range(count):
        with open(f"{directory}/{number:06}.bin", "wb") as file:
            file.write(f"{number}\n".encode() + dice.randbytes(dice.randrange(1024, 4096)))


def make_large_file(path, length, dice):
    """Creates a file without equal blocks, so that a block in a wrong place is noticed."""
    # Not a multiple of a page.
    pattern = dice.randbytes((4 << 20) + 4093)
    with open(path, "wb") as file:
        number = 0
        while file.tell() < length:
            number += 1
            block = number.to_bytes(8, "big") + pattern
            file.write(block[:length - file.tell()])


def differences(source, out):
    """The names of files that differ, are missing, or should not be there."""
    wanted, found = set(os.listdir(source)), set(os.listdir(out))
    _, differing, unreadable = filecmp.cmpfiles(source, out, sorted(wanted & found), shallow=False)
    return differing + unreadable, sorted(wanted - found), sorted(found - wanted)


def expect_same_files(checks, name, source, out):
    differing, absent, surplus = differences(source, out)
    checks.expect(f"{name}: every file has its source's bytes", not differing, f"{len(differing)}: {differing[:3]}")
    checks.expect(f"{name}: no file is missing", not absent, f"{len(absent)}: {absent[:3]}")
    checks.expect(f"{name}: no other file is left", not surplus, f"{len(surplus)}: {surplus[:3]}")


def differing_bytes(source, path):
    """Where two files differ first, how many of their 4 KiB pages do, and how many of those are zero at the end."""
    if not os.path.exists(path) or os.path.getsize(path) != os.path.getsize(source):
        return "the file is missing or has another length"
    pages = zero = 0
    first = None
    with open(source, "rb") as one, open(path, "rb") as other:
        while block := one.read(1 << 20):
            found = other.read(1 << 20)
            for offset in range(0, len(block) if block != found else 0, 4096):
                if block[offset:offset + 4096] != found[offset:offset + 4096]:
                    pages += 1
                    zero += found[offset:offset + 4096].endswith(b"\0" * 16)
                    first = one.tell() - len(block) + offset if first is None else first
    return f"from {first} on: {pages} pages differ, of which {zero} end with zeros" if pages else ""


def fetches(server):
    """How often each path was sent, wholly or in part."""
    return collections.Counter(
        request.path for request in server.requests() if request.method == "GET" and request.status in (200, 206))
