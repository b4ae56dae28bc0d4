// Interface of the daemon to the bus: snapshots out, commands in. The daemon implements Backend; the bus turns it into
// D-Bus and JSON. Field names and units are the contract of docs/design.md, Contracts.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/asked_priority.h"
#include "base/fd.h"
#include "base/missing_piece.h"
#include "base/resource.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "base/thread_id.h"
#include "base/thread_state.h"
#include "base/weight.h"
#include "bus/caller.h"

namespace swapd::bus {

// CPU time of swapd itself, in seconds.
struct CpuView {
  double engine_s = 0, worker_s = 0, receivers_s = 0;
  double jobs_s = 0;     // the thread that samples the CPUs where threads compete
  double memory_s = 0;   // the threads that look after memory
  double control_s = 0;  // all other threads of the process
  double total_s = 0;    // the process: the sum of those
  double guard_s = 0;    // a process of its own, not in the sum
};

// The share of it that may be used, and that is.
struct BudgetView {
  double share = 0;      // of one CPU, by the policy
  double share_now = 0;  // less while there is nothing to help
  double used = 0;       // share of one CPU, in the last second or so
  double wait_ms = 0;    // of what swapd does, until it is paid for
  double patience_ms = 0;
};

// A parallel job, or what might be one (decide/coscheduling/job_finder.h).
struct JobView {
  std::uint64_t id = 0;  // the lowest pid of its processes
  std::string state;     // "alone", "useful", "crowded", "other-groups", "round-robin", "coscheduled"
  std::string comm;      // of that process
  struct Member {
    pid_t tid = 0;
    double share = 1, cpu = 0, waiting = 0;  // 0…1: due of its CPU; had of it; of that, in loops that wait
  };
  std::vector<Member> members;
  double waste = 0, due = 1;  // 0…1
  std::uint64_t slots = 0;
  std::uint64_t refused_busy = 0, refused_debt = 0;  // another job had the CPUs; it was called, and too little was owed
  double used_s = 0, entitled_s = 0;                 // CPU time since it runs in slots
};

// The groups where memory is short, and what has left it for that ([memory] of the policy).
struct MemoryView {
  struct Group {
    std::string group;  // of the memory controller; empty: the machine
    bool thrashes = false;
    double lost = 0;    // 0…: of the last second, that programs waited for pages to come back
    std::string stuck;  // why nothing is put away: "no-set-frees-enough"; empty: it is, or there is no need
  };
  struct Away {
    pid_t pid = 0;
    std::string comm, state, group;  // state: enters, leaves, away, returns
    double since_s = 0;
    std::int64_t swapped_out = 0;  // bytes
  };
  bool on = false;
  std::vector<Group> groups;
  std::vector<Away> away;
  std::uint64_t swapped_out_total = 0;  // bytes
};

struct StatusView {
  std::string version, observer, observer_reason;
  std::uint64_t managed_threads = 0, managed_processes = 0, listeners = 0;
  std::uint64_t donations_active = 0, donations_total = 0, notifications_total = 0, events_lost = 0;
  std::vector<std::string> rivals;
  std::vector<std::string> warnings;  // missing privileges and settings, with what still works
  std::vector<MissingPiece> missing;  // what the kernel does not give
  // Costs of watching.
  std::string watch_method;  // "perf" or "poll"
  std::uint64_t watched_threads = 0, watch_wakeups_total = 0, watch_polls_total = 0;
  std::uint64_t unheard_threads = 0;  // of the watched ones: more than swapd's budget pays for
  CpuView cpu;
  BudgetView budget;
  std::vector<JobView> jobs;
  MemoryView memory;
  std::uint64_t resources = 0, requesters = 0, providers = 0, log_drops = 0, over_quota = 0;
  bool paused = false;
  std::uint64_t delayed_calls = 0, delayed_calls_total = 0;  // held by the limits of their class: now, and so far
  std::uint64_t match_rules = 0, programs = 0, matched = 0, managed_by_policy = 0;
  pid_t pid = 0;
};

// The part of the status that costs nothing to ask for.
struct BriefView {
  std::string observer;
  bool paused = false;
  std::uint64_t managed_threads = 0, managed_processes = 0, donations_active = 0;
  bool memory_short = false;  // the machine, or a group, thrashes
  std::vector<pid_t> away;    // for want of memory
};

struct ProviderNode;
struct WaitNode {
  Resource resource;
  std::string call;  // "read", "semop" …
  std::vector<ProviderNode> providers;
};
struct ProviderNode {
  pid_t pid = 0, tid = 0;
  std::string comm;
  double confidence = 0;
  bool favoured = false;
  // "woke", "accessed", "sent-to", "kin", "relayed", "owner", "holder", "child", "guess"; "relay", "unenrolled"
  std::string evidence;
  std::optional<ThreadState> state;  // of a thread that is not managed only stopped or frozen; empty: not known
  std::vector<WaitNode> waiting_for;
};

struct ThreadView {
  pid_t pid = 0, tid = 0;
  std::string comm, class_name;
  ThreadState state = ThreadState::blocked;
  SchedAttr base, effective;
  std::optional<SchedAttr> by_weight{};  // counts as this where it waits, because of its CPU group's weight
  Weight group_weight = usual_weight;    // as far as the policy has swapd look at it
  double since_ms = 0;                   // in this state
  bool since_known = true;
  std::int64_t share_bytes = 0;  // delayed: waits for so many before it moves any; 0: for its turn
  std::int64_t debt_bytes = 0;   // delayed: has moved so many before, and pays for them
  std::string call;
  bool polls = false;                 // it sleeps for short again and again: it tries something in between
  std::vector<WaitNode> waiting_for;  // ps shows the resources, why the whole tree
  std::vector<pid_t> donated_by;      // tids of requesters
  bool has_donation = false;          // why: as a requester that donates, or as a boosted provider
  bool donation_effective = false;
  std::string donation_reason;   // "none" or a word of the contract
  std::string donation_limited;  // another such word: why the boost is a nice value, and not a real-time priority
  // The parallel job that it is one of, or may be.
  struct Job {
    std::uint64_t id = 0;
    std::string comm, state;  // as of a JobView
    double share = 1, cpu = 0, waiting = 0;
    bool coscheduled = false;         // it has its CPU in slots, together with its mates
    std::size_t threads = 0;          // of the job
    std::vector<pid_t> mates{};       // tids of the others, or of the first of them
    std::vector<double> mates_cpu{};  // 0…1: what each of these has had of a CPU lately
  };
  std::optional<Job> job{};
  // By what it awaits; where its class has levels.
  struct Level {
    int level = 0, base = 0;  // 0…15
    std::string awaited;      // "terminal-input" …: what it was raised for last; empty: it never was
    double since_ms = 0;      // then
  };
  std::optional<Level> level{};
  std::optional<MemoryView::Away> away{};  // why: its process, for want of memory
};

struct GraphView {
  struct Node {
    std::string id, type, label;  // type: thread, resource, job
  };
  struct Edge {
    std::string from, to, type;  // requests, provides; spins: `confidence` is the part of its CPU time
    double confidence = 0;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

// One value of the policy in force.
struct SettingView {
  std::string table, key, value;
  std::string where;  // "FILE:LINE"; of what is built in: "built-in"
};

// A class's limits, and what its members have moved.
struct ClassView {
  std::string name;
  bool device_mode = false;   // limits count what the disk moved
  bool inherits_own = false;  // children get a class of their own
  bool freezes = false;       // a process is frozen until it has paid for pages of mapped files
  bool shaped = false;        // its programs' I/O can be limited
  bool limited = false;
  bool of_policy = true;
  bool changed = false;  // since the policy was read
  struct Limit {
    std::string device;  // "disk", "network", or one that is named
    std::string key;     // as in the policy
    std::int64_t value = 0;
  };
  struct Automatic {  // [class.NAME.io.auto]
    std::string protects;
    std::optional<std::int64_t> rate;
    std::optional<int> wait_percent;
    std::int64_t least = 0;
    std::string state = "off";          // off recovering seeking holding probing
    std::optional<std::int64_t> limit;  // in force, bytes a second
    bool in_vain = false;               // it is at `least`, and the others still miss what they need
    std::int64_t moved = 0;             // by the protected ones, a second
    double waited = 0;                  // by the one of them that waits longest, 0…1
  };
  std::optional<Automatic> automatic;
  std::vector<Limit> limits;
  struct Device {
    std::string device;
    bool network = false;
    std::int64_t read_bytes = 0, written_bytes = 0, cached_bytes = 0;  // by calls
    std::int64_t mapped_bytes = 0;                                     // without one
    std::int64_t written_off_bytes = 0;                                // owed by threads that have ended
    std::vector<std::pair<std::int64_t, std::int64_t>> debts{};        // tid, bytes: owed by that thread alone
    std::uint64_t calls = 0, delayed_calls = 0;
    double delayed_s = 0;
    std::optional<std::int64_t> limit;   // the lowest of its limits in force, bytes a second
    std::optional<std::int64_t> tokens;  // of the emptiest of its buckets; below 0: owed
  };
  std::vector<Device> devices;
};

// A key of [class.NAME.io] (device empty), or of a limit below it.
struct LimitChange {
  std::string device;  // "", "disk", "network", a path, MAJOR:MINOR, a link
  std::string key, value;
};

// One line of `events`.
struct EventView {
  double time = 0;   // CLOCK_REALTIME seconds
  std::string type;  // accessed released blocked woken spawned execed exited inversion-found donation-begun
                     // donation-ended ineffective limit-reached enrolled released
  pid_t pid = 0, tid = 0;
  bool process = false;  // enrolled, released, exited: the process as a whole
  std::string comm;
  std::map<std::string, std::string> fields;  // resource, reason, by, policy …
  std::map<std::string, double> numbers;      // priority, nice, confidence …
};

// swapctl run, before the program: docs/design.md, Launch.
struct LaunchRequest {
  Fd pidfd;       // of the launcher
  Fd memory;      // memfd of sizeof(launch::Shared)
  pid_t pid = 0;  // as the socket's credentials say
  Caller caller;
  std::string class_name;
  std::string observe;  // auto, bpf, seccomp
  bool shaped = false;  // not from the bus: its class's programs have a filter for I/O calls
};
struct LaunchAnswer {
  bool install = false;  // false: already inside a managed tree, just execve
  std::vector<sock_filter> program;
};

// swapctl enroll: a process that runs already, or with its descendants.
struct EnrollRequest {
  pid_t pid = 0;
  Caller caller;
  bool tree = false;
  std::string class_name;
  bool allow_no_new_privs = false;  // where a filter must be installed, and the process lacks the privilege
  // Not from the bus. Descendants for which it is true are left out, and others that cannot be had are no failure; any
  // thread.
  std::function<bool(pid_t)> spare = {};
};

// Resources that threads wait for now, and their providers.
struct ResourceView {
  struct Provider {
    pid_t pid = 0, tid = 0;
    double confidence = 0;
  };
  Resource resource;
  std::vector<Provider> providers;
};
// All of one moment.
struct WorldView {
  std::vector<ThreadView> threads;  // as `ps` has them
  std::vector<ResourceView> resources;
};

enum class EventDetail : std::uint8_t {
  none,
  decisions,  // changes of the managed set, donations, limits that are reached
  all,        // and what each thread does
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;
  // All on the control thread. The error's context is the one line shown to the user; code EINVAL or ENOENT means
  // exit 2.
  [[nodiscard]] virtual StatusView status() = 0;
  [[nodiscard]] virtual BriefView brief() = 0;
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual std::vector<ThreadView> threads() = 0;
  [[nodiscard]] virtual Result<std::vector<ThreadView>> why(pid_t pid) = 0;
  [[nodiscard]] virtual GraphView graph() = 0;
  [[nodiscard]] virtual WorldView world() = 0;
  [[nodiscard]] virtual std::vector<SettingView> policy() = 0;
  [[nodiscard]] virtual Result<LaunchAnswer> launch(LaunchRequest request) = 0;
  // The process that this is a descriptor of.
  [[nodiscard]] virtual Result<pid_t> pid_of(int pidfd) const = 0;
  // done: at once or later, from the event loop; at most once.
  virtual void enroll(const EnrollRequest& request, std::function<void(const Status&)> done) = 0;
  [[nodiscard]] virtual Status release(pid_t pid, const Caller& caller) = 0;
  // One that was put away for want of memory is back, and stays for ten minutes.
  [[nodiscard]] virtual Status thaw(pid_t pid, const Caller& caller) = 0;
  // Ends, and begins again with the program that is there now; managed processes remain managed.
  [[nodiscard]] virtual Status restart(const Caller& caller) = 0;
  // swapd boosts no thread until it is resumed; all else goes on.
  [[nodiscard]] virtual Status pause(bool paused, const Caller& caller) = 0;
  // tid or pid; of a process: all its threads.
  [[nodiscard]] virtual Status set(pid_t pid, const AskedPriority& base, const Caller& caller) = 0;
  [[nodiscard]] virtual std::vector<ClassView> classes() = 0;
  [[nodiscard]] virtual Status create_class(const std::string& name, const std::vector<LimitChange>& changes,
                                            const Caller& caller) = 0;
  [[nodiscard]] virtual Status set_class(const std::string& name, const std::vector<LimitChange>& changes,
                                         const Caller& caller) = 0;
  [[nodiscard]] virtual Status remove_class(const std::string& name, const Caller& caller) = 0;
  // From now on `sink` gets at least these; with none, when it may be empty, collecting costs nothing.
  virtual void follow_events(EventDetail detail, std::function<void(const EventView&)> sink) = 0;
  // A recording for replay (docs/recording.md), until end_recording(): its lines go to `sink`, several at once. False
  // from the sink: there is no room, they are lost, and the recording says so. Asked with none: is there room? One at a
  // time: else an error.
  [[nodiscard]] virtual Status record(std::function<bool(std::string_view)> sink) = 0;
  virtual void end_recording() = 0;
  // A refusal is final now that was not when the backend gave it (Caller::may_ask()).
  virtual void refused(std::string_view action, pid_t pid, const Caller& caller, const Error& why) = 0;
};

}  // namespace swapd::bus
