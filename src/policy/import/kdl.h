// KDL, as far as configurations use it (kdl.dev, version 1): nodes with arguments, properties and children. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace swapd::policy {

struct KdlValue {
  std::string type;  // "(best-effort)0": best-effort; empty: none
  std::string text;  // a number or word as it is written, a string without its quotes
};
struct KdlNode {
  std::string name;
  unsigned line = 0;
  std::vector<KdlValue> arguments;
  std::vector<std::pair<std::string, KdlValue>> properties;
  std::vector<KdlNode> children;
  [[nodiscard]] const KdlValue* property(std::string_view key) const;  // the last of that name; null: none
};

// EINVAL: "FILE:LINE: what is wrong".
[[nodiscard]] Result<std::vector<KdlNode>> parse_kdl(std::string_view text, std::string_view file);

}  // namespace swapd::policy
