#!/usr/bin/env python3
"""Writes the pages of docs/results, and the table of results in README.md, from raw lines.

  results.py             writes them all
  results.py --check     fails where a page is not what its raw lines give
  results.py --root DIR  another tree (tests)

Raw lines: docs/results/raw/NAME.jsonl, what `swapbench … --json` has printed, a file a run. The words of a page are in
docs/results/pages/PAGE.md, where a line of its own stands for something made of the lines:

  {{ratios NAME}}         a row a configuration: idle, vanilla, hand-set and swapd, their ratios with intervals
  {{table NAME}}          a row a line, with the columns of its workload
  {{accuracy NAME}}       of shape-accuracy: a row a target, number of members and block, a column a limit
  {{bars NAME}}, {{curve NAME}}, {{steps NAME}}, {{seconds NAME}}   a figure, written beside the page as NAME.svg: of the
                          ratios, of iterations, of limits step by step, of frames missed second by second; {{grains NAME}},
                          of barriers by their grain
  {{claims}}              the table of docs/results/claims.json

A claim is a file of raw lines, the line (`where`) and its `field`, or the ratio of two configurations (`under`, `to`: the
worst of the rows), and a target. While the file is not there, the claim's `older` figure stands, with its commit and page.
"""
import argparse
import html
import json
import math
import pathlib
import posixpath
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = pathlib.Path("docs/results")
ORIGIN = ("version", "commit", "kernel", "cpu", "date", "command")

# What tells the rows of one file apart; the first ones are always shown.
KEYS = ("mechanism", "resource", "measure", "program", "managed", "under", "observer", "limit", "hogs", "cpus", "work_ms",
        "chunk_us", "depth", "quantum_ms", "feedback", "alone", "history", "placement", "important", "client", "sessions",
        "strict", "server_nice", "wrong_providers", "rate", "block", "members", "seconds", "receive", "pattern", "grain_us", "ranks", "competitors", "nodes", "rooms",
        "users", "messages", "processes", "memory_hogs", "churn_s", "churn_nice", "t_s")
SHOWN = ("mechanism", "under")
TITLES = {"work_ms": "work, ms", "chunk_us": "chunk, µs", "quantum_ms": "T, ms", "mean_ms": "mean, ms", "p50_ms": "p50, ms",
          "p99_ms": "p99, ms", "max_ms": "max, ms", "p50_us": "p50, µs", "p99_us": "p99, µs", "max_us": "max, µs",
          "without_cpu_p50_us": "p50 without a CPU, µs", "without_cpu_p99_us": "p99 without a CPU, µs",
          "added_us": "added, µs", "bare_us": "bare, µs", "added_ns": "added, ns", "above_empty_ns": "above an empty one, ns",
          "ns_a_run": "ns a run", "ratio_to_bare": "to bare", "to_idle": "to idle", "to_hand_set": "to hand-set",
          "to_vanilla": "to vanilla", "hogs_cpu_share": "hogs, of all CPUs",
          "swapd_cpu_share": "swapd, CPUs", "engine_cpu_share": "engine, CPUs", "programs_cpu_share": "BPF programs, CPUs",
          "cpu_share": "share of a CPU", "rss_bytes": "memory, bytes", "others_mib_s": "others, MiB/s",
          "limited_mib_s": "limited, MiB/s", "other_mib_s": "other, MiB/s", "sum_mib_s": "sum, MiB/s", "rate_mib_s": "rate, MiB/s",
          "grain_us": "grain, µs",
          "time_s": "time, s", "cpu_s": "CPU time, s", "to_ideal": "to ideal", "fairness_each": "fairness of each",
          "fairness_worst_phase": "fairness, worst phase", "serial_lost": "CPU time that serial ones lost", "serial_runs_lost": "runs that they lost", "competitors_share": "competitors, of all CPUs",
          "time_ns": "ns", "items_per_s": "a second", "bytes_each": "bytes each"}
