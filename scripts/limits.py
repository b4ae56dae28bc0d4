#!/usr/bin/python3
"""Bytes over time of programs under a limit: how far ahead of it at most, and in what time all of it was moved.

usage: limits.py --build BUILD_DIR [--mib N] [--files N] [--readahead KIB] [--svg DIR] [--observe OBSERVER] [LOAD...]

Makes an ext4 of its own on a loop device that reads ahead as most disks do (128 KiB; one access to a mapped file moves
so much at once), and starts a swapd of its own with two classes:
  calls   10 MiB a second, written or sent: cp, shutil.copyfile, dd, sendfile, fio, tar, rsync, each with 96 MiB (--mib);
  tree    1 MiB a second, mode = "device": du, find, git status, rm over 200 000 files (--files), caches dropped before.
Looks every 20 ms at what each load has moved: `calls` by what has arrived, `tree` by what the loop device has read while
it ran; what the kernel has written there meanwhile (a journal, access times) is said besides. Beside each a small command of the same class runs every 300 ms. A line a load:
  ahead     seconds that it was ahead of the limit at most
  needed    seconds that it ran, less those of its start (a program that does nothing), against what the limit says
  silence   seconds from the last move to its end
  other     seconds of the longest small command, less its start
  written   MiB that the kernel has written besides (`tree`)
--svg: limits-calls.svg and limits-tree.svg. As root.
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
RATES = {"calls": 10 * MIB, "tree": MIB}
LONGEST = 400  # seconds that a load may take


class Daemon:
    def __init__(self, build, directory, observer):
        build = os.path.abspath(build)
        self.ctl = os.path.join(build, "src/cli/swapctl")
        os.environ["SWAPD_SOCKET"] = os.path.join(directory, "s.sock")
        self.log = open(os.path.join(directory, "swapd.log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(build, "daemon/swapd"), "--foreground", "--socket", os.environ["SWAPD_SOCKET"], "--bus", "none",
             "--observe", observer, "--state-dir", os.path.join(directory, "state")], stdout=self.log, stderr=self.log)
        for _ in range(200):
            if subprocess.run([self.ctl, "status"], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("swapd does not start; see " + self.log.name)

    def run(self, *words):
        subprocess.run([self.ctl, *words], check=True, stdout=subprocess.DEVNULL)

    def start(self, class_name, command, **more):
        return subprocess.Popen([self.ctl, "run", "--class", class_name, "--", *command], **more)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Disk:
    """An ext4 on a loop device, at directory/disk."""

    def __init__(self, directory, mib, files, readahead):
        self.image, self.path = directory + "/image", directory + "/disk"
        with open(self.image, "wb") as image:
            image.truncate((512 + 3 * mib) * MIB + files * 8192)
        subprocess.run(["mkfs.ext4", "-q", "-N", str(files * 5 // 4 + 10000), "-E", "lazy_itable_init=0,lazy_journal_init=0",
                        self.image], check=True)
        os.mkdir(self.path)
        self.loop = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", self.image], check=True, text=True,
                                   capture_output=True).stdout.strip()
        try:
            with open(f"/sys/block/{os.path.basename(self.loop)}/queue/read_ahead_kb", "w") as out:
                out.write(str(readahead))
            self.mount()
        except OSError:
            subprocess.run(["losetup", "-d", self.loop])
            raise

    def mount(self):
        subprocess.run(["mount", self.loop, self.path], check=True)

    def moved(self):
        """Bytes read and written since it is there."""
        with open(f"/sys/block/{os.path.basename(self.loop)}/stat") as stat:
            words = stat.read().split()
        return 512 * int(words[2]), 512 * int(words[6])

    def forget(self):
        """Nothing of it is in memory afterwards."""
        os.sync()
        subprocess.run(["umount", self.path], check=True)
        with open("/proc/sys/vm/drop_caches", "w") as out:
            out.write("3")
        self.mount()

    def end(self):
        subprocess.run(["umount", self.path])
        subprocess.run(["losetup", "-d", self.loop])


class Sink:
    """Takes what is sent to it, and counts it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bytes = 0
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            connection, _ = self.listener.accept()
            while data := connection.recv(1 << 18):
                self.bytes += len(data)


