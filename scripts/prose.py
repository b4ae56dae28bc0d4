#!/usr/bin/env python3
"""Counts what CONTRIBUTING.md's rules of prose forbid, and compares with scripts/prose-baseline.txt.

  prose.py            fails where a count is above the baseline, with the lines; says where the baseline can go down
  prose.py --list RULE [PATH…]   each hit as FILE:LINE: TEXT
  prose.py --write    writes today's counts; a count that has gone up is refused
  prose.py --write --raise       writes them all the same (a folder was moved)
  prose.py --reflow PAGE…        rewrites the prose of Markdown pages, a sentence a line

Rules: R1 a comment line that begins with Of, Who, Whoever, Whom, Which, What or Where; R2 an indefinite pronoun
(somebody, nobody, whoever …); R3 he, his, him; R4 a condition by inversion ("Does it sleep, then"); R10 a line of
Markdown past 100 columns with more than one sentence. R1 and R4 are looked for in comments of C and C++, R2 and R3
in Markdown too.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "scripts" / "prose-baseline.txt"
SOURCES = (".h", ".cpp", ".c")

FRAGMENT = re.compile(r"(Of|Who|Whoever|Whom|Which|What|Where)\b")
PRONOUN = re.compile(r"\b(somebody|nobody|anybody|everybody|someone|anyone|everyone|whoever|whomever)\b", re.I)
MALE = re.compile(r"\b(he|his|him|himself)\b", re.I)
SUBJECT = r"(?:that|this|it|he|one|they|there|the|an?|its|swapd|somebody|nobody)"
INVERSION = re.compile(
    rf"(?:Does|Do|Did|Is|Are|Was|Were|Has|Have|Had|Should|Could)\s+{SUBJECT}\b[^.?!]*,|"
    r"[^.?!]*\b(?:had|were|should)\s+(?:it|he|they|that|this|one|swapd)\s+(?:not\s+)?(?:be|been|to|have|\w+ed)\b")


def comments(text):
    """(line number, comment text, begins a block) of each // comment; text after // in a string is not one."""
    before = None
    for number, line in enumerate(text.split("\n"), 1):
        at = comment_at(line)
        if at is None:
            before = None
            continue
        full = not line[:at].strip()
        words = line[at + 2:].strip()
        yield number, words, not (full and before == "full")
        before = "full" if full and words else None


def comment_at(line):
    """Where a // comment begins, strings and characters left out; None: nowhere."""
    at, quote = 0, None
    while at < len(line):
        c = line[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = None
        elif c == '"' or (c == "'" and not (at and line[at - 1].isalnum())):
            quote = c
        elif line.startswith("//", at):
            return at
        at += 1
    return None


def blocks(text):
    """(first line number, joined text) of each comment block."""
    first, words = None, []
    for number, part, begins in comments(text):
        if begins and words:
            yield first, " ".join(words)
            words = []
        if begins:
            first = number
        words.append(part)
    if words:
        yield first, " ".join(words)


def sentences(text):
    return re.split(r"(?<=[.!?:])\s+(?=[A-Z])", text)


def source_hits(text):
    for number, words, _ in comments(text):
        if FRAGMENT.match(words):
            yield "R1", number, words
        if PRONOUN.search(words):
            yield "R2", number, words
        if MALE.search(words):
            yield "R3", number, words
    for number, block in blocks(text):
        for sentence in sentences(block):
            if INVERSION.match(sentence) and not sentence.endswith("?"):
                yield "R4", number, sentence


def markdown_hits(text):
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced:
            continue
        if PRONOUN.search(line):
            yield "R2", number, line
        if MALE.search(line):
            yield "R3", number, line
        words = re.sub(r"^\s*(\d+\.|[-*])\s+|\b([A-Z]|fig|e\.g|i\.e)\.", "", line.rstrip())
        if len(line) > 100 and not line.lstrip().startswith("|") and len(sentences(words)) > 1:
            yield "R10", number, line


def hits(path, text):
    return source_hits(text) if path.endswith(SOURCES) else markdown_hits(text)


def group(path):
    """The row of the baseline that a file counts in: its room, headers apart."""
    parts = path.split("/")
    deep = 2 if parts[0] in ("src", "daemon", "bench", "tests") else 1
    folder = "/".join(parts[:deep] if len(parts) > deep else parts[:-1]) or "."
    return folder + "/*" + (".h" if path.endswith(".h") else ".md" if path.endswith(".md") else ".cpp")


def files():
    found = [path for folder in ("src", "daemon", "bench", "tests") for path in (ROOT / folder).rglob("*")
             if path.suffix in SOURCES]
    found += [path for folder in (".", "policies", "systemd") for path in (ROOT / folder).glob("*.md")]
    found += [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "pages"]  # they are in the pages made of them
    # CONTRIBUTING.md has the rules' bad examples.
    return sorted(str(path.relative_to(ROOT)) for path in found if path.name != "CONTRIBUTING.md")


def count():
    counts = collections.Counter()
    lines = collections.defaultdict(list)
    for path in files():
        for rule, number, words in hits(path, (ROOT / path).read_text(encoding="utf-8")):
            counts[rule, group(path)] += 1
            lines[rule, group(path)].append(f"{path}:{number}: {words}")
    return counts, lines


def read_baseline(text):
    counts = collections.Counter()
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            rule, folder, number = line.split()
            counts[rule, folder] = int(number)
    return counts


def baseline_text(counts):
    rows = [f"{rule:<4} {folder:<28} {number}" for (rule, folder), number in sorted(counts.items()) if number]
    return ("# Counts of `scripts/prose.py`: they may only go down. What is not here is 0. Written by `scripts/prose.py --write`.\n"
            + "\n".join(rows) + "\n")


ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|cf|vs|etc|No|fig)\.|\b[A-Z]\.)$")
NOT_PROSE = re.compile(r"\s*(?:\||#|<|!\[|---|\{\{)")
BULLET = re.compile(r"(\s*)((?:[-*]|\d+\.) +)?(.*)$")


