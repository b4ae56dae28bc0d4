// Levels: who is waited for by a person is found from what its threads await, and goes before threads that compute
// [Peachey84 §4.1]. A thread above its base level (thread_level.h) has a better nice value, by 5 at most, and a short
// slice; all of them together have a bounded share of the CPUs (interactive_share.h). One that a terminal has raised
// counts as that where it waits (Ranked), so that it donates to what it waits for. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/class_id.h"
#include "base/recycled.h"
#include "decide/decider.h"
#include "decide/levels/displays.h"
#include "decide/levels/interactive_share.h"
#include "decide/levels/thread_level.h"

namespace swapd::decide {

struct ClassLevels {
  int nice = 0;          // what being interactive is worth at most, 0…5; 0: the class has no levels
  bool display = false;  // its threads are display servers: what comes to their clients is a person's
  bool operator==(const ClassLevels&) const = default;
};

struct LevelsConfig {
  ClassLevels common;
  std::vector<ClassLevels> classes{};  // of class 1, 2 …
  double share = 0.5;                  // of one CPU, for all threads above their base levels together
  [[nodiscard]] const ClassLevels& of(ClassId id) const {
    return id == 0 || id > classes.size() ? common : classes[id - 1];
  }
};

// The event that the thread awaits, as far as levels are concerned and display servers are not.
[[nodiscard]] Awaited awaited_by(const Blocked& blocked);

class LevelsDecider final : public Decider {
 public:
  static constexpr std::string_view decider_name = "levels";
  // Shorter waits are not told: a person is slower.
  static constexpr Duration patience = std::chrono::milliseconds(20);
  static constexpr std::uint64_t slice_ns = 500'000;

  explicit LevelsDecider(LevelsConfig config) : config_(std::move(config)), share_(config_.share) {}

  [[nodiscard]] std::string_view name() const override { return decider_name; }
  void after(const Event& event, const model::Model& model) override;
  void on(const Input& input) override;
  void forget(ThreadId thread) override;
  void decide(const model::Model& model, const Turn& turn, Plan& plan) override;
  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;

  // For people; null: it has no level.
  [[nodiscard]] const ThreadLevel* level(ThreadId thread) const;
  // All of them are at their base levels for a while, because they have used their share.
  [[nodiscard]] bool rests() const { return rests_; }

 private:
  struct Member {
    ThreadLevel level;
    SchedAttr base;
    ClassId class_id = 0;
    Resource awaited;  // what it was raised for
    Resource asked;    // a socket that it waits for, of which it is not known yet whether a display server is there
    std::uint64_t serial = 0;  // of its quantum
    bool ranked = false;       // it counts as more than its own attributes say
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.level, self.base, self.class_id, self.awaited, self.asked, self.serial, self.ranked);
    }
  };
  void enroll(const Enrolled& enrolled);
  void block(const Blocked& blocked);
  void take_answer(const Holders& holders);
  [[nodiscard]] Awaited awaited(ThreadId thread, Member& member, const Blocked& blocked);
  void raise(Member& member, Awaited awaited, const Resource& what, Time now);
  void drop(ThreadId thread);
  void demand(ThreadId thread, const Member& member, Plan& plan) const;
  [[nodiscard]] static SchedAttr better(const Member& member, int by);
  void rank(ThreadId thread, Member& member, Time now, Plan& plan) const;

  LevelsConfig config_;
  InteractiveShare share_;
  Map<ThreadId, Member> members_;
  Displays displays_;
  std::vector<Interest> interests_;  // that have changed
  std::vector<Question> questions_;  // not asked yet
  bool changed_ = false;             // what is demanded
  bool rests_ = false;
};

}  // namespace swapd::decide