def size(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def blocks(path):
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


def incoming(path):
    """Of a program that writes to a hidden file beside it first."""
    directory, name = os.path.split(path)
    return max((size(entry.path) for entry in os.scandir(directory) if entry.name.lstrip(".").startswith(name)), default=0)


SEND = """
import os, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
f = os.open(sys.argv[1], os.O_RDONLY); n = 0; size = os.fstat(f).st_size
while n < size: n += os.sendfile(s.fileno(), f, n, size - n)
"""
COPY = "import shutil, sys; shutil.copyfile(*sys.argv[1:])"


class Load:
    def __init__(self, name, command, moved, class_name="calls", cold=False, where=None):
        self.name, self.command, self.moved, self.class_name, self.cold = name, command, moved, class_name, cold
        self.where = where
        self.points = []


def fio(engine, to, mib):
    return ["fio", "--name=w", "--filename=" + to, f"--size={mib}m", "--bs=64k", "--rw=write", "--direct=1", "--iodepth=16",
            "--thread", "--ioengine=" + engine, "--fallocate=none", "--output=/dev/null"]


def loads(disk, mib):
    source, to, tree = disk.path + "/source", disk.path + "/to", disk.path + "/tree"
    sink = Sink()
    out = [
        Load("cp", ["cp", "--reflink=never", source, to], lambda: size(to)),
        Load("copyfile", ["python3", "-c", COPY, source, to], lambda: size(to)),
        Load("dd bs=96M", ["dd", "if=" + source, "of=" + to, f"bs={mib}M", "status=none"], lambda: size(to)),
        Load("dd bs=64k", ["dd", "if=" + source, "of=" + to, "bs=64k", "status=none"], lambda: size(to)),
        Load("sendfile", ["python3", "-c", SEND, source, str(sink.port)], lambda: sink.bytes),
        Load("fio libaio", fio("libaio", to, mib), lambda: blocks(to)),
        Load("fio io_uring", fio("io_uring", to, mib), lambda: blocks(to)),
        Load("tar", ["tar", "-cf", to, "-C", disk.path, "source"], lambda: size(to)),
        Load("rsync", ["rsync", source, to], lambda: incoming(to)),
    ]
    for name, command in (("du", ["du", "-s", tree]), ("find", ["find", tree, "-size", "+1M"]),
                          ("git status", ["git", "-c", "core.fsmonitor=false", "status", "--short"]),
                          ("rm -rf", ["rm", "-rf", tree])):
        out.append(Load(name, command, lambda: disk.moved()[0], "tree", True, tree if name.startswith("git") else None))
    return out


def make_tree(tree, files):
    for i in range(0, files, 1000):
        directory = f"{tree}/{i // 1000:03}"
        os.makedirs(directory)
        for j in range(min(1000, files - i)):
            os.close(os.open(f"{directory}/{j:03}", os.O_CREAT | os.O_WRONLY))
    quiet = {"cwd": tree, "check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["git", "init", "-q"], **quiet)
    subprocess.run(["git", "add", "."], **quiet)
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "all"], **quiet)


def run_small(daemon, class_name, path):
    begin = time.monotonic()
    daemon.start(class_name, ["dd", "if=/dev/zero", "of=" + path, "bs=4k", "count=1", "status=none"]).wait()
    return time.monotonic() - begin


def small_commands(daemon, class_name, path, stop, longest):
    while not stop.is_set():
        longest[0] = max(longest[0], run_small(daemon, class_name, path))
        stop.wait(0.3)


def remove_written(disk):
    for name in ("to", "small"):
        if os.path.exists(disk.path + "/" + name):
            os.remove(disk.path + "/" + name)
    os.sync()


def run_without_limit(daemon, disk, load):
    begin = time.monotonic()
    daemon.start("default", load.command, stdout=subprocess.DEVNULL).wait()
    seconds = time.monotonic() - begin
    remove_written(disk)
    return seconds


def measure(daemon, disk, load):
    remove_written(disk)
    started = min(run_small(daemon, load.class_name, disk.path + "/small") for _ in range(3))
    alone = 0.0 if load.cold else run_without_limit(daemon, disk, load)
    if load.cold:
        subprocess.run(load.command[:1] + ["--version"], stdout=subprocess.DEVNULL)
        disk.forget()
    time.sleep(1.5)
    stop, longest = threading.Event(), [0.0]
    others = threading.Thread(target=small_commands, args=(daemon, load.class_name, disk.path + "/small", stop, longest))
    rate, before, written = RATES[load.class_name], load.moved(), disk.moved()[1]
    begin = time.monotonic()
    process = daemon.start(load.class_name, load.command, stdout=subprocess.DEVNULL, cwd=load.where)
    others.start()
    ahead, moved_last = 0.0, 0.0
    load.points = [(0.0, 0)]
    while True:
        over = process.poll() is not None
        passed, moved = time.monotonic() - begin, load.moved() - before
        if moved > load.points[-1][1]:
            moved_last = passed
        load.points.append((passed, moved))
        ahead = max(ahead, moved / rate - max(passed - started, 0))
        if over:
            break
        if passed > LONGEST:
            process.kill()
        time.sleep(0.02)
    stop.set()
    others.join()
    moved = load.points[-1][1]
    needed, expected = passed - started, moved / rate
    print(f"| {load.name} | {moved / MIB:.1f} | {ahead:.2f} | {needed:.2f} | {expected:.2f} | {max(alone - started, 0):.2f} | "
          f"{100 * (needed / expected - 1) if expected else 0:+.1f} % | {passed - moved_last:.2f} | "
          f"{max(longest[0] - started, 0):.2f} |" +
          (f" {(disk.moved()[1] - written) / MIB:.1f} |" if load.cold else " |") + (f" status {process.returncode}" if process.returncode else ""), flush=True)


