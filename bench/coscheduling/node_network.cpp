#include "coscheduling/node_network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

#include "harness/process.h"

namespace swapd::bench {
namespace {

constexpr std::chrono::seconds ip_takes_at_most{10};

std::string interface_of(std::size_t node) { return "node" + std::to_string(node); }

// A thread goes into a new one, and leaves it behind.
Result<Fd> new_namespace() {
  Result<Fd> made = Error(EPERM, "a network namespace");
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0) {
      made = errno_error("a network namespace");
      return;
    }
    Fd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (fd) made = std::move(fd);
  }).join();
  return made;
}

// In the namespace, if one is given. The shell's own namespace of mounts ends with it.
Status in_namespace(int network, const std::string& commands) {
  Spawn spawn;
  spawn.argv = {"/usr/bin/unshare", "--mount", "/bin/sh", "-c", "exec 2>&1; set -e; " + commands};
  spawn.network = network;
  int status = 0;
  const auto said = run_for_output(spawn, status, ip_takes_at_most);
  if (!said) return Error(said.error()).in("joining two nodes");
  if (status != 0) return Error(EPROTO, "joining two nodes: " + said->substr(0, said->find('\n')));
  return Done{};
}

// Bits of /sys/class/net/…/rps_cpus: words of 32, the highest first.
std::string mask_of(int cpu) {
  char word[16];
  std::snprintf(word, sizeof word, "%x", 1U << (cpu % 32));
  std::string mask = word;
  for (int i = 0; i < cpu / 32; ++i) mask += ",00000000";
  return mask;
}

}  // namespace

Result<NodeNetwork> NodeNetwork::make(const std::vector<int>& cpus) {
  NodeNetwork network;
  for (Fd& one : network.namespaces_) {
    auto made = new_namespace();
    if (!made) return made.error();
    one = std::move(*made);
  }
  // ip(8) takes the path of a namespace for its name.
  const std::string own = "/proc/" + std::to_string(::getpid()) + "/fd/";
  if (Status joined = in_namespace(-1, "ip link add name " + interface_of(0) + " netns " + own +
                                           std::to_string(network.of(0)) + " type veth peer name " + interface_of(1) +
                                           " netns " + own + std::to_string(network.of(1)));
      !joined)
    return joined.error();
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::string name = interface_of(node);
    const std::string up = "ip link set lo up; ip address add " + address(node) + "/24 dev " + name + "; ip link set " +
                           name + " up; mount -t sysfs sysfs /sys; echo " + mask_of(cpus.at(node)) +
                           " >/sys/class/net/" + name + "/queues/rx-0/rps_cpus";
    if (Status done = in_namespace(network.of(node), up); !done) return done.error();
  }
  return network;
}

}  // namespace swapd::bench
