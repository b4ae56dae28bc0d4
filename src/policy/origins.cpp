#include "policy/origins.h"

#include <toml++/toml.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>

#include "policy/schema.h"

namespace swapd::policy {
namespace {

std::string written(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  std::string text = out.str();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

void Origins::add(std::string_view text, std::string_view file) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error&) {
    return;  // parse() has said so
  }
  const std::function<void(const toml::table&, const std::string&)> walk = [&](const toml::table& table,
                                                                               const std::string& name) {
    for (const Entry& entry : entries(table)) {
      const std::string key(entry.key);
      const toml::table* inner = entry.node->as_table();
      if (inner != nullptr && inner->empty())
        set({name.empty() ? key : name + "." + key, "", "", std::string(file) + ":" + std::to_string(entry.line)});
      else if (inner != nullptr)
        walk(*inner, name.empty() ? key : name + "." + key);
      else
        set({name, key, written(*entry.node), std::string(file) + ":" + std::to_string(entry.line)});
    }
  };
  walk(root, "");
}

void Origins::set(Setting setting) {
  const auto same = [&](const Setting& s) { return s.table == setting.table && s.key == setting.key; };
  if (const auto known = std::ranges::find_if(settings_, same); known != settings_.end()) {
    *known = std::move(setting);
    return;
  }
  const auto last =
      std::find_if(settings_.rbegin(), settings_.rend(), [&](const Setting& s) { return s.table == setting.table; });
  settings_.insert(last == settings_.rend() ? settings_.end() : last.base(), std::move(setting));
}

}  // namespace swapd::policy
