// A command in a pid namespace of its own, whose first process it is, with a /proc that shows it.
#pragma once

#include <string>
#include <vector>

namespace swapd::test {

// /proc alone is made private first: the root need not be a mount (in a chroot it is none), and what is mounted on a
// shared one would be seen outside.
inline std::vector<std::string> in_pid_namespace(const std::vector<std::string>& command) {
  std::vector<std::string> out{"/usr/bin/unshare",
                               "--pid",
                               "--fork",
                               "--kill-child",
                               "--mount",
                               "--propagation",
                               "unchanged",
                               "/bin/sh",
                               "-c",
                               "mount --make-rprivate /proc && mount -t proc proc /proc && exec \"$0\" \"$@\""};
  out.insert(out.end(), command.begin(), command.end());
  return out;
}

}  // namespace swapd::test
