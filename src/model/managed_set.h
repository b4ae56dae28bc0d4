// The managed set: processes, their threads, and each thread's own attributes. Only the engine thread uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/event.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/weight.h"

namespace swapd::model {

struct ManagedThread {
  ThreadId id;
  pid_t tgid = 0;
  SchedAttr base;
  Weight weight = usual_weight;  // of its CPU group, if the policy asks for it; else usual
};

struct ManagedProcess {
  pid_t tgid = 0;
  std::uint64_t start_time = 0;
  std::uint32_t uid = 0;
  std::string class_name;
  ClassId class_id = 0;
  pid_t launch = 0;              // whose launch made its listener; 0: it has none
  bool managed = true;           // false: released; its filter, and so its listener, stays
  bool kernel = false;           // a kernel thread: its children are not managed because of it
  Weight weight = usual_weight;  // of its leader: new threads begin with it
  std::vector<pid_t> threads;
};

// One managed process, as the next swapd needs it.
struct Membership {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  std::string class_name;
  bool managed = true;
  pid_t launch = 0;  // whose launch made its listener; 0: it has none
  bool io = false;   // that traps I/O calls, too
  bool operator==(const Membership&) const = default;
};

class ManagedSet {
 public:
  // The names of the classes 1, 2 …
  explicit ManagedSet(std::vector<std::string> classes = {}) : classes_(std::move(classes)) {}

  // Whenever a process comes or goes, or what is kept of it changes.
  void on_change(std::function<void()> changed) { changed_ = std::move(changed); }

  // A managed process has come, or its class is another; gone: it is managed no more.
  void on_member(std::function<void(const ManagedProcess&, bool gone)> told) { told_ = std::move(told); }

  [[nodiscard]] const ManagedThread* thread(pid_t tid) const;
  [[nodiscard]] const ManagedThread* thread(ThreadId id) const;
  [[nodiscard]] const ManagedProcess* process(pid_t tgid) const;

  ManagedProcess& add_process(pid_t tgid, std::uint64_t start_time, std::uint32_t uid, std::string class_name);
  void set_weight(pid_t tgid, Weight weight);
  // Adds the thread, or updates its attributes. Does nothing if its process is not there.
  void add_thread(const ManagedThread& thread);
  // Both take the process along with its last thread.
  void remove_thread(pid_t tid);
  bool set_uid(pid_t tgid, std::uint32_t uid);  // true: it was another
  void set_managed(pid_t tgid, bool managed);
  void set_launch(pid_t tgid, pid_t launch);

  struct Held {
    std::size_t processes = 0, threads = 0;  // managed ones that have a thread
  };
  [[nodiscard]] Held held_by(std::uint32_t uid) const;
  [[nodiscard]] std::size_t users() const { return held_.size(); }  // that have any
  // Forgets the process if it has no thread.
  void drop_if_empty(pid_t tgid);

  [[nodiscard]] std::size_t managed_threads() const;
  [[nodiscard]] std::size_t managed_processes() const;
  [[nodiscard]] std::uint64_t changes() const { return changes_; }  // of which on_change() has told
  [[nodiscard]] bool empty() const { return processes_.empty(); }
  // Threads whose own class is a real-time one.
  [[nodiscard]] const std::unordered_set<pid_t>& realtime() const { return realtime_; }
  // The lowest rank of a managed thread's own attributes: only threads above it can lend anything.
  [[nodiscard]] int lowest_rank() const { return ranks_.empty() ? 0 : ranks_.begin()->first; }

  [[nodiscard]] const std::unordered_map<pid_t, ManagedThread>& threads() const { return threads_; }
  [[nodiscard]] const std::unordered_map<pid_t, ManagedProcess>& processes() const { return processes_; }
  [[nodiscard]] std::vector<pid_t> managed_pids() const;

 private:
  void count(const ManagedThread& thread, int by);
  void own(const ManagedProcess& process, int by);  // with all of its threads
  void own(std::uint32_t uid, int processes, int threads);
  void tell(const ManagedProcess& process, bool gone) const {
    if (told_) told_(process, gone);
  }
  void changed() {
    ++changes_;
    if (changed_) changed_();
  }

  std::vector<std::string> classes_;
  std::uint64_t changes_ = 0;
  std::function<void()> changed_;
  std::function<void(const ManagedProcess&, bool)> told_;

  std::unordered_map<pid_t, ManagedThread> threads_;
  std::unordered_map<pid_t, ManagedProcess> processes_;
  std::unordered_set<pid_t> realtime_;
  std::map<int, std::size_t> ranks_;  // of managed threads
  std::unordered_map<std::uint32_t, Held> held_;
};

}  // namespace swapd::model
