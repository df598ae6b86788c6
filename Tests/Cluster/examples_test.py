#!/usr/bin/env python3
"""Runs the examples of Examples/Cluster that need no cluster: GNU parallel, and processes of Python.

Needs nginx; without it, or without GNU parallel, prints "skipped: " and a reason. Prints one line for each check, and
exits with status 1 if one fails.
"""

import argparse
import os
import random
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


def run(command, segdl):
    """Runs an example with the program first in PATH. Returns its status and output."""
    environment = {**os.environ, "PATH": f"{os.path.dirname(segdl)}:{os.environ['PATH']}"}
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segdl", required=True, help="the program, which is named segdl")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    reason = static_server.StaticServer.missing()
    if reason:
        print(f"skipped: {reason}")
        return 0
    segdl = os.path.abspath(arguments.segdl)
    dice = random.Random(arguments.seed)
    checks = Checks()
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
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
