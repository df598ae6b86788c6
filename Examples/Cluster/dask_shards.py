#!/usr/bin/env python3
"""Fetches the files of a list with tasks of Dask, of Ray, or of this machine's processes.

  dask_shards.py list.txt files --tasks 8                                  processes of this machine
  dask_shards.py list.txt files --tasks 8 --with dask --address HOST:8786  workers of a Dask cluster
  dask_shards.py list.txt files --tasks 8 --with ray --address auto        workers of a Ray cluster

List, files and the job's directory are on a file system that all workers share. A task that is run again, by the
scheduler or with the same command, skips the files that are recorded in the job's directory.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys


def fetch(number, count, entries, out, segdl="segdl"):
    """Fetches the files of task `number` of `count`, counted from 1. Raises RuntimeError if some failed."""
    # segdl ends with the worker that started it. Otherwise it would continue after the worker was killed, and the task would be
    # refused when it is run again.
    command = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    command += [
        segdl, "--shard", f"{number}/{count}", "--job", f"{entries}.segdl-job", "-i", entries, "-d", out, "--quiet",
    ]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"task {number}/{count} ended with status {result.returncode}:\n{result.stderr.strip()}")
    return number


def with_processes(calls, _):
    """Each task is a process, so that threads suffice to wait for them."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as executor:
        yield from executor.map(lambda call: fetch(*call), calls)


def with_dask(calls, address):
    """Each task is a Dask task, which is run again up to three times, also on another worker."""
    from dask.distributed import Client, as_completed  # pylint: disable=import-outside-toplevel

    with Client(address) as client:
        # Not pure: a task that failed is to run again.
        futures = [client.submit(fetch, *call, pure=False, retries=3) for call in calls]
        for future in as_completed(futures):
            yield future.result()


def with_ray(calls, address):
    """Each task is a Ray task. Ray runs those of lost workers again by itself, and others if retry_exceptions is set."""
    import ray  # pylint: disable=import-outside-toplevel

    ray.init(address=address)
    remote = ray.remote(num_cpus=1, max_retries=3, retry_exceptions=True)(fetch)
    waiting = [remote.remote(*call) for call in calls]
    while waiting:
        done, waiting = ray.wait(waiting)
        yield from ray.get(done)


def main():
    """Prints a line for each task that is complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("out")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--with", dest="executor", choices=["processes", "dask", "ray"], default="processes")
    parser.add_argument("--address", help="of the scheduler (default: a cluster on this machine)")
    parser.add_argument("--segdl", default="segdl", help="the program, as workers find it")
    arguments = parser.parse_args()
    run = {"processes": with_processes, "dask": with_dask, "ray": with_ray}[arguments.executor]
    calls = [
        (number, arguments.tasks, os.path.abspath(arguments.list), os.path.abspath(arguments.out), arguments.segdl)
        for number in range(1, arguments.tasks + 1)
    ]
    try:
        for number in run(calls, arguments.address):
            print(f"task {number}/{arguments.tasks} is complete", flush=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
