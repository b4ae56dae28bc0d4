// Two nodes of a cluster on one machine: a network namespace each, joined by a link (veth(4)), so that a message from
// one to the other takes the whole way through the kernel's network. What arrives is taken up in a soft interrupt of
// the node's own CPU, as from a wire: the sender's CPU would do it else (rps_cpus).
//
// The namespaces have no names and end with the descriptors and processes that are in them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::bench {

class NodeNetwork {
 public:
  static constexpr std::size_t nodes = 2;
  // cpus: of node 0 and node 1. EPERM, or what ip(8) says: this kernel has no namespace or no such link.
  [[nodiscard]] static Result<NodeNetwork> make(const std::vector<int>& cpus);
  // Descriptor of the node's namespace, for setns(2).
  [[nodiscard]] int of(std::size_t node) const { return namespaces_.at(node).get(); }
  // IPv4 address of the node.
  [[nodiscard]] static std::string address(std::size_t node) { return "10.77.0." + std::to_string(node + 1); }

 private:
  NodeNetwork() = default;
  std::array<Fd, nodes> namespaces_;
};

}  // namespace swapd::bench
