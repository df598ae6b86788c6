#!/usr/bin/env python3
"""Compares segdl with the real curl on the behaviours of behaviours.json, in four modes: see scripts/differential.

A case is a behaviour in a mode. Where curl ends with status 0 and the right bytes, so must segdl, unless the behaviour names the
row of the published table of refusals that it belongs to (`refused`); then segdl must refuse it. A status of 0 always means the
right bytes, or those of curl, and nothing beside the file. A file that fails costs few requests. The expected bytes are
computed here, not by segdl.
"""

import argparse
import asyncio
import dataclasses
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time

from server import Server, filled

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "Sources/SegmentedDownload/SegmentedDownload.docc/ComingFromOtherTools.md"
SECTION = "## What curl fetches and segdl refuses"

# Fewer cases mean that the table was not read, or was cut down.
CASES_MIN = 300
# Rows of the table of refusals. Each is something that a user of curl must learn.
REFUSALS_MAX = 15
# Requests that a file may cost that fails. A server that refuses it is not asked for ever.
REQUESTS_MAX = 39
# Seconds of a run. The slowest take about ten, most of them before a retry; a busy machine may need more.
PATIENCE = 60
# Bytes of a behaviour's file, if it names no number: enough for eight segments.
LENGTH = 512 << 10

MODES = {
    "default": ["segdl"],
    "-s 1": ["segdl", "-s", "1"],
    # The segments of a file of half a MiB would otherwise be one.
    "-s 8": ["segdl", "-s", "8", "--min-split-size", "64K"],
    "as curl": ["as-curl/curl", "-sSfL"],
}


@dataclasses.dataclass
class Outcome:
    """What a program did. Without a status it was not finished in time."""

    status: int | None
    content: bytes | None
    others: list
    requests: int
    seconds: float
    message: str

    def is_right(self, content):
        return self.status == 0 and self.content == content


class Lab:
    """Runs programs against behaviours, a few at once."""

    def __init__(self, segdl, curl, directory, jobs):
        self.programs = {"segdl": segdl, "as-curl/curl": str(directory / "bin/curl"), "curl": curl}
        (directory / "bin").mkdir()
        (directory / "bin/curl").symlink_to(segdl)
        self.directory = directory
        self.places = asyncio.Semaphore(jobs)
        # Nothing of the user: no configuration, credentials or proxies.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "LC_ALL": "C.UTF-8", "no_proxy": "*"}
        self.runs = 0

    async def run(self, behaviour, content, command):
        """Runs a command with the behaviour's options and URL, against a server of its own."""
        async with self.places, Server(behaviour, content) as server:
            self.runs += 1
            directory = self.directory / str(self.runs)
            directory.mkdir()
            url = os.fsdecode(filled(behaviour.get("url", "http://{host}/f.bin"), server.places()))
            # `options` are for both programs. The real curl needs an option to keep cookies, for example.
            own = "curl_options" if command[0] == "curl" else "segdl_options"
            options = [*behaviour.get("options", []), *behaviour.get(own, [])]
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                self.programs[command[0]], *command[1:], *options, "-o", "f", url, cwd=directory, env=self.environment,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )
            try:
                output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
                status = process.returncode
            except asyncio.TimeoutError:
                process.kill()
                output, status = b"", None
                await process.wait()
            file = directory / "f"
            return Outcome(
                status, file.read_bytes() if file.exists() else None, sorted(set(os.listdir(directory)) - {"f"}),
                server.requests, time.monotonic() - started, output.decode("utf-8", "replace").strip(),
            )


def judge(behaviour, content, curl, segdl):
    """What is wrong with segdl's outcome beside curl's, or nothing."""
    if segdl.status is None:
        return f"is not finished after {PATIENCE} s"
    if segdl.status == 0:
        if segdl.content not in (content, curl.content if curl.status == 0 else content):
            return "ends with status 0 and a wrong file"
        if segdl.others:
            return "leaves files beside the finished one: " + ", ".join(segdl.others)
        return "is in the table of refusals, but is not refused" if "refused" in behaviour else None
    if segdl.requests > REQUESTS_MAX:
        return f"sends {segdl.requests} requests before it fails"
    if curl.is_right(content) and "refused" not in behaviour:
        return "fails where curl fetches the file"
    return None


def in_mode(behaviour, mode):
    """The behaviour as it counts in a mode: `refused in` names those in which it is refused, if not in all."""
    if mode in behaviour.get("refused in", MODES):
        return behaviour
    return {key: value for key, value in behaviour.items() if key != "refused"}


