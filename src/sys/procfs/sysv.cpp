#include "sys/procfs/sysv.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include <algorithm>

namespace swapd::sys {

namespace {

// The caller of semctl(2) has to define this.
union Semun {
  int value;
  semid_ds* set;
};

void add(std::vector<pid_t>& out, pid_t pid) {
  if (pid > 0 && std::find(out.begin(), out.end(), pid) == out.end()) out.push_back(pid);
}

}  // namespace

Result<std::vector<pid_t>> sysv_sem_pids(int id) {
  semid_ds set{};
  if (::semctl(id, 0, IPC_STAT, Semun{.set = &set}) != 0) return errno_error("semctl");
  std::vector<pid_t> out;
  for (int i = 0; i < static_cast<int>(std::min<unsigned long>(set.sem_nsems, 64)); ++i)
    add(out, ::semctl(id, i, GETPID, Semun{}));
  return out;
}

Result<std::vector<pid_t>> sysv_msg_pids(int id) {
  msqid_ds queue{};
  if (::msgctl(id, IPC_STAT, &queue) != 0) return errno_error("msgctl");
  std::vector<pid_t> out;
  add(out, queue.msg_lspid);
  add(out, queue.msg_lrpid);
  return out;
}

}  // namespace swapd::sys