# The columns of a workload beside its keys; those that no line has are left out.
COLUMNS = {
    "multi-server": ("mean_ms", "p50_ms", "max_ms", "fastest_alone_ms", "to_fastest_from_3", "mean_to_fastest_from_3",
                     "to_fastest_from_8", "mean_to_fastest_from_8", "fewest_candidates"),
    "cascade": ("mean_ms", "p50_ms", "p99_ms", "max_ms", "first_ms", "chain_shown", "to_idle", "to_hand_set"),
    "pipeline": ("mean_ms", "p50_ms", "p99_ms", "max_ms", "to_idle", "to_hand_set"),
    "latency": ("p50_us", "p99_us", "max_us", "without_cpu_p50_us", "without_cpu_p99_us", "samples", "missed", "events_lost"),
    "scale": ("threads", "resources_made", "events_per_s", "events_lost", "engine_cpu_share", "swapd_cpu_share", "rss_bytes"),
    "overhead": ("p50_ms", "added_us", "added_ns", "ratio", "bare_us", "ratio_to_bare", "ns_a_run", "above_empty_ns", "cpu_share"),
    "apps": ("throughput", "ratio", "to_hand_set", "hogs_cpu_share", "swapd_cpu_share", "programs_cpu_share", "events_lost"),
    "chat": ("throughput", "ratio", "to_vanilla", "to_hand_set", "hogs_cpu_share", "swapd_cpu_share", "engine_cpu_share", "events_lost"),
    "cosched": ("time_s", "cpu_s", "fairness", "fairness_each", "fairness_worst_phase", "to_ideal", "to_vanilla", "throughput", "competitors_share", "serial_lost",
                "serial_runs_lost", "cut", "swapd_cpu_share"),
    "shape-overhead": ("p50_ms", "added_us", "ratio_to_bare", "throughput"),
    "shape-rivals": ("rate_mib_s", "limited_mib_s", "deviation", "throughput", "unprivileged"),
    "tap-disk": ("limited_mib_s", "other_mib_s", "sum_mib_s", "sum_to_first"),
    "tap-network": ("limited_mib_s", "other_mib_s", "sum_mib_s", "sum_to_first"),
    "tap-stream": ("missed", "missed_later", "others_mib_s", "to_best"),
    "model": ("time_ns", "items_per_s", "bytes_each"),
}
DEFAULT_COLUMNS = ("mean_ms", "p50_ms", "p99_ms", "max_ms", "throughput", "ratio", "time_s", "cpu_s", "fairness", "to_ideal",
                   "frames_per_s", "page_s", "total_s", "loads_per_min", "pages_swapped_out", "killed", "swapd_cpu_share")


class Fault(Exception):
    """A line for people: what is wrong with a page or with raw lines."""


def median_interval(values):
    """Where the median lies with 95 % certainty, as the sign test has it; all of the values where they are few."""
    ordered, n = sorted(values), len(values)
    left_out = int(max(1.0, math.floor((n - 1.96 * math.sqrt(n)) / 2)) - 1)
    return ordered[left_out], ordered[n - 1 - left_out]


def figure(value):
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(figure(each) for each in value)
    if not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def key_text(value):
    """A key, exactly: 80 and not 80.00."""
    return f"{value:g}" if isinstance(value, float) else figure(value)


def with_interval(value, interval, digits=None):
    form = figure if digits is None else (lambda v: f"{v:.{digits}f}")
    if value is None:
        return ""
    return form(value) + (f" ({form(interval[0])}–{form(interval[1])})" if interval else "")


