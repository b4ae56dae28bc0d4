// The last user of a System V semaphore set or message queue (semctl(2) GETPID, msgctl(2) IPC_STAT), in our own IPC
// namespace.
#pragma once

#include <vector>

#include "base/result.h"

namespace swapd::sys {

// The processes of the last operation on each semaphore of the set (64 at most), each once, 0 left out.
[[nodiscard]] Result<std::vector<pid_t>> sysv_sem_pids(int id);
// The last sender and the last receiver.
[[nodiscard]] Result<std::vector<pid_t>> sysv_msg_pids(int id);

}  // namespace swapd::sys
