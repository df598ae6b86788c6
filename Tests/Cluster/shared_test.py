#!/usr/bin/env python3
"""Runs tasks of segdl that share a directory through several mounts, such as NFS, as on several machines; kills some.

Each task has a UTS and a mount namespace of its own, in which its host name differs and one of the given directories is
mounted at a common path. All of them must be the same directory. With NFS, mounts with the option nosharecache have caches of
their own, as on different machines:

  mount -t nfs -o nosharecache server:/export /mnt/1; mount -t nfs -o nosharecache server:/export /mnt/2
  shared_test.py --segdl segdl /mnt/1 /mnt/2

Needs root and nginx; without them it prints "skipped: " and a reason. Prints one line for each check, and exits with status
1 if one fails.
"""

import argparse
import collections
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import slurm
import static_server
from support import differing_bytes, expect_same_files, expect_small_losses, fetches, make_large_file, make_small_files, run_tests

LIST_COMMAND = ["--job", "{shared}/job", "-i", "{shared}/list", "-d", "{shared}/out", "--quiet"]
ONE_FILE_COMMAND = ["--one-file", "-o", "{shared}/large", "--json", "{url}"]
# -j: the files that a task fetches at once, and so may lose in a kill.
FILES_AT_ONCE = 5
# Seconds, in which tasks may wait several times for 30 s until another machine's run counts as ended.
PATIENCE = 900