def published_refusals():
    """The table of the documentation: what is refused, and why."""
    section = PAGE.read_text().split(SECTION, 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return {row[0]: row[1] for row in rows[2:]}


def read_table():
    """The behaviours, each with its group, and the rows of the table of refusals that other tests cover."""
    table = json.loads((HERE / "behaviours.json").read_text())
    behaviours = [
        {**behaviour, "group": group} for group, rows in table["behaviours"].items() for behaviour in rows
    ]
    return behaviours, table["tested elsewhere"]


def faults_of_table(behaviours, elsewhere):
    """What is wrong with the tables themselves."""
    refusals = published_refusals()
    named = {behaviour["refused"] for behaviour in behaviours if "refused" in behaviour} | set(elsewhere)
    names = [f"{behaviour['group']}: {behaviour['name']}" for behaviour in behaviours]
    yield from (f"two behaviours have the name {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    yield from (f"not a row of the table of refusals in {PAGE.name}: {row}" for row in sorted(named - set(refusals)))
    yield from (f"no behaviour has this row of the table of refusals: {row}" for row in refusals if row not in named)
    yield from (f"a row of the table of refusals without a reason: {row}" for row, why in refusals.items() if len(why) < 5)
    if len(refusals) > REFUSALS_MAX:
        yield f"the table of refusals has {len(refusals)} rows, more than {REFUSALS_MAX}"


def content_of(behaviour):
    return hashlib.shake_128(b"segdl").digest(behaviour.get("length", LENGTH))


def check_of_the_judge():
    """What the judge does not find, if it is shown one outcome of each kind: a judge that finds nothing proves nothing."""
    right, wrong = b"right", b"wrong"
    fetched, false = (Outcome(0, content, [], 1, 0, "") for content in (right, wrong))
    failed, late, costly = (Outcome(status, None, [], count, 0, "") for status, count in ((7, 1), (None, 1), (7, 40)))
    untidy = Outcome(0, right, ["f.segdl-part"], 1, 0, "")
    refused = {"refused": "a row"}
    for name, behaviour, curl, segdl, is_fault in (
        ("both fetch it", {}, fetched, fetched, False),
        ("only segdl fetches it", {}, failed, fetched, False),
        ("neither fetches it", {}, failed, failed, False),
        ("it is refused", refused, fetched, failed, False),
        ("the wrong bytes of curl", {}, false, false, False),
        ("only curl fetches it", {}, fetched, failed, True),
        ("a wrong file", {}, fetched, false, True),
        ("a wrong file where curl fails", {}, failed, false, True),
        ("a wrong file of a refused behaviour", refused, fetched, false, True),
        ("a refusal that is none", refused, fetched, fetched, True),
        ("no end", refused, failed, late, True),
        ("many requests", refused, failed, costly, True),
        ("a part that is left", {}, fetched, untidy, True),
    ):
        if (judge(behaviour, right, curl, segdl) is not None) != is_fault:
            yield f"the judge {'accepts' if is_fault else 'rejects'} this: {name}"


async def compare(lab, behaviour, report):
    content = content_of(behaviour)
    curl = await lab.run(behaviour, content, ["curl", "-sSfL"])
    outcomes = await asyncio.gather(*(lab.run(behaviour, content, command) for command in MODES.values()))
    for mode, segdl in zip(MODES, outcomes):
        report.add(in_mode(behaviour, mode), mode, content, curl, segdl)


class Report:
    """Counts cases, and prints those that fail."""

    def __init__(self, is_verbose):
        self.is_verbose = is_verbose
        self.cases = self.fetched = self.refused = self.failed = 0

    def add(self, behaviour, mode, content, curl, segdl):
        self.cases += 1
        self.fetched += segdl.is_right(content)
        self.refused += segdl.status != 0 and curl.is_right(content)
        fault = judge(behaviour, content, curl, segdl)
        self.failed += fault is not None
        if fault is None and not self.is_verbose:
            return
        text = f"{'FAILED' if fault else 'ok'}  {behaviour['group']}: {behaviour['name']}, {mode}"
        text += f": {fault}" if fault else ""
        right = "the right file" if curl.is_right(content) else "not the file"
        text += f"\n    curl: status {curl.status}, {right}, {curl.requests} requests; segdl: status {segdl.status}"
        text += f", {segdl.requests} requests, {segdl.seconds:.1f} s"
        message = segdl.message if segdl.status != 0 else ""
        text += "".join(f"\n    {line}" for line in message.splitlines())
        print(text, flush=True)


def report_unless_closed(loop, context):
    """Ignores connections that a program has closed: asyncio may report them once more. A fault of the server is printed."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)


async def main():
    asyncio.get_running_loop().set_exception_handler(report_unless_closed)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--segdl", required=True, help="the program")
    parser.add_argument("--curl", default="curl", help="the real curl")
    parser.add_argument("--only", default="", metavar="TEXT", help="behaviours whose group or name contains TEXT")
    parser.add_argument("--jobs", type=int, default=8, help="runs at once; most of them wait")
    parser.add_argument("--verbose", action="store_true", help="print the cases that pass, too")
    options = parser.parse_args()
    started = time.monotonic()
    behaviours, elsewhere = read_table()
    faults = [*check_of_the_judge(), *faults_of_table(behaviours, elsewhere)]
    for fault in faults:
        print(f"FAILED  {fault}")
    behaviours = [one for one in behaviours if options.only in f"{one['group']}: {one['name']}"]
    report = Report(options.verbose)
    with tempfile.TemporaryDirectory() as directory:
        lab = Lab(os.path.abspath(options.segdl), options.curl, pathlib.Path(directory), options.jobs)
        await asyncio.gather(*(compare(lab, behaviour, report) for behaviour in behaviours))
    print(
        f"{report.cases} cases of {len(behaviours)} behaviours in {time.monotonic() - started:.0f} s: segdl fetched"
        f" {report.fetched}, and refused {report.refused} that curl fetched; {report.failed + len(faults)} failed."
    )
    is_too_small = not options.only and report.cases < CASES_MIN
    if is_too_small:
        print(f"FAILED  fewer than {CASES_MIN} cases")
    return 1 if report.failed or faults or is_too_small or not report.cases else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
