// Texts in JSON that another program has written.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace swapd::daemon {

// Empty: it is no object, the key is not there, or is no string.
[[nodiscard]] inline std::string text_of(const nlohmann::json& object, std::string_view key) {
  if (!object.is_object()) return "";
  const auto at = object.find(key);
  return at == object.end() || !at->is_string() ? std::string() : at->get<std::string>();
}

}  // namespace swapd::daemon
