#!/usr/bin/env python3
"""Puts measured tables into docs/results.md, each in place of the one that stands below its command.

  results-write.py DIR PAGE    DIR: of measure.sh, a NAME.json and a NAME.command for each; NAME.svg goes beside PAGE if that shows it

A command that the page does not have is said, with exit status 1: its heading and words are for people to write. All else on the
page remains as it is.
"""
import pathlib
import shutil
import subprocess
import sys

KINDS = {"ratio": ("client-server", "strict", "futex"), "ratio-p50": ("nice", "split", "cpus"), "accuracy": ("shape-accuracy",)}


def kind(name):
    return next((k for k, starts in KINDS.items() if name.startswith(starts)), "plain")


def without_figure(command):
    return command.split(" --plot ")[0].strip()


def place(lines, command):
    """Where the table of a command begins and ends; none: not on the page."""
    for at, line in enumerate(lines):
        if not line.startswith("`") or without_figure(line.split("`")[1]) != without_figure(command):
            continue
        first = at + 1
        while first < len(lines) and not lines[first].startswith(("|", "#")):
            first += 1
        last = first
        while last < len(lines) and lines[last].startswith("|"):
            last += 1
        return (first, last) if last > first else None
    return None


def main(directory, page):
    lines = page.read_text(encoding="utf-8").split("\n")
    missing = 0
    for commands in sorted(directory.glob("*.command")):
        data = commands.with_suffix(".json")
        if not data.exists():
            continue
        command = commands.read_text(encoding="utf-8").strip()
        found = place(lines, command)
        if found is None:
            print(f"{page} has no table below `{command}`", file=sys.stderr)
            missing += 1
            continue
        table = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("results-table.py"), kind(data.stem), data],
                               check=True, capture_output=True, text=True).stdout
        lines[found[0]:found[1]] = table.rstrip("\n").split("\n")
        figure = data.with_suffix(".svg")
        if figure.exists() and any(f"({figure.name})" in line for line in lines):
            shutil.copy(figure, page.parent)
    page.write_text("\n".join(lines), encoding="utf-8")
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
