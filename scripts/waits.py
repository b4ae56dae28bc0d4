#!/usr/bin/python3
"""How long an important program waits for real ones: idle, beside hogs without swapd, and with it.

usage: waits.py --build BUILD_DIR [--repeat N] [--hogs N] [--observe OBSERVER] [WAIT...]

  postgres  psql updates a row that another psql has locked and will free after some CPU time; both are new each time
  fuse      looks at 400 files of a bindfs
  sqlite    begins a transaction while another program, which computes, is in one; SQLite sleeps and tries again
  dbus      calls a service that computes, over a session bus that swapd does not manage

The important one runs at FIFO 50, whom it waits for at nice 0. They and the hogs, each in a session of its own, share one
CPU. A line a wait: medians in milliseconds with the least and the most, and both as multiples of idle. As root.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from limits import Daemon  # noqa: E402

PYTHON = "/usr/bin/python3"
BURN = "import time\ndef burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
# Runs a command and writes how long it took, so that the start of swapctl is left out.
TIMED = ("import subprocess, sys, time\nbegin = time.monotonic()\nsubprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)\n"
         "open(sys.argv[1], 'w').write(str(time.monotonic() - begin))\n")
FUSE = "import os, sys\nfor i in range(400): os.stat(f'{sys.argv[1]}/{i}')\n"
HOLD = BURN + ("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\ndb.execute('begin immediate')\n"
               "open(sys.argv[2], 'w').close()\nburn(0.3)\ndb.execute('commit')\n")
TAKE = ("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\ndb.execute('begin immediate')\n"
        "db.execute('commit')\n")
SERVE = BURN + ("import dbus.service, dbus.mainloop.glib\nfrom gi.repository import GLib\n"
                "dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)\n"
                "class Service(dbus.service.Object):\n"
                "    @dbus.service.method('org.example.Waits')\n    def Compute(self): burn(0.2)\n"
                "bus = dbus.SessionBus()\nname = dbus.service.BusName('org.example.Waits', bus)\n"
                "service = Service(bus, '/')\nGLib.MainLoop().run()\n")


def until(what, message, seconds=30):
    for _ in range(seconds * 100):
        if what():
            return
        time.sleep(0.01)
    raise RuntimeError(message)


class Place:
    """One CPU, a directory, what was started there, and the swapd of the moment."""

    def __init__(self, build, observer, hogs):
        self.build, self.observer, self.hogs = os.path.abspath(build), observer, hogs
        self.directory = tempfile.mkdtemp(prefix="swapd-waits-")
        os.chmod(self.directory, 0o711)
        self.cpu = max(os.sched_getaffinity(0))
        self.started, self.daemon = [], None

    def path(self, name):
        return os.path.join(self.directory, name)

    def words(self, important=False):
        here = ["taskset", "-c", str(self.cpu)]
        if not self.daemon:
            return here + (["chrt", "--fifo", "50"] if important else [])
        run = [self.daemon.ctl, "run", *(["--fifo", "50"] if important else []), "--"]
        return run + here

    def start(self, command, managed=True, **more):
        words = self.words() if managed else ["taskset", "-c", str(self.cpu)]
        process = subprocess.Popen(["setsid", *words, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, **more)
        self.started.append(process)
        return process

    def measure(self, command):
        """Seconds that the important program took."""
        written = self.path("took")
        if os.path.exists(written):
            os.unlink(written)
        with open(self.path("errors"), "a") as errors:
            subprocess.run([*self.words(True), PYTHON, "-c", TIMED, written, *command], check=True, stderr=errors)
        with open(written) as took:
            return float(took.read())

    def begin_hogs(self):
        for _ in range(self.hogs):
            self.start(["timeout", "900", "sh", "-c", "while :; do :; done"], managed=False)

    def end(self, process):
        if process in self.started:
            self.started.remove(process)
        try:
            os.killpg(process.pid, signal.SIGINT if "postgres" in str(process.args) else signal.SIGTERM)
        except ProcessLookupError:
            pass
        process.wait()

    def measure_beside(self, holder, command):
        """The same while `holder` has what the command waits for; it ends by itself."""
        took = self.measure(command)
        holder.wait()
        self.started.remove(holder)
        return took

    def end_all(self):
        for process in reversed(list(self.started)):
            self.end(process)
        if self.daemon:
            self.daemon.end()
            self.daemon = None


class Postgres:
    def __init__(self, place):
        self.place = place
        self.programs = subprocess.run("find /usr/lib/postgresql -maxdepth 3 -name postgres -printf '%h\\n' | sort -V | tail -n 1",
                                       shell=True, check=True, capture_output=True, text=True).stdout.strip()
        if not self.programs:
            sys.exit("PostgreSQL's server is not installed")
        self.as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "env", "-C", "/"]
        self.data = place.path("db")
        if not os.path.exists(self.data):
            os.mkdir(self.data)
            shutil.chown(self.data, "postgres", "postgres")
            subprocess.run([*self.as_user, self.programs + "/initdb", "-D", self.data, "-A", "trust", "--no-sync"], check=True,
                           capture_output=True)
        place.start([*self.as_user, self.programs + "/postgres", "-D", self.data, "-c", "listen_addresses=", "-c",
                     "unix_socket_directories=" + self.data, "-c", "fsync=off", "-c", "jit=off", "-c",
                     "max_parallel_workers_per_gather=0"])
        until(lambda: self.ask("select 1").returncode == 0, "PostgreSQL does not start")
        self.ask("create table if not exists t(i int); truncate t; insert into t values (1)")

    def psql(self, text):
        return [*self.as_user, self.programs + "/psql", "-h", self.data, "-X", "-q", "-t", "-c", text]

    def ask(self, text):
        return subprocess.run(self.psql(text), capture_output=True, text=True)

    def once(self):
        holder = self.place.start(self.psql("begin; update t set i = i; select count(*) from generate_series(1, 1500000); commit"))
        until(lambda: self.ask("select count(*) from pg_locks where relation = 't'::regclass and mode = 'RowExclusiveLock'")
              .stdout.strip() not in ("", "0"), "the row is not locked")
        return self.place.measure_beside(holder, self.psql("update t set i = i"))


class Fuse:
    def __init__(self, place):
        self.place = place
        self.below, self.mount = place.path("below"), place.path("mount")
        os.makedirs(self.below, exist_ok=True)
        os.makedirs(self.mount, exist_ok=True)
        for i in range(400):
            open(f"{self.below}/{i}", "w").close()
        place.start(["bindfs", "-f", "-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0", self.below, self.mount])
        until(lambda: os.path.exists(self.mount + "/0"), "bindfs does not mount")

    def once(self):
        return self.place.measure([PYTHON, "-c", FUSE, self.mount])

    def end(self):
        subprocess.run(["umount", "-l", self.mount], check=False)


class Sqlite:
    def __init__(self, place):
        self.place, self.file, self.flag = place, place.path("file.db"), place.path("held")

    def once(self):
        if os.path.exists(self.flag):
            os.unlink(self.flag)
        holder = self.place.start([PYTHON, "-c", HOLD, self.file, self.flag])
        until(lambda: os.path.exists(self.flag), "the file is not locked")
        return self.place.measure_beside(holder, [PYTHON, "-c", TAKE, self.file])


class Dbus:
    def __init__(self, place):
        self.place = place
        address = "unix:path=" + place.path("bus")
        if os.path.exists(place.path("bus")):
            os.unlink(place.path("bus"))
        place.start(["dbus-daemon", "--session", "--nofork", "--address=" + address], managed=False)
        until(lambda: os.path.exists(place.path("bus")), "dbus-daemon does not start")
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = address
        place.start([PYTHON, "-c", SERVE])
        until(lambda: subprocess.run(self.call("org.freedesktop.DBus.Peer.Ping"), capture_output=True).returncode == 0,
              "the service does not start")

    @staticmethod
    def call(method):
        return ["gdbus", "call", "--session", "--timeout", "60", "--dest", "org.example.Waits", "--object-path", "/", "--method", method]

    def once(self):
        return self.place.measure(self.call("org.example.Waits.Compute"))


WAITS = {"postgres": Postgres, "fuse": Fuse, "sqlite": Sqlite, "dbus": Dbus}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--hogs", type=int, default=10)
    parser.add_argument("--observe", default="bpf")
    parser.add_argument("waits", nargs="*", metavar="WAIT")
    options = parser.parse_args()
    unknown = [name for name in options.waits if name not in WAITS]
    if unknown:
        parser.error(f"unknown wait {unknown[0]}: {', '.join(WAITS)}")
    if os.geteuid() != 0:
        parser.error("must run as root")
    place = Place(options.build, options.observe, options.hogs)
    print(f"| wait | idle, ms | {options.hogs} hogs, ms | with swapd, ms | hogs / idle | swapd / idle |\n|---|---|---|---|---|---|")
    try:
        for name in options.waits or WAITS:
            seen = {}
            for way in ("idle", "hogs", "swapd"):
                if way == "swapd":
                    place.daemon = Daemon(place.build, place.directory, place.observer)
                wait = WAITS[name](place)
                try:
                    wait.once()  # not counted: what is new is learnt here
                    if way != "idle":
                        place.begin_hogs()
                    seen[way] = [1000 * wait.once() for _ in range(options.repeat)]
                finally:
                    if hasattr(wait, "end"):
                        wait.end()
                    place.end_all()
            middle = {way: statistics.median(times) for way, times in seen.items()}
            cells = [f"{middle[way]:.0f} ({min(seen[way]):.0f} to {max(seen[way]):.0f})" for way in seen]
            print(f"| {name} | {' | '.join(cells)} | {middle['hogs'] / middle['idle']:.2f} | {middle['swapd'] / middle['idle']:.2f} |",
                  flush=True)
    finally:
        place.end_all()
        shutil.rmtree(place.directory, ignore_errors=True)


if __name__ == "__main__":
    main()
