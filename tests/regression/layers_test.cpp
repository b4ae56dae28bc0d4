// An #include that breaks a layer fails here. To allow one, change the table of docs/architecture.md and say why there.
#include "regression/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace swapd::regression {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view small_document = R"(# Architecture
## Who may use whom
Some words.

| folder | may use | why |
|---|---|---|
| `src/base` | nothing | |
| `src/sys` | `base` | |
| `src/sys/perf` | `base` | |
| `src/sys/bpf` | `base`, `sys/perf` | |
| `src/model` | `base` | pure |
| `daemon` | `base`, `sys`, `model`, `engine` | wires |
| `daemon/engine` | `base`, `sys/perf` | |
| `daemon/guard` | `base` | |

### Headers from outside
| header | who | why |
|---|---|---|
| `netlink/`, `seccomp.h` | `src/sys` | |
| `fstream` | `daemon` | |
)";

// A source tree of a test's own, removed at its end.
class Tree {
 public:
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "swapd-layers-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << pattern;
    root_ = pattern;
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  [[nodiscard]] std::vector<std::string> breaches() const {
    std::vector<std::string> wrong;
    const Layers layers = read_layers(small_document, wrong);
    EXPECT_THAT(wrong, IsEmpty());
    return regression::breaches(root_, layers);
  }

 private:
  fs::path root_;
};

TEST(Layers, ThisTreeKeepsItsOwnTable) {
  const fs::path root = SWAPD_SOURCE_DIR;
  std::ifstream in(root / "docs/architecture.md");
  ASSERT_TRUE(in) << "docs/architecture.md";
  std::ostringstream document;
  document << in.rdbuf();
  std::vector<std::string> wrong;
  const Layers layers = read_layers(document.str(), wrong);
  EXPECT_THAT(wrong, IsEmpty());
  // The rules that the design rests on may be tightened, never lost from the document.
  for (const char* pure : {"src/model", "src/policy"}) EXPECT_THAT(layers.may_use.at(pure), ElementsAre("base"));
  EXPECT_THAT(layers.may_use.at("src/decide"), ElementsAre("base", "model"));
  EXPECT_THAT(layers.may_use.at("src/replay"), ElementsAre("base", "decide", "model"));
  EXPECT_THAT(layers.may_use.at("src/base"), IsEmpty());
  EXPECT_THAT(breaches(root, layers), IsEmpty());
}

TEST(Layers, WhatTheTableAllowsPasses) {
  const Tree tree;
  tree.write("src/base/a.h", "#include <vector>\n");
  tree.write("src/sys/b.cpp",
             "#include <netlink/netlink.h>\n#include <sys/socket.h>\n#include \"base/a.h\"\n#include \"sys/b.h\"\n");
  tree.write("src/model/m.cpp", "#include \"base/a.h\"\n// #include \"sys/b.h\"\n");
  tree.write("daemon/main.cpp", "#include \"options.h\"\n#include \"sys/b.h\"\n#include <fstream>\n");
  EXPECT_THAT(tree.breaches(), IsEmpty());
}

TEST(Layers, AnIncludeThatBreaksALayerIsFound) {
  const Tree tree;
  tree.write("src/model/m.cpp", "#pragma once\n\n  #  include \"sys/procfs.h\"\n");
  tree.write("src/base/a.h", "#include \"model/m.h\"\n#include \"daemon/x.h\"\n");
  EXPECT_THAT(tree.breaches(), ElementsAre("src/base/a.h:1: src/base may not include \"model/m.h\"",
                                           "src/base/a.h:2: src/base may not include \"daemon/x.h\"",
                                           "src/model/m.cpp:3: src/model may not include \"sys/procfs.h\""));
}

TEST(Layers, ARoomMayUseWhatItsOwnRowNames) {
  const Tree tree;
  tree.write("src/sys/bpf/b.cpp", "#include \"sys/perf/p.h\"\n#include \"sys/file.h\"\n#include <seccomp.h>\n");
  tree.write("src/sys/bpf/programs/t.c", "#include \"sys/bpf/programs/t.h\"\n");
  tree.write("daemon/main.cpp", "#include \"engine/engine.h\"\n#include \"sys/bpf/b.h\"\n");
  tree.write("daemon/engine/e.cpp", "#include \"engine/e.h\"\n#include \"config.h\"\n#include \"sys/perf/p.h\"\n");
  EXPECT_THAT(tree.breaches(), IsEmpty());
}

TEST(Layers, ARoomMayNotUseItsNeighbourUnlessItsRowSaysSo) {
  const Tree tree;
  tree.write("src/sys/perf/p.cpp", "#include \"sys/bpf/b.h\"\n");
  tree.write("daemon/engine/e.cpp", "#include \"guard/g.h\"\n#include \"sys/bpf/b.h\"\n");
  tree.write("daemon/other/o.cpp", "#include <vector>\n");
  EXPECT_THAT(tree.breaches(),
              ElementsAre("daemon/engine/e.cpp:1: daemon/engine may not include \"guard/g.h\"",
                          "daemon/engine/e.cpp:2: daemon/engine may not include \"sys/bpf/b.h\"",
                          "daemon/other/o.cpp: daemon/other is not in the table of docs/architecture.md",
                          "src/sys/perf/p.cpp:1: src/sys/perf may not include \"sys/bpf/b.h\""));
}

TEST(Layers, ALibraryInTheWrongPlaceIsFound) {
  const Tree tree;
  tree.write("src/model/m.cpp", "#include <seccomp.h>\n#include <netlink/socket.h>\n#include <fstream>\n");
  EXPECT_THAT(tree.breaches(), ElementsAre("src/model/m.cpp:1: src/model may not include <seccomp.h>",
                                           "src/model/m.cpp:2: src/model may not include <netlink/socket.h>",
                                           "src/model/m.cpp:3: src/model may not include <fstream>"));
}

TEST(Layers, WaysAroundTheTableAreFound) {
  const Tree tree;
  tree.write("src/model/m.cpp", "#include \"../sys/procfs.h\"\n");
  tree.write("src/sys/b.cpp", "#include <model/m.h>\n");
  tree.write("src/extra/e.cpp", "#include <vector>\n");
  EXPECT_THAT(tree.breaches(),
              ElementsAre("src/extra/e.cpp: src/extra is not in the table of docs/architecture.md",
                          "src/model/m.cpp:1: \"../sys/procfs.h\" climbs out of its folder; write it from src/",
                          "src/sys/b.cpp:1: <model/m.h> is the project's own; write it in quotes"));
}

TEST(Layers, ADocumentThatCannotBeReadFails) {
  std::vector<std::string> wrong;
  static_cast<void>(read_layers("# Other\n", wrong));
  EXPECT_EQ(wrong.size(), 2U);
  wrong.clear();
  static_cast<void>(
      read_layers("# Who may use whom\n| a | b |\n|---|---|\n| base | |\n# Headers from outside\n", wrong));
  EXPECT_THAT(wrong, ElementsAre("cannot read the row | base | |", "no table after \"Who may use whom\"",
                                 "no table after \"Headers from outside\""));
}

}  // namespace
}  // namespace swapd::regression
