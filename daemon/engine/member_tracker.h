// Keeps the managed set true: what a managed process starts is managed too, as its parent is; threads leave it as they
// end; commands and a look at /proc add to it and correct it. Engine thread.
//
// Changes come from fork, exec and exit events. Where events may be lost or late, the worker reads the threads of all
// managed processes from time to time (the roster), with their descendants where children would be missed. All that
// follows from a change is told to Followers, in the order in which it happens, and to the feed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actuate/actuator.h"
#include "base/event.h"
#include "base/result.h"
#include "engine/event_feed.h"
#include "engine/families.h"
#include "engine/listener_table.h"
#include "engine/user_quota.h"
#include "engine/worker.h"
#include "kernel.h"
#include "model/managed_set.h"
#include "observe/observer.h"
#include "sys/netlink/proc_events.h"

namespace swapd::daemon {

class MemberTracker {
 public:
  // Those who must know of what happens to the managed set.
  class Followers {
   public:
    Followers() = default;
    Followers(const Followers&) = delete;
    Followers& operator=(const Followers&) = delete;
    virtual ~Followers() = default;
    // For the model and those who decide.
    virtual void on_event(const Event& event) = 0;
    // The thread has ended (exited), or is managed no more. Comes after its Exited.
    virtual void on_left(ThreadId thread, bool exited) = 0;
    // A managed thread has started a process.
    virtual void on_forked(ThreadId parent, Time now) = 0;
    virtual void on_process_born(pid_t child, pid_t parent) = 0;
    virtual void on_process_released(pid_t tgid, std::uint64_t start_time) = 0;
    // The process has ended, or called execve(2): all that was known of its memory and descriptors is void.
    virtual void on_image_gone(pid_t tgid) = 0;
    // The number may be another thread's next. Comes for threads that are not managed, too.
    virtual void on_number_free(pid_t tid) = 0;
  };
  struct Parts {
    const Kernel& kernel;
    model::ManagedSet& members;
    observe::Observer& observer;
    actuate::Actuator& actuator;
    ListenerTable& listeners;
    const UserQuota& quota;
    EventFeed& feed;
    Followers& followers;
  };
  // by_filter: a process is observed through its filter, so that one that was released stays known by it.
  MemberTracker(const Parts& parts, bool by_filter);

  // --- events ---
  void on_process_event(const sys::ProcEvent& event, Time now);
  // A policy lets waits for the kernel's own work count: then the thread that does it is managed from the first such
  // wait on, as far as watching and boosting it go.
  void enroll_kernel_threads(const Blocked& blocked);
  // So many events were lost: the next roster is due, and looks for descendants.
  void on_lost(std::uint64_t events, Time now);
  // The question for the worker, when it is due. children_are_told: by events. Releases kernel threads once no process
  // is left for which they could work.
  [[nodiscard]] std::optional<RosterQuestion> next_roster(Time now, bool children_are_told);
  void take_roster(const RosterAnswer& answer, Time now);
  // The attributes that the thread has of its own are these now.
  void set_base(const model::ManagedThread& thread, const SchedAttr& base, Time now);
  // How much its CPU group weighs; a leader's counts for new threads of its process, too.
  void set_weight(const model::ManagedThread& thread, Weight weight, Time now);
  // The managed thread with this number, for notifications and records. Empty: there is none.
  [[nodiscard]] std::optional<observe::Member> identify(pid_t tid) const;

  // --- commands ---
  // A process that its launch has put under a filter; nothing if it has ended already.
  void enroll_launched(pid_t pid, const std::string& class_name, Time now);
  // Enrolls threads of running processes: how many were not there yet. ENOSPC: not all can be observed. EDQUOT: none
  // could be enrolled, because their user has as many as it may have.
  [[nodiscard]] Result<std::size_t> enroll_threads(const std::vector<RosterAnswer::Entry>& threads,
                                                   const std::string& class_name, Time now);
  // A process of an earlier swapd that is still the same, and what it has started since. ENOENT: its listener is lost.
  [[nodiscard]] Result<std::size_t> reenroll(const std::vector<RosterAnswer::Entry>& threads,
                                             const model::Membership& as, Time now);
  // Manages a released process again, or moves a managed one to the class. ENOENT: it is not in a managed tree.
  [[nodiscard]] Status manage_again(pid_t pid, const std::string& class_name, Time now);
  void move_class(const std::string& from, const std::string& to, Time now);
  // The thread's process. ENOENT: it is not managed.
  [[nodiscard]] Status release(pid_t pid, Time now);
  // A process that an earlier swapd has released, where nothing else is left of it (bpf).
  void remember_released(pid_t pid, std::uint64_t start_time);

  // --- questions ---
  // Managed, or released.
  [[nodiscard]] bool knows(pid_t pid, std::uint64_t start_time) const;
  [[nodiscard]] std::vector<model::Membership> memberships() const;  // for the next swapd
  struct Counts {
    std::uint64_t over_quota = 0;  // threads that were not enrolled because of their user's quota
    std::uint64_t lost = 0;        // events, and threads whose waits are not seen
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  // whole_process: the event is the whole process's, too.
  void tell(const Event& event, bool whole_process = false);
  Status enroll(ThreadId id, pid_t tgid, const SchedAttr& base, std::uint32_t uid, Time now);
  void reject(pid_t tgid);
  void on_fork(const sys::ProcEvent& fork, Time now);
  ThreadId adopt(ThreadId child, const sys::ProcEvent& fork, const model::ManagedProcess& parent, Time now);
  void add_child_process(ThreadId leader, std::uint32_t uid, pid_t parent_tgid, const model::ManagedProcess& parent);
  void on_exec(const sys::ProcEvent& exec, Time now);
  void on_exit(pid_t tid, Time now);
  void end_all_threads(const model::ManagedProcess& process, Time now);
  [[nodiscard]] bool take_roster_entry(const RosterAnswer::Entry& entry, std::unordered_set<pid_t>& other_users,
                                       Time now);

  Parts parts_;
  bool by_filter_;
  Families families_;
  std::unordered_map<pid_t, std::uint64_t> released_;  // start times, where nothing else is left of them
  Counts counts_;
  Time next_roster_{};
  bool look_for_descendants_ = false;  // in the next roster
};

}  // namespace swapd::daemon
