#!/usr/bin/env python3
"""Runs the examples of Examples/Cluster that need no cluster: GNU parallel, processes of Python, and workers of Dask and Ray.

Needs nginx; without it, or without GNU parallel, Dask or Ray, prints "skipped: " and a reason. Dask and Ray are those of the
Python that runs this test:

  python3 -m venv env && env/bin/pip install ray 'dask[distributed]' && env/bin/python examples_test.py --segdl segdl

Prints one line for each check, and exits with status 1 if one fails.
"""

import argparse
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile

import slurm
import static_server
from support import Checks, expect_same_files, fetches, make_small_files

EXAMPLES = os.path.abspath(f"{os.path.dirname(__file__)}/../../Examples/Cluster")
FILES = 500
# Seconds for what takes about two.
PATIENCE = 120
# The module of each executor of dask_shards.py, and what pip calls it.
MODULES = {"dask": ("distributed", "dask[distributed]"), "ray": ("ray", "ray")}


def environment(segdl):
    """With the program first in PATH. Ray reports nothing to its makers, and writes no token into the user's directory."""
    return {
        **os.environ, "PATH": f"{os.path.dirname(segdl)}:{os.environ['PATH']}", "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled"}


def run(command, segdl):
    """Runs an example. Returns its status and output."""
    result = subprocess.run(
        command, env=environment(segdl), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False, timeout=PATIENCE)
    return result.returncode, result.stdout


def check_example(checks, name, command, segdl, directory, dice):
    """An example fetches every file once, and nothing when it is run again."""
    source, out, entries = f"{directory}/source", f"{directory}/out", f"{directory}/list.txt"
    make_small_files(source, FILES, dice)
    with static_server.StaticServer(f"{directory}/nginx", source) as server:
        with open(entries, "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/{each}\n" for each in sorted(os.listdir(source)))
        command = [*command, entries, out]
        status, text = run(command, segdl)
        checks.expect(f"{name}: status 0", status == 0, f"{status}: {text[-2000:]}")
        counts = fetches(server)
        checks.expect(
            f"{name}: every file is fetched once", len(counts) == FILES and set(counts.values()) == {1}, len(counts))
        before = server.request_count()
        status, text = run(command, segdl)
        checks.expect(
            f"{name}: again, it requests nothing", status == 0 and server.request_count() == before,
            f"{status}, {server.request_count() - before} requests: {text[-2000:]}")
        # A file that the server does not have.
        with open(entries, "a", encoding="utf-8") as file:
            file.write(f"{server.url}/missing.bin\n")
        status, text = run(command, segdl)
        checks.expect(f"{name}: a failed entry is an error", status != 0, f"{status}: {text[-2000:]}")
    expect_same_files(checks, name, source, out)


def workers(entries):
    """The processes that have started a task of a list."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"--shard" in words and entries.encode() in words:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    found.append(int(file.read().rpartition(")")[2].split()[1]))
        except OSError:
            # It has just ended, or is no process.
            continue
    return found


def check_killed_worker(checks, name, command, segdl, directory, dice):
    """The task of a worker that is killed is run again, and fetches only what is not finished."""
    source, out, entries = f"{directory}/source", f"{directory}/out", f"{directory}/list.txt"
    make_small_files(source, FILES, dice)
    with static_server.StaticServer(f"{directory}/nginx", source, rate=FILES // 10) as server:
        with open(entries, "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/{each}\n" for each in sorted(os.listdir(source)))
        with open(f"{directory}/log", "w+", encoding="utf-8") as log:
            # pylint: disable=consider-using-with
            process = subprocess.Popen(
                [*command, entries, out], env=environment(segdl), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                slurm.until("a third of the files are fetched", lambda: server.request_count() > FILES // 3, PATIENCE)
                os.kill(dice.choice(workers(entries)), signal.SIGKILL)
                status = process.wait(PATIENCE)
            finally:
                process.kill()
                process.wait()
            log.seek(0)
            checks.expect(f"{name}, a worker is killed: status 0", status == 0, f"{status}: {log.read()[-2000:]}")
    repeated = sum(fetches(server).values()) - FILES
    print(f"        {FILES} files, 1 kill: {repeated} fetched again", flush=True)
    checks.expect(f"{name}, a worker is killed: at most 5 files are fetched again", repeated <= 5, repeated)
    expect_same_files(checks, f"{name}, a worker is killed", source, out)


def check_executor(checks, executor, segdl, dice):
    """Dask or Ray on this machine."""
    name = f"dask_shards.py --with {executor}"
    command = [sys.executable, f"{EXAMPLES}/dask_shards.py", "--tasks", "4", "--with", executor]
    for check in (check_example, check_killed_worker):
        # A short name: Ray has sockets in it.
        with tempfile.TemporaryDirectory(prefix="segdl-") as directory:
            os.environ["RAY_TMPDIR"] = directory
            check(checks, name, command, segdl, directory, dice)


def run_in_own_network(executor, arguments):
    """Runs this test for an executor in a network namespace of its own, because its servers listen on all addresses. Returns
    its status.
    """
    module, package = MODULES[executor]
    if not importlib.util.find_spec(module):
        print(f"skipped: dask_shards.py --with {executor} needs {executor} (pip install '{package}')", flush=True)
        return 0
    script = 'ip link set lo up && exec "$@"'
    if subprocess.run(["unshare", "--net", "sh", "-c", script, "sh", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print(f"skipped: dask_shards.py --with {executor} needs a network namespace (unshare --net, ip)", flush=True)
        return 0
    command = [sys.executable, __file__, "--segdl", arguments.segdl, "--seed", str(arguments.seed), "--with", executor]
    return subprocess.run(["unshare", "--net", "sh", "-c", script, "sh", *command], check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segdl", required=True, help="the program, which is named segdl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--with", dest="executor", choices=MODULES, help="only this, in the network as it is")
    arguments = parser.parse_args()
    reason = static_server.StaticServer.missing()
    if reason:
        print(f"skipped: {reason}")
        return 0
    segdl = os.path.abspath(arguments.segdl)
    dice = random.Random(arguments.seed)
    checks = Checks()
    if arguments.executor:
        check_executor(checks, arguments.executor, segdl, dice)
        return 1 if checks.failed else 0
    for name in ("array.sbatch", "one-file.sbatch", "parallel.sh"):
        checks.expect(f"{name}: bash reads it", subprocess.run(["bash", "-n", f"{EXAMPLES}/{name}"], check=False).returncode == 0)
    examples = {"dask_shards.py with processes": [sys.executable, f"{EXAMPLES}/dask_shards.py", "--tasks", "4"]}
    if slurm.program("parallel"):
        examples["parallel.sh"] = [f"{EXAMPLES}/parallel.sh"]
    else:
        print("skipped: parallel.sh needs GNU parallel (apt-get install parallel)")
    for name, command in examples.items():
        with tempfile.TemporaryDirectory(prefix="segdl-examples-") as directory:
            check_example(checks, name, command, segdl, directory, dice)
    statuses = [run_in_own_network(executor, arguments) for executor in MODULES]
    return 1 if checks.failed or any(statuses) else 0


if __name__ == "__main__":
    sys.exit(main())
