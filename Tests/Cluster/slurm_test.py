#!/usr/bin/env python3
"""Runs tasks of segdl on a Slurm cluster, and requeues, kills and crashes them.

Needs root, slurm-wlm, munge and nginx; without them it prints "skipped: " and a reason. Starts the cluster itself
(slurm.py). Prints one line for each check, and exits with status 1 if one fails.
"""

import argparse
import collections
import filecmp
import glob
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import slurm
import static_server
from support import expect_same_files, expect_small_losses, fetches, make_large_file, make_small_files, run_tests

# What the tasks run. {out} is a directory for a list, and a file for one URL.
LIST_COMMAND = "{segdl} --shard auto --job {job} -i {list} -d {out} --quiet"
# The events of each task of an array, or of a step, are in a file of their own.
ONE_FILE_COMMAND = (
    "{segdl} --shard auto --one-file -o {out} --json {url} >> {events}/${{SLURM_ARRAY_TASK_ID:-$SLURM_PROCID}}")
STATUS_COMMAND = "{segdl} status --job {job}"
# -j: the files that a task fetches at once, and so may lose in a kill.
FILES_AT_ONCE = 5
# Seconds for a test's download as a whole, in which a task may wait several times for 30 s until another machine's run
# counts as ended.
PATIENCE = 900
TASKS = 8
ONE_FILE_TASKS = 4
# Two more than tasks, for those of a crashed node.
NODES = TASKS + 2
END_STATES = {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT"}
# SIGTERM, then SIGKILL; SIGKILL by Slurm to all processes; SIGKILL to the program.
REQUEUE, CANCEL, KILL = "requeue", "cancel", "kill"


class Disruption:
    """Requeues and kills random running tasks of a job, and starts tasks again that were ended so."""

    def __init__(self, cluster, job, segdl, dice):
        self.cluster = cluster
        self.job = job
        self.name = os.path.basename(segdl)
        self.dice = dice
        self.counts = collections.Counter()
        # The tasks that were ended and not yet started again. Only these may fail.
        self.ended = set()

    def disrupt(self, kind):
        """Ends a random task. Returns whether one ran."""
        running = {}
        for pid, environment in self.cluster.processes(self.name):
            if environment.get("SLURM_ARRAY_JOB_ID", environment["SLURM_JOB_ID"]) == self.job:
                index = environment.get("SLURM_ARRAY_TASK_ID")
                running.setdefault(None if index is None else int(index), []).append(pid)
        running = {index: pids for index, pids in running.items() if index not in self.ended}
        if not running:
            return False
        index = self.dice.choice(sorted(running, key=str))
        task = self.job if index is None else f"{self.job}_{index}"
        if kind == REQUEUE:
            # Refused if the task ended in this moment.
            if not self.cluster.succeeds("scontrol", "requeue", task):
                return False
        elif kind == CANCEL:
            if not self.cluster.succeeds("scancel", "--signal=KILL", "--full", task):
                return False
            self.ended.add(index)
        elif self.cluster.kill(self.dice.choice(running[index])):
            self.ended.add(index)
        else:
            return False
        self.counts[kind] += 1
        return True

    def restart(self):
        """Requeues the tasks that were killed, once Slurm has noticed. Returns the tasks that failed on their own."""
        states = self.cluster.states(self.job)
        failed = {}
        for index, state in states.items():
            if state in ("PENDING", "RUNNING", "COMPLETING", "COMPLETED", "REQUEUED"):
                if state == "COMPLETED":
                    # The kill came after the task's last act.
                    self.ended.discard(index)
            elif index in self.ended:
                self.cluster.requeue(self.job, index)
                self.ended.discard(index)
            else:
                failed[index] = state
        return failed

    def finish(self, is_due, kinds):
        """Disrupts the job when `is_due` says so, once for each of `kinds`, until all tasks are complete.

        - is_due: Takes the number of disruptions so far.
        Returns the tasks that failed on their own, with their states.
        """
        kinds = list(kinds)

        def is_finished():
            if kinds and is_due(self.counts.total()) and self.disrupt(kinds[-1]):
                kinds.pop()
            failed = self.restart()
            if failed:
                return failed
            states = set(self.cluster.states(self.job).values())
            return {} if states != {"COMPLETED"} or self.ended else {"": "COMPLETED"}

        outcome = slurm.until("all tasks are complete", is_finished, PATIENCE)
        return {} if outcome == {"": "COMPLETED"} else outcome


def array_script(command):
    """A batch script that becomes the command, so that its status is the task's."""
    return f"exec {command}\n"


def output(path):
    """The end of the tasks' output."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()[-2000:]


class Place:
    """The directories of one test: server and cluster are local, files and records of the job are on a shared directory."""

    def __init__(self, arguments, name):
        self.local = f"{arguments.work}/{name}"
        self.shared = f"{arguments.shared}/{name}"
        for directory in (self.local, self.shared):
            os.makedirs(directory)
        self.source = f"{self.local}/source"
        self.log = f"{self.local}/tasks.log"

    def remove(self):
        shutil.rmtree(self.local)
        shutil.rmtree(self.shared)


def list_job(checks, cluster, arguments, dice):
    """An array job over a list of small files, with requeues and kills."""
    place = Place(arguments, "list")
    make_small_files(place.source, arguments.files, dice)
    out, job, entries = f"{place.shared}/out", f"{place.shared}/job", f"{place.shared}/list"
    with static_server.StaticServer(f"{place.local}/nginx", place.source, rate=arguments.rate) as server:
        with open(entries, "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/{name}\n" for name in sorted(os.listdir(place.source)))
        command = LIST_COMMAND.format(segdl=arguments.segdl, job=job, list=entries, out=out)
        begin = time.monotonic()
        number = cluster.submit(
            array_script(command), f"--array=0-{TASKS - 1}", "-o", place.log, "--open-mode=append", "--requeue")
        disruption = Disruption(cluster, number, arguments.segdl, dice)
        kinds = [REQUEUE, CANCEL, KILL] * (arguments.kills // 3 + 1)
        kinds = kinds[:arguments.kills]
        dice.shuffle(kinds)
        # Between 5 % and 85 % of the files.
        points = sorted(dice.uniform(0.05, 0.85) * arguments.files for _ in kinds)
        failed = disruption.finish(
            lambda count: count < len(points) and server.request_count() >= points[count], kinds)
        seconds = time.monotonic() - begin
        checks.expect("list: every task ends with status 0", not failed, f"{failed}\n{output(place.log)}")
        status = subprocess.run(
            shlex.split(STATUS_COMMAND.format(segdl=arguments.segdl, job=job)), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        checks.expect(
            "list: the job's status is complete", status.returncode == 0, f"{status.returncode}: {status.stdout[-2000:]}")
        before = server.request_count()
        again = cluster.submit(
            array_script(command), f"--array=0-{TASKS - 1}", "-o", place.log, "--open-mode=append")
        failed = Disruption(cluster, again, arguments.segdl, dice).finish(lambda _: False, [])
        checks.expect(
            "list: the same job again requests nothing", not failed and server.request_count() == before,
            f"{failed}, {server.request_count() - before} requests\n{output(place.log)}")
    counts = fetches(server)
    repeated = sum(count - 1 for count in counts.values())
    bound = disruption.counts.total() * FILES_AT_ONCE
    disrupted = ", ".join(f"{kind} {count}" for kind, count in sorted(disruption.counts.items()))
    print(f"        {arguments.files} files, {TASKS} tasks, {disrupted}: {repeated} fetched again, {seconds:.0f} s", flush=True)
    checks.expect("list: tasks were disrupted", disruption.counts.total() == len(points), disruption.counts)
    checks.expect(f"list: at most {bound} files are fetched again", repeated <= bound, repeated)
    expect_same_files(checks, "list", place.source, out)
    place.remove()


def crashed_node(checks, cluster, arguments, dice):
    """Nodes that fail: one loses its processes, one only its connection to Slurm."""
    place = Place(arguments, "crash")
    count = max(arguments.files // 5, TASKS)
    make_small_files(place.source, count, dice)
    out, job, entries = f"{place.shared}/out", f"{place.shared}/job", f"{place.shared}/list"
    with static_server.StaticServer(f"{place.local}/nginx", place.source, rate=max(arguments.rate // 4, 1)) as server:
        with open(entries, "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/{name}\n" for name in sorted(os.listdir(place.source)))
        command = LIST_COMMAND.format(segdl=arguments.segdl, job=job, list=entries, out=out)
        number = cluster.submit(
            array_script(command), f"--array=0-{TASKS - 1}", "-o", place.log, "--open-mode=append", "--requeue")
        slurm.until("some files are fetched", lambda: server.request_count() > count / 10)
        running = dict(
            (environment["SLURMD_NODENAME"], int(environment["SLURM_ARRAY_TASK_ID"]))
            for _, environment in cluster.processes(os.path.basename(arguments.segdl)))
        lost, separated = dice.sample(sorted(running), 2)
        cluster.crash(lost, with_processes=True)
        cluster.crash(separated, with_processes=False)
        disruption = Disruption(cluster, number, arguments.segdl, dice)
        # The task runs twice now. The second run may end with an error, and is started again.
        disruption.ended.add(running[separated])

        def is_finished():
            failed = disruption.restart()
            # It may end with an error several times, until the first run ends.
            disruption.ended.add(running[separated])
            return failed or set(cluster.states(number).values()) == {"COMPLETED"}

        outcome = slurm.until("all tasks are complete", is_finished, PATIENCE)
        checks.expect("crash: every task ends with status 0", outcome is True, f"{outcome}\n{output(place.log)}")
        slurm.until(
            "the separated node's processes have ended",
            lambda: not cluster.processes(os.path.basename(arguments.segdl)))
    repeated = sum(number - 1 for number in fetches(server).values())
    print(f"        {count} files, {TASKS} tasks, 2 nodes crashed: {repeated} fetched again", flush=True)
    checks.expect(f"crash: at most {2 * FILES_AT_ONCE} files are fetched again", repeated <= 2 * FILES_AT_ONCE, repeated)
    expect_same_files(checks, "crash", place.source, out)
    for node in (lost, separated):
        cluster.repair(node)
    slurm.until("all nodes are idle", lambda: cluster.node_states() == ["idle"] * NODES)
    place.remove()


def one_file(checks, cluster, arguments, dice, by):
    """Tasks that fill one file: an array whose tasks are killed one by one, or a step that is started again as a whole."""
    name = f"one file, {by}"
    place = Place(arguments, f"one-file-{by}")
    length = arguments.length
    os.makedirs(place.source)
    make_large_file(f"{place.source}/large", length, dice)
    out = f"{place.shared}/large"
    events = f"{place.local}/events"
    os.makedirs(events)
    # About 20 s for a task that has four connections.
    rate = max(length // (ONE_FILE_TASKS * 4 * 20), 1 << 20)
    with static_server.StaticServer(f"{place.local}/nginx", place.source, connection_rate=rate) as server:
        command = ONE_FILE_COMMAND.format(segdl=arguments.segdl, out=out, url=f"{server.url}/large", events=events)
        common = ("-o", place.log, "--open-mode=append", "--requeue")
        begin = time.monotonic()
        if by == "array":
            number = cluster.submit(array_script(command), f"--array=0-{ONE_FILE_TASKS - 1}", *common)
            kinds = [KILL, REQUEUE, KILL, CANCEL, KILL]
        else:
            number = cluster.submit(
                f"exec srun --kill-on-bad-exit=1 sh -c 'exec {command}'\n", "-N", str(ONE_FILE_TASKS), "-n",
                str(ONE_FILE_TASKS), *common)
            kinds = [KILL, REQUEUE]
        points = sorted(dice.uniform(0.1, 0.8) * length for _ in kinds)
        disruption = Disruption(cluster, number, arguments.segdl, dice)
        failed = disruption.finish(
            lambda count: count < len(points) and server.bytes_sent() >= points[count], kinds)
        seconds = time.monotonic() - begin
    checks.expect(f"{name}: every task ends with status 0", not failed, f"{failed}\n{output(place.log)}")
    sent = sum(request.body_length for request in server.requests())
    disrupted = ", ".join(f"{kind} {count}" for kind, count in sorted(disruption.counts.items()))
    print(
        f"        {length >> 20} MiB, {ONE_FILE_TASKS} tasks, {disrupted}: {(sent - length) / (1 << 20):.1f} MiB fetched again, "
        f"{seconds:.0f} s", flush=True)
    checks.expect(f"{name}: tasks were disrupted", disruption.counts.total() == len(points), disruption.counts)
    expect_small_losses(checks, name, sorted(glob.glob(f"{events}/*")))
    checks.expect(
        f"{name}: the file has its source's bytes",
        os.path.exists(out) and filecmp.cmp(f"{place.source}/large", out, shallow=False))
    checks.expect(f"{name}: no other file is left", os.listdir(place.shared) == ["large"], os.listdir(place.shared))
    place.remove()


def environments(checks, cluster, arguments, _):
    """Places in Slurm where --shard auto must not take a shard that is not meant."""
    place = Place(arguments, "environments")
    entries = f"{place.shared}/list"
    with open(entries, "w", encoding="utf-8") as file:
        # Never fetched.
        file.write("http://127.0.0.1:1/none\n")
    command = LIST_COMMAND.format(
        segdl=arguments.segdl, job=f"{place.shared}/job", list=entries, out=f"{place.shared}/out")
    for what, options in [
        ("a batch script with -n 4 that does not use srun", ["-n", "4", "-N", "4"]),
        ("a batch script without an array", []),
        ("an array with gaps", ["--array=3,5"]),
    ]:
        number = cluster.submit(f"{command}\necho status=$?\n", *options, "-o", place.log, "--open-mode=append")
        slurm.until("the job ends", lambda job=number: set(cluster.states(job).values()) == {"COMPLETED"})
        text = output(place.log)
        os.remove(place.log)
        # 2: an error of usage.
        statuses = [line for line in text.splitlines() if line.startswith("status=")]
        checks.expect(f"environment: {what} is refused", set(statuses) == {"status=2"}, text)
    place.remove()


def examples(checks, cluster, arguments, dice):
    """The batch scripts of Examples/Cluster, unchanged."""
    directory = os.path.abspath(f"{os.path.dirname(__file__)}/../../Examples/Cluster")
    place = Place(arguments, "examples")
    # A program named segdl in PATH.
    os.makedirs(f"{place.local}/bin")
    os.symlink(arguments.segdl, f"{place.local}/bin/segdl")
    make_small_files(place.source, 500, dice)
    make_large_file(f"{place.local}/large", 64 << 20, dice)
    os.makedirs(f"{place.shared}/logs")
    with static_server.StaticServer(f"{place.local}/nginx", place.local) as server:
        with open(f"{place.shared}/list.txt", "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/source/{name}\n" for name in sorted(os.listdir(place.source)))
        for name, variables in [("array.sbatch", {}), ("one-file.sbatch", {"URL": f"{server.url}/large"})]:
            variables["PATH"] = f"{place.local}/bin:{os.environ['PATH']}"
            number = cluster.submit_file(f"{directory}/{name}", f"--chdir={place.shared}", variables=variables)
            ended = slurm.until(
                f"{name} ends", lambda job=number: END_STATES.issuperset(states := set(cluster.states(job).values())) and states)
            checks.expect(f"examples: {name} is complete", ended == {"COMPLETED"}, ended)
        counts = fetches(server)
    repeated = sum(counts[f"/source/{name}"] != 1 for name in os.listdir(place.source))
    checks.expect("examples: every file of array.sbatch is fetched once", repeated == 0, repeated)
    expect_same_files(checks, "examples: array.sbatch", place.source, f"{place.shared}/files")
    checks.expect(
        "examples: the file of one-file.sbatch has its source's bytes",
        filecmp.cmp(f"{place.local}/large", f"{place.shared}/large", shallow=False))
    place.remove()


TESTS = {
    "environments": environments,
    "examples": examples,
    "list": list_job,
    "crash": crashed_node,
    "one-file-array": lambda *arguments: one_file(*arguments, by="array"),
    "one-file-srun": lambda *arguments: one_file(*arguments, by="srun"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segdl", required=True, help="the program")
    parser.add_argument("--shared", help="an existing directory for files and records, e.g. on NFS (default: a temporary one)")
    parser.add_argument("--files", type=int, default=20_000, help="the number of small files (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=1000, help="requests per second for small files (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=12, help="requeues and kills in the list's job (default: %(default)s)")
    parser.add_argument("--length", type=int, default=8 << 30, help="of the large file, in bytes (default: 8 GiB)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="replays choices, not times")
    parser.add_argument("tests", nargs="*", default=list(TESTS), help=f"of {', '.join(TESTS)} (default: all)")
    arguments = parser.parse_args()

    def tests(checks):
        with tempfile.TemporaryDirectory(prefix="segdl-slurm-") as work:
            # munged wants directories that every user can pass through.
            os.chmod(work, 0o711)
            arguments.work = f"{work}/tests"
            os.makedirs(arguments.work)
            with tempfile.TemporaryDirectory(prefix="segdl-slurm-", dir=arguments.shared) as shared:
                arguments.shared = shared
                with slurm.Cluster(f"{work}/slurm", NODES) as cluster:
                    print(f"ok      Slurm {'.'.join(map(str, cluster.version()))} runs with {NODES} nodes", flush=True)
                    for name in arguments.tests:
                        # Each test has its own dice, so that it does not depend on those before it.
                        TESTS[name](checks, cluster, arguments, random.Random(f"{arguments.seed} {name}"))

    return run_tests(arguments, slurm.missing() or static_server.StaticServer.missing(), tests)


if __name__ == "__main__":
    sys.exit(main())
