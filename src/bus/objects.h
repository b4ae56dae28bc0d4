// The objects below /org/swapd1 as plain values: which there are now, with their properties, and what has changed
// between two looks. Shapes are those of systemd/org.swapd1.*.xml. Pure, but for asking the backend.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bus/backend.h"

namespace swapd::bus {

inline constexpr const char* object_path = "/org/swapd1";
inline constexpr const char* interface_name = "org.swapd1.Manager";
inline constexpr const char* process_interface = "org.swapd1.Process";
inline constexpr const char* class_interface = "org.swapd1.Class";
inline constexpr const char* resource_interface = "org.swapd1.Resource";
// Prefixes of object paths; behind them a process id, a class's name and a resource's, both escaped
// (sd_bus_path_encode).
inline constexpr const char* process_prefix = "/org/swapd1/process";
inline constexpr const char* class_prefix = "/org/swapd1/class";
inline constexpr const char* resource_prefix = "/org/swapd1/resource";

using ObjectPaths = std::vector<std::string>;                            // ao
using Settings = std::map<std::string, std::string>;                     // a{ss}
using ThreadIds = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // a(uu): process, thread
struct Provides {                                                        // a(uud)
  std::uint32_t pid = 0, tid = 0;
  double confidence = 0;
  bool operator==(const Provides&) const = default;
};
using Value = std::variant<bool, std::uint32_t, std::string, ObjectPaths, Settings, ThreadIds, std::vector<Provides>>;

struct Object {
  std::string interface;
  std::map<std::string, Value> properties;  // by name
  bool operator==(const Object&) const = default;
};
using Tree = std::map<std::string, Object>;  // by path

[[nodiscard]] std::string process_path(pid_t pid);
// 0: the path is none of a process.
[[nodiscard]] pid_t process_of(std::string_view path);
[[nodiscard]] std::string encoded_path(const char* prefix, const std::string& name);

// All objects but the Manager itself.
[[nodiscard]] Tree objects_now(Backend& backend);
// Properties of the Manager that may change.
[[nodiscard]] Object manager_now(Backend& backend);

struct Changes {
  std::vector<std::string> added, removed;                  // paths
  std::map<std::string, std::vector<std::string>> changed;  // path: names of properties
};
[[nodiscard]] Changes changes(const Tree& before, const Tree& now);

}  // namespace swapd::bus
