// Shared by the policy tests: reading files of the source tree, and the one line of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace swapd::policy::test {

inline std::filesystem::path source_dir() { return SWAPD_SOURCE_DIR; }

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::vector<std::filesystem::path> toml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// The error line of a text that must be refused.
inline std::string refusal(std::string_view text, const Policy& base = {}) {
  const Result<Policy> parsed = parse(text, "p.toml", base);
  if (parsed) return "(accepted)";
  EXPECT_EQ(parsed.error().code(), EINVAL);
  EXPECT_EQ(parsed.error().context().find('\n'), std::string::npos) << parsed.error().context();
  return parsed.error().context();
}

inline Policy accepted(std::string_view text, const Policy& base = {}) {
  Result<Policy> parsed = parse(text, "p.toml", base);
  EXPECT_TRUE(parsed) << parsed.error().context();
  return parsed ? *parsed : Policy{};
}

}  // namespace swapd::policy::test