def panel(load, left, top, width, height):
    seconds = load.points[-1][0]
    rate = RATES[load.class_name]
    most = max(load.points[-1][1], 1)
    edge = 34
    x = lambda t: left + edge + (width - edge - 10) * t / seconds
    y = lambda n: top + height - 24 - (height - 50) * n / most
    kept, line = None, []
    for point in load.points:  # steps of less than a pixel are left out
        at = (round(x(point[0])), round(y(point[1])))
        if at != kept:
            line.append("%d,%d" % at)
        kept = at
    end = min(seconds, most / rate)
    return (f'<text x="{left + edge}" y="{top + 16}" font-weight="bold">{load.name}</text>'
            f'<path d="M{x(0):.0f} {y(most):.0f}V{y(0):.0f}H{x(seconds):.0f}" fill="none" stroke="#999"/>'
            f'<line x1="{x(0):.0f}" y1="{y(0):.0f}" x2="{x(end):.0f}" y2="{y(rate * end):.0f}" stroke="#c33" '
            f'stroke-dasharray="4"/><polyline points="{" ".join(line)}" fill="none" stroke="#036" stroke-width="1.5"/>'
            f'<text x="{left + edge - 4}" y="{y(most) + 8:.0f}" text-anchor="end">{most / MIB:.0f}</text>'
            f'<text x="{x(seconds):.0f}" y="{top + height - 8}" text-anchor="end">{seconds:.1f} s</text>')


def plot(path, all_loads):
    width, height, columns = 250, 170, 3
    rows = (len(all_loads) + columns - 1) // columns
    with open(path, "w") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * columns}" height="{height * rows}" '
                  f'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>\n')
        for i, load in enumerate(all_loads):
            out.write(panel(load, i % columns * width, i // columns * height, width, height) + "\n")
        out.write("</svg>\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--mib", type=int, default=96)
    parser.add_argument("--files", type=int, default=200000)
    parser.add_argument("--readahead", type=int, default=128)
    parser.add_argument("--observe", default="auto")
    parser.add_argument("--svg")
    parser.add_argument("--keep-log")
    parser.add_argument("loads", nargs="*")
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="limits.", dir="/var/tmp")
    disk = daemon = None
    try:
        disk = Disk(directory, options.mib, options.files, options.readahead)
        chosen = [load for load in loads(disk, options.mib) if not options.loads or load.name in options.loads]
        for load in list(chosen):
            if shutil.which(load.command[0]) is None:
                print(f"{load.name}: not installed: {load.command[0]}")
                chosen.remove(load)
        with open(disk.path + "/source", "wb") as out:
            for _ in range(options.mib):
                out.write(os.urandom(MIB))
        if any(load.class_name == "tree" for load in chosen):
            make_tree(disk.path + "/tree", options.files)
        os.sync()
        daemon = Daemon(options.build, directory, options.observe)
        daemon.run("class", "create", "calls", "--write", str(RATES["calls"]))
        daemon.run("class", "set", "calls", "--network", "--write", str(RATES["calls"]))
        daemon.run("class", "create", "tree", "--both", str(RATES["tree"]), "--mode", "device")
        print("| load | MiB | most ahead, s | needed, s | by the limit, s | without it, s | needed to limit | silence at the end, s | other, s | written |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for load in chosen:
            measure(daemon, disk, load)
        for name in RATES:
            measured = [load for load in chosen if load.class_name == name]
            if options.svg and measured:
                plot(os.path.join(options.svg, f"limits-{name}.svg"), measured)
    finally:
        if daemon:
            daemon.end()
        if disk:
            disk.end()
        if options.keep_log:
            shutil.copy(directory + "/swapd.log", options.keep_log)
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