def lines_of(paragraph):
    """A paragraph's sentences; what is in brackets or in code stays together."""
    out = []
    for part in re.split(r"(?<=[.!?]) +(?=[A-Z`(*\[“])", paragraph):
        if out and (ABBREVIATED.search(out[-1]) or out[-1].count("`") % 2 or out[-1].count("(") > out[-1].count(")")):
            out[-1] += " " + part
        else:
            out.append(part)
    return out


def reflow(text):
    lines, out, at, fenced = text.split("\n"), [], 0, False
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or line.lstrip().startswith("```") or not line.strip() or NOT_PROSE.match(line):
            out.append(line)
            continue
        indent, bullet, words = BULLET.match(line).groups()
        paragraph = [words]
        while at < len(lines) and lines[at].strip() and not NOT_PROSE.match(lines[at]) and \
                not lines[at].lstrip().startswith("```") and not BULLET.match(lines[at])[2]:
            paragraph.append(lines[at].strip())
            at += 1
        first, *rest = lines_of(" ".join(paragraph))
        out.append(indent + (bullet or "") + first)
        out += [indent + " " * len(bullet or "") + sentence for sentence in rest]
    return "\n".join(out)


def main(arguments):
    if arguments[:1] == ["--reflow"] and len(arguments) > 1:
        for page in map(pathlib.Path, arguments[1:]):
            page.write_text(reflow(page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    counts, lines = count()
    if arguments[:1] == ["--list"] and len(arguments) > 1:
        for (rule, _), found in sorted(lines.items()):
            for line in found:
                if rule == arguments[1] and (not arguments[2:] or line.startswith(tuple(arguments[2:]))):
                    print(line)
        return 0
    baseline = read_baseline(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else None
    up = [] if baseline is None else sorted(k for k in counts if counts[k] > baseline[k])
    if arguments[:1] == ["--write"]:
        if up and "--raise" not in arguments:
            for rule, folder in up:
                print(f"{rule} {folder}: {baseline[rule, folder]} → {counts[rule, folder]}", file=sys.stderr)
            return 1
        BASELINE.write_text(baseline_text(counts), encoding="utf-8")
        return 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for rule, folder in up:
        print(f"{rule} {folder}: {counts[rule, folder]} hits, {(baseline or {})[rule, folder]} allowed:")
        for line in lines[rule, folder]:
            print("  " + line)
    down = sum(baseline[k] - counts[k] for k in baseline or {} if counts[k] < baseline[k])
    if down:
        print(f"prose: {down} hits fewer than the baseline; run scripts/prose.py --write")
    return 1 if up else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
