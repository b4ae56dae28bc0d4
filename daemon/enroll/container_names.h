// The names that people gave containers, by the ids that engines put into cgroups. Read from the engines' own records:
// Docker's config.v2.json, containers.json of containers/storage (Podman), and for Kubernetes the annotations in the
// bundles of containerd and CRI-O (the container's name, and its pod's). Any thread.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swapd::daemon {

class ContainerNames {
 public:
  // root: where the host's files are ("" for /).
  explicit ContainerNames(std::string root = "") : root_(std::move(root)) {}
  // Empty: none is known. Kept for a minute, as a container can be renamed.
  [[nodiscard]] std::vector<std::string> of(const std::string& id);

 private:
  [[nodiscard]] std::vector<std::string> read(const std::string& id) const;
  const std::string root_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::vector<std::string>, std::chrono::steady_clock::time_point>> known_;
};

}  // namespace swapd::daemon
