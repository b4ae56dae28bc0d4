// The daemon's side of the bus: status, threads, why, graph and the commands (bus/backend.h). Control thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bus/backend.h"
#include "control/conflicts.h"
#include "control/journal_entries.h"
#include "engine/engine.h"
#include "enroll/attachments.h"
#include "enroll/auto_enroller.h"
#include "enroll/launches.h"
#include "enroll/oci_state.h"
#include "enroll/own_listeners.h"
#include "kernel.h"
#include "observe/resolve/resolver.h"
#include "policy/origins.h"
#include "policy/policy.h"
#include "record/recording.h"
#include "shaping/classes.h"
#include "sys/procfs/procfs.h"
#include "sys/sched/scheduler.h"

namespace swapd::daemon {

class DaemonBackend final : public bus::Backend {
 public:
  struct About {
    std::string version, observer, observer_reason;
    std::vector<std::string> warnings;
    std::vector<MissingPiece> missing;
    std::function<SchedulingConflicts()> surroundings;
    std::function<std::uint64_t()> log_drops;
    std::function<std::string()> guard_note;  // empty: nothing to say of the guard
    std::function<pid_t()> guard_pid;
    OwnListeners* own_listeners = nullptr;
    std::function<void(pid_t)> by_hand;  // a command speaks of this process; any thread
    std::function<AutoEnroller::Counts()> newcomers;
    std::function<Status()> restart;
    std::vector<policy::Setting> settings;  // of the policy
  };
  // The parts of swapd that commands act on and views are made of.
  struct Parts {
    Engine& engine;
    Launches& launches;
    Attachments& attachments;
    observe::Resolver& resolver;
    const policy::Policy& policy;
    Classes& classes;
    Shaper& shaper;
  };
  DaemonBackend(const Kernel& kernel, const Parts& parts, About about);

  [[nodiscard]] bus::StatusView status() override;
  [[nodiscard]] bus::BriefView brief() override;
  [[nodiscard]] std::string version() const override { return about_.version; }
  [[nodiscard]] std::vector<bus::ThreadView> threads() override;
  [[nodiscard]] Result<std::vector<bus::ThreadView>> why(pid_t pid) override;
  [[nodiscard]] bus::GraphView graph() override;
  [[nodiscard]] bus::WorldView world() override;
  [[nodiscard]] std::vector<bus::SettingView> policy() override;
  [[nodiscard]] Result<bus::LaunchAnswer> launch(bus::LaunchRequest request) override;
  [[nodiscard]] Result<pid_t> pid_of(int pidfd) const override;
  // The class that a container's first process comes into; an error: it is not managed, and why.
  [[nodiscard]] Result<std::string> admit(const OciContainer& container);
  void enroll(const bus::EnrollRequest& request, std::function<void(const Status&)> done) override;
  [[nodiscard]] Status release(pid_t pid, const bus::Caller& caller) override;
  [[nodiscard]] Status thaw(pid_t pid, const bus::Caller& caller) override;
  [[nodiscard]] Status restart(const bus::Caller& caller) override;
  [[nodiscard]] Status pause(bool paused, const bus::Caller& caller) override;
  [[nodiscard]] Status set(pid_t pid, const AskedPriority& base, const bus::Caller& caller) override;
  [[nodiscard]] std::vector<bus::ClassView> classes() override { return parts_.classes.views(); }
  [[nodiscard]] Status create_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                    const bus::Caller& caller) override;
  [[nodiscard]] Status set_class(const std::string& name, const std::vector<bus::LimitChange>& changes,
                                 const bus::Caller& caller) override;
  [[nodiscard]] Status remove_class(const std::string& name, const bus::Caller& caller) override;
  void follow_events(bus::EventDetail detail, std::function<void(const bus::EventView&)> sink) override;

  [[nodiscard]] Status record(std::function<bool(std::string_view)> sink) override;
  void end_recording() override { recording_.end(); }
  void refused(std::string_view action, pid_t pid, const bus::Caller& caller, const Error& why) override {
    refusals_.tell(action, pid, caller, why);
  }

  // One more line for status.
  void warn(const std::string& line) { about_.warnings.push_back(line); }
  void misses(MissingPiece piece) { about_.missing.push_back(std::move(piece)); }
  // The engine's notes are readable: hands them to the follower.
  void forward_notes();

 private:
  [[nodiscard]] Snapshot snapshot();
  [[nodiscard]] Result<bus::LaunchAnswer> begin_launch(bus::LaunchRequest request);
  [[nodiscard]] Result<bus::LaunchAnswer> launch_without_filter(bus::LaunchRequest request);
  [[nodiscard]] Result<std::string> class_of(const std::string& wanted, const bus::Caller& caller) const;
  [[nodiscard]] Status may_touch(pid_t pid, const bus::Caller& caller) const;
  [[nodiscard]] Status may_administer(const char* action, const bus::Caller& caller);
  [[nodiscard]] Status may_set_limits(const char* action, const bus::Caller& caller);
  [[nodiscard]] Status has_room(pid_t pid) const;  // EDQUOT
  // Out of the class that it is in. EACCES: that limits it, which its user may not lift.
  [[nodiscard]] Status may_leave(pid_t tgid, const std::string& into, const bus::Caller& caller) const;
  [[nodiscard]] Result<std::vector<sock_filter>> filter(const std::string& class_name, bool io,
                                                        bool runs_already = false) const;
  [[nodiscard]] Status begin_enrolling(const bus::EnrollRequest& request,
                                       const std::function<void(const Status&)>& done);

  Kernel kernel_;
  Parts parts_;
  About about_;
  std::function<void(const bus::EventView&)> sink_;
  DenialLog refusals_{kernel_.clock};
  bool attaching_ = false;  // the enrolment that has just begun ends later
  Recording recording_{parts_.engine.records(), [this] { parts_.engine.call([](Engine& e) { e.record_from_here(); }); },
                       kernel_.clock};
};

}  // namespace swapd::daemon
