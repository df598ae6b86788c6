"""Measures the background service. Benchmarks/service/run describes it, and starts it with two empty directories."""

import argparse
import concurrent.futures
import contextlib
import http.client
import http.server
import importlib.util
import json
import os
import random
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ENTRIES = int(os.environ.get("ENTRIES", 10_000))
HISTORY = int(os.environ.get("HISTORY", 1_000_000))
BYTES = int(os.environ.get("BYTES", 1 << 30))
SEGMENTS = os.environ.get("SEGMENTS", "auto")
LISTS = 10  # Requests for the list in a round, after which memory is read again.
READERS = 16
TIME_MAX = 300  # Seconds for a command, an answer or a start. None takes nearly as long, unless it hangs.


def check(condition, problem):
    if not condition:
        sys.exit(f"error: {problem}")


def first_line(process):
    """The first line of a server's output, which it writes when it is ready."""
    check(select.select([process.stdout], [], [], TIME_MAX)[0], f"{process.args[0]} is not ready after {TIME_MAX} s")
    line = process.stdout.readline().decode()
    check(line, f"{process.args[0]} did not start")
    return line


@contextlib.contextmanager
def server(*arguments, **options):
    """A process that ends with the scope."""
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(TIME_MAX)
        finally:
            process.kill()  # Without effect on one that has ended.
            process.stdout.close()


