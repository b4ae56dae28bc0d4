// Policy text (TOML) → plain structs, validated. An unknown key is an error with file, line and the nearest valid key.
// Pure.
//
// docs/policy.md describes the format and the ranges; policies/ holds the shipped ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/resource.h"
#include "base/result.h"
#include "base/sched_attr.h"
#include "base/time.h"

namespace swapd::policy {

enum class Feedback : std::uint8_t { wait, paper };
enum class History : std::uint8_t { holders, calls };
enum class WatchMethod : std::uint8_t { automatic, perf, poll };

// [model]; what holds for one kind and one class says model_of().
struct ModelRules {
  std::uint16_t confidence = 20;                     // K
  Duration quantum = std::chrono::milliseconds(20);  // T (quantum_ms)
  std::uint16_t providers = 20;                      // L
  Feedback feedback = Feedback::wait;
  bool counts = true;  // false: waits for this kind are shown, never donated for
  bool operator==(const ModelRules&) const = default;
};

// Values that one [model.KIND] says itself, or a [class.NAME.model]; the rest follows [model], also when a later text
// changes that.
struct ModelOverrides {
  std::optional<std::uint16_t> confidence;
  std::optional<Duration> quantum;
  std::optional<std::uint16_t> providers;
  std::optional<Feedback> feedback;
  std::optional<bool> counts;
  bool operator==(const ModelOverrides&) const = default;
};

// [donation]
struct DonationPolicy {
  bool strict = false;
  bool realtime = true;
  std::uint8_t ceiling = 90;    // highest real-time priority of a boost
  double ceiling_share = 0.94;  // of a CPU in ceiling_window_ms, with a real-time boost
  Duration ceiling_window = std::chrono::milliseconds(100);
  bool cross_user = false;
  bool group_action = true;
  std::uint32_t weight_above = 0;  // cpu.weight of a group whose threads count as important; 0: weights do not count
  Duration linger = std::chrono::milliseconds(2);   // linger_ms
  Duration conversation = std::chrono::seconds(1);  // conversation_ms
  bool operator==(const DonationPolicy&) const = default;
};

// Values of these that a [class.NAME] says itself.
struct DonationOverrides {
  std::optional<bool> strict, realtime;
  std::optional<std::uint8_t> ceiling;
  std::optional<double> ceiling_share;
  std::optional<Duration> ceiling_window;
  std::optional<bool> cross_user, group_action;
  std::optional<std::uint32_t> weight_above;
  std::optional<Duration> linger, conversation;
  bool operator==(const DonationOverrides&) const = default;
};

// [observe]
struct ObservePolicy {
  History history = History::holders;
  WatchMethod watch = WatchMethod::automatic;
  Duration poll_period = std::chrono::milliseconds(1);  // poll_period_ms
  bool trap_kill = false;
  double budget = 0.05;                                   // CPU time of all of swapd's threads, as a share of one CPU
  Duration guard_stale = std::chrono::milliseconds(200);  // guard_stale_ms
  std::vector<std::string> never;                         // protected: names of programs that are not enrolled (comm)
  bool operator==(const ObservePolicy&) const = default;
};

// [quota]: what one user has at most, root excepted.
struct QuotaPolicy {
  std::uint32_t processes = 2000;  // managed
  std::uint32_t threads = 8000;
  std::uint32_t records = 100'000;  // of its threads' waits, and of what they provide
  std::uint32_t requests = 1000;    // a second, on the private socket and the message bus
  double lent_share = 0.9;          // of all CPUs in lent_window_ms, for its requesters' boosted providers; 1: no limit
  Duration lent_window = std::chrono::seconds(1);
  bool operator==(const QuotaPolicy&) const = default;
};

// Limits of one device for a class; nothing: no limit. Bytes and operations a second, burst in bytes.
struct IoLimits {
  std::optional<std::int64_t> both, read, write;
  std::optional<std::int64_t> operations, read_operations, write_operations;
  std::optional<std::int64_t> burst;
  [[nodiscard]] bool limits() const { return both || read || write || counts_operations(); }
  [[nodiscard]] bool counts_operations() const { return operations || read_operations || write_operations; }
  bool operator==(const IoLimits&) const = default;
};

enum class IoMode : std::uint8_t { logical, device };
enum class Inherit : std::uint8_t { join, own };         // "join", "new"
enum class Mapped : std::uint8_t { next_call, freeze };  // "next-call", "freeze"

// [class.NAME.io.auto]: the limit of its disks is what leaves another class what that needs
// (decide/shaping/auto_limit.h).
struct AutoRules {
  std::string protects;              // that class; empty: nothing is done
  std::optional<std::int64_t> rate;  // what its members need together, bytes a second; and, or
  std::optional<int> wait_percent;   // how much of its time each may wait for I/O; of both nothing said: 50
  std::int64_t least = 64 << 10;     // the limit is never lower, bytes a second
  [[nodiscard]] bool on() const { return !protects.empty(); }
  bool operator==(const AutoRules&) const = default;
};

// [class.NAME.io] [TAP08]
struct IoRules {
  bool shaped = false;  // programs may get limits while they run, also where none are said here
  IoMode mode = IoMode::logical;
  Inherit inherit = Inherit::join;    // children are in their parent's class, or in one of their own that is like it
  Mapped mapped = Mapped::next_call;  // how pages of mapped files are paid
  bool favoured_wait = false;
  bool io_uring = true;    // false: its programs get no ring (io_uring_setup(2): ENOSYS)
  IoLimits disk, network;  // each disk, each network link: [class.NAME.io.disk]
  std::map<std::string, IoLimits, std::less<>>
      devices;          // [class.NAME.io.device."/var"]: a path, MAJOR:MINOR, or a link
  AutoRules automatic;  // [class.NAME.io.auto]
  [[nodiscard]] bool limits() const;
  [[nodiscard]] bool counts_operations() const;  // of some disk
  bool operator==(const IoRules&) const = default;
};

// [shaping]
struct ShapingPolicy {
  Duration slice = std::chrono::milliseconds(100);  // slice_ms: a delayed call is looked at so often
  bool operator==(const ShapingPolicy&) const = default;
};

// [memory]: while memory thrashes, what matters least leaves it as a whole (decide/memory/memory_decider.h).
struct MemoryPolicy {
  bool on = false;
  Duration quantum = std::chrono::seconds(15);  // that a program is away before an equal takes its turn
  Duration stays = std::chrono::seconds(5);     // that one which has come back stays at least
  bool operator==(const MemoryPolicy&) const = default;
};

// coschedule = "auto", true or false: whether the class's programs are run as parallel jobs [DCS97].
enum class Coschedule : std::uint8_t { automatic, on, off };

// [class.NAME.levels]: threads that a person waits for go before those that compute (decide/levels/levels_decider.h).
struct LevelRules {
  bool on = false;
  int nice = 5;          // what it is worth at most
  bool display = false;  // they are display servers: what their clients await is a person's
  bool operator==(const LevelRules&) const = default;
};

// [class.NAME]
struct ClassRules {
  std::string description;
  Coschedule coschedule = Coschedule::automatic;
  std::optional<bool> open;  // false: only root and the policy's rules put programs into it; not said: as if true
  DonationOverrides donation;
  ModelOverrides model;                          // [class.NAME.model]
  std::map<ResourceKind, ModelOverrides> kinds;  // [class.NAME.model.KIND]
  IoRules io;                                    // [class.NAME.io]
  LevelRules levels;                             // [class.NAME.levels]
  bool operator==(const ClassRules&) const = default;
};

// In the order of ioprio_set(2), which begins at 1.
enum class IoClass : std::uint8_t { realtime, best_effort, idle };

// [match.NAME]: which programs swapd manages by itself, and how (policy/match.h).
struct MatchRule {
  // Patterns (policy/match.h); at least one of these is not empty.
  std::vector<std::string> exe, comm, cmdline, user, cgroup, unit, container, parent, descends;
  std::string class_name = "default";         // class
  std::optional<SchedAttr> base;              // nice, fifo, rr: as `swapctl run` has them
  std::optional<SchedPolicy> sched;           // other, batch, idle
  std::optional<Duration> slice;              // slice_ms
  std::optional<IoClass> io_class;            // ioprio_set(2)
  std::optional<std::uint8_t> io_priority;    // 0 (best) to 7; of best effort where no class is said
  std::optional<std::int16_t> oom_score_adj;  // proc_pid_oom_score_adj(5)
  bool keep_own = false;                      // of these, what a program has of its own already stays
  bool manage = true;                         // false: what fits is left alone
  bool operator==(const MatchRule&) const = default;
};
struct NamedRule {
  std::string name;
  MatchRule rule;
  bool operator==(const NamedRule&) const = default;
};

struct Policy {
  ModelRules model;
  std::map<ResourceKind, ModelOverrides> kinds;
  DonationPolicy donation;
  ObservePolicy observe;
  QuotaPolicy quota;
  ShapingPolicy shaping;
  MemoryPolicy memory;
  std::map<std::string, ClassRules, std::less<>> classes{{"default", {}}};  // "default" always exists
  std::vector<NamedRule> rules;  // in the order in which they were first named
  bool operator==(const Policy&) const = default;
};

// Effective settings of a class's members. Precedence, highest first: [class.N.model.KIND], [class.N.model],
// [model.KIND], [model]; for donation [class.N], then [donation]. A class that the policy does not have has the
// settings for all.
[[nodiscard]] DonationPolicy donation_of(const Policy& policy, std::string_view class_name);
[[nodiscard]] ModelRules model_of(const Policy& policy, std::string_view class_name, ResourceKind kind);

// A text or a key as TOML has it.
[[nodiscard]] std::string quoted(std::string_view text);
// The text of a [class.NAME.io], as TOML: read by parse(), it gives the same rules.
[[nodiscard]] std::string io_text(std::string_view class_name, const IoRules& rules);

// Parses and validates text. `file` is only for messages: "FILE:LINE: unknown key 'quantm_ms' in [model]; did you mean
// 'quantum_ms'?" `base` is what the text overrides. The error's context is that one line; its code is EINVAL.
[[nodiscard]] Result<Policy> parse(std::string_view text, std::string_view file, const Policy& base = {});

}  // namespace swapd::policy
