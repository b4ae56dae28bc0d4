// Citations in the code lead somewhere inside the repository: papers and manual pages to docs/references.md, the design
// to a section of docs/design.md, documents to files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace swapd::regression {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

const fs::path root = SWAPD_SOURCE_DIR;

std::string contents(const fs::path& file) {
  const std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Files of the folders with one of the suffixes.
std::vector<fs::path> files_of(const std::vector<std::string>& folders, const std::set<std::string>& suffixes) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file() && suffixes.contains(entry.path().extension().string()))
        found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

// The comments of a source file, one a line run together: "a (docs/design.md,\n// Model)" is one text.
std::string comments_of(const std::string& source) {
  std::istringstream lines(source);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("//");
    if (at == std::string::npos || (at > 0 && line[at - 1] == ':')) {
      text += '\n';
      continue;
    }
    text += line.substr(at + 2);
  }
  return text;
}

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) found.push_back((*it)[1].str());
  return found;
}

// The last component of what is wrong with each citation in `comments`.
std::vector<std::string> unresolved(const std::string& comments, const std::string& references,
                                    const std::string& design) {
  std::vector<std::string> wrong;
  for (const std::string& key : matches(comments, R"(\[([A-Z]+[0-9]{2})(?=[\] ,]))"))
    if (!has(references, "**[" + key + "]**")) wrong.push_back("[" + key + "]");
  for (const std::string& page : matches(comments, R"(\b([a-z][a-z0-9_.-]*\([1-8]\)))"))
    if (!std::regex_search(references,
                           std::regex("(^|[^a-z0-9_.-])" + std::regex_replace(page, std::regex(R"([().])"), R"(\$&)"))))
      wrong.push_back(page);
  for (const std::string& file : matches(comments, R"((Documentation/[A-Za-z0-9_./-]*[A-Za-z]))"))
    if (!has(references, "`" + file + "`")) wrong.push_back(file);
  for (const std::string& rest : matches(comments, R"(docs/design\.md, ([A-Z].{0,40}))")) {
    const std::vector<std::string> headings = matches(design, "\n## ([^\n]+)");
    if (!std::ranges::any_of(headings, [&](const std::string& heading) { return rest.starts_with(heading); }))
      wrong.push_back("docs/design.md, " + rest);
  }
  return wrong;
}

TEST(Documents, EveryCitationOfThisTreeResolves) {
  const std::string references = contents(root / "docs/references.md");
  const std::string design = contents(root / "docs/design.md");
  ASSERT_FALSE(references.empty());
  ASSERT_FALSE(design.empty());
  std::vector<std::string> wrong;
  for (const fs::path& file : files_of({"src", "daemon", "bench", "tests"}, {".h", ".cpp", ".c"})) {
    if (file.filename() == "documents_test.cpp") continue;
    for (const std::string& what : unresolved(comments_of(contents(file)), references, design))
      wrong.push_back(fs::relative(file, root).string() + ": " + what);
  }
  for (const fs::path& file : files_of({"docs"}, {".md"}))
    for (const std::string& key : matches(contents(file), R"(\[([A-Z]{2,}[0-9]{2})(?=[\] ,]))"))
      if (!has(references, "**[" + key + "]**")) wrong.push_back(fs::relative(file, root).string() + ": " + key);
  EXPECT_THAT(wrong, IsEmpty());
}

