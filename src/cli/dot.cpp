#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

// A double-quoted DOT string: a quote and a backslash are escaped, so that no label ends it or becomes an escape such
// as \N.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string_view shape(const std::string& type) {
  return type == "thread" ? "box" : type == "job" ? "hexagon" : "ellipse";
}

}  // namespace

std::string render_dot(const std::string& json) {
  const Json graph = Json::parse(json);
  std::string out =
      "digraph swapd {\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n";
  for (const Json& node : graph.at("nodes"))
    out += fmt::format("  {} [shape={}, label={}];\n", quoted(node.value("id", "")), shape(node.value("type", "")),
                       quoted(node.value("label", "")));
  for (const Json& edge : graph.at("edges")) {
    const std::string type = edge.value("type", "");
    const double confidence = edge.value("confidence", 0.0);
    const std::string look = type == "provides" ? fmt::format("style=dashed, label=\"{:g}\"", confidence)
                             : type == "spins"  ? fmt::format("style=dotted, label=\"{:.0f} %\"", confidence * 100)
                                                : "style=solid";
    out += fmt::format("  {} -> {} [{}];\n", quoted(edge.value("from", "")), quoted(edge.value("to", "")), look);
  }
  return out + "}\n";
}

}  // namespace swapd::cli
