"""A directory that several machines reach by NFS: a server in user space, and for each machine a mount with caches of its own.

Needs root, /dev/fuse, and Debian's nfs-ganesha-vfs, rpcbind, libnfs-dev, libfuse3-dev, pkg-config and gcc. The kernel needs
neither an NFS client nor a server: nfs_mount.c is the client. Server and clients are in a network namespace of their own, so
that no port of this machine is used, and the system's NFS and rpcbind are neither read nor changed.
"""

import os
import signal
import subprocess

import slurm
from support import Running

PROGRAMS = ["ganesha.nfsd", "rpcbind", "unshare", "nsenter", "ip", "cc", "pkg-config", "umount"]
PACKAGES = "nfs-ganesha-vfs rpcbind libnfs-dev libfuse3-dev pkg-config gcc libc6-dev iproute2"
# In the namespace, nothing else uses them.
NFS_PORT, MOUNT_PORT = 2049, 2050
CONFIGURATION = """
NFS_CORE_PARAM {{
    Protocols = 3;
    NFS_Port = {NFS_PORT};
    MNT_Port = {MOUNT_PORT};
    Enable_NLM = false;
    Enable_RQUOTA = false;
}}
NFSv4 {{ Graceless = true; RecoveryRoot = "{recovery}"; }}
EXPORT {{
    Export_Id = 1;
    Path = "{path}";
    Pseudo = "/export";
    Access_Type = RW;
    Squash = No_root_squash;
    SecType = sys, none;
    FSAL {{ Name = VFS; }}
}}
"""


def missing():
    """Why no directory can be shared here; None if one can."""
    if os.geteuid() != 0:
        return "an NFS server and mounts need root"
    if not os.path.exists("/dev/fuse"):
        return "the kernel has no FUSE (/dev/fuse)"
    absent = [name for name in PROGRAMS if not slurm.program(name)]
    if absent:
        return f"no {', '.join(absent)} (apt-get install {PACKAGES})"
    libraries = subprocess.run(["pkg-config", "--exists", "fuse3", "libnfs"], check=False)
    if libraries.returncode != 0:
        return f"libnfs or libfuse3 is not installed (apt-get install {PACKAGES})"
    own_network = subprocess.run(["unshare", "--net", "--mount", "true"], stderr=subprocess.DEVNULL, check=False)
    return None if own_network.returncode == 0 else "this machine does not permit network namespaces (unshare --net)"


class SharedDirectory(Running):
    """A context in which a directory is exported and mounted.

    - export: The directory, on a file system with handles (open_by_handle_at), such as ext4.
    - machines: The number of mounts.
    - options: Of the mounts, as nfs_mount.c takes them.
    """

    def __init__(self, directory, export, machines, options=()):
        self.directory = directory
        self.export = export
        self.options = options
        self.mounts = [f"{directory}/machine{number}" for number in range(machines)]
        self.namespace = None
        self.server = None
        self.clients = []

    def start(self):
        for path in [self.directory, self.export, f"{self.directory}/recovery", *self.mounts]:
            os.makedirs(path, exist_ok=True)
        with open(f"{self.directory}/ganesha.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(
                NFS_PORT=NFS_PORT, MOUNT_PORT=MOUNT_PORT, recovery=f"{self.directory}/recovery", path=self.export))
        self.compile_client()
        # ganesha registers its ports. rpcbind and its socket in /run are the namespace's own.
        script = "ip link set lo up && mount -t tmpfs tmpfs /run && exec rpcbind -f"
        self.namespace = self.daemon("rpcbind", ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script])
        slurm.until("rpcbind has started", lambda: self.has_name(self.namespace, "rpcbind"))
        self.start_server()
        for number in range(len(self.mounts)):
            self.mount(number)

    def compile_client(self):
        source = f"{os.path.dirname(os.path.abspath(__file__))}/nfs_mount.c"
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "fuse3", "libnfs"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", f"{self.directory}/nfs_mount", source, *flags], check=True)

    def daemon(self, name, command):
        with open(f"{self.directory}/{name}.out", "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def inside(self, *command):
        """A command in the namespace of the network."""
        return ["nsenter", f"--net=/proc/{self.namespace.pid}/ns/net", *command]

    @staticmethod
    def has_name(process, name):
        with open(f"/proc/{process.pid}/comm", encoding="utf-8") as file:
            return file.read().strip() == name[:15]

    # The server

    def start_server(self):
        """Starts the server, and returns when it accepts connections."""
        self.server = self.daemon("ganesha", self.inside(
            f"--mount=/proc/{self.namespace.pid}/ns/mnt", slurm.program("ganesha.nfsd"), "-F", "-f",
            f"{self.directory}/ganesha.conf", "-p", f"{self.directory}/ganesha.pid", "-L", f"{self.directory}/ganesha.log"))
        slurm.until("ganesha accepts connections", self.server_listens)

    def server_listens(self):
        if self.server.poll() is not None:
            raise RuntimeError(f"ganesha has ended with status {self.server.returncode}: see {self.directory}/ganesha.log")
        with open(f"/proc/{self.server.pid}/net/tcp6", encoding="utf-8") as file:
            listening = {int(line.split()[1].rpartition(":")[2], 16) for line in list(file)[1:] if line.split()[3] == "0A"}
        return {NFS_PORT, MOUNT_PORT} <= listening

    def restart_server(self):
        """Ends the server without notice, and starts it again."""
        self.server.kill()
        self.server.wait()
        self.start_server()

    # The machines

    def mount(self, number):
        path = self.mounts[number]
        url = f"nfs://127.0.0.1{self.export}?nfsport={NFS_PORT}&mountport={MOUNT_PORT}"
        self.clients.append(self.daemon(f"machine{number}", self.inside(f"{self.directory}/nfs_mount", url, path, *self.options)))
        slurm.until(f"{path} is mounted", lambda: os.path.ismount(path))

    def cut_off(self, number):
        """Stops a machine's client: what it has not sent stays with it, and calls of its processes wait."""
        self.clients[number].send_signal(signal.SIGSTOP)

    def connect(self, number):
        self.clients[number].send_signal(signal.SIGCONT)

    def stop(self):
        """Ends mounts and server."""
        for client, path in zip(self.clients, self.mounts):
            client.send_signal(signal.SIGCONT)
            subprocess.run(["umount", "--lazy", path], stderr=subprocess.DEVNULL, check=False)
            client.terminate()
            try:
                client.wait(10)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
        for process in (self.server, self.namespace):
            if process:
                process.kill()
                process.wait()
        self.clients = []