// Papers and designs outside the repository are cited by key or brought into docs/.
TEST(Documents, NoFilePointsToDocumentsThatReadersDoNotHave) {
  const std::vector<std::string> absent = {std::string("DESIGN") + ".md", std::string("FACTS") + ".md",
                                           std::string("papers/") + "00"};
  std::vector<std::string> wrong;
  std::vector<fs::path> files =
      files_of({"src", "daemon", "bench", "tests", "docs", "scripts", "policies", "systemd", "cmake"},
               {".h", ".cpp", ".c", ".md", ".sh", ".py", ".toml", ".txt", ".cmake", ".in", ".1", ".5", ".8"});
  for (const char* file : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CMakeLists.txt"})
    files.push_back(root / file);
  for (const fs::path& file : files) {
    const std::string text = contents(file);
    for (const std::string& name : absent)
      if (has(text, name)) wrong.push_back(fs::relative(file, root).string() + ": " + name);
  }
  EXPECT_THAT(wrong, IsEmpty());
}

// Links of the pages lead to files.
TEST(Documents, EveryLinkBetweenDocumentsLeadsToAFile) {
  std::vector<fs::path> files = files_of({"docs", "policies"}, {".md"});
  for (const char* file : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}) files.push_back(root / file);
  std::vector<std::string> wrong;
  for (const fs::path& file : files) {
    if (file.parent_path().filename() == "pages")
      continue;  // words of docs/results, whose links are those of the pages
    for (const std::string& link : matches(contents(file), R"(\]\(([^)#:\s]+)(?:#[^)]*)?\))"))
      if (!fs::exists(file.parent_path() / link)) wrong.push_back(fs::relative(file, root).string() + ": " + link);
  }
  EXPECT_THAT(wrong, IsEmpty());
}

// Paths of the project's own files that a text names: `src/a/b.h`, observe/io/a.h. Headers of the system stay out.
std::vector<std::string> paths_in(const std::string& text) {
  std::vector<std::string> found;
  for (
      const std::string& path : matches(
          text,
          R"((?:^|[^/\w])((?:src|daemon|bench|tests|scripts|docs|base|sys|observe|model|decide|replay|actuate|policy|bus|cli)/[\w/-]+(?:\.bpf)?\.(?:h|cpp|c|md|sh|py))\b)"))
    if (path != "sys/syscall.h" && path != "sys/socket.h") found.push_back(path);
  return found;
}

bool is_file(const std::string& path) {
  return fs::exists(root / path) || fs::exists(root / "src" / path) || fs::exists(root / "tests" / path);
}

TEST(Documents, EveryFileThatATextNamesIsThere) {
  EXPECT_THAT(paths_in("In `src/a/b.h`, (sys/c.h) and docs/d.md; <sys/socket.h>, https://x/src/y.h"),
              ElementsAre("src/a/b.h", "sys/c.h", "docs/d.md"));
  std::vector<std::string> wrong;
  const auto look = [&](const fs::path& file, const std::string& text) {
    for (const std::string& path : paths_in(text))
      if (!is_file(path)) wrong.push_back(fs::relative(file, root).string() + ": " + path);
  };
  for (const fs::path& file : files_of({"src", "daemon", "bench"}, {".h", ".cpp", ".c"}))
    look(file, comments_of(contents(file)));
  for (const fs::path& file : files_of({"docs"}, {".md"})) look(file, contents(file));
  for (const char* file : {"README.md", "CONTRIBUTING.md"}) look(root / file, contents(root / file));
  EXPECT_THAT(wrong, IsEmpty());
}

TEST(Documents, ACitationThatLeadsNowhereIsFound) {
  const std::string references = "**[SWAP04]** A paper.\n`Documentation/a.rst`, futex(2).";
  const std::string design = "# Design\n\n## Model\n\n## Never managed\n";
  const auto wrong = [&](const std::string& source) { return unresolved(comments_of(source), references, design); };
  EXPECT_THAT(wrong("// As [SWAP04 §3.1] has it, futex(2); Documentation/a.rst; docs/design.md, Model.\n"), IsEmpty());
  EXPECT_THAT(wrong("// As [SWAP04,\n// §4] (docs/design.md,\n// Never managed).\n"), IsEmpty());
  EXPECT_THAT(wrong("int a = seconds(5);\nauto url = \"http://b(2)\";\n"), IsEmpty());
  EXPECT_THAT(wrong("// [TAP08 §2]\n"), ElementsAre("[TAP08]"));
  EXPECT_THAT(wrong("int a;  // sched(7)\n"), ElementsAre("sched(7)"));
  EXPECT_THAT(wrong("// utex(2)\n"), ElementsAre("utex(2)"));
  EXPECT_THAT(wrong("// Documentation/b.rst.\n"), ElementsAre("Documentation/b.rst"));
  EXPECT_THAT(wrong("// docs/design.md, Modes.\n"), ElementsAre("docs/design.md, Modes."));
}

}  // namespace
}  // namespace swapd::regression
