// Programs that the policy speaks of ([match.NAME]): those that run already, each that starts, and each that becomes
// another while it runs (its name, its user, its cgroup), without polling. Control thread, but for what says so.
//
// What is managed already stays as it is: a command put it there, or it is the child of a program that is managed. What
// a command has released stays so too. Only what a rule itself has taken in, and no command has touched since, is
// judged anew: when another rule fits, it goes to that rule's class; when none does, it stays where it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/missing_piece.h"
#include "bus/backend.h"
#include "enroll/enroll_queue.h"
#include "enroll/program_matcher.h"
#include "enroll/rule_enrollments.h"
#include "enroll/rule_settings.h"
#include "event/sources.h"
#include "policy/match.h"
#include "sys/bpf/exec_events.h"
#include "sys/procfs/procfs.h"

namespace swapd::daemon {

class AutoEnroller {
 public:
  struct Options {
    // Managed, or released by a command; any thread.
    std::function<bool(pid_t, std::uint64_t start_time)> known;
    // Something of the process has changed that rules go by, its cgroup, say.
    std::function<void(pid_t)> changed{};
    RuleSettings settings;
    bool installs_filters = false;  // the observer needs them
    bool dry_run = false;           // counts only
  };
  struct Counts {
    std::uint64_t rules = 0;
    std::uint64_t programs = 0;  // that started, as far as they were seen
    std::uint64_t matched = 0;   // by a rule: of them, and of those that ran already
    std::uint64_t managed = 0;   // because of a rule
  };
  AutoEnroller(bus::Backend& backend, const sys::Procfs& procfs, std::vector<policy::NamedRule> rules, Options options);
  ~AutoEnroller();
  AutoEnroller(const AutoEnroller&) = delete;
  AutoEnroller& operator=(const AutoEnroller&) = delete;

  // Looks through those that run, and follows those that start or change; there may be no events.
  void begin(sd_event* loop, std::vector<std::unique_ptr<sys::ExecEvents>> events);
  // A command has spoken of the process: from now on no rule judges it. Any thread.
  void by_hand(pid_t pid) { taken_.by_hand(pid); }
  [[nodiscard]] Counts counts() const { return counts_; }

 private:
  // One source of events, and its place in the loop.
  struct Source {
    std::unique_ptr<sys::ExecEvents> events;
    ReadableSource readable;
  };
  void read_events(Source& from);
  void stop_matching(Source& from, const Error& error);
  void look_through();
  void look_through_soon();
  void look_at(const sys::ExecEvent& event);
  void look_at_changed_soon();
  void look_at_changed();
  [[nodiscard]] bool stays(const WantedProgram& wanted);
  void consider(WantedProgram wanted, const policy::Program& program);
  void take_next();
  void take(const WantedProgram& wanted);
  void taken(const WantedProgram& wanted, const std::optional<AskedPriority>& asked, Status enrolled);
  [[nodiscard]] bool fits_still(const WantedProgram& wanted);
  [[nodiscard]] bool may_have_a_filter(pid_t pid) const;
  void leave_alone(const WantedProgram& wanted);
  void refused(const WantedProgram& wanted, const Error& error);
  // Any thread.
  [[nodiscard]] bool is_left_alone(pid_t pid);

  bus::Backend& backend_;
  const sys::Procfs& procfs_;
  ProgramMatcher matcher_;
  const Options options_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::optional<Timer> look_through_again_, look_at_settled_;  // from begin() on, if there are rules
  std::unordered_set<pid_t> changed_;
  LookBackoff backoff_;
  EnrollQueue queue_;
  std::unordered_map<pid_t, std::uint64_t> judged_;  // left alone or refused: start times
  RuleEnrollments taken_;
  std::set<std::pair<std::string, int>> said_;  // rules and errors
  Counts counts_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// What of a process these rules go by, as far as it may change.
[[nodiscard]] sys::Facts followed_facts(const std::vector<policy::NamedRule>& rules);

// From BPF and the process connector, as far as they are to be had; what that leaves out is appended.
[[nodiscard]] std::vector<std::unique_ptr<sys::ExecEvents>> open_exec_events(const sys::Facts& changes,
                                                                             std::vector<MissingPiece>& missing);

}  // namespace swapd::daemon