class Raw:
    """The lines of one run."""

    def __init__(self, path):
        self.path, self.name = path, path.stem
        self.lines = []
        for number, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if text.strip():
                try:
                    self.lines.append(json.loads(text))
                except ValueError as error:
                    raise Fault(f"{path}:{number}: {error}") from error
        if not self.lines:
            raise Fault(f"{path}: no lines")
        for field in ORIGIN:
            missing = [n for n, line in enumerate(self.lines, 1) if field not in line]
            if missing:
                raise Fault(f"{path}:{missing[0]}: no {field}")
        self.check_apart()

    def check_apart(self):
        seen = {}
        for number, line in enumerate(self.lines, 1):
            key = tuple(json.dumps(line.get(k)) for k in KEYS)
            if key in seen:
                raise Fault(f"{self.path}:{number}: cannot be told from line {seen[key]} by {', '.join(KEYS[:4])} …")
            seen[key] = number

    def keys(self, skip=()):
        """The key fields to show: those always shown, and those that differ between lines."""
        return [k for k in KEYS if k not in skip and any(k in line for line in self.lines) and
                (k in SHOWN or len({json.dumps(line.get(k)) for line in self.lines}) > 1)]

    def origin(self):
        first = self.lines[0]
        several = [f for f in ("version", "commit", "kernel", "cpu") if len({line[f] for line in self.lines}) > 1]
        if several:
            raise Fault(f"{self.path}: lines of several runs: they differ in {', '.join(several)}")
        return (f"`{first['command']}`\n\nswapd {first['version']}, commit {first['commit']}, Linux {first['kernel']}, "
                f"{first['cpu']}, {first['date'][:10]}; [raw lines](raw/{self.name}.jsonl).")


def condition(line):
    return "idle" if line["under"] == "vanilla" and line.get("hogs") == 0 else line["under"]


def ratio(line, to, field):
    """The median of the ratios of each repeat to the one beside it, its interval, and how many they are."""
    pairs = list(zip(line.get("repeats") or [line], to.get("repeats") or [to]))
    ratios = [a[field] / b[field] for a, b in pairs if b[field]]
    if not ratios:
        return None, None, 0
    return statistics.median(ratios), median_interval(ratios) if len(ratios) > 1 else None, len(ratios)


RATIOS = (("swapd", "idle"), ("vanilla", "idle"), ("hand-set", "idle"), ("swapd", "hand-set"))


def groups(raw):
    """(keys, {configuration: line}) of lines that differ in under, hogs and observer alone."""
    keys = raw.keys(skip=("under", "hogs", "observer"))
    found = {}
    for line in raw.lines:
        found.setdefault(tuple(json.dumps(line.get(k)) for k in keys), {})[condition(line)] = line
    return keys, [(next(iter(g.values())), g) for g in found.values()]


def ratio_field(raw):
    """Medians where the client has a nice value, which is noisy; else means, so that the mean times the count is the run."""
    return "p50_ms" if raw.lines[0].get("client", "").startswith("nice") and not raw.lines[0].get("strict") else "mean_ms"


def ratios_table(raw):
    keys, rows = groups(raw)
    field = ratio_field(raw)
    there = [c for c in ("idle", "vanilla", "hand-set", "swapd") if any(c in g for _, g in rows)]
    compared = [(a, b) for a, b in RATIOS if a in there and b in there]
    if ("swapd", "idle") in compared and ("hand-set", "idle") in compared and ("swapd", "hand-set") in compared:
        compared.remove(("hand-set", "idle"))
    head = [TITLES.get(k, k.replace("_", " ")) for k in keys] + [f"{c}, ms" for c in there] + [f"{a} / {b}" for a, b in compared]
    body = []
    for first, group in rows:
        cells = [key_text(first.get(k)) for k in keys] + [figure(group[c][field]) if c in group else "" for c in there]
        count = 0
        for a, b in compared:
            if a in group and b in group:
                value, interval, n = ratio(group[a], group[b], field)
                cells.append(with_interval(value, interval, 2))
                count = max(count, n)
            else:
                cells.append("")
        body.append(cells + [str(count or len(first.get("repeats") or [first]))])
    what = "p50" if field == "p50_ms" else "means"
    return markdown(head + ["n"], body) + f"\n\n{what.capitalize()}; ratios of neighbours, median of n, with its 95 % interval.\n\n{raw.origin()}"


