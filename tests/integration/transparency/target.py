"""A process for strace and gdb to attach to: waits for a line, makes 200 rounds of calls that say what they gave, and ends."""
import os
import signal
import socket
import sys
import threading


def echo(side):
    while data := os.read(side, 16):
        os.write(side, data)


def main():
    left, right = socket.socketpair()
    answering = threading.Thread(target=echo, args=(right.fileno(),), daemon=True)
    # Only the first thread takes it: while that one stands before its tracer, the kernel would give it to the other.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    answering.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, lambda *_: None)
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    for i in range(200):
        os.write(left.fileno(), b"%d" % i)
        if os.read(left.fileno(), 16) != b"%d" % i:
            sys.exit(f"round {i}: wrong answer")
        os.kill(os.getpid(), signal.SIGUSR1)
    print("rounds: 200", flush=True)
    sys.stdin.readline()
    print("done", flush=True)


main()
