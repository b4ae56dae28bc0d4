#include "restore.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iostream>

#include "actuate/actuator.h"
#include "state/persistent_state.h"
#include "sys/sched/groups.h"
#include "sys/sched/io_groups.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

int restore_left(const std::string& state_dir) {
  if (::access((state_dir + "/journal").c_str(), F_OK) != 0 && errno == ENOENT) {
    std::cout << "nothing was lent: there is no journal in " << state_dir << '\n';
    return 0;
  }
  if (const Status safe = check_state_dir(state_dir); !safe) {
    std::cerr << "swapd: " << safe.error().context() << '\n';
    return 1;
  }
  const auto lock = lock_state(state_dir, std::chrono::milliseconds(100));
  if (!lock) {
    std::cerr << "swapd: " << lock.error().context() << '\n';
    return 1;
  }
  const sys::LinuxScheduler scheduler;
  const sys::LinuxGroups groups;
  sys::LinuxIoGroups bfq(sys::LinuxIoGroups::By::bfq), iocost(sys::LinuxIoGroups::By::iocost);
  actuate::Actuator actuator(
      scheduler, groups,
      {.state_dir = state_dir,
       .disk_groups = {{actuate::DiskGroups::By::bfq, &bfq}, {actuate::DiskGroups::By::iocost, &iocost}}});
  const auto given_back = actuator.recover();
  if (!given_back) {
    std::cerr << "swapd: " << given_back.error().context() << '\n';
    return 1;
  }
  for (const std::string& line : actuator.recovery_notes()) std::cerr << "swapd: " << line << '\n';
  std::cout << "gave back what was lent to " << *given_back << (*given_back == 1 ? " thread" : " threads or groups")
            << '\n';
  return actuator.recovery_notes().empty() ? 0 : 1;
}

}  // namespace swapd::daemon
