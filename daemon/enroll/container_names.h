// The names that people gave containers, by the ids that engines put into cgroups. Read from the engines' own records:
// Docker's config.v2.json, containers.json of containers/storage (Podman), and for Kubernetes the annotations in the
// bundles of containerd and CRI-O (the container's name, and its pod's). Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "enroll/remembered.h"

namespace swapd::daemon {

class ContainerNames {
 public:
  // root: where the host's files are ("" for /).
  explicit ContainerNames(std::string root = "") : root_(std::move(root)) {}
  // Empty: none is known. A container can be renamed: see Remembered.
  [[nodiscard]] std::vector<std::string> of(const std::string& id);

 private:
  [[nodiscard]] std::vector<std::string> read(const std::string& id) const;
  const std::string root_;
  Remembered<std::string, std::vector<std::string>> known_;
};

}  // namespace swapd::daemon
