#!/usr/bin/env python3
"""Draws what `swapd --simulate` printed: how often how many nodes ran the second job, a curve a run.

  swapd --simulate bench/simulate/figure-3-5.toml | scripts/plot-simulation.py > figure-3-5.svg

Thin dashed curves are those of the Markov chain, where the scenario has one. The axis of shares is logarithmic.
"""
import html
import json
import math
import sys

LEFT, TOP, WIDTH, HEIGHT, LEAST = 60, 30, 560, 300, 1e-5
COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#666666", "#1f78b4")


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def runs_of(lines):
    """[name, states of the second job, states of the chain or None] of each run, and the title."""
    runs, title = [], ""
    for line in lines:
        kind = line["type"]
        if kind == "scenario":
            title = line["title"]
            name = f'{line["sweep"]} {line["value"]:g}' if "sweep" in line else ""
            runs.append([name, None, None])
        elif kind == "job" and "states" in line:
            runs[-1][1] = line["states"]
        elif kind == "chain":
            runs[-1][2] = line.get("states")
    return [run for run in runs if run[1]], title


def curve(states, colour, dashed):
    points = []
    for i, share in enumerate(states):
        x = LEFT + WIDTH * i / (len(states) - 1)
        y = TOP + HEIGHT * math.log10(max(share, LEAST)) / math.log10(LEAST)
        points.append(f"{x:.1f},{y:.1f}")
    style = ' stroke-width="0.7" stroke-dasharray="3 2"' if dashed else ' stroke-width="1.5"'
    return f'<polyline fill="none" stroke="{colour}"{style} points="{" ".join(points)}"/>'


def drawing(runs, title):
    parts = [text(LEFT + WIDTH / 2, 18, title)]
    for power in range(0, round(-math.log10(LEAST)) + 1):
        y = TOP + HEIGHT * power / -math.log10(LEAST)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y + 4, f"{10.0 ** -power:g}", "end"))
    nodes = max(len(states) for _, states, _ in runs) - 1
    for quarter in range(5):
        parts.append(text(LEFT + WIDTH * quarter / 4, TOP + HEIGHT + 16, f"{nodes * quarter / 4:g}"))
    parts.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 32, "nodes that run the second job; share of the time"))
    for i, (name, states, chain) in enumerate(runs):
        colour = COLOURS[i % len(COLOURS)]
        parts.append(curve(states, colour, False))
        if chain:
            parts.append(curve(chain, colour, True))
        if not name:
            continue
        y = TOP + 14 + 16 * i
        parts.append(f'<line x1="{LEFT + WIDTH + 12}" x2="{LEFT + WIDTH + 32}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(LEFT + WIDTH + 38, y, name, "start"))
    width, height = LEFT + WIDTH + 160, TOP + HEIGHT + 44
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def main():
    if len(sys.argv) > 1:
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("--help", "-h") else 2
    runs, title = runs_of(json.loads(line) for line in sys.stdin if line.strip())
    if not runs:
        print("plot-simulation.py: no job line with states: does the scenario say states = false?", file=sys.stderr)
        return 1
    sys.stdout.write(drawing(runs, title))
    return 0


if __name__ == "__main__":
    sys.exit(main())
