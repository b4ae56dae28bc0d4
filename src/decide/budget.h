// How much CPU time boosts may use: each requester's real-time boosts a share of one CPU (the ceiling), all boosts for
// one user's requesters a share of all (the quota), in windows. Past a limit the boosts rest until the window ends, so
// that ordinary tasks get their share in small pieces; without, the kernel takes it for them in one piece (50 ms of
// each second by the fair server, or before Linux 6.12 by throttling all real-time tasks; sched(7)). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/class_id.h"
#include "base/recycled.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "decide/decider.h"

namespace swapd::decide {

struct BudgetConfig {
  struct Ceiling {
    double share = 1.0;  // of one CPU; 1 is no limit
    Duration window = std::chrono::milliseconds(100);
  };
  Ceiling ceiling;
  std::vector<Ceiling> classes{};  // of the requester's class 1, 2 …
  Duration user_time{};            // CPU time in the user's window; 0 is no limit
  Duration user_window = std::chrono::seconds(1);

  [[nodiscard]] const Ceiling& of(ClassId id) const {
    return id == 0 || id > classes.size() ? ceiling : classes[id - 1];
  }
  [[nodiscard]] bool limits_requesters() const;
  [[nodiscard]] bool limits_users() const { return user_time > Duration::zero(); }
};

class CpuBudgets {
 public:
  explicit CpuBudgets(BudgetConfig config);
  [[nodiscard]] const BudgetConfig& config() const { return config_; }
  void set_config(BudgetConfig config);

  // CPU time that a real-time boost has used for this requester. What is left of the window's share, which may be less
  // than nothing; none: there is no limit.
  std::optional<Duration> use(ThreadId requester, ClassId requester_class, Duration cpu, Time now);
  // … that any boost has used for this user's requesters.
  void use(std::uint32_t user, Duration cpu, Time now);
  // Until when boosts rest; none: they need not.
  [[nodiscard]] std::optional<Time> rests_until(ThreadId requester, ClassId requester_class, Time now) const;
  [[nodiscard]] std::optional<Time> rests_until(std::uint32_t user, Time now) const;
  // Either of both. None: there is no limit, or it is a user's.
  std::optional<Duration> use(const BudgetUsed& used);
  void forget(ThreadId requester);
  // False: rests_until() is none for all.
  [[nodiscard]] bool may_rest(Time now) const { return now < rest_until_; }
  // Call when the uses have been restored.
  void restored();

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.requesters_, self.users_);
  }

 private:
  struct Limit {
    Duration max{};  // 0: none
    Duration window{};
  };
  struct Use {
    Time since = never;
    Duration cpu{};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.since, self.cpu);
    }
  };
  [[nodiscard]] Limit limit_of(ClassId requester_class) const;
  [[nodiscard]] Limit user_limit() const { return {config_.user_time, config_.user_window}; }
  void add(Use& use, const Limit& limit, Duration cpu, Time now);
  [[nodiscard]] static std::optional<Time> rests(const Use& use, const Limit& limit, Time now);

  static constexpr std::size_t max_uses = 4096;
  BudgetConfig config_;
  Duration longest_window_{};
  Time rest_until_ = Time::min();  // no window in which a limit is reached ends later
  HashMap<ThreadId, Use> requesters_;
  HashMap<std::uint32_t, Use> users_;
};

}  // namespace swapd::decide
