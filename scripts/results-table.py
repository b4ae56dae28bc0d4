#!/usr/bin/env python3
"""Markdown tables from `swapbench --json` lines, for docs/results.md.

  results-table.py ratio|ratio-p50 FILE…   a row a mechanism: means (medians) idle, vanilla, hand-set, swapd and their ratios
  results-table.py plain FILE…             a row a configuration, with every column the workload adds
  results-table.py accuracy FILE…          of shape-accuracy: a row a target, number of members and block, a column a limit
"""
import json
import sys


def rows(files):
    for name in files:
        with open(name, encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    yield json.loads(line)


def figure(value):
    return "" if value is None else f"{value:.3g}" if value < 1 else f"{value:.2f}"


def ratio_table(files, column):
    table = {}
    for row in rows(files):
        under = "idle" if row["hogs"] == 0 and row["under"] == "vanilla" else row["under"]
        found = table.setdefault(row["mechanism"], {})
        found[under] = row[column]
        for to, field in (("idle", "to_idle"), ("hand-set", "to_hand_set")):  # medians of the ratios of neighbours
            found[under, to] = row.get(("p50_" if column == "p50_ms" else "") + field)
    columns = [c for c in ("idle", "vanilla", "hand-set", "swapd") if any(c in r for r in table.values())]
    ratios = [(a, b) for a, b in (("swapd", "idle"), ("vanilla", "idle"), ("swapd", "hand-set")) if a in columns and b in columns]
    print("| mechanism | " + " | ".join(f"{c}, ms" for c in columns) + " | " + " | ".join(f"{a} / {b}" for a, b in ratios) + " |")
    print("|" + "---|" * (1 + len(columns) + len(ratios)))
    for mechanism, found in table.items():
        cells = [figure(found.get(c)) for c in columns]
        cells += [figure(found.get((a, b))) for a, b in ratios]
        print(f"| {mechanism} | " + " | ".join(cells) + " |")


def plain_table(files):
    known = ["workload", "mechanism", "under", "limit", "hogs", "mean_ms", "p50_ms", "p99_ms", "max_ms"]
    extra = ["added_us", "bare_us", "ratio_to_bare", "chain_shown", "quantum_ms", "feedback", "fastest_alone_ms",
             "to_fastest_from_3", "mean_to_fastest_from_3", "to_fastest_from_8", "mean_to_fastest_from_8", "fewest_candidates", "first_ms", "to_idle", "to_hand_set",
             "resource", "p50_us", "p99_us", "max_us", "samples", "missed", "threads", "resources_made", "events_per_s", "events_lost",
             "engine_cpu_share", "rss_bytes", "measure", "added_ns", "managed", "program", "ns_a_run", "above_empty_ns", "throughput", "throughput_from",
             "throughput_to", "missed_later", "others_mib_s", "to_best", "rate_mib_s", "limited_mib_s", "deviation", "unprivileged", "other_mib_s", "sum_mib_s", "sum_to_first", "ratio", "ratio_from", "ratio_to", "ratio_95_from", "ratio_95_to", "swapd_cpu_share", "cpu_share", "programs_cpu_share"]
    found = list(rows(files))
    columns = [c for c in known + extra if any(r.get(c) is not None for r in found)]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in found:
        print("| " + " | ".join(str(round(v, 4)) if isinstance(v := row.get(c, ""), float) else str(v) for c in columns) + " |")


def size(value):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} B"


def accuracy_table(files):
    table, limits = {}, []
    for row in rows(files):
        cells = table.setdefault((row["mechanism"], row["members"], row["block"]), {})
        limit = row["rate"] if row["under"] == "swapd" else 0
        cells[limit] = row
        if limit and limit not in limits:
            limits.append(limit)
    print("| target | members | block | no limit, a second | " + " | ".join(f"{size(limit)}/s" for limit in limits) + " |")
    print("|" + "---|" * (4 + len(limits)))
    for (target, members, block), cells in table.items():
        free = cells[0]["rate_reached"] if 0 in cells else None
        shown = [target, str(members), size(block), size(free) if free else ""]
        for limit in limits:
            row = cells.get(limit)
            if row is None:
                shown.append("")
            elif limit / block > 50_000 or (free and free < limit):
                shown.append("reaches " + size(row["rate_reached"]))
            else:
                shown.append(f"{100 * row['off']:.2f} % ({100 * row['deviation']:+.2f} %, {row['above_blocks']:.2f})")
        print("| " + " | ".join(shown) + " |")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("ratio", "ratio-p50", "plain", "accuracy"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "plain":
        plain_table(sys.argv[2:])
    elif sys.argv[1] == "accuracy":
        accuracy_table(sys.argv[2:])
    else:
        ratio_table(sys.argv[2:], "p50_ms" if sys.argv[1] == "ratio-p50" else "mean_ms")
    return 0


sys.exit(main())
