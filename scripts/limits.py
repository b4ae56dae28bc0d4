#!/usr/bin/python3
"""Bytes over time of programs under a limit: how far ahead of it at most, and in what time all of it was moved.

usage: limits.py --build BUILD_DIR [--rate MIB] [--mib N] [--svg DIR] [LOAD...]

Starts a swapd of its own with a class of so many MiB a second (10) for writing, runs each load in it, and looks at what
it has moved every 20 ms. Beside each load a small command of the same class runs every 300 ms; the longest is "other".
One line a load: most seconds ahead, seconds needed, seconds expected, other's longest, seconds. As root. --svg: a plot each.
"""
import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20


class Daemon:
    def __init__(self, build, directory):
        self.ctl = os.path.join(build, "src/cli/swapctl")
        os.environ["SWAPD_SOCKET"] = os.path.join(directory, "s.sock")
        self.log = open(os.path.join(directory, "swapd.log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(build, "daemon/swapd"), "--foreground", "--socket", os.environ["SWAPD_SOCKET"], "--bus", "none",
             "--state-dir", os.path.join(directory, "state")], stdout=self.log, stderr=self.log)
        for _ in range(200):
            if subprocess.run([self.ctl, "status"], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("swapd does not start; see " + self.log.name)

    def run(self, *words):
        subprocess.run([self.ctl, *words], check=True, stdout=subprocess.DEVNULL)

    def start(self, command, **more):
        return subprocess.Popen([self.ctl, "run", "--class", "limited", "--", *command], **more)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Sink:
    """Takes what is sent to it, and counts it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bytes = 0
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        connection, _ = self.listener.accept()
        while True:
            data = connection.recv(1 << 18)
            if not data:
                return
            self.bytes += len(data)


def size_below(path):
    if os.path.isdir(path):
        return sum(size_below(entry.path) for entry in os.scandir(path))
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def blocks(path):
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


SEND = """
import os, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
f = os.open(sys.argv[1], os.O_RDONLY); n = 0; size = os.fstat(f).st_size
while n < size: n += os.sendfile(s.fileno(), f, n, size - n)
"""


def fio(engine, to, size):
    return ["fio", "--name=w", "--filename=" + to, f"--size={size}", "--bs=64k", "--rw=write", "--direct=1", "--iodepth=16",
            "--ioengine=" + engine, "--fallocate=none", "--output=/dev/null"]


def loads(directory, size):
    """name: (command, what it has moved, does it use the network's limit)"""
    source, to = directory + "/source", directory + "/to"
    sink = Sink()
    file = lambda: size_below(to)
    return {
        "cp": (["cp", source, to], file),
        "copyfile": (["python3", "-c", "import shutil, sys; shutil.copyfile(*sys.argv[1:])", source, to], file),
        "dd-one": (["dd", "if=" + source, "of=" + to, f"bs={size}", "count=1", "status=none"], file),
        "dd-64k": (["dd", "if=" + source, "of=" + to, "bs=64k", "status=none"], file),
        "sendfile": (["python3", "-c", SEND, source, str(sink.port)], lambda: sink.bytes),
        "fio-libaio": (fio("libaio", to, size), lambda: blocks(to)),
        "fio-io_uring": (fio("io_uring", to, size), lambda: blocks(to)),
        "tar": (["tar", "-cf", to, "-C", directory, "source"], file),
        "rsync": (["rsync", "--inplace", source, to], file),
    }


def plot(path, name, points, rate, seconds):
    width, height, edge = 600, 300, 40
    top = max(max(n for _, n in points), rate * seconds, 1)
    x = lambda t: edge + (width - 2 * edge) * t / seconds
    y = lambda n: height - edge - (height - 2 * edge) * n / top
    line = " ".join(f"{x(t):.1f},{y(n):.1f}" for t, n in points)
    with open(path, "w") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
                  f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
                  f'<text x="{edge}" y="20">{name}: MiB over seconds; dashed: the limit</text>'
                  f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(seconds)}" y2="{y(min(rate * seconds, top))}" stroke="gray" '
                  f'stroke-dasharray="4"/><polyline points="{line}" fill="none" stroke="black"/>'
                  f'<text x="{edge}" y="{height - 15}">0</text><text x="{width - edge}" y="{height - 15}" '
                  f'text-anchor="end">{seconds:.1f} s</text><text x="5" y="{edge}">{top / MIB:.0f}</text></svg>\n')


def small_commands(daemon, directory, stop, longest):
    while not stop.is_set():
        begin = time.monotonic()
        daemon.start(["dd", "if=/dev/zero", "of=" + directory + "/small", "bs=4k", "count=1", "status=none"]).wait()
        longest[0] = max(longest[0], time.monotonic() - begin)
        stop.wait(0.3)


def measure(daemon, directory, name, command, moved, rate, svg):
    if shutil.which(command[0]) is None:
        print(f"{name:14} not installed: {command[0]}")
        return
    for entry in ("to", "small"):
        if os.path.exists(directory + "/" + entry):
            os.remove(directory + "/" + entry)
    stop, longest = threading.Event(), [0.0]
    others = threading.Thread(target=small_commands, args=(daemon, directory, stop, longest))
    begin = time.monotonic()
    process = daemon.start(command)
    others.start()
    points, ahead = [(0.0, 0)], 0.0
    while True:
        over = process.poll() is not None
        passed = time.monotonic() - begin
        points.append((passed, moved()))
        ahead = max(ahead, points[-1][1] / rate - passed)
        if over:
            break
        time.sleep(0.02)
    stop.set()
    others.join()
    print(f"{name:14} ahead {ahead:5.2f} s   needed {passed:6.2f} s   expected {points[-1][1] / rate:6.2f} s   "
          f"other {longest[0]:5.2f} s   status {process.returncode}", flush=True)
    if svg:
        plot(os.path.join(svg, f"limit-{name}.svg"), name, points, rate, passed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--mib", type=int, default=96)
    parser.add_argument("--svg")
    parser.add_argument("loads", nargs="*")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="limits.", dir="/var/tmp")
    try:
        with open(directory + "/source", "wb") as out:
            for _ in range(options.mib):
                out.write(os.urandom(MIB))
        os.sync()
        daemon = Daemon(options.build, directory)
        try:
            daemon.run("class", "create", "limited", "--write", f"{int(options.rate * MIB)}")
            daemon.run("class", "set", "limited", "--network", "--both", f"{int(options.rate * MIB)}")
            for name, (command, moved) in loads(directory, options.mib * MIB).items():
                if not options.loads or name in options.loads:
                    measure(daemon, directory, name, command, moved, options.rate * MIB, options.svg)
        finally:
            daemon.end()
    finally:
        shutil.rmtree(directory)


main()
