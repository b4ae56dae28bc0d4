#!/usr/bin/env python3
"""Raw lines of a google-benchmark run, as `swapbench --json` has them.

  benchmark-lines.py SOURCE-DIR FILE   FILE: of --benchmark_format=json, with repetitions; the commit is the source's
"""
import collections
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys


def origin(source, date):
    git = lambda *words: subprocess.run(["git", "-C", source, *words], capture_output=True, text=True).stdout.strip()
    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    if git("status", "--porcelain", "--untracked-files=no"):
        commit += "-dirty"
    version = re.search(r"project\(swapd\s+VERSION\s+([0-9.]+)", (source / "CMakeLists.txt").read_text(encoding="utf-8"))
    models = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    return {"version": version[1] if version else "unknown", "commit": commit, "kernel": platform.release(),
            "cpu": f"{models[0] if models else 'unknown'}, {len(models)} CPUs", "date": date, "command": "model_benchmark"}


def lines(run, where):
    found = collections.defaultdict(list)
    for one in run["benchmarks"]:
        if one.get("run_type", "iteration") == "iteration":
            found[one["run_name"].removesuffix("/iterations:1")].append(one)
    factor = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    for name, repeats in found.items():
        line = {"workload": "model", "mechanism": name, "under": "none", "repeat": len(repeats)}
        each = [{"time_ns": one["real_time"] * factor[one["time_unit"]], **({"items_per_s": one["events"]} if "events" in one else {})}
                for one in repeats]
        for field in each[0]:
            line[field] = statistics.median(one[field] for one in each)
        line["repeats"] = each
        sizes = [{**line, "mechanism": f"{name}: a {key[:-2]}", "bytes_each": repeats[0][key]} for key in repeats[0] if key.endswith("_B")]
        for one in sizes or [line]:
            if sizes:
                del one["time_ns"], one["repeats"]
            yield {**one, **where}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    run = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    for line in lines(run, origin(pathlib.Path(sys.argv[1]), run["context"]["date"])):
        print(json.dumps(line))
