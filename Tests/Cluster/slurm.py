"""A Slurm cluster on one machine, in a temporary directory: its own munge key and socket, ports and configuration.

Needs root, and Debian's slurm-wlm and munge (apt-get install slurm-wlm munge). The system's own configuration is neither
read nor changed. Each node is a slurmd in a UTS namespace of its own, so that programs see different host names.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading

from support import Running

# Seconds for what takes at most a few. Nothing waits for a fixed time.
PATIENCE = 60
# 5: seconds until a requeued job may start again, the least that Slurm accepts. The default is 120.
REQUEUE_DELAY = 5
PROGRAMS = ["munged", "munge", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue", "scancel", "unshare"]


def until(what, condition, patience=PATIENCE):
    """Polls a condition, and returns its first true value.

    Raises TimeoutError, with a text that names what was awaited, after `patience` seconds.
    """
    ticks = threading.Event()
    for _ in range(int(patience * 20)):
        value = condition()
        if value:
            return value
        ticks.wait(0.05)
    raise TimeoutError(f"after {patience} s: {what}")


def free_ports(count):
    """Ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def program(name):
    """The path of a program, also of one that only root has in PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """Why no cluster can be started here; None if one can."""
    if os.geteuid() != 0:
        return "a Slurm cluster needs root"
    absent = [name for name in PROGRAMS if not program(name)]
    if absent:
        return f"Slurm is not installed: no {', '.join(absent)} (apt-get install slurm-wlm munge)"
    # Each node has a host name of its own.
    own_name = subprocess.run(
        ["unshare", "--uts", "hostname", "node1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return None if own_name.returncode == 0 else "this machine does not permit host names of processes (unshare --uts)"


class Cluster(Running):
    """A context in which a cluster runs."""

    def __init__(self, directory, nodes):
        self.directory = directory
        self.nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self.configuration = f"{directory}/slurm.conf"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_"))}
        self.environment["SLURM_CONF"] = self.configuration
        self.daemons = {}

    # Daemons

    def start(self):
        """Starts the daemons, and returns when all nodes are idle."""
        for name in ["munge", "state", "spool", "log"]:
            os.makedirs(f"{self.directory}/{name}", exist_ok=True)
        # munged wants a socket that every user can reach.
        os.chmod(self.directory, 0o711)
        os.chmod(f"{self.directory}/munge", 0o711)
        with open(os.open(f"{self.directory}/munge/key", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(128))
        self.write_configuration()
        munge = f"{self.directory}/munge"
        self.daemon(
            "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
            f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        until("munge answers", lambda: self.succeeds("munge", "--no-input", f"--socket={munge}/socket"))
        self.daemon("slurmctld", "-D", "-c")
        for node in self.nodes:
            self.start_node(node)
        until("slurmctld answers", lambda: "is UP" in self.run("scontrol", "ping", check=False))
        until("all nodes are idle", lambda: self.node_states() == ["idle"] * len(self.nodes))

    def start_node(self, node):
        """Starts a node's daemon, which sees the node's name as the host's."""
        self.daemon(
            "unshare", "--uts", "sh", "-c", f'hostname {node}; exec "{program("slurmd")}" -D -N {node}', name=node)

    def daemon(self, *command, name=None):
        name = name or command[0]
        with open(f"{self.directory}/log/{name}.out", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [program(command[0]), *command[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment, cwd=self.directory, start_new_session=True)

    def write_configuration(self):
        host = socket.gethostname().split(".")[0]
        controller, *ports = free_ports(1 + len(self.nodes))
        lines = [
            "ClusterName=segdl",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={controller}",
            "SlurmUser=root",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"AuthInfo=socket={self.directory}/munge/socket,cred_expire={REQUEUE_DELAY}",
            f"StateSaveLocation={self.directory}/state",
            f"SlurmdSpoolDir={self.directory}/spool/%n",
            f"SlurmctldPidFile={self.directory}/slurmctld.pid",
            f"SlurmdPidFile={self.directory}/%n.pid",
            f"SlurmctldLogFile={self.directory}/log/slurmctld",
            f"SlurmdLogFile={self.directory}/log/%n",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "JobCompType=jobcomp/none",
            "MpiDefault=none",
            "MailProg=/bin/true",
            # A task gets a whole node, so that tasks run on different nodes.
            "SelectType=select/linear",
            "SchedulerType=sched/builtin",
            "SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0",
            # Nodes may have more CPUs than the machine.
            "SlurmdParameters=config_overrides",
            "ReturnToService=2",
            "JobRequeue=1",
            # Seconds between SIGTERM and SIGKILL. The default is 30.
            "KillWait=5",
            # Seconds for which ended jobs are remembered, and can be requeued.
            "MinJobAge=3600",
        ]
        lines += [
            f"NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=1000 State=UNKNOWN"
            for node, port in zip(self.nodes, ports)
        ]
        lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with open(f"{self.directory}/cgroup.conf", "w", encoding="utf-8") as file:
            # "disabled" came with 23.11. The plugin for version 1 does nothing unless a tracking plugin uses it.
            file.write(f"CgroupPlugin={'disabled' if self.version() >= (23, 11) else 'cgroup/v1'}\n")

    @staticmethod
    def version():
        text = subprocess.run([program("slurmctld"), "-V"], stdout=subprocess.PIPE, text=True, check=True).stdout
        return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", text).groups())

    def stop(self):
        """Ends all jobs and daemons, and every process that a job left behind."""
        if "slurmctld" in self.daemons:
            self.run("scancel", "--signal=KILL", "--full", "--user=root", check=False)
            self.run("scancel", "--user=root", check=False)
        for pid, _ in self.processes():
            self.kill(pid)
        for name in [*self.nodes, "slurmctld", "munged"]:
            daemon = self.daemons.pop(name, None)
            if daemon:
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        for pid, _ in self.processes():
            self.kill(pid)

    # Commands

    def run(self, *command, check=True, variables=None):
        """Runs a command of Slurm, and returns its output."""
        result = subprocess.run(
            [program(command[0]), *command[1:]], env={**self.environment, **(variables or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=PATIENCE)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: status {result.returncode}: {result.stdout.strip()}")
        return result.stdout

    def succeeds(self, *command):
        return subprocess.run(
            [program(command[0]), *command[1:]], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def node_states(self):
        return self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split()

    def submit(self, script, *options):
        """Submits a script, and returns the job's number."""
        path = f"{self.directory}/{len(os.listdir(self.directory))}.sbatch"
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n" + script)
        return self.submit_file(path, *options)

    def submit_file(self, path, *options, variables=None):
        """Submits a batch script, and returns the job's number.

        - variables: Added to the environment.
        """
        command = ["sbatch", "--parsable", *options, path]
        return self.run(*command, variables=variables).split(";")[0].strip()

    def tasks(self, job):
        """The fields of each task of an array, by index; of a job that is no array, of the job, under None."""
        tasks = {}
        for line in self.run("scontrol", "--oneliner", "show", "job", job).splitlines():
            fields = dict(field.split("=", 1) for field in line.split() if "=" in field)
            index = fields.get("ArrayTaskId", "")
            if index.isdigit():
                tasks[int(index)] = fields
            elif fields.get("JobId") == job and not index:
                tasks[None] = fields
        return tasks

    def states(self, job):
        return {index: fields["JobState"] for index, fields in self.tasks(job).items()}

    def requeue(self, job, index=None):
        """Requeues a task, also one that has ended, when Slurm permits it."""
        name = job if index is None else f"{job}_{index}"
        # Refused while the task's processes are being ended.
        until(f"{name} can be requeued", lambda: self.succeeds("scontrol", "requeue", name))

    # Processes

    def processes(self, command=None):
        """The processes of jobs on this cluster, as pairs of number and environment.

        - command: Only those of a program with this name.
        """
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                    name = file.read().rstrip("\n")
            except OSError:
                continue
            environment = dict(v.decode(errors="replace").split("=", 1) for v in variables if b"=" in v)
            if environment.get("SLURM_CONF") != self.configuration or "SLURM_JOB_ID" not in environment:
                continue
            if command is None or name == command[:15]:
                found.append((int(entry), environment))
        return found

    @staticmethod
    def parent(pid):
        """The slurmstepd that started a process; None if another process did."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{parent}/comm", encoding="utf-8", errors="replace") as file:
                return parent if file.read().strip() == "slurmstepd" else None
        except OSError:
            return None

    @staticmethod
    def kill(pid):
        """Whether the process existed."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def crash(self, node, with_processes):
        """Ends a node's daemon without notice.

        - with_processes: As if the machine had lost power. Otherwise its processes go on, as after a network failure.
        """
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()
        if with_processes:
            pids = [pid for pid, environment in self.processes() if environment.get("SLURMD_NODENAME") == node]
            # First the processes that would report the others' end to slurmctld.
            for pid in {self.parent(pid) for pid in pids} - {None} - set(pids):
                self.kill(pid)
            for pid in pids:
                self.kill(pid)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=crash")

    def repair(self, node):
        """Starts a node's daemon again."""
        self.start_node(node)
        self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
