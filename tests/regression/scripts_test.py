#!/usr/bin/env python3
"""The scripts that count: what they count in small texts, and that the tree agrees with what it says of itself."""
import importlib.util
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True


def load(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), ROOT / "scripts" / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class_sizes = load("class-sizes")
prose = load("prose")


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
        self.assertEqual(self.rules("It is for everybody.\n", "a.md"), [("R2", 1)])

    def test_a_file_counts_in_its_room(self):
        self.assertEqual(prose.group("src/sys/bpf/a.h"), "src/sys/*.h")
        self.assertEqual(prose.group("daemon/main.cpp"), "daemon/*.cpp")
        self.assertEqual(prose.group("docs/results/a.md"), "docs/*.md")
        self.assertEqual(prose.group("README.md"), "./*.md")

    def test_the_baseline_reads_as_it_is_written(self):
        counts = prose.collections.Counter({("R1", "src/a/*.h"): 2, ("R2", "docs/*.md"): 0})
        self.assertEqual(prose.read_baseline(prose.baseline_text(counts)), prose.collections.Counter({("R1", "src/a/*.h"): 2}))


if __name__ == "__main__":
    unittest.main()
