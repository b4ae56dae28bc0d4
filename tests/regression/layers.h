// Checks the #include lines of a source tree against the tables of docs/architecture.md: the document is the rule.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace swapd::regression {

// The two tables. A layer may include its own headers besides.
struct Layers {
  std::map<std::string, std::set<std::string>> may_use;     // "src/observe" → {"base", "sys"}
  std::map<std::string, std::set<std::string>> header_for;  // "netlink/" or "seccomp.h" → {"src/sys"}
};

// Reads the tables after the headings "Who may use whom" and "Headers from outside": the first cell of a row names a
// folder or header in backquotes, the second lists those it may use, or that may use it. `wrong` gets a line for each
// row that cannot be read.
[[nodiscard]] Layers read_layers(std::string_view document, std::vector<std::string>& wrong);

// One include of a file, as written between the quotes or brackets.
struct Include {
  std::size_t line = 0;
  bool quoted = false;
  std::string path;
};
[[nodiscard]] std::vector<Include> includes_of(std::string_view source);

// "src/model/x.cpp:3: src/model may not include "sys/procfs.h"": one line for each break of a rule in the tree under
// `root`, and for each folder of src/ that the table leaves out.
[[nodiscard]] std::vector<std::string> breaches(const std::filesystem::path& root, const Layers& layers);

}  // namespace swapd::regression