def plain_table(raw):
    workload = raw.lines[0]["workload"]
    keys = raw.keys()
    columns = [c for c in COLUMNS.get(workload, DEFAULT_COLUMNS) if any(line.get(c) is not None for line in raw.lines)]
    counted = any(count_of(line) > 1 for line in raw.lines)
    body = []
    for line in raw.lines:
        cells = [key_text(line.get(k)) for k in keys]
        for column in columns:
            cells.append(with_interval(line.get(column), interval_of(line, column, raw)))
        body.append(cells + ([str(count_of(line))] if counted else []))
    head = [TITLES.get(k, k.replace("_", " ")) for k in keys + columns] + (["n"] if counted else [])
    note = "In brackets the 95 % interval of the median of n.\n\n" if counted else "One run.\n\n"
    return markdown(head, body) + "\n\n" + note + raw.origin()


def count_of(line):
    return int(line.get("n") or len(line.get("repeats") or [0]))


def interval_of(line, column, raw):
    if column + "_95_from" in line:
        return line[column + "_95_from"], line[column + "_95_to"]
    repeats = line.get("repeats") or []
    if column in ("to_idle", "to_hand_set") and "mean_ms" in line:  # a ratio of rates brings its own interval
        to = {"to_idle": "idle", "to_hand_set": "hand-set"}[column]
        for _, group in groups(raw)[1]:
            if any(line is other for other in group.values()) and to in group and line.get(column) is not None:
                return ratio(line, group[to], "mean_ms")[1]
    if len(repeats) > 1 and all(column in r for r in repeats):
        return median_interval([r[column] for r in repeats])
    return None


def size(value):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} B"


def accuracy_table(raw):
    table, limits = {}, []
    for line in raw.lines:
        cells = table.setdefault((line["mechanism"], line["members"], line["block"]), {})
        limit = line["rate"] if line["under"] == "swapd" else 0
        cells[limit] = line
        if limit and limit not in limits:
            limits.append(limit)
    head = ["target", "members", "block", "no limit, a second"] + [f"{size(limit)}/s" for limit in limits]
    body = []
    for (target, members, block), cells in table.items():
        free = cells[0]["rate_reached"] if 0 in cells else None
        shown = [target, str(members), size(block), size(free) if free else ""]
        for limit in limits:
            line = cells.get(limit)
            if line is None:
                shown.append("")
            elif limit / block > 50_000 or (free and free < limit):
                shown.append("reaches " + size(line["rate_reached"]))
            else:
                shown.append(f"{100 * line['off']:.2f} % ({100 * line['deviation']:+.2f} %, {line['above_blocks']:.2f})")
        body.append(shown)
    return markdown(head, body) + "\n\nOff the limit less one block a member (deviation, blocks above the limit).\n\n" + raw.origin()


def markdown(head, body):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in body])


# --- figures ---
COLORS = {"idle": "#7a7a7a", "vanilla": "#c0504d", "hand-set": "#4f81bd", "swapd": "#4b9b4b"}


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'


