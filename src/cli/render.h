// Text for people from the JSON that swapd answers. Pure: text in, text out.
#pragma once

#include <string>
#include <vector>

#include "cli/paint.h"

namespace swapd::cli {

[[nodiscard]] std::string render_status(const std::string& json, const Paint& paint = Paint());
[[nodiscard]] std::string render_ps(const std::string& json, const Paint& paint = Paint());
// An indented tree in plain words.
[[nodiscard]] std::string render_why(const std::string& json, const Paint& paint = Paint());
// As TOML, each value with where it comes from.
[[nodiscard]] std::string render_policy(const std::string& json, const Paint& paint = Paint());
// The classes, made of what Policy, Processes and Classes answer:
// {"classes":[{name, description, open, processes, threads, settings[{table, key, value, where}], members[{pid,
// comm}], and what Classes says of it}]}.
[[nodiscard]] std::string classes_json(const std::string& policy, const std::string& threads,
                                       const std::string& limits);
[[nodiscard]] std::string render_classes(const std::string& json, const Paint& paint = Paint());
// For Graphviz; every label is quoted.
[[nodiscard]] std::string render_dot(const std::string& json);
// One line, without its end.
[[nodiscard]] std::string render_event(const std::string& json, const Paint& paint = Paint());

// Columns as wide as their widest cell (in characters, neither bytes nor paint); numbers to the right. The first row is
// the heading.
struct Column {
  bool right = false;
};
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                                const Paint& paint = Paint());
// A word of `ps` that says how a thread is, as it is painted.
[[nodiscard]] std::string painted_state(const std::string& state, const Paint& paint);
// "0.8 ms", "12 ms", "3.4 s", "2 min 5 s".
[[nodiscard]] std::string duration(double ms);
// "1.5 MiB".
[[nodiscard]] std::string human_size(long long bytes);

}  // namespace swapd::cli
