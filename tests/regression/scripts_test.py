#!/usr/bin/env python3
"""The scripts that count: what they count in small texts, and that the tree agrees with what it says of itself."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "scripts" / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class_sizes = load("class-sizes")
prose = load("prose")
results = load("results")


def sizes(text):
    return {c.name: (len(c.fields), len(c.functions), len(c.static)) for c in class_sizes.classes_of(text)}


class ClassSizes(unittest.TestCase):
    def test_fields_and_functions_are_counted(self):
        self.assertEqual(sizes("""
            class A : public B<int, C> {
             public:
              explicit A(int x);
              ~A() override;
              [[nodiscard]] int get() const { return x_; }
              void set(std::function<void(int, int)> f = {}) noexcept(true);
             private:
              int x_ = 0, y_{1};
              std::map<int, std::vector<int>> z_;
              std::function<void(int, int)> f_;
              const int& r_;
            };"""), {"A": (5, 4, 0)})

    def test_defaulted_deleted_and_static_ones_are_not(self):
        self.assertEqual(sizes("""
            struct A {
              A() = default;
              A(const A&) = delete;
              A& operator=(const A&) = delete;
              bool operator==(const A&) const = default;
              static constexpr int max = 3;
              static A make(int x) { return A{x}; }
              virtual void run() = 0;
              int x = f(1, 2);
            };"""), {"A": (1, 1, 2)})

    def test_a_constructors_list_is_no_field(self):
        self.assertEqual(sizes("""
            class A {
              A(int x, int y) : B<int>(x), x_(x), y_{y} { if (x) { use(x); } }
              int operator()(int a) const { return a < x_ ? 1 : 2; }
              bool operator<(const A& o) const;
              int x_;
              int y_;
            };"""), {"A": (2, 3, 0)})

    def test_nested_classes_count_for_themselves(self):
        self.assertEqual(sizes("""
            class A {
              struct Part { int a, b; void f(); };
              struct Named { int c; } named_;
              union { int u; float v; };
              enum class E : int { one, two };
              using F = std::vector<int>;
              friend class G;
              class Impl;
              std::unique_ptr<Impl> impl_;
            };
            struct A::Impl { int x; };"""),
            {"A": (3, 0, 0), "A::Part": (2, 1, 0), "A::Named": (1, 0, 0), "A::Impl": (1, 0, 0)})

    def test_templates_attributes_arrays_and_pointers_to_functions(self):
        self.assertEqual(sizes("""
            template <typename T, int n = (3 > 2)>
            class alignas(64) A final : B {
              template <typename U> void f(U&& u);
              std::array<int, n> a_{};
              int b_[3] = {1, 2, 3};
              void (*callback_)(int);
              std::atomic<bool> c_ = false, d_ = std::max<int>(1, 2) > 1;
              unsigned bits_ : 3, more_ : 2;
            };"""), {"A": (7, 1, 0)})

    def test_comments_strings_and_macros_are_not_code(self):
        self.assertEqual(sizes("""
            #define X struct Y { int z; };
            // class B { int x; };
            const char* s = "class C { int x; };";
            class A {
              /* int gone_; */
              std::string s_ = "; int no_;";
              char c_ = ';';
              int d_ = 1'000;
            };"""), {"A": (3, 0, 0)})

    def test_locals_and_enums_are_found_or_left(self):
        self.assertEqual(sizes("""
            enum class E { a };
            void f() { struct Local { int x; }; class Other; }
            struct Forward;
            struct S* g();"""), {"Local": (1, 0, 0)})

    def test_a_passive_struct_is_not_a_class(self):
        found = {c.name: c.passive for c in class_sizes.classes_of(
            "struct View { int a; }; struct Acts { int a; void f(); }; class Data { int a; }; struct A::Impl { int a; };")}
        self.assertEqual(found, {"View": True, "Acts": False, "Data": False, "A::Impl": False})

    def test_the_limits(self):
        fields = lambda n: "".join(f"int f{i};" for i in range(n))
        functions = lambda n: "".join(f"void f{i}();" for i in range(n))
        large = lambda body: class_sizes.classes_of("class A {" + body + "};")[0].large
        self.assertFalse(large(fields(15) + functions(30)))
        self.assertTrue(large(fields(16)))
        self.assertTrue(large(functions(31)))

    def test_the_documents_list_is_the_first_column(self):
        text = "## Large classes\n\n| class | why |\n|---|---|\n| `A` | `x` |\n| `B::C` | |\n\n## Next\n| `D` | |\n"
        self.assertEqual(class_sizes.documented(text), ["A", "B::C"])
        self.assertIsNone(class_sizes.documented("## Other\n"))

    def test_this_tree_agrees_with_docs_architecture_md(self):
        found = subprocess.run([ROOT / "scripts" / "class-sizes.py", "--check"], capture_output=True, text=True)
        self.assertEqual((found.stdout + found.stderr, found.returncode), ("", 0))


class Dashboard(unittest.TestCase):
    def test_each_of_its_metrics_is_one_of_swapds(self):
        board = json.loads((ROOT / "dashboards" / "swapd.json").read_text())
        known = set(re.findall(r'"(swapd_[a-z_]+)', (ROOT / "src/bus/metrics.cpp").read_text()))
        panels = [panel for panel in board["panels"] if panel["type"] != "row"]
        self.assertTrue(panels)
        for panel in panels:
            for target in panel["targets"]:
                asked = re.findall(r"\bswapd_[a-z_]+", target["expr"])
                self.assertTrue(asked, panel["title"])
                self.assertLessEqual(set(asked), known, panel["title"])

    def test_no_two_panels_stand_in_one_place(self):
        board = json.loads((ROOT / "dashboards" / "swapd.json").read_text())
        taken = set()
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertLessEqual(at["x"] + at["w"], 24)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells


class Prose(unittest.TestCase):
    def rules(self, text, path="a.cpp"):
        return [(rule, number) for rule, number, _ in prose.hits(path, text)]

    def test_a_comment_begins_with_a_noun_or_a_verb(self):
        self.assertEqual(self.rules("// Who waits.\nint a;  // What it is\n// The thread. Who waits.\n"), [("R1", 1), ("R1", 2)])
        self.assertEqual(self.rules("// Whole numbers.\n// which goes on\nint Which;\n"), [])

    def test_actors_have_names(self):
        self.assertEqual(self.rules('// Ends for whoever waits.\nputs("// nobody");\n// His own.\n'), [("R2", 1), ("R3", 3)])

    def test_conditions_are_no_inversions(self):
        self.assertEqual(self.rules("// Ends. Does that one sleep\n// again, then it goes on.\n"), [("R4", 1)])
        self.assertEqual(self.rules("// Is it gone?\n// Does not block.\n// Has the lock.\n"), [])

    def test_markdown_has_a_sentence_a_line(self):
        long = "One sentence that is rather long, so that two of them make a line past a hundred columns. Another one."
        self.assertGreater(len(long), 100)
        self.assertEqual(self.rules(long, "a.md"), [("R10", 1)])
        self.assertEqual(self.rules("```\n" + long + "\n```\n| " + long + " |\n" + long.replace(". A", " a"), "a.md"), [])
        self.assertEqual(self.rules("1. It has the initials of H. Zheng, " + "a" * 100 + ".", "a.md"), [])
        self.assertEqual(self.rules("It is for everybody.\n", "a.md"), [("R2", 1)])

    def test_a_reflowed_page_has_a_sentence_a_line(self):
        text = "# Title. Two\n\nOne a\nb. Two (c. D) e.\n- By H. Zheng. `x. Y` it\n  goes.\n\n```\nA. B\n```\n| A. B |\n"
        self.assertEqual(prose.reflow(text), "# Title. Two\n\nOne a b.\nTwo (c. D) e.\n- By H. Zheng.\n  `x. Y` it goes.\n\n"
                         "```\nA. B\n```\n| A. B |\n")
        self.assertEqual(prose.reflow(prose.reflow(text)), prose.reflow(text))

    def test_a_file_counts_in_its_room(self):
        self.assertEqual(prose.group("src/sys/bpf/a.h"), "src/sys/*.h")
        self.assertEqual(prose.group("daemon/main.cpp"), "daemon/*.cpp")
        self.assertEqual(prose.group("docs/results/a.md"), "docs/*.md")
        self.assertEqual(prose.group("README.md"), "./*.md")

    def test_the_baseline_reads_as_it_is_written(self):
        counts = prose.collections.Counter({("R1", "src/a/*.h"): 2, ("R2", "docs/*.md"): 0})
        self.assertEqual(prose.read_baseline(prose.baseline_text(counts)), prose.collections.Counter({("R1", "src/a/*.h"): 2}))


ORIGIN = {"version": "1.2", "commit": "abc", "kernel": "6.1", "cpu": "A, 2 CPUs", "date": "2026-01-02T03:04:05Z",
          "command": "swapbench x --json"}


def line(under, hogs, means, **more):
    repeats = [{"mean_ms": m, "p50_ms": m, "p99_ms": m, "max_ms": m} for m in means]
    middle = sorted(means)[len(means) // 2]
    return {"workload": "client-server", "mechanism": "pipe", "under": under, "hogs": hogs, "mean_ms": middle,
            "p50_ms": middle, "p99_ms": middle, "max_ms": middle, "repeats": repeats, **ORIGIN, **more}


class Results(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.here = self.root / "docs" / "results"
        (self.here / "raw").mkdir(parents=True)
        (self.here / "pages").mkdir()
        self.claims([])

    def claims(self, claims):
        (self.here / "claims.json").write_text(json.dumps(claims), encoding="utf-8")

    def raw(self, name, lines):
        (self.here / "raw" / (name + ".jsonl")).write_text("".join(json.dumps(l) + "\n" for l in lines), encoding="utf-8")

    def page(self, words):
        (self.here / "pages" / "p.md").write_text(words, encoding="utf-8")

    def run_it(self, *options):
        found = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "results.py", "--root", self.root, *options],
                               capture_output=True, text=True)
        return found.returncode, found.stdout + found.stderr

    def made(self):
        self.assertEqual(self.run_it(), (0, ""))
        return (self.here / "p.md").read_text(encoding="utf-8")

    def test_the_interval_is_that_of_the_sign_test(self):
        self.assertEqual(results.median_interval(range(1, 101)), (40, 61))
        self.assertEqual(results.median_interval([3, 1, 2]), (1, 3))

    def test_a_ratio_is_the_median_of_neighbours_with_its_interval(self):
        self.raw("r", [line("vanilla", 0, [10.0, 20.0, 10.0]), line("swapd", 10, [11.0, 22.0, 12.0])])
        self.page("# P\n\n{{ratios r}}\n")
        text = self.made()
        self.assertIn("| mechanism | idle, ms | swapd, ms | swapd / idle | n |", text)
        self.assertIn("| pipe | 10.00 | 12.00 | 1.10 (1.10–1.20) | 3 |", text)
        self.assertIn("swapd 1.2, commit abc, Linux 6.1, A, 2 CPUs, 2026-01-02; [raw lines](raw/r.jsonl).", text)
        self.assertIn("`swapbench x --json`", text)

    def test_what_differs_between_rows_is_a_column(self):
        self.raw("r", [line("swapd", 10, [1], workload="pipeline", chunk_us=c) for c in (80.0, 500.0)])
        self.page("{{table r}}\n")
        text = self.made()
        self.assertIn("| mechanism | under | chunk, µs |", text)
        self.assertIn("| pipe | swapd | 80 |", text)

    def test_rows_that_cannot_be_told_apart_are_refused(self):
        self.raw("r", [line("swapd", 10, [1], colour=c) for c in ("red", "blue")])
        self.page("{{table r}}\n")
        status, said = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("r.jsonl:2: cannot be told from line 1", said)

    def test_lines_without_an_origin_or_of_two_runs_are_refused(self):
        one = line("swapd", 10, [1])
        del one["commit"]
        self.raw("r", [one])
        self.page("{{table r}}\n")
        self.assertIn("no commit", self.run_it()[1])
        self.raw("r", [line("swapd", 10, [1]), line("vanilla", 10, [1], commit="def")])
        self.assertIn("they differ in commit", self.run_it()[1])

    def test_a_page_that_its_lines_do_not_give_fails_the_check(self):
        self.raw("r", [line("vanilla", 0, [10]), line("swapd", 10, [11])])
        self.page("{{ratios r}}\n\n{{bars r}}\n")
        self.made()
        self.assertEqual(self.run_it("--check"), (0, ""))
        xml.dom.minidom.parse(str(self.here / "r.svg"))
        (self.here / "r.svg").write_text("", encoding="utf-8")
        self.assertEqual(self.run_it("--check")[0], 1)
        self.made()
        (self.here / "by-hand.md").write_text("x", encoding="utf-8")
        self.assertIn("by-hand.md is made of no raw lines", self.run_it("--check")[1])

    def test_lines_that_no_page_shows_are_refused(self):
        self.raw("r", [line("swapd", 10, [1])])
        self.page("# P\n")
        self.assertIn("no page shows raw/r.jsonl", self.run_it()[1])

    def test_a_claim_is_the_worst_row_or_its_older_figure(self):
        self.raw("r", [line("vanilla", 0, [10]), line("swapd", 10, [11]), line("vanilla", 0, [10], mechanism="sem"),
                       line("swapd", 10, [12], mechanism="sem")])
        self.claims([{"claim": "Fast", "target": "≤ 1.3", "raw": "r", "under": "swapd", "to": "idle", "page": "p.md", "anchor": "a"},
                     {"claim": "Old", "target": "", "raw": "gone", "older": {"measured": "1.5", "commit": "def", "link": "../o.md"}}])
        self.page("{{claims}}\n\n{{table r}}\n")
        text = self.made()
        self.assertIn("| Fast | ≤ 1.3 | 1.20, the worst of 2 (sem) | 1 | `abc` | [table](p.md#a) |", text)
        self.assertIn("| Old |  | 1.5 |  | `def` | [table](../o.md) |", text)

    def test_the_readmes_table_is_between_its_marks(self):
        readme = self.root / "README.md"
        readme.write_text("before\n" + results.MARKS[0] + "\nold\n" + results.MARKS[1] + "\nafter\n", encoding="utf-8")
        self.claims([{"claim": "C", "target": "t", "readme": True, "older": {"measured": "1", "commit": "d", "link": "../o.md"}}])
        self.assertEqual(self.run_it(), (0, ""))
        text = readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text)
        self.assertIn("[table](docs/o.md)", text)

    def test_each_page_of_this_tree_is_what_its_raw_lines_give(self):
        found = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "results.py", "--check"], capture_output=True, text=True)
        self.assertEqual((found.stdout + found.stderr, found.returncode), ("", 0))


class Skips(unittest.TestCase):
    @unittest.skipUnless("SWAPD_BUILD_DIR" in os.environ, "ctest says where the tests are")
    def test_each_line_names_a_test_as_ctest_does(self):
        listed = subprocess.run(["ctest", "--test-dir", os.environ["SWAPD_BUILD_DIR"], "-N"], capture_output=True,
                                text=True, check=True).stdout
        there = set(re.findall(r"^ *Test +#\d+: (.*)$", listed, re.MULTILINE))
        lines = (ROOT / "tests/skips.txt").read_text().splitlines()
        named = {re.split(r" *[|] *", line)[0] for line in lines if line and not line.startswith("#")}
        self.assertEqual(named - there, set())


if __name__ == "__main__":
    unittest.main()
