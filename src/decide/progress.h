// Does a boost help? A boost of the wrong thread keeps the right one from its CPU, so each must show that it brings its
// requester further: the provider blocks, or it ends the wait. Pure.
//
// Three things are told apart.
// - A provider that *spins* for another thread is the same machine again and again: registers and the top of its stack
//   come back whenever it is looked at. Its boost goes at once, by steps, and comes back when it computes or blocks.
// - A *guess* that went wrong before (another thread ended the wait, after this boost had used CPU time in vain) is in
//   doubt: until it has been right again its boosts may use a small share of the wait's time, so that the requester
//   waits at most so much longer than without.
// - A provider of which nothing is known yet has some time of its own first, rests once, and has a share of the wait
// after that, so that one that is wrong does not keep from its CPU for ever what the requester waits for, and one that
// is right loses little, once. A provider that has ended such a wait before computes as long as it must.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/recycled.h"
#include "base/resource.h"
#include "base/thread_id.h"
#include "base/time.h"

namespace swapd::decide {

// Is this thread getting anywhere? Fed with hashes of its state.
class SpinJudge {
 public:
  enum class Verdict : std::uint8_t { unknown, computes, spins };
  void add(std::uint64_t state, bool in_user);
  [[nodiscard]] Verdict verdict() const;
  void clear() { *this = {}; }

 private:
  // One that spins comes by few states: a load, a test, a jump, the dozen instructions of a call that yields, most
  // often the one after it. One that computes has met nearly all of its own never before.
  static constexpr std::size_t window = 16;
  static constexpr std::size_t enough = 8;
  static constexpr std::size_t max_of_a_spin = 3;         // different states, of eight samples
  static constexpr std::size_t min_of_a_computation = 6;  // more than so many
  // A call that takes long on the same buffer shows the same registers: what is seen in the thread's own code counts.
  // (A thread that yields all the time is there for a tenth of it.)
  static constexpr std::size_t max_in_calls = 100;  // for each of those
  std::array<std::uint64_t, window> states_{};
  std::size_t seen_ = 0;
  std::size_t in_calls_ = 0;
};

enum class Step : std::uint8_t {
  full,  // as decided
  less,  // in the ordinary class: it begins to look like a spin
  none,
};

struct ProgressRules {
  struct Allowance {
    Duration free{};   // CPU time that boosts may use in one wait without progress,
    Duration rest{};   // time after that in which they use none, so that another thread may end the wait,
    double share = 1;  // and the part that they may use of the time that follows
  };
  // The only one that can provide, as far as is known.
  Allowance alone{std::chrono::milliseconds(250), std::chrono::milliseconds(50), 0.92};
  // One of several.
  Allowance choice{std::chrono::milliseconds(60), std::chrono::milliseconds(180), 0.25};
  Allowance doubtful{Duration::zero(), Duration::zero(), 0.05};
  Duration grain = std::chrono::milliseconds(10);  // how late it is noticed that a share is used up
  Duration waste = std::chrono::milliseconds(4);   // less than that, used in vain, says nothing
  int right_again = 2;                             // the best that is remembered of a resource, a thread or a requester
  int wrong = -3;                                  // and the worst
  std::size_t max_remembered = 4096;
};

class Progress {
 public:
  explicit Progress(ProgressRules rules = {}) : rules_(rules) {}

  // The requester, which has waited since then, waits for `resource`, and donates for it. Again: only what
  // has changed.
  void lent(ThreadId requester, const Resource& resource, bool choice, Time since, Time now);
  // CPU time that a thread has used with a boost for this requester.
  void used(ThreadId requester, ThreadId thread, Duration cpu);
  // It has woken a thread that others wait for: what it has used was for something.
  void delivered(ThreadId thread);
  // So it was where it has blocked, and it does not spin.
  void blocked(ThreadId thread);
  // by: the thread that ended the wait, if it is known; an invalid one: a thread that is not boosted for it.
  void ended(ThreadId requester, std::optional<ThreadId> by);
  // Each time that samples say so.
  void judged(ThreadId thread, SpinJudge::Verdict verdict);
  void forget(ThreadId thread);

  [[nodiscard]] Step step(ThreadId requester, ThreadId thread, Time now) const;
  // It has been seen to spin, if not in this wait: worth an early look.
  [[nodiscard]] bool suspected(ThreadId thread) const { return suspects_.contains(thread); }

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    archive(self.waits_, self.resources_, self.threads_, self.requesters_, self.spinners_, self.suspects_);
  }

 private:
  struct Wait {
    Resource resource;
    bool choice = false;
    Time begun{};  // the wait, not the boost: another one is another wait
    Time since{};
    HashMap<ThreadId, Duration> used;  // without progress
    Duration spent{};                  // of all
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.resource, self.choice, self.begun, self.since, self.used, self.spent);
    }
  };
  [[nodiscard]] const ProgressRules::Allowance* allowance(ThreadId requester, const Wait& wait, ThreadId thread) const;
  template <typename Key>
  void remember(HashMap<Key, int>& scores, const Key& key, bool right) const;

  ProgressRules rules_;
  HashMap<ThreadId, Wait> waits_;     // by requester
  HashMap<Resource, int> resources_;  // how often a guess about it was right lately
  HashMap<ThreadId, int> threads_;
  HashMap<ThreadId, int> requesters_;
  HashMap<ThreadId, Step> spinners_;
  HashSet<ThreadId> suspects_;
};

}  // namespace swapd::decide
