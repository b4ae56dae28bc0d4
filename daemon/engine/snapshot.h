// A snapshot of the engine: plain values, made on request, never changed afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actuate/actuator.h"
#include "base/event.h"
#include "decide/coscheduling/coscheduling_decider.h"
#include "decide/donation/provider_choice.h"
#include "decide/levels/thread_level.h"
#include "decide/memory/memory_decider.h"
#include "memory/away_processes.h"
#include "model/model.h"
#include "observe/observer.h"
#include "shaping/shaper.h"

namespace swapd::daemon {

struct SnapshotThread {
  ThreadId id;
  pid_t tgid = 0;
  SchedAttr base;
  model::RunState state = model::RunState::unknown;
  bool watched = false;  // state is known from the observer
  Time since{};
  std::int32_t call = -1;
  std::vector<Resource> awaited;
  std::string class_name;
  Weight weight = usual_weight;              // of its CPU group; where the policy asks for it
  SchedAttr importance;                      // what it counts as, by that or of its own
  std::optional<decide::ThreadLevel> level;  // none: its class has none
};

struct Snapshot {
  Time time;
  std::unordered_map<ThreadId, SnapshotThread> threads;
  std::unordered_map<Resource, Vector<model::ProviderView>> providers;
  std::unordered_map<Resource, std::vector<ThreadId>> unenrolled;
  std::unordered_set<ThreadId> relays;  // of the unenrolled: they were seen to pass messages on
  Vector<decide::Donation> donations;   // in force
  Vector<actuate::Actuator::Active> boosts;
  std::unordered_map<pid_t, Shaper::Delay> delayed;  // by the limits of their class
  std::vector<decide::CoschedulingDecider::JobView> jobs;
};

// The memory decider's view, and how far the processes are that it put away.
struct MemoryState {
  bool on = false;
  std::vector<decide::MemoryDecider::GroupView> groups;
  std::vector<decide::MemoryDecider::AwayView> away;
  std::vector<AwayProcesses::View> processes;
  std::uint64_t swapped_out = 0;  // bytes
};

// CPU time of swapd's own threads; control: all that are none of the others.
struct CpuTimes {
  Duration engine{}, worker{}, receivers{}, jobs{}, memory{}, control{}, total{};
};

// The same as shares of one CPU.
struct BudgetUse {
  double share = 0;      // the policy's budget
  double share_now = 0;  // in force: less while there is nothing to help
  double used = 0;       // in the last second or so
  Duration wait{};       // of each turn, until it is paid for
  Duration patience{};
};

struct Counters {
  std::size_t managed_threads = 0, managed_processes = 0, listeners = 0;
  std::uint64_t donations_active = 0, donations_total = 0, notifications = 0, events_lost = 0, over_quota = 0;
  std::string trouble;  // what the observer cannot do at present
  bool paused = false;
  CpuTimes cpu;
  BudgetUse budget;
  observe::Costs costs;
  model::Model::Counts model;
  std::vector<decide::CoschedulingDecider::JobView> jobs;
  MemoryState memory;
};

// The notes that the engine makes; each includes those before it.
enum class Notes : std::uint8_t {
  none,
  decisions,  // changes of the managed set, donations, limits that are reached
  all,        // and what each thread does
};

// One thing that happened, on its way to the log and to `swapctl events`.
struct Note {
  enum class Type : std::uint8_t {
    accessed,
    released,
    blocked,
    woken,
    spawned,
    execed,
    exited,
    donation_begun,
    donation_ended,
    ineffective,
    inversion_found,
    limit_reached,
    enrolled,
    unenrolled,
  } type = Type::blocked;
  Time time;
  ThreadId thread;
  pid_t tgid = 0;
  bool process = false;                     // enrolled, unenrolled, exited: as a whole
  ThreadId other;                           // waker, requester, parent
  pid_t other_tgid = 0;                     // of a requester
  std::optional<std::uint64_t> journalled;  // it goes to the log, too; so many like it did not
  Resource resource;
  bool has_resource = false;
  SchedAttr attr;
  actuate::Ineffective reason = actuate::Ineffective::none;
  actuate::Ineffective limited = actuate::Ineffective::none;  // donation_begun: why `attr` is no real-time priority
  std::string_view limit{};                                   // that was reached: ceiling, quota, members
};

}  // namespace swapd::daemon
