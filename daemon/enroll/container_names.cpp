#include "enroll/container_names.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "enroll/json_text.h"
#include "sys/procfs/procfs_read.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;

constexpr std::size_t shortest_id = 12, longest_id = 64;

// It becomes part of a path: a cgroup can be called anything.
bool is_id(std::string_view text) {
  return text.size() >= shortest_id && text.size() <= longest_id &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Discarded: it is not there, or no JSON.
json record(const std::string& path) {
  const auto text = sys::read_all(path.c_str());
  return json::parse(text ? *text : "", nullptr, false);
}

void add(std::vector<std::string>& names, std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);  // Docker's
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

void add_of_storage(std::vector<std::string>& names, const json& containers, const std::string& id) {
  if (!containers.is_array()) return;
  for (const json& one : containers) {
    if (text_of(one, "id") != id) continue;
    const auto given = one.find("names");
    if (given == one.end() || !given->is_array()) continue;
    for (const json& name : *given)
      if (name.is_string()) add(names, name.get<std::string>());
  }
}

void add_of_bundle(std::vector<std::string>& names, const json& config) {
  const auto annotations = config.is_object() ? config.find("annotations") : config.end();
  if (!config.is_object() || annotations == config.end()) return;
  constexpr std::array keys = {"io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name",
                               "io.kubernetes.container.name", "io.kubernetes.pod.name"};
  for (const char* key : keys) add(names, text_of(*annotations, key));
}

}  // namespace

std::vector<std::string> ContainerNames::read(const std::string& id) const {
  std::vector<std::string> names;
  add(names, text_of(record(root_ + "/var/lib/docker/containers/" + id + "/config.v2.json"), "Name"));
  const std::string storage = "/containers/storage/overlay-containers/";
  for (const char* list : {"containers.json", "volatile-containers.json"})
    add_of_storage(names, record(root_ + "/var/lib" + storage + list), id);
  add_of_bundle(names, record(root_ + "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json"));
  add_of_bundle(names, record(root_ + "/run" + storage + id + "/userdata/config.json"));
  return names;
}

std::vector<std::string> ContainerNames::of(const std::string& id) {
  if (!is_id(id)) return {};
  return known_.of(id, [&] { return std::optional(read(id)); }).value_or(std::vector<std::string>());
}

}  // namespace swapd::daemon
