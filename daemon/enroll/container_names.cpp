#include "enroll/container_names.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace swapd::daemon {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds container_names_last{60};
constexpr std::size_t max_known = 10'000, shortest_id = 12, longest_id = 64;
constexpr std::streamsize largest_record = 4 << 20;

// It becomes part of a path: a cgroup can be called anything.
bool is_id(std::string_view text) {
  return text.size() >= shortest_id && text.size() <= longest_id &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Discarded: it is not there, or no JSON.
json record(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(in ? largest_record : 0, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return json::parse(text, nullptr, false);
}

std::string text_of(const json& object, std::string_view key) {
  if (!object.is_object()) return "";
  const auto at = object.find(key);
  return at == object.end() || !at->is_string() ? std::string() : at->get<std::string>();
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
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(id); known != known_.end() && now - known->second.second < container_names_last)
      return known->second.first;
  }
  std::vector<std::string> names = read(id);
  const std::lock_guard lock(mutex_);
  if (known_.size() > max_known) known_.clear();
  known_[id] = {names, now};
  return names;
}

}  // namespace swapd::daemon