class Task:
    """A task that is run, on one machine after another, until it ends by itself."""

    def __init__(self, number, count, machines, command, common, log):
        self.number = number
        self.count = count
        self.machines = machines
        self.command = command
        self.common = common
        self.log = log
        self.runs = 0
        self.machine = None
        self.process = None
        self.is_lost = False
        # Killed processes that may still wait for a file system.
        self.abandoned = []
        self.start()

    def start(self):
        """Starts the task on the next machine."""
        self.machine = (self.number + self.runs) % len(self.machines)
        self.runs += 1
        script = f'hostname machine{self.machine}; mount --bind "$1" "$2"; shift 2; exec "$@"'
        segdl, *rest = self.command
        command = [segdl, "--shard", f"{self.number}/{self.count}", *rest]
        with open(self.log, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["unshare", "--uts", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
                 self.machines[self.machine], self.common, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_running(self):
        return self.process.poll() is None

    def kill(self):
        """Kills the task, and starts it on the next machine."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def lose(self):
        """Kills the task for good."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.is_lost = True

    def abandon(self):
        """Kills the task, which may end at any later time, and starts it on the next machine."""
        self.process.send_signal(signal.SIGKILL)
        self.abandoned.append(self.process)
        self.start()


class Scene:
    """Directories, and the tasks in them."""

    def __init__(self, arguments, name, dice):
        self.arguments = arguments
        self.dice = dice
        self.local = f"{arguments.work}/{name}"
        self.source = f"{self.local}/source"
        self.common = f"{self.local}/shared"
        self.name = os.path.basename(tempfile.mkdtemp(prefix="segdl-", dir=arguments.directories[0]))
        self.machines = [f"{directory}/{self.name}" for directory in arguments.directories]
        os.makedirs(self.common)
        # Until the other mounts have noticed.
        slurm.until("all directories are the same", lambda: all(os.path.isdir(machine) for machine in self.machines))
        self.tasks = []
        # The numbers of machines whose file system does not answer.
        self.cut_off = set()
        self.killed = 0

    def run(self, command, is_due, disruptions, url=""):
        """Runs the tasks. Returns the statuses of those that were not lost, and the number of disruptions.

        - is_due: Takes the number of disruptions so far, and returns whether it is time for the next.
        - disruptions: Functions of this scene and of a random running task.
        """
        command = [self.arguments.segdl, *(part.format(shared=self.common, url=url) for part in command)]
        count = self.arguments.tasks
        self.tasks = [
            Task(number, count, self.machines, command, self.common, self.log(number)) for number in range(1, count + 1)]
        done = 0

        def is_finished():
            nonlocal done
            running = [task for task in self.tasks if task.is_running()]
            reachable = [task for task in running if task.machine not in self.cut_off]
            if reachable and done < len(disruptions) and is_due(done):
                disruptions[done](self, self.dice.choice(reachable))
                done += 1
            elif not reachable:
                for machine in self.cut_off:
                    self.arguments.connect(machine)
                self.cut_off.clear()
            return not running and not self.cut_off

        try:
            slurm.until("all tasks have ended", is_finished, PATIENCE)
        finally:
            for machine in self.cut_off:
                self.arguments.connect(machine)
            for task in self.tasks:
                for process in [task.process, *task.abandoned]:
                    process.kill()
                    process.wait()
        return [task.process.returncode for task in self.tasks if not task.is_lost], done

    def kill(self, task):
        """Kills a task, and starts it on the next machine."""
        task.kill()
        self.killed += 1

    def lose(self, task):
        """Kills a task for good, unless it is the last."""
        if sum(not each.is_lost for each in self.tasks) > 1:
            task.lose()

    def cut_machine(self, task):
        """Cuts a task's machine off until all tasks that others run have ended, unless it is the last."""
        if len(self.cut_off) + 1 < len(self.machines):
            self.arguments.cut_off(task.machine)
            self.cut_off.add(task.machine)

    def lose_machine(self, task):
        """Cuts a task's machine off, and starts its tasks on the next machine. Those that it runs are killed, but it still has
        what it has not sent.
        """
        machine = task.machine
        self.cut_machine(task)
        for each in self.tasks:
            if each.machine == machine and machine in self.cut_off and each.is_running():
                each.abandon()
                self.killed += 1

    def log(self, number):
        return f"{self.local}/task{number}.log"

    def facts(self, disruptions):
        """What was done to the tasks, with numbers."""
        counts = collections.Counter(each.__name__ for each in disruptions)
        return ", ".join([f"{len(self.tasks)} tasks", *(f"{name} {count}" for name, count in sorted(counts.items()))])

    def logs(self):
        return [self.log(task.number) for task in self.tasks]

    def output(self):
        texts = []
        for path in self.logs():
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append(file.read()[-2000:])
        return "\n".join(texts)

    def remove(self):
        def check(function, path, error):
            # On NFS the answer to a removal may be lost. Asked again, the server says that there is no such file.
            if not issubclass(error[0], FileNotFoundError):
                raise error[1]

        shutil.rmtree(self.machines[0], onerror=check)
        shutil.rmtree(self.local)


def list_job(checks, arguments, dice):
    """Tasks of a list of small files."""
    scene = Scene(arguments, "list", dice)
    make_small_files(scene.source, arguments.files, dice)
    with static_server.StaticServer(f"{scene.local}/nginx", scene.source, rate=arguments.rate) as server:
        with open(f"{scene.machines[0]}/list", "w", encoding="utf-8") as file:
            file.writelines(f"{server.url}/{name}\n" for name in sorted(os.listdir(scene.source)))
        slurm.until(
            "all machines see the list", lambda: all(os.path.exists(f"{machine}/list") for machine in scene.machines))
        command = [*LIST_COMMAND, "--if-exists", arguments.if_exists] if arguments.if_exists else LIST_COMMAND
        disruptions = arguments.disruptions(dice)
        points = sorted(dice.uniform(0.05, 0.7) * arguments.files for _ in disruptions)
        begin = time.monotonic()
        statuses, done = scene.run(command, lambda count: server.request_count() >= points[count], disruptions)
        seconds = time.monotonic() - begin
        checks.expect("list: every task ends with status 0", not any(statuses), f"{statuses}\n{scene.output()}")
        before = server.request_count()
        statuses, _ = scene.run(command, lambda _: False, [])
        checks.expect(
            "list: the same job again requests nothing", not any(statuses) and server.request_count() == before,
            f"{statuses}, {server.request_count() - before} requests\n{scene.output()}")
    repeated = sum(count - 1 for count in fetches(server).values())
    print(f"        {arguments.files} files, {scene.facts(disruptions)}: {repeated} fetched again, {seconds:.0f} s", flush=True)
    checks.expect("list: tasks were disrupted", done == len(points), done)
    bound = scene.killed * FILES_AT_ONCE
    checks.expect(f"list: at most {bound} files are fetched again", repeated <= bound)
    for number, machine in enumerate(scene.machines):
        # An NFS client believes for up to 60 s that there is no such name.
        slurm.until("the directory is there", lambda: os.path.isdir(f"{machine}/out"), 70)
        expect_same_files(checks, f"list, seen by machine {number}", scene.source, f"{machine}/out")
    scene.remove()


def one_file(checks, arguments, dice):
    """Tasks that fill one file."""
    scene = Scene(arguments, "one-file", dice)
    length = arguments.length
    os.makedirs(scene.source)
    make_large_file(f"{scene.source}/large", length, dice)
    rate = max(length // (arguments.tasks * 4 * 20), 1 << 20)
    with static_server.StaticServer(f"{scene.local}/nginx", scene.source, connection_rate=rate) as server:
        disruptions = arguments.disruptions(dice)
        if arguments.steal_after:
            disruptions = [dice.choice([Scene.kill, Scene.lose]) if each == Scene.kill else each for each in disruptions]
        points = sorted(dice.uniform(0.1, 0.8) * length for _ in disruptions)
        begin = time.monotonic()
        command = [*ONE_FILE_COMMAND, "--steal-after", arguments.steal_after] if arguments.steal_after else ONE_FILE_COMMAND
        statuses, done = scene.run(
            command, lambda count: server.bytes_sent() >= points[count], disruptions, f"{server.url}/large")
        seconds = time.monotonic() - begin
    checks.expect("one file: every task ends with status 0", not any(statuses), f"{statuses}\n{scene.output()}")
    sent = sum(request.body_length for request in server.requests())
    print(
        f"        {length >> 20} MiB, {scene.facts(disruptions)}: {(sent - length) / (1 << 20):.1f} MiB fetched again, {seconds:.0f} s",
        flush=True)
    checks.expect("one file: tasks were disrupted", done == len(points), done)
    # Otherwise a log has the events of several ranges.
    if not arguments.steal_after:
        expect_small_losses(checks, "one file", scene.logs())
    for number, machine in enumerate(scene.machines):
        slurm.until("the file is there", lambda: os.path.exists(f"{machine}/large"), 70)
        left = os.listdir(machine)
        checks.expect(f"one file, seen by machine {number}: no other file is left", left == ["large"], left)
        checks.expect(
            f"one file, seen by machine {number}: it has its source's bytes",
            os.path.exists(f"{machine}/large") and filecmp.cmp(f"{scene.source}/large", f"{machine}/large", shallow=False),
            differing_bytes(f"{scene.source}/large", f"{machine}/large"))
    scene.remove()


TESTS = {"list": list_job, "one-file": one_file}


def add_arguments(parser):
    parser.add_argument("--segdl", required=True, help="the program")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--files", type=int, default=4000, help="the number of small files (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=200, help="requests per second for small files (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=6, help="in each test (default: %(default)s)")
    parser.add_argument("--length", type=int, default=512 << 20, help="of the large file, in bytes (default: 512 MiB)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--steal-after", metavar="TIME", help="for the large file; some tasks are then killed for good")
    parser.add_argument("--if-exists", metavar="POLICY", help="for the small files (default: the program's)")
    parser.add_argument("--test", action="append", choices=list(TESTS), help="only this (default: all)")


def missing():
    """Why the tests cannot run here; None if they can."""
    return static_server.StaticServer.missing() or (None if os.geteuid() == 0 else "mount namespaces need root")


def run_on(checks, arguments):
    """Runs the tests in directories that are the same.

    - arguments.disruptions: Takes a random generator, and returns functions of a scene and a task.
    """
    with tempfile.TemporaryDirectory(prefix="segdl-shared-") as arguments.work:
        for name in arguments.test or TESTS:
            TESTS[name](checks, arguments, random.Random(f"{arguments.seed} {name}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("directories", nargs="+", help="mounts of one directory")
    arguments = parser.parse_args()
    arguments.disruptions = lambda _: [Scene.kill] * arguments.kills
    return run_tests(arguments, missing(), lambda checks: run_on(checks, arguments))


if __name__ == "__main__":
    sys.exit(main())
