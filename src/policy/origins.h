// The origin of each value of a policy: file and line. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace swapd::policy {

struct Setting {
  std::string table;  // "donation", "model.socket"
  std::string key;    // empty: the table is there, and holds nothing
  std::string value;  // as TOML has it
  std::string where;  // "FILE:LINE"
  bool operator==(const Setting&) const = default;
};

// The settings of texts that parse() has accepted, each of which overrides what those before it say.
class Origins {
 public:
  void add(std::string_view text, std::string_view file);
  // By table, and within one by key, in the order in which they were first named.
  [[nodiscard]] const std::vector<Setting>& settings() const { return settings_; }

 private:
  void set(Setting setting);

  std::vector<Setting> settings_;
};

}  // namespace swapd::policy
