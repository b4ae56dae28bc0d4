#!/usr/bin/env python3
"""A service manager as far as its descriptor store goes (sd_notify(3), sd_listen_fds(3)).

manager.py SOCKET PROGRAM ARGUMENT...: runs the program in a session of its own, keeps the descriptors that it stores, and
starts it again with them where it is killed. Ends with its status else; SIGTERM and SIGINT are passed on."""
import os
import signal
import socket
import sys

FIRST = 3
HIGH = 100  # out of the way of what is placed from FIRST on


def start(command, notify, store):
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    fds = [fd for _, fd in store]
    for i, fd in enumerate(fds):
        os.dup2(fd, HIGH + i)
    for i in range(len(fds)):
        os.dup2(HIGH + i, FIRST + i)
        os.set_inheritable(FIRST + i, True)
    os.closerange(HIGH, HIGH + len(fds))
    os.environ["NOTIFY_SOCKET"] = notify
    if store:
        os.environ.update(
            LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=":".join(name for name, _ in store)
        )
    os.execv(command[0], command)


def main():
    notify, command = sys.argv[1], sys.argv[2:]
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(notify)
    heard.settimeout(0.02)
    store = []
    child = start(command, notify, store)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: os.kill(child, n))
    while True:
        try:
            text, fds, _, _ = socket.recv_fds(heard, 4096, 16)
            said = dict(line.split("=", 1) for line in text.decode().splitlines() if "=" in line)
            if "FDSTORE" in said:
                store += [(said["FDNAME"], fd) for fd in fds]
            elif "FDSTOREREMOVE" in said:
                for name, fd in [s for s in store if s[0] == said["FDNAME"]]:
                    store.remove((name, fd))
                    os.close(fd)
        except TimeoutError:
            pass
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == 0:
            continue
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            if "--ready-fd" in command:  # a number of the first one's
                at = command.index("--ready-fd")
                del command[at : at + 2]
            child = start(command, notify, store)
            continue
        return os.waitstatus_to_exitcode(status) & 0xFF


sys.exit(main())
