// Manages again what an earlier swapd with the same state directory has managed (docs/design.md, Guard).
//
// STATE_DIR/members names the managed processes; an earlier guard has their listeners (guard_takeover.h), or if that
// has ended too, the service manager (fd_store.h); the journal has taken back boosts. A process that is still the same
// is managed again, in its class, with what it has started since the file was written. (Confidences: confidence_file.h;
// the files: persistent_state.h.)
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "event/sources.h"
#include "model/managed_set.h"
#include "policy/policy.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

class Classes;
class Engine;
class FdStore;
class Launches;

struct Resumed {
  std::vector<std::string> notes;       // what happened, a line each for the log
  std::vector<model::Membership> lost;  // live, and not observed for want of their listeners: for another swapd
};
// Never fatal: a damaged file is set aside.
[[nodiscard]] Resumed resume(Engine& engine, Launches& launches, FdStore& store, const sys::Procfs& procfs,
                             const sys::Scheduler& scheduler, const policy::Policy& policy, const Classes& classes,
                             const std::string& state_dir, const std::string& boot_id);

// Keeps the file as the engine has it, in a storm of forks a tenth of a second late. Control thread.
class MembersFile {
 public:
  MembersFile(sd_event* loop, Engine& engine, const sys::Procfs& procfs, std::string state_dir, std::string boot_id,
              std::vector<model::Membership> lost);
  ~MembersFile() = default;
  MembersFile(const MembersFile&) = delete;
  MembersFile& operator=(const MembersFile&) = delete;

  void write();

 private:
  void write_soon();
  void give_back_memory();

  bool had_members_ = false;
  Engine& engine_;
  const sys::Procfs& procfs_;
  std::string state_dir_, boot_id_;
  std::vector<model::Membership> lost_;
  Time written_{};
  bool failed_ = false;     // and said so
  ReadableSource changes_;  // of the engine's members
  Timer write_, give_back_;
};

}  // namespace swapd::daemon
