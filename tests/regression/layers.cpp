#include "regression/layers.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace swapd::regression {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The words in backquotes of one cell.
std::vector<std::string> quoted_words(const std::string& cell) {
  std::vector<std::string> words;
  for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
    const std::size_t end = cell.find('`', at + 1);
    if (end == std::string::npos) break;
    words.push_back(cell.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

bool says_nothing(const std::string& cell) { return cell.find("nothing") != std::string::npos; }

using Table = std::map<std::string, std::set<std::string>>;

Table table_after(const std::vector<std::string>& lines, std::string_view heading, std::vector<std::string>& wrong) {
  Table table;
  const auto is_heading = [&](const std::string& l) { return l.starts_with('#') && l.ends_with(heading); };
  auto line = std::ranges::find_if(lines, is_heading);
  if (line == lines.end()) {
    wrong.push_back("no heading \"" + std::string(heading) + "\"");
    return table;
  }
  line = std::find_if(line + 1, lines.end(), [](const std::string& l) { return l.starts_with("|"); });
  for (std::size_t row = 0; line != lines.end() && line->starts_with("|"); ++line, ++row) {
    if (row < 2) continue;  // the names of the columns, and the rule below them
    const std::vector<std::string> cells = cells_of(*line);
    const std::vector<std::string> names = cells.empty() ? std::vector<std::string>{} : quoted_words(cells[0]);
    const std::vector<std::string> used = cells.size() < 2 ? std::vector<std::string>{} : quoted_words(cells[1]);
    if (names.empty() || (used.empty() && (cells.size() < 2 || !says_nothing(cells[1])))) {
      wrong.push_back("cannot read the row " + *line);
      continue;
    }
    for (const std::string& name : names) table[name].insert(used.begin(), used.end());
  }
  if (table.empty()) wrong.push_back("no table after \"" + std::string(heading) + "\"");
  return table;
}

// The room of a file: "src/observe/bpf" of "src/observe/bpf/bpf_watch.cpp", "daemon" of "daemon/main.cpp". Folders
// below a room belong to it.
std::string layer_of(const fs::path& relative) {
  const std::size_t depth = *relative.begin() == "src" ? 3 : 2;
  std::string layer;
  std::size_t taken = 0;
  for (const fs::path& part : relative.parent_path()) {
    if (taken++ == depth) break;
    layer += (layer.empty() ? "" : "/") + part.string();
  }
  return layer;
}

bool is_in(const std::string& folder, const std::string& room) {
  return folder == room || folder.starts_with(room + "/");
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class Checker {
 public:
  Checker(fs::path root, const Layers& layers) : root_(std::move(root)), layers_(layers) {}

  void check(const fs::path& file) {
    const fs::path relative = fs::relative(file, root_);
    const std::string layer = layer_of(relative);
    const auto rule = layers_.may_use.find(layer);
    if (rule == layers_.may_use.end()) {
      found.push_back(relative.string() + ": " + layer + " is not in the table of docs/architecture.md");
      return;
    }
    for (const Include& include : includes_of(read(file))) {
      const std::string at = relative.string() + ":" + std::to_string(include.line) + ": ";
      if (include.quoted)
        check_quoted(at, layer, rule->second, include.path);
      else
        check_outside(at, layer, include.path);
    }
  }

  std::vector<std::string> found;

 private:
  void check_quoted(const std::string& at, const std::string& layer, const std::set<std::string>& allowed,
                    const std::string& path) {
    if (path.starts_with("../") || path.find("/../") != std::string::npos) {
      found.push_back(at + "\"" + path + "\" climbs out of its folder; write it from src/");
      return;
    }
    // Without a folder: a neighbour in the same one, or a file of the program's top folder.
    if (path.find('/') == std::string::npos) return;
    const std::string target = full_name(layer, fs::path(path).parent_path().string());
    // A room may use its own files and those that stand directly in the folder above it.
    const bool own = is_in(target, layer) || target == fs::path(layer).parent_path();
    const bool listed =
        std::ranges::any_of(allowed, [&](const std::string& name) { return is_in(target, full_name(layer, name)); });
    if (!own && !listed) found.push_back(at + layer + " may not include \"" + path + "\"");
  }

  // "sys/procfs" is a folder of src; "engine", in a file of daemon, is one of daemon.
  [[nodiscard]] std::string full_name(const std::string& layer, const std::string& folder) const {
    const fs::path top = *fs::path(folder).begin();
    const bool of_src = layers_.may_use.contains("src/" + top.string());
    return (of_src ? "src/" : fs::path(layer).begin()->string() + "/") + folder;
  }

  void check_outside(const std::string& at, const std::string& layer, const std::string& path) {
    for (const auto& [header, users] : layers_.header_for) {
      const bool meant = header.ends_with('/') ? path.starts_with(header) : path == header;
      const bool permitted = std::ranges::any_of(users, [&](const std::string& user) { return is_in(layer, user); });
      if (meant && !permitted) found.push_back(at + layer + " may not include <" + path + ">");
    }
    // A header of the project in brackets would slip past the table.
    const std::string folder = path.substr(0, path.find('/'));
    if (path.find('/') != std::string::npos && folder != "sys" && layers_.may_use.contains("src/" + folder))
      found.push_back(at + "<" + path + "> is the project's own; write it in quotes");
  }

  fs::path root_;
  const Layers& layers_;
};

}  // namespace

Layers read_layers(std::string_view document, std::vector<std::string>& wrong) {
  const std::vector<std::string> lines = lines_of(document);
  Layers layers;
  layers.may_use = table_after(lines, "Who may use whom", wrong);
  layers.header_for = table_after(lines, "Headers from outside", wrong);
  return layers;
}

std::vector<Include> includes_of(std::string_view source) {
  std::vector<Include> found;
  const std::vector<std::string> lines = lines_of(source);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::istringstream in(lines[i]);
    char hash = 0;
    if (!(in >> hash) || hash != '#') continue;
    std::string word;
    in >> std::ws;
    while (std::isalpha(in.peek()) != 0) word += static_cast<char>(in.get());
    char open = 0;
    if (word != "include" || !(in >> open) || (open != '"' && open != '<')) continue;
    std::string path;
    std::getline(in, path, open == '"' ? '"' : '>');
    found.push_back({i + 1, open == '"', path});
  }
  return found;
}

std::vector<std::string> breaches(const fs::path& root, const Layers& layers) {
  Checker checker(root, layers);
  std::vector<fs::path> files;
  for (const char* top : {"src", "daemon", "bench"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (entry.is_regular_file() && (extension == ".h" || extension == ".cpp" || extension == ".c"))
        files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) checker.check(file);
  return checker.found;
}

}  // namespace swapd::regression
