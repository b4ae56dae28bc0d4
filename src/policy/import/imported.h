// A policy made of the configuration of another tool that sets priorities. Pure.
//
// A rule ([match.NAME]) has the place that it comes from beside each pattern. All that a policy cannot say is listed,
// and why.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sched_attr.h"
#include "base/words.h"
#include "policy/policy.h"

namespace swapd::policy {

enum class Tool : std::uint8_t { ananicy, system76, gamemode, cgrules };
inline constexpr auto tool_words = words<Tool>({{"ananicy", Tool::ananicy},
                                                {"system76", Tool::system76},
                                                {"gamemode-ini", Tool::gamemode},
                                                {"cgrules", Tool::cgrules}});

struct SourceFile {
  std::string name;  // as places have it
  std::string text;
};
struct SourcePlace {
  std::string file;
  unsigned line = 0;
  bool operator==(const SourcePlace&) const = default;
};

struct ProgramSettings {
  std::optional<SchedPolicy> sched;
  std::optional<int> nice, realtime;  // realtime: the priority of fifo or rr
  std::optional<IoClass> io_class;
  std::optional<int> io_priority;
  std::optional<int> oom_score_adj;
  bool operator==(const ProgramSettings&) const = default;
};

struct ImportedPattern {
  std::string_view key;  // of a rule: "comm", "exe" …
  std::string glob;
  SourcePlace place;
};
struct ImportedRule {
  std::string name;        // a number is added where several have it
  std::string class_name;  // empty: default
  ProgramSettings settings;
  bool manage = true;
  std::vector<ImportedPattern> patterns;  // of each key one must fit
};
struct Unsaid {
  SourcePlace place;
  std::string what, why;
};
struct Imported {
  std::vector<ImportedRule> rules;  // the first that fits counts
  std::vector<Unsaid> unsaid;
  void leave_out(SourcePlace place, std::string what, std::string why) {
    unsaid.push_back({std::move(place), std::move(what), std::move(why)});
  }
};

// EINVAL: a file is no configuration of that tool; the context is one line, with file and line.
[[nodiscard]] Result<Imported> import_from(Tool tool, std::span<const SourceFile> files);
// The policy as TOML. from: what is said to be its source.
[[nodiscard]] std::string policy_text(const Imported& imported, Tool tool, std::string_view from);

// Shared by the tools' importers.

// A name of a program as a pattern for comm: the kernel cuts it after 15 bytes.
[[nodiscard]] std::string comm_of(std::string_view name);
// Letters, digits, '-' and '_' as they are, '-' for all else; never empty.
[[nodiscard]] std::string class_name_of(std::string_view name);
// Nothing: the text is no whole number.
[[nodiscard]] std::optional<int> whole_number(std::string_view text);
// The words that the tools have for classes of scheduling and of I/O; nothing: no such class.
[[nodiscard]] std::optional<SchedPolicy> sched_called(std::string_view word);
[[nodiscard]] std::optional<IoClass> io_class_called(std::string_view word);

[[nodiscard]] Result<Imported> import_ananicy(std::span<const SourceFile> files);
[[nodiscard]] Result<Imported> import_system76(std::span<const SourceFile> files);
[[nodiscard]] Result<Imported> import_gamemode(std::span<const SourceFile> files);
[[nodiscard]] Result<Imported> import_cgrules(std::span<const SourceFile> files);

}  // namespace swapd::policy