def svg(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")


def scale(most, log, least=0.0):
    """From a value to 0…1, and the ticks."""
    if log:
        low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
        return (lambda v: (math.log10(v) - low) / (high - low)), [10.0 ** e for e in range(low, high + 1)]
    step = 10.0 ** math.floor(math.log10(most or 1))
    step *= next(f for f in (0.2, 0.5, 1, 2) if most / (step * f) <= 6 or f == 2)
    high = math.ceil(most / step - 1e-9) * step
    return (lambda v: v / high), [step * i for i in range(round(high / step) + 1)]


def axis(left, top, width, height, place, ticks, title):
    parts = [text(12, top + height / 2, title, extra=f' transform="rotate(-90 12 {top + height / 2:.1f})"')]
    for tick in ticks:
        y = top + height * (1 - place(tick))
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(text(left - 5, y + 4, figure(tick if tick != int(tick) else int(tick)), "end"))
    return parts


def polylines(series, title, every=5):
    """series: (label, color, values), one point a step."""
    width, height, left, top = 600, 220, 60, 30
    longest = max(len(values) for _, _, values in series)
    place, ticks = scale(max(max(values) for _, _, values in series), False)
    parts = axis(left, top, width, height, place, ticks, title)
    for j, (label, color, values) in enumerate(series):
        points = " ".join(f"{left + width * (i + 0.5) / longest:.1f},{top + height * (1 - place(v)):.1f}" for i, v in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
        parts.append(text(left + 150 * (j % 4), 12 + 13 * (j // 4), label, "start", f' fill="{color}"'))
    for i in range(0, longest, every):
        parts.append(text(left + width * (i + 0.5) / longest, top + height + 16, str(i + 1)))
    return svg(left + width + 20, top + height + 30, parts)


def grouped(names, series, title):
    """A group of bars a name. series: (label, color, [(value, interval) or None a name])."""
    values = [cell[0] for _, _, cells in series for cell in cells if cell]
    width, height, left, top = max(300, 60 * len(names)), 220, 60, 30
    log = min(values) > 0 and max(values) / min(values) > 20
    place, ticks = scale(max(values), log, min(values))
    parts = axis(left, top, width, height, place, ticks, title + (" (logarithmic)" if log else ""))
    each = width / len(names)
    bar = 0.8 * each / len(series)
    for j, (label, color, cells) in enumerate(series):
        parts.append(f'<rect x="{left + 90 * j}" y="8" width="10" height="10" fill="{color}"/>')
        parts.append(text(left + 90 * j + 14, 17, label, "start"))
        for i, cell in enumerate(cells):
            if not cell:
                continue
            x, y = left + (i + 0.1) * each + j * bar, top + height * (1 - place(cell[0]))
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{bar:.1f}" height="{top + height - y:.1f}" fill="{color}"/>')
            if cell[1]:
                low, high = (top + height * (1 - place(v)) for v in cell[1])
                parts.append(f'<line x1="{x + bar / 2:.1f}" y1="{low:.1f}" x2="{x + bar / 2:.1f}" y2="{high:.1f}" stroke="black"/>')
    for i, name in enumerate(names):
        x, y = left + (i + 0.5) * each, top + height + 14
        parts.append(text(x, y, name, "end", f' transform="rotate(-30 {x:.1f} {y:.1f})"'))
    return svg(left + width + 20, top + height + 70, parts)


def bars(raw):
    """Of each configuration idle, vanilla, hand-set and swapd, with intervals."""
    keys, rows = groups(raw)
    field = ratio_field(raw)

    def cell(line):
        if line is None:
            return None
        repeats = [r[field] for r in line.get("repeats") or []]
        return line[field], median_interval(repeats) if len(repeats) > 1 else None

    there = [c for c in COLORS if any(c in g for _, g in rows)]
    return grouped([", ".join(key_text(first.get(k)) for k in keys) for first, _ in rows],
                   [(c, COLORS[c], [cell(g.get(c)) for _, g in rows]) for c in there],
                   ("p50" if field == "p50_ms" else "mean") + ", ms")


def steps(raw):
    """Of each limit what the limited one and the other one move."""
    return grouped([f"{line['mechanism']}, {line['limit']}" for line in raw.lines],
                   [(label, color, [(line[label + "_mib_s"], None) for line in raw.lines])
                    for label, color in (("limited", COLORS["vanilla"]), ("other", COLORS["swapd"]))], "MiB/s")


def curve(raw):
    """The iterations of each line."""
    lines = [line for line in raw.lines if line.get("samples_ms")]
    if not lines:
        raise Fault(f"{raw.path}: no samples_ms for a curve")
    return polylines([(f"{line['under']}, {line.get('hogs', 0)} hogs", COLORS.get(line["under"], "black"), line["samples_ms"])
                      for line in lines], "iteration, ms")


def seconds(raw):
    """The frames that each line missed, second by second."""
    shades = ("#c0504d", "#4f81bd", "#8064a2", "#f79646", "#4bacc6", "#9bbb59", "#7a7a7a")
    return polylines([(f"{line['under']}, {line['limit']}", COLORS["swapd"] if line["under"] == "swapd" else shades[i % len(shades)],
                       line["missed_by_second"]) for i, line in enumerate(raw.lines)], "frames missed in a second", 10)


def grains(raw):
    """Of barriers with grains from fine to coarse, how long each configuration takes to its ideal."""
    lines = {}
    for line in raw.lines:
        label = f"{line['under']}, {line['receive']}, {line['competitors']} a CPU"
        lines.setdefault(label, (line["under"], {}))[1][line["grain_us"]] = line["to_ideal"]
    every = sorted({grain for _, values in lines.values() for grain in values})
    width, height, left, top = 600, 240, 60, 30 + 13 * ((len(lines) + 1) // 2)
    all_values = [v for _, values in lines.values() for v in values.values()]
    place, ticks = scale(max(all_values), True, min(all_values + [1.0]))
    parts = axis(left, top, width, height, place, ticks, "to ideal (logarithmic)")
    dashes = ("", "6 3", "2 2", "8 3 2 3")
    seen = {}
    for j, (label, (under, values)) in enumerate(lines.items()):
        color = COLORS.get(under, "black")
        dash = dashes[seen.setdefault(under, 0) % len(dashes)]
        seen[under] += 1
        points = " ".join(f"{left + width * (every.index(g) + 0.5) / len(every):.1f},{top + height * (1 - place(v)):.1f}"
                          for g, v in sorted(values.items()))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-dasharray="{dash}"/>')
        x, y = left + 300 * (j % 2), 12 + 13 * (j // 2)
        parts.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 24}" y2="{y - 4}" stroke="{color}" stroke-dasharray="{dash}"/>')
        parts.append(text(x + 30, y, label, "start"))
    for i, grain in enumerate(every):
        parts.append(text(left + width * (i + 0.5) / len(every), top + height + 16, f"{key_text(grain)} µs"))
    return svg(left + width + 20, top + height + 30, parts)


DRAWINGS = {"bars": bars, "steps": steps, "curve": curve, "seconds": seconds, "grains": grains}


# --- claims ---
def select(raw, where):
    found = [line for line in raw.lines if all(line.get(k) == v for k, v in where.items())]
    if len(found) != 1:
        raise Fault(f"{raw.path}: {len(found)} lines with {json.dumps(where)}, not one")
    return found[0]


def claim_figure(claim, runs):
    """(measured, n, commit, where): of the claim's line, or its older figure."""
    raw = runs.get(claim.get("raw"))
    if raw is None:
        older = claim.get("older")
        if older is None:
            return "not measured yet", "", "", ""
        return older["measured"], older.get("n", ""), older["commit"], older["link"]
    factor, digits, unit = claim.get("factor", 1), claim.get("digits", 2), claim.get("unit", "")
    if "to" in claim:  # the worst of all rows' ratios, or that of one
        field = ratio_field(raw)
        found = []
        for first, group in groups(raw)[1]:
            if all(first.get(k) == v for k, v in claim.get("where", {}).items()) and claim["under"] in group and claim["to"] in group:
                found.append((ratio(group[claim["under"]], group[claim["to"]], field), first["mechanism"]))
        if not found:
            raise Fault(f"{raw.path}: no rows for the claim \"{claim['claim']}\"")
        ((value, interval, n), name) = max(found, key=lambda f: f[0][0])
        shown = with_interval(value, interval, digits)
        if len(found) > 1:
            shown += f", the worst of {len(found)} ({name})"
    else:
        line = select(raw, claim.get("where", {}))
        interval = interval_of(line, claim["field"], raw)
        shown = with_interval(line[claim["field"]] * factor, [v * factor for v in interval] if interval else None, digits)
        n = line.get("samples") or count_of(line)
    return shown + (" " + unit if unit else ""), str(n), raw.lines[0]["commit"], f"{claim['page']}#{claim['anchor']}" if "anchor" in claim else claim["page"]


def claims_table(claims, runs, base, brief=False):
    body = []
    for claim in claims:
        if brief and not claim.get("readme"):
            continue
        measured, n, commit, link = claim_figure(claim, runs)
        link = f"[table]({posixpath.normpath(base + link)})" if link else ""
        row = [claim["claim"], claim["target"], measured, n, f"`{commit}`" if commit else "", link]
        body.append(row)
    return markdown(["claim", "target", "measured: median (95 % interval)", "n", "commit", ""], body)


# --- pages ---
DIRECTIVE = re.compile(r"^\{\{(\w+)(?: ([\w.-]+))?\}\}$")


def render(template, runs, claims, figures):
    out = []
    for line in template.split("\n"):
        match = DIRECTIVE.match(line)
        if not match:
            out.append(line)
            continue
        kind, name = match[1], match[2]
        if kind == "claims":
            out.append(claims_table(claims, runs, ""))
            continue
        raw = runs.get(name)
        if raw is None and kind in DRAWINGS:
            continue
        if raw is None:
            out.append(f"Not measured since raw lines are kept (`{name}`): see [older figures](../older-figures.md).")
        elif kind == "ratios":
            out.append(ratios_table(raw))
        elif kind == "table":
            out.append(plain_table(raw))
        elif kind == "accuracy":
            out.append(accuracy_table(raw))
        elif kind in DRAWINGS:
            figures[name + ".svg"] = DRAWINGS[kind](raw)
            out.append(f"![{name}]({name}.svg)")
        else:
            raise Fault(f"{{{{{kind}}}}}: no such directive")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out))


NOTICE = "<!-- Written by scripts/results.py from pages/{} and raw/*.jsonl: edit those. -->\n"
MARKS = ("<!-- results: written by scripts/results.py from docs/results/claims.json -->", "<!-- end of results -->")


def made(root):
    """{path below root: text} of everything that the raw lines give."""
    here = root / RESULTS
    runs = {path.stem: Raw(path) for path in sorted((here / "raw").glob("*.jsonl"))}
    claims = json.loads((here / "claims.json").read_text(encoding="utf-8"))
    out, figures, used = {}, {}, set()
    for template in sorted((here / "pages").glob("*.md")):
        words = template.read_text(encoding="utf-8")
        used |= {m[2] for line in words.split("\n") if (m := DIRECTIVE.match(line))}
        out[RESULTS / template.name] = NOTICE.format(template.name) + render(words, runs, claims, figures)
    unused = sorted(set(runs) - used)
    if unused:
        raise Fault(f"no page shows raw/{unused[0]}.jsonl")
    for name, drawing in figures.items():
        out[RESULTS / name] = drawing
    readme = root / "README.md"
    if readme.exists():
        words = readme.read_text(encoding="utf-8")
        if all(mark in words for mark in MARKS):
            before, after = words.split(MARKS[0])[0], words.split(MARKS[1])[1]
            table = claims_table(claims, runs, str(RESULTS) + "/", brief=True)
            out[pathlib.Path("README.md")] = f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}"
    return out


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args(arguments)
    try:
        pages = made(options.root)
    except Fault as fault:
        print(f"results.py: {fault}", file=sys.stderr)
        return 1
    wrong = 0
    for path, words in pages.items():
        file = options.root / path
        if file.exists() and file.read_text(encoding="utf-8") == words:
            continue
        if options.check:
            print(f"{path} is not what its raw lines give: run scripts/results.py")
            wrong = 1
        else:
            file.write_text(words, encoding="utf-8")
    stale = sorted(str(p.relative_to(options.root)) for p in (options.root / RESULTS).glob("*.*")
                   if p.suffix in (".md", ".svg") and p.relative_to(options.root) not in pages)
    for path in stale:
        print(f"{path} is made of no raw lines")
        wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
