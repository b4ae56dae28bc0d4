#include "policy/import/kdl.h"

#include <algorithm>
#include <cerrno>

namespace swapd::policy {
namespace {

constexpr int deepest = 32;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<std::vector<KdlNode>> document() {
    std::vector<KdlNode> nodes = this->nodes(0);
    if (fault_.empty() && !ended()) fail("there is a '}' too many");
    if (fault_.empty()) return nodes;
    return Error(EINVAL, std::string(file_) + ":" + std::to_string(fault_line_) + ": " + fault_);
  }

 private:
  [[nodiscard]] bool ended() const { return at_ >= text_.size() || !fault_.empty(); }
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  char take() {
    if (next() == '\n') ++line_;
    return text_[at_++];
  }
  void fail(std::string what) {
    if (!fault_.empty()) return;
    fault_ = std::move(what);
    fault_line_ = line_;
  }

  // Space, comments and continued lines; with lines: ends of nodes too.
  void skip(bool lines) {
    while (!ended()) {
      if (is_space(next()) || (lines && (next() == '\n' || next() == ';'))) {
        take();
      } else if (sees("//")) {
        while (!ended() && next() != '\n') take();
      } else if (sees("/*")) {
        const unsigned begun = line_;
        while (!ended() && !sees("*/")) take();
        if (ended()) {
          line_ = begun;
          return fail("this comment has no end");
        }
        take();
        take();
      } else if (next() == '\\') {
        take();
        while (!ended() && next() != '\n') take();
        if (!ended()) take();
      } else {
        return;
      }
    }
  }

  std::vector<KdlNode> nodes(int depth) {
    std::vector<KdlNode> out;
    if (depth > deepest) fail("nodes are nested too deeply");
    for (;;) {
      skip(true);
      if (ended() || next() == '}') return out;
      const bool left_out = take_slashdash();
      KdlNode node = this->node(depth);
      if (!left_out) out.push_back(std::move(node));
    }
  }

  bool take_slashdash() {
    if (!sees("/-")) return false;
    at_ += 2;
    skip(false);
    return true;
  }

  KdlNode node(int depth) {
    KdlNode node;
    node.line = line_;
    node.name = value().text;
    for (;;) {
      skip(false);
      if (ended() || next() == '\n' || next() == ';' || next() == '}') return node;
      const bool left_out = take_slashdash();
      if (next() == '{') {
        take();
        std::vector<KdlNode> inner = nodes(depth + 1);
        if (next() != '}') fail("'" + node.name + "' has no '}'");
        if (ended()) return node;
        take();
        if (!left_out) node.children = std::move(inner);
        continue;
      }
      KdlValue first = value();
      if (next() == '=') {
        take();
        KdlValue second = value();
        if (!left_out) node.properties.emplace_back(std::move(first.text), std::move(second));
      } else if (!left_out) {
        node.arguments.push_back(std::move(first));
      }
    }
  }

  KdlValue value() {
    KdlValue out;
    if (next() == '(') {
      take();
      out.type = word(")");
      if (next() != ')') fail("a type has no ')'");
      if (!ended()) take();
    }
    if (next() == '"')
      out.text = string();
    else if (sees("r\"") || sees("r#"))
      out.text = raw_string();
    else
      out.text = word("");
    return out;
  }

  std::string word(std::string_view end) {
    std::string out;
    while (!ended() && !is_space(next()) && std::string_view("\n;{}=()\"\\").find(next()) == std::string_view::npos &&
           (end.empty() || next() != end.front()) && !sees("//"))
      out += take();
    if (out.empty()) fail(ended() ? "the text ends within a node" : std::string("'") + next() + "' is out of place");
    return out;
  }

  std::string string() {
    std::string out;
    const unsigned begun = line_;
    take();
    while (!ended() && next() != '"') {
      if (next() != '\\') {
        out += take();
        continue;
      }
      take();
      if (ended()) break;
      const char c = take();
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    if (ended()) {
      line_ = begun;
      fail("this string has no end");
      return out;
    }
    take();
    return out;
  }

  std::string raw_string() {
    const unsigned begun = line_;
    take();
    std::string end = "\"";
    while (next() == '#') end += take();
    if (next() != '"') {
      fail("a raw string begins with a quote");
      return {};
    }
    take();
    std::string out;
    while (!ended() && !sees(end)) out += take();
    if (ended()) {
      line_ = begun;
      fail("this string has no end");
      return out;
    }
    at_ += end.size();
    return out;
  }

  std::string_view text_, file_;
  std::size_t at_ = 0;
  unsigned line_ = 1, fault_line_ = 0;
  std::string fault_;
};

}  // namespace

const KdlValue* KdlNode::property(std::string_view key) const {
  const auto found =
      std::ranges::find(properties.rbegin(), properties.rend(), key, [](const auto& p) { return p.first; });
  return found == properties.rend() ? nullptr : &found->second;
}

Result<std::vector<KdlNode>> parse_kdl(std::string_view text, std::string_view file) {
  return Reader(text, file).document();
}

}  // namespace swapd::policy
