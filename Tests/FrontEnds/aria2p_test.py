#!/usr/bin/env python3
"""Drives the background service with aria2p, unmodified: its library and its command.

Needs aria2p (pip install aria2p), a running service with --rpc-listen and --rpc-allow-private, and segdl-origin.
Prints one line for each check, and exits with status 1 if one fails.
"""

import argparse
import os
import subprocess
import sys
import threading

import aria2p

# Seconds for what takes milliseconds. Nothing waits for a fixed time.
PATIENCE = 60


class Checks:
    """The checks that have failed."""

    def __init__(self):
        self.failed = 0

    def expect(self, what, is_met, facts=""):
        """Prints the result of a check."""
        print(("ok      " if is_met else "FAILED  ") + what + (f": {facts}" if not is_met else ""), flush=True)
        self.failed += not is_met


def until(download, is_met):
    """Updates a download until it is as wanted, or the time is over."""
    ticks = threading.Event()
    for _ in range(PATIENCE * 20):
        download.update()
        if is_met(download):
            return True
        ticks.wait(0.05)
    return False


def library(checks, api, origin):
    """aria2p's library: add, list, pause, resume, options, remove, purge, notifications."""
    checks.expect("the version is answered", bool(api.client.get_version()["version"]))
    checks.expect("the session is answered", bool(api.client.get_session_info()["sessionId"]))
    seen = []
    done = threading.Event()

    def completed(_, gid):
        seen.append(gid)
        done.set()

    api.listen_to_notifications(threaded=True, on_download_complete=completed, timeout=1)
    download = api.add_uris([f"{origin}/64M/a.bin?rate=4M"], options={"out": "a.bin", "split": "2"})
    checks.expect("a download that was added runs", until(download, lambda d: d.completed_length > 0), download.status)
    checks.expect("it has a name, a length and a speed", download.name == "a.bin" and download.total_length == 64 << 20)
    checks.expect("it is in the list", download.gid in [d.gid for d in api.get_downloads()])
    checks.expect("pause", bool(download.pause()) and until(download, lambda d: d.is_paused), download.status)
    options = api.get_options([download])[0]
    checks.expect("its options are read", options.split == 2 and options.out == "a.bin", options)
    checks.expect("its options are changed", all(api.set_options({"split": "16"}, [download])))
    checks.expect("resume", bool(download.resume()) and until(download, lambda d: d.is_active), download.status)
    checks.expect("global options are changed", api.set_global_options({"max-overall-download-limit": "0"}))
    checks.expect("it is complete", until(download, lambda d: d.is_complete), download.status)
    checks.expect("a notification said so", done.wait(PATIENCE) and seen[0] == download.gid, seen)
    checks.expect("its file is there", os.path.getsize(str(download.files[0].path)) == 64 << 20)
    failing = api.add_uris([f"{origin}/1M/b.bin?fail=404:all"])
    checks.expect("a missing file is an error", until(failing, lambda d: d.has_failed), failing.status)
    checks.expect("the error has aria2's number", failing.error_code == "3", failing.error_code)
    checks.expect("what has failed is tried again", bool(api.retry_downloads([failing])))
    waiting = api.add_uris([f"{origin}/64M/c.bin?rate=1M"], options={"pause": "true"})
    other = api.add_uris([f"{origin}/64M/d.bin?rate=1M"], options={"pause": "true"})
    checks.expect("a download moves in the queue", api.move_to_top(other) is not None)
    checks.expect("remove", all(r is True for r in api.remove([waiting, other])))
    checks.expect("purge", api.purge())
    stats = api.get_stats()
    checks.expect("statistics are read", stats.num_active == 0, stats.num_active)
    checks.expect("a metalink is added", len(api.add_metalink(metalink(origin))) == 1)
    api.stop_listening()
    api.remove_all(force=True)
    wrong = aria2p.API(aria2p.Client(host=api.client.host, port=api.client.port, secret="wrong"))
    try:
        wrong.get_downloads()
        checks.expect("a wrong secret is refused", False)
    except aria2p.ClientException as error:
        checks.expect("a wrong secret is refused", "Unauthorized" in str(error), error)


def metalink(origin):
    """The path of a metalink with one file."""
    path = "one.metalink"
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            '<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="m.bin">'
            f"<url>{origin}/1M/m.bin</url></file></metalink>"
        )
    return path


def command(checks, port, secret, origin):
    """aria2p's command."""

    def run(*arguments):
        return subprocess.run(
            ["aria2p", "--host", "http://127.0.0.1", "--port", str(port), "--secret", secret, *arguments],
            capture_output=True, text=True, timeout=PATIENCE, check=False)

    added = run("add", f"{origin}/64M/e.bin?rate=1M")
    checks.expect("aria2p add", added.returncode == 0, added.stderr)
    shown = run("show")
    checks.expect("aria2p show", shown.returncode == 0 and "e.bin" in shown.stdout, shown.stdout + shown.stderr)
    for arguments in (["pause", "--all"], ["resume", "--all"], ["remove", "--all"], ["purge"]):
        outcome = run(*arguments)
        checks.expect("aria2p " + " ".join(arguments), outcome.returncode == 0, outcome.stdout + outcome.stderr)
    call = run("call", "getVersion")
    checks.expect("aria2p call", call.returncode == 0 and "version" in call.stdout, call.stdout + call.stderr)


def main():
    """Runs all checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="the port of the RPC on 127.0.0.1")
    parser.add_argument("--secret", required=True, help="the service's secret")
    parser.add_argument("--origin", required=True, help="the URL of segdl-origin, as the service reaches it")
    arguments = parser.parse_args()
    checks = Checks()
    client = aria2p.Client(host="http://127.0.0.1", port=arguments.port, secret=arguments.secret)
    library(checks, aria2p.API(client), arguments.origin)
    command(checks, arguments.port, arguments.secret, arguments.origin)
    sys.exit(1 if checks.failed else 0)


main()