def segdl(*arguments, cwd):
    """Runs a command. Returns its time from start to end, and the lines of its output."""
    begun = time.perf_counter()
    done = subprocess.run(
        [os.environ["SEGDL"], *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIME_MAX)
    seconds = time.perf_counter() - begun
    check(done.returncode == 0, f"{arguments}: status {done.returncode}: {done.stderr.decode()[-500:]}")
    return seconds, done.stdout.decode().splitlines()


def saved(database, copy):
    """Copies the database of a daemon that has ended, with what its write-ahead log may still hold."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return shutil.copy(database, copy)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Origin(http.server.ThreadingHTTPServer):
    """Serves files of 1 MiB: completely (`whole`), only the first byte (`byte`), or without an answer (`silent`)."""

    daemon_threads = True
    request_queue_size = 128
    mode = "whole"

    def __init__(self):
        super().__init__(("127.0.0.1", 0), OriginHandler)
        self.times = {}  # The time of the first request of each path, and of the first byte of its body.
        self.changed = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def note(self, *key):
        with self.changed:
            self.times.setdefault(key, time.perf_counter())
            self.changed.notify_all()

    def time(self, *key):
        """Waits for a time."""
        with self.changed:
            check(self.changed.wait_for(lambda: key in self.times, TIME_MAX), f"no {key} after {TIME_MAX} s")
            return self.times[key]

    def handle_error(self, *_):
        pass  # The daemon closes connections when it ends.


class OriginHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.server.note("request", self.path)
        if self.server.mode == "silent":
            return self.wait_for_close()
        start, end, length = 0, 1 << 20, 1 << 20
        ranges = self.headers["Range"]
        if ranges:  # segdl requests one range, which has a start.
            first, last = ranges.removeprefix("bytes=").split("-")
            start, end = int(first), min(int(last) + 1, length) if last else length
        self.send_response(206 if ranges else 200)
        fields = {"Content-Length": f"{end - start}", "Accept-Ranges": "bytes", "ETag": '"1"'}
        if ranges:
            fields["Content-Range"] = f"bytes {start}-{end - 1}/{length}"
        for field in fields.items():
            self.send_header(*field)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(bytes(end - start if self.server.mode == "whole" else 1))
        self.server.note("byte", self.path)
        if self.server.mode == "byte":
            self.wait_for_close()

    do_HEAD = do_GET

    def wait_for_close(self):
        self.close_connection = True
        self.connection.settimeout(TIME_MAX)
        self.connection.recv(1)

    def log_message(self, *_):
        pass


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIME_MAX)
        self.sock.connect(f"{os.environ['XDG_RUNTIME_DIR']}/segdl/socket")


class Service:
    """The daemon. `begun` and `ready` are times of its start."""

    @classmethod
    @contextlib.contextmanager
    def running(cls, disk, database=None, *options):
        """A daemon whose queue is empty or a copy of a database. It ends with the scope."""
        self = cls()
        self.files, self.state = disk / "files", disk / "home/.local/state/segdl"
        self.database = self.state / "queue.sqlite"
        for directory in (self.state, self.files):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(0o700, parents=True)
        if database:
            shutil.copy(database, self.database)
            with open(self.database) as file:
                os.fsync(file)  # Otherwise the daemon's first transaction may wait for the copy.
        with open(disk / "daemon.log", "w+b") as log:
            try:
                self.begun = time.perf_counter()
                with server(os.environ["SEGDL"], "daemon", *options, cwd=self.files, stderr=log) as self.process:
                    first_line(self.process)
                    self.ready = time.perf_counter()
                    yield self
            except (Exception, SystemExit):
                log.seek(0)
                print("the daemon's log:", log.read().decode()[-500:], file=sys.stderr)
                raise

    def run(self, *arguments):
        return segdl(*arguments, cwd=self.files)

    def get(self, path):
        """An answer, and the time from the connection to its last byte."""
        begun = time.perf_counter()
        with contextlib.closing(UnixConnection("segdl")) as connection:
            connection.request("GET", path)
            body = connection.getresponse().read()
        return json.loads(body), time.perf_counter() - begun

    def completed(self, identifier, after):
        """The event `completed` of a download, from the log of events."""
        deadline = time.monotonic() + TIME_MAX
        with contextlib.closing(UnixConnection("segdl")) as connection:
            connection.request("GET", f"/v1/events?ids={identifier}&after={after}")
            response = connection.getresponse()
            while time.monotonic() < deadline and (line := response.readline()):
                if line.startswith(b"data: ") and (event := json.loads(line[6:])).get("event") == "completed":
                    return event
        check(False, f"there is no event completed of {identifier}")

    def memory(self):
        """Resident bytes, now and at most."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return [int(line.split()[1]) << 10 for name in ("VmRSS:", "VmHWM:") for line in lines if line.startswith(name)]


class Bench:
    def __init__(self, disk, memory, rounds):
        self.disk, self.memory, self.rounds = disk, memory, rounds
        self.baseline = {}  # Medians of scenarios with an empty history.

    def report(self, scenario, samples, **details):
        """Prints a scenario: lists of seconds or bytes by name."""
        medians = {name: statistics.median(values) for name, values in samples.items()}
        before = self.baseline.setdefault((scenario, details.get("paused")), medians)
        if details.get("history"):
            details["ratios_to_empty_history"] = {name: round(medians[name] / before[name], 4) for name in medians}
        print(f"{scenario}, {', '.join(f'{key} {value}' for key, value in details.items())}", file=sys.stderr)
        for name, values in samples.items():
            scale, unit = (1 << 20, "MiB") if name.endswith("bytes") else (1, "s")
            middle, low, high = (f"{value / scale:.4g}" for value in (medians[name], min(values), max(values)))
            print(f"  {name.rpartition('_')[0] or 'time'}: {middle} {unit} ({low} to {high})", file=sys.stderr)
        line = {"scenario": scenario, **details, "rounds": self.rounds, "medians": medians, "samples": samples}
        print(json.dumps(line), flush=True)

    # The queue

    def queue_round(self, database, rows, paused):
        """Adds all files to a running daemon, and lists them. Returns the samples of each scenario."""
        with Service.running(self.disk, database) as service:
            started, _ = service.memory()
            adding, added = service.run("add", *(["--paused"] if paused else []), "-i", str(self.disk / "list"))
            rss_added, peak_added = service.memory()
            answers = [service.get("/v1/downloads") for _ in range(LISTS)]
            rss_listed, peak_listed = service.memory()
            listing_json, lines = service.run("list", "--json")
            listing_text, _ = service.run("list")
            reading, latest = service.run("history", "--json")
        counts = [len(added), len(lines), len(answers[-1][0]["downloads"]), len(latest)]
        check(counts == [ENTRIES] * 3 + [min(rows, 100)], f"added, listed twice, in the history: {counts}")
        return {
            f"add-{ENTRIES}": {"seconds": adding},
            f"list-{ENTRIES}": {
                "json_seconds": listing_json, "text_seconds": listing_text,
                "api_seconds": statistics.median(seconds for _, seconds in answers)},
            "memory": {
                "started_bytes": started, "added_bytes": rss_added, "added_peak_bytes": peak_added,
                "listed_bytes": rss_listed, "listed_peak_bytes": peak_listed},
            "history-latest-100": {"seconds": reading}}

    def queue(self, origin, database=None, rows=0):
        """The scenarios of the queue, with a history of so many rows."""
        paths = [f"/file-{number:06}.bin" for number in range(ENTRIES)]
        (self.disk / "list").write_text("".join(origin.url(path) + "\n" for path in paths))
        origin.mode = "silent"
        for paused in (True, False):
            rounds = [self.queue_round(database, rows, paused) for _ in range(self.rounds)]
            for scenario, names in rounds[0].items():
                samples = {name: [figures[scenario][name] for figures in rounds] for name in names}
                self.report(scenario, samples, history=rows, paused=paused)
        # The queue that the last round has left. No byte of a file was fetched.
        full = saved(self.disk / "home/.local/state/segdl/queue.sqlite", self.disk / "full.sqlite")
        origin.mode = "byte"
        samples = {"ready_seconds": [], "first_request_seconds": [], "first_byte_seconds": []}
        for _ in range(self.rounds):
            origin.times.clear()
            with Service.running(self.disk, full) as service:
                times = (service.ready, origin.time("request", paths[0]), origin.time("byte", paths[0]))
            for values, moment in zip(samples.values(), times):
                values.append(moment - service.begun)
        self.report("first-byte", samples, history=rows)

    def database_with_history(self, origin):
        """A database with copies of a real row of the history, which differ in ID, URL and path."""
        origin.mode = "whole"
        with Service.running(self.disk) as service:
            _, lines = service.run("add", "--json", origin.url("/real-row.bin"))
            service.run("wait", json.loads(lines[0])["id"])
        chance = random.Random(1)
        with contextlib.closing(sqlite3.connect(service.database)) as database, database:
            record, real = database.execute("SELECT record, id FROM history").fetchone()
            check(record.count("real-row") == 2 and real in record, f"a row of the history has another form: {record}")
            names = ((f"row-{number}", f"{chance.getrandbits(64):016x}") for number in range(1, HISTORY))
            rows = ((record.replace("real-row", name).replace(real, new), new) for name, new in names)
            database.executemany("INSERT INTO history (record, id) VALUES (?, ?)", rows)
        return saved(service.database, self.disk / "history.sqlite")

    # The speed

    @contextlib.contextmanager
    def file(self):
        """The URL of the large file."""
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        if not nginx:
            with server(os.environ["SEGDL_ORIGIN"]) as origin:
                yield f"{first_line(origin).split()[1].rstrip('/')}/{BYTES}/file.bin"
            return
        (self.memory / "www").mkdir()
        with open(self.memory / "www/file.bin", "wb") as file:
            block = random.Random(1).randbytes(1 << 20)
            for offset in range(0, BYTES, len(block)):
                file.write(block[: BYTES - offset])
        port, user = free_port(), "user root;" if os.getuid() == 0 else ""
        (self.disk / "nginx.conf").write_text(
            f"{user} pid {self.disk}/nginx.pid; error_log {self.disk}/error.log; events {{}}\n"
            f"http {{ access_log off; sendfile on; root {self.memory}/www; server {{ listen 127.0.0.1:{port}; }} }}\n")
        command = [nginx, "-p", self.disk, "-c", self.disk / "nginx.conf"]
        subprocess.run(command, stderr=subprocess.DEVNULL, check=True, timeout=TIME_MAX)  # It listens from now on.
        try:
            yield f"http://127.0.0.1:{port}/file.bin"
        finally:
            subprocess.run([*command, "-s", "stop"], stderr=subprocess.DEVNULL, timeout=TIME_MAX)

    @contextlib.contextmanager
    def slow_readers(self):
        """Readers of all events that take one byte a second."""
        stopped, ready = threading.Event(), threading.Barrier(READERS + 1)

        def read():
            with contextlib.closing(UnixConnection("segdl")) as reader:
                reader.request("GET", "/v1/events")
                check(reader.sock.recv(1) == b"H", "a reader of events has no answer")
                ready.wait(TIME_MAX)
                while not stopped.wait(1):
                    check(reader.sock.recv(1), "the service has closed the connection of a slow reader")

        with concurrent.futures.ThreadPoolExecutor(READERS) as threads:
            readers = [threads.submit(read) for _ in range(READERS)]
            try:
                ready.wait(TIME_MAX)
                yield
            finally:
                stopped.set()
            for reader in readers:
                reader.result()

    @contextlib.contextmanager
    def page(self, service, port):
        """The web page in headless Chromium."""
        from selenium import webdriver
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.ui import WebDriverWait

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            secret = (service.state / "rpc-secret").read_text().strip()
            driver.get(f"http://127.0.0.1:{port}/#secret={secret}")
            status = driver.find_element(By.ID, "connection-text")
            WebDriverWait(driver, 60).until(lambda _: status.text == "Connected", "the page is not connected")
            yield
            check(status.text == "Connected", "the page has lost its connection")
        finally:
            driver.quit()

    def download(self, service, url):
        """Downloads the file, in the foreground if there is no service. Returns its own time, and the processes'."""
        options = ("--json", "-s", SEGMENTS, "-d", str(self.memory / "out"), url)
        if service:
            after = service.get("/v1")[0]["event"]
            adding, lines = service.run("add", *options)
            identifier = json.loads(lines[0])["id"]
            waiting, _ = service.run("wait", identifier)
            wall, event = adding + waiting, service.completed(identifier, after)
        else:
            wall, lines = segdl(*options, cwd=self.memory)
            event = next(event for event in map(json.loads, lines) if event["event"] == "completed")
        check((self.memory / "out/file.bin").stat().st_size == BYTES, "the file has another length")
        shutil.rmtree(self.memory / "out")
        return event["seconds"], wall

    def speed(self, url, beside):
        """Downloads in the foreground and in the service, in turn."""
        port = free_port()
        options = ("--rpc-listen", f"127.0.0.1:{port}", "--web") if "page" in beside else ()
        with Service.running(self.disk, None, *options) as service:
            company = {"readers": self.slow_readers, "page": lambda: self.page(service, port)}
            with contextlib.ExitStack() as stack:
                for name in beside:
                    stack.enter_context(company[name]())
                # The first pair does not count: it finds the useful number of connections, and fills caches.
                pairs = [(self.download(None, url), self.download(service, url)) for _ in range(self.rounds + 1)][1:]
        samples, ratios = {}, {}
        for index, what in enumerate(("download", "processes")):
            foreground, background = ([pair[place][index] for pair in pairs] for place in (0, 1))
            samples |= {f"foreground_{what}_seconds": foreground, f"service_{what}_seconds": background}
            of_pairs = [there / here for here, there in zip(foreground, background)]
            ratios[f"{what}_medians"] = round(statistics.median(background) / statistics.median(foreground), 4)
            ratios[f"{what}_pairs_median_min_max"] = [round(f(of_pairs), 4) for f in (statistics.median, min, max)]
        # Only the download's own time counts. That of the processes adds starting them, and the requests to the daemon.
        self.report("speed", samples, beside=" and ".join(beside) or "nothing", bytes=BYTES, ratios=ratios)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--disk", type=Path, required=True)
    parser.add_argument("--memory", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("scenarios", nargs="*", default=["queue", "history", "speed"])
    arguments = parser.parse_args()
    if arguments.rounds < 1 or not {"queue", "history", "speed"}.issuperset(arguments.scenarios):
        parser.error("there is at least one round, and the scenarios are queue, history and speed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        os.environ.pop(name, None)
    for name, directory in (("HOME", "home"), ("XDG_RUNTIME_DIR", "run")):
        (arguments.disk / directory).mkdir(0o700)
        os.environ[name] = str(arguments.disk / directory)
    bench = Bench(arguments.disk, arguments.memory, arguments.rounds)
    if "queue" in arguments.scenarios or "history" in arguments.scenarios:
        with Origin() as origin:
            bench.queue(origin)
            if "history" in arguments.scenarios:
                bench.queue(origin, bench.database_with_history(origin), HISTORY)
    if "speed" in arguments.scenarios:
        with bench.file() as url:
            bench.speed(url, [])
            bench.speed(url, ["readers"])
            if importlib.util.find_spec("selenium") and shutil.which("chromium") and shutil.which("chromedriver"):
                bench.speed(url, ["readers", "page"])
            else:
                print("skipped: the page needs chromium, chromedriver and selenium (see PYTHON)", file=sys.stderr)


if __name__ == "__main__":
    main()
