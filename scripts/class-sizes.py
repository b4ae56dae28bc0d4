#!/usr/bin/env python3
"""Prints the classes outside tests with more than 15 data members or 30 member functions.

  class-sizes.py [--all] [--passive] [FILE…]   FIELDS FUNCTIONS STATIC FILE:LINE CLASS, the largest first
  class-sizes.py --check                       the same list as docs/architecture.md, "Large classes"? Fails if not

Counted are non-static data members (each declarator) and member functions that are neither static, defaulted nor deleted.
Static members are the third number; a nested class counts for itself. A struct that has no member functions and is not
called Impl is passive: a row of values such as a view or the options of a command line. --passive prints those instead;
--all prints every class, however small.

It reads the text, without a compiler: comments, strings and the preprocessor are taken out, templates, attributes,
initialisers and constructors' lists are understood, macros that declare members are not.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_FIELDS, MAX_FUNCTIONS = 15, 30
PAIRS = {"(": ")", "{": "}", "[": "]"}

TOKEN = re.compile(r"""
    \s+ | R"(?P<raw>[^(\s]*)\((?:.|\n)*?\)(?P=raw)" | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+'
  | [A-Za-z_]\w* | \d(?:[\w.]|'(?=\d)|(?<=[eE])[+-])* | :: | -> | \[\[ | \]\] | .""", re.X)


def tokens(text):
    """(token, line) of C++ text; comments and preprocessor lines left out."""
    blank = lambda m: re.sub(r"[^\n]", " ", m[0])
    text = re.sub(r'R"([^(\s]*)\((?:.|\n)*?\)\1"|"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*(?:.|\n)*?\*/',
                  lambda m: m[0] if m[0][0] in 'R"' else blank(m), text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)
    line = 1
    for match in TOKEN.finditer(text):
        token = match[0]
        if not token.isspace():
            yield token, line
        line += token.count("\n")


def skip(found, at):
    """The index after the group that opens at `at`."""
    closing, depth = PAIRS[found[at][0]], 0
    opening = found[at][0]
    while at < len(found):
        if found[at][0] == opening:
            depth += 1
        elif found[at][0] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def skip_angles(found, at):
    """The index after <…> if it is a template's list, else None."""
    depth, i = 0, at
    while i < len(found):
        token = found[i][0]
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
            if depth == 0:
                return i + 1
        elif token in PAIRS:
            i = skip(found, i)
            continue
        elif token in (";", "}", "&&", "||") or token == ")":
            return None
        i += 1
    return None


class Class:
    def __init__(self, name, keyword, line):
        self.name, self.keyword, self.line = name, keyword, line
        self.fields, self.functions, self.static = [], [], []

    @property
    def passive(self):
        return self.keyword == "struct" and not self.functions and self.name.split("::")[-1] != "Impl"

    @property
    def large(self):
        return len(self.fields) > MAX_FIELDS or len(self.functions) > MAX_FUNCTIONS


ATTRIBUTED = {"alignas", "__attribute__", "decltype", "noexcept", "requires"}


class Parser:
    def __init__(self, text):
        self.found = list(tokens(text))
        self.classes = []

    def parse(self):
        self.walk(0, len(self.found), None)
        return self.classes

    def class_at(self, at, end):
        """(class, body's first index, index after its brace) if a definition begins at `at`, which is class or struct."""
        keyword, line = self.found[at]
        i, name = at + 1, []
        while i < end:
            token = self.found[i][0]
            if token in ATTRIBUTED and i + 1 < end and self.found[i + 1][0] == "(":
                i = skip(self.found, i + 1)
            elif token == "[[":
                while i < end and self.found[i][0] != "]]":
                    i += 1
                i += 1
            elif token == "<":
                after = skip_angles(self.found, i)
                if after is None:
                    return None
                i = after
            elif re.match(r"[A-Za-z_]\w*$", token) or token == "::":
                if token not in ("final",):
                    name.append(token)
                i += 1
            else:
                break
        if i < end and self.found[i][0] == ":":  # base classes
            while i < end and self.found[i][0] not in ("{", ";"):
                i = skip(self.found, i) if self.found[i][0] in ("(", "[") else i + 1
        if i >= end or self.found[i][0] != "{":
            return None
        return Class("".join(name), keyword, line), i + 1, skip(self.found, i)

    def walk(self, at, end, outer):
        """Finds class definitions at any depth that is not a class's own body."""
        while at < end:
            token = self.found[at][0]
            before = self.found[at - 1][0] if at else ""
            if token in ("class", "struct") and before not in ("enum", "<", ","):
                seen = self.class_at(at, end)
                if seen:
                    at = self.body(seen, outer)
                    continue
            at += 1

    def body(self, seen, outer):
        found, first, after = seen
        if outer:
            found.name = outer + "::" + found.name
        if found.name and not found.name.endswith("::"):
            self.classes.append(found)
        self.members(found, first, after - 1)
        return after

    def members(self, owner, at, end):
        while at < end:
            at = self.member(owner, at, end)

    def member(self, owner, at, end):
        """One member declaration; the index after it."""
        token = self.found[at][0]
        if token == ";":
            return at + 1
        if token in ("public", "private", "protected") and at + 1 < end and self.found[at + 1][0] == ":":
            return at + 2
        if token in ("using", "typedef", "friend", "static_assert", "enum"):
            return self.to_semicolon(at, end)
        if token == "template":
            after = skip_angles(self.found, at + 1)
            return self.member(owner, after, end) if after else at + 1
        if token in ("class", "struct", "union"):
            seen = self.class_at(at, end)
            if seen:
                if token == "union":
                    owner.fields.append("union")
                    return self.to_semicolon(seen[2], end) if self.found[seen[2]][0] != ";" else seen[2] + 1
                named = bool(seen[0].name)
                after = self.body(seen, owner.name)
                declared = [t for t, _ in self.found[after:self.to_semicolon(after, end) - 1]]
                if declared or not named:
                    owner.fields += self.declarators(after, self.to_semicolon(after, end) - 1) or ["anonymous"]
                return self.to_semicolon(after, end)
            if all(re.match(r"[A-Za-z_:]", t) for t, _ in self.found[at:self.to_semicolon(at, end) - 1]) and \
                    self.to_semicolon(at, end) - at == 3:  # class Name;
                return at + 3
        return self.declaration(owner, at, end)

    def to_semicolon(self, at, end):
        while at < end:
            token = self.found[at][0]
            if token == ";":
                return at + 1
            at = skip(self.found, at) if token in PAIRS else at + 1
        return at

    def declaration(self, owner, begin, end):
        at, static, name, function, operator = begin, False, "", False, False
        while at < end:
            token = self.found[at][0]
            if token == ";":
                at += 1
                break
            if token == "static":
                static = True
            if token == "[[":
                while at < end and self.found[at][0] != "]]":
                    at += 1
                at += 1
                continue
            if token in ATTRIBUTED and at + 1 < end and self.found[at + 1][0] == "(":
                at = skip(self.found, at + 1)
                continue
            if token == "operator":
                operator, name = True, "operator"
                at += 1
                while at < end and self.found[at][0] != "(":
                    name += self.found[at][0]
                    at += 1
                if name == "operator" and at + 2 < end and self.found[at + 1][0] == ")":  # operator()(…)
                    name, at = "operator()", at + 2
                continue
            if token == "<" and not operator:
                after = skip_angles(self.found, at)
                at = after if after else at + 1
                continue
            if token == "(":
                if not function and self.found[at + 1][0] == "*":  # a pointer to a function
                    at = self.to_semicolon(at, end)
                    owner_list = owner.static if static else owner.fields
                    owner_list.append(name)
                    return at
                function = True
                at = skip(self.found, at)
                continue
            if token == "[":
                at = skip(self.found, at)
                continue
            if token == ":" and function:
                at = self.after_initialisers(at + 1, end)
                continue
            if token == "{":
                if function:
                    self.walk(at, skip(self.found, at), owner.name)
                    at = skip(self.found, at)
                    if at < end and self.found[at][0] == ";":
                        at += 1
                    break
                at = skip(self.found, at)
                continue
            if token == "=":
                if function:
                    after = self.to_semicolon(at, end)
                    if self.found[at + 1][0] in ("default", "delete"):
                        return after
                    at = after
                    break
                at = self.to_semicolon(at, end)
                break
            if re.match(r"[A-Za-z_~]", token) and not function:
                name = token if token != "~" else name
            at += 1
        if function:
            (owner.static if static else owner.functions).append(name)
        else:
            (owner.static if static else owner.fields).extend(self.declarators(begin, at - 1))
        return at

    def after_initialisers(self, at, end):
        """After a constructor's list: at the brace of its body."""
        while at < end:
            while at < end and self.found[at][0] not in ("(", "{"):
                if self.found[at][0] == "<":
                    at = skip_angles(self.found, at) or at + 1
                else:
                    at += 1
            at = skip(self.found, at) if at < end else at
            if at < end and self.found[at][0] == "...":
                at += 1
            if at < end and self.found[at][0] == ",":
                at += 1
                continue
            return at
        return at

    def declarators(self, begin, end):
        """The names that a data declaration declares."""
        names, name, at, value = [], "", begin, False
        while at < end:
            token = self.found[at][0]
            if token == ",":
                names.append(name)
                name, value = "", False
            elif token == "<":
                after = skip_angles(self.found, at)
                at = after if after else at + 1
                continue
            elif token == "[[":
                while at < end and self.found[at][0] != "]]":
                    at += 1
            elif token in ATTRIBUTED and at + 1 < end and self.found[at + 1][0] == "(":
                at = skip(self.found, at + 1)
                continue
            elif token in PAIRS:
                value = value or token == "{"
                at = skip(self.found, at)
                continue
            elif token == "=" or token == ":":
                value = True
            elif not value and re.match(r"[A-Za-z_]\w*$", token):
                name = token
            at += 1
        if name:
            names.append(name)
        return names


def classes_of(text):
    return Parser(text).parse()


def files():
    found = [path for folder in ("src", "daemon", "bench") for path in (ROOT / folder).rglob("*")]
    return sorted(str(path.relative_to(ROOT)) for path in found if path.suffix in (".h", ".cpp", ".c"))


def tree(paths):
    for path in paths:
        for found in classes_of((ROOT / path).read_text(encoding="utf-8")):
            yield path, found


def documented(text):
    """The classes of the section "Large classes": the first column of its table."""
    section = re.search(r"^## Large classes\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return re.findall(r"^\| `([^`]+)`", section[1], re.M) if section else None


def main(arguments):
    options = {a for a in arguments if a.startswith("--")}
    paths = [a for a in arguments if not a.startswith("--")] or files()
    if options - {"--all", "--passive", "--check"}:
        print(__doc__, file=sys.stderr)
        return 2
    rows = [(path, c) for path, c in tree(paths)
            if ("--all" in options or c.large) and ("--all" in options or c.passive == ("--passive" in options))]
    rows.sort(key=lambda row: (-len(row[1].fields), -len(row[1].functions), row[0]))
    if "--check" in options:
        now = sorted(c.name for _, c in rows)
        told = documented((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
        if told is None:
            print('docs/architecture.md has no section "Large classes"')
            return 1
        for name in sorted(set(now) - set(told)):
            print(f"{name} is large and not in docs/architecture.md, \"Large classes\"")
        for name in sorted(set(told) - set(now)):
            print(f"{name} is in docs/architecture.md, \"Large classes\", and not large any more")
        return 0 if sorted(told) == now else 1
    for path, c in rows:
        print(f"{len(c.fields):3} {len(c.functions):3} {len(c.static):3}  {path}:{c.line}  {c.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
