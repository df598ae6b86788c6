"""What the tests of this directory share: checks, files to fetch, and comparisons."""

import collections
import filecmp
import os


# 64 MiB, 5 s: a task checkpoints its progress at the earlier of the two. A kill loses what came since.
CHECKPOINT_LENGTH, CHECKPOINT_INTERVAL = 64 << 20, 5
# 5: seconds that syncing a checkpoint to a busy disk may take, in which bytes arrive.
SYNC_TIME = 5
# 16 MiB: what the server has written into the sockets of a task and the task has not received.
SOCKET_BUFFERS = 16 << 20


def repeated_length_max(speed):
    """The bytes that a task may fetch again after a kill.

    - speed: Of the task, in bytes per second.
    """
    return int(min(CHECKPOINT_LENGTH, CHECKPOINT_INTERVAL * speed) + SYNC_TIME * speed + SOCKET_BUFFERS)


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


def fetches(server):
    """How often each path was sent, wholly or in part."""
    return collections.Counter(
        request.path for request in server.requests() if request.method == "GET" and request.status in (200, 206))
