"""nginx with static files and an access log, on a port of its own."""

import collections
import os
import subprocess

import slurm
from support import Running

Request = collections.namedtuple("Request", "method status body_length path")


class StaticServer(Running):
    """A context in which nginx serves a directory.

    - rate: Requests per second that are answered; more wait. None: no limit.
    - connection_rate: Bytes per second and connection. None: no limit.
    """

    def __init__(self, directory, root, rate=None, connection_rate=None):
        self.directory = directory
        self.root = root
        self.rate = rate
        self.connection_rate = connection_rate
        self.port = slurm.free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = f"{directory}/access.log"
        self.server = None

    @staticmethod
    def missing():
        return None if slurm.program("nginx") else "nginx is not installed (apt-get install nginx-light)"

    def start(self):
        os.makedirs(self.directory, exist_ok=True)
        zone = f"limit_req_zone $server_port zone=all:1m rate={self.rate}r/s;" if self.rate else ""
        limit = "limit_req zone=all burst=100000;" if self.rate else ""
        connection = f"limit_rate {self.connection_rate};" if self.connection_rate else ""
        configuration = f"{self.directory}/nginx.conf"
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(f"""
                user root;
                worker_processes 1;
                worker_rlimit_nofile 20000;
                daemon off;
                pid {self.directory}/nginx.pid;
                error_log {self.directory}/error.log warn;
                events {{ worker_connections 10000; }}
                http {{
                    log_format requests '$request_method $status $body_bytes_sent $uri';
                    access_log {self.log} requests;
                    {zone}
                    sendfile on;
                    tcp_nopush on;
                    keepalive_requests 1000000;
                    client_body_temp_path {self.directory}/body;
                    proxy_temp_path {self.directory}/proxy;
                    fastcgi_temp_path {self.directory}/fastcgi;
                    uwsgi_temp_path {self.directory}/uwsgi;
                    scgi_temp_path {self.directory}/scgi;
                    server {{
                        listen 127.0.0.1:{self.port};
                        root {self.root};
                        {limit}
                        {connection}
                    }}
                }}
                """)
        # pylint: disable=consider-using-with
        self.server = subprocess.Popen(
            [slurm.program("nginx"), "-p", self.directory, "-c", configuration], stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        slurm.until("nginx has started", lambda: os.path.exists(f"{self.directory}/nginx.pid"))

    def stop(self):
        """Ends the server, after which the log is complete."""
        if self.server:
            self.server.terminate()
            self.server.wait()
            self.server = None

    def requests(self):
        """The requests that were answered, or broken off, so far."""
        with open(self.log, encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
        for line in lines:
            method, status, length, path = line.split(" ", 3)
            yield Request(method, int(status), int(length), path)

    def request_count(self):
        """The number of lines in the log."""
        with open(self.log, "rb") as file:
            return file.read().count(b"\n")

    def bytes_sent(self):
        """The bytes that the worker has written to its sockets so far, also for requests that have not ended."""
        total = 0
        with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children", encoding="utf-8") as file:
            workers = file.read().split()
        for worker in workers:
            with open(f"/proc/{worker}/io", encoding="utf-8") as file:
                total += int(dict(line.split(": ") for line in file.read().splitlines())["wchar"])
        return total
