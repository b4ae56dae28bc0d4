// Donation ([SWAP04 §3]): a provider runs with the rank of the most important requester that waits for it, until the
// wait ends. Pure.
//
// A turn: threads that block are noted; the wait trees of what has changed are explored, as deep as they go, and what
// is not watched yet is (help comes before looks); unknown providers are asked for; then it is decided which provider
// each requester favours, what lingers, and what is timed. The parts are classes of their own: ProviderChoice whom,
// Terms how much, Linger and Conversation how long, Attention what is observed, Inquiry what is asked, Progress whether
// it helps.
#pragma once

#include <vector>

#include "decide/decider.h"
#include "decide/donation/alternatives.h"
#include "decide/donation/attention.h"
#include "decide/donation/conversation.h"
#include "decide/donation/inquiry.h"
#include "decide/donation/linger.h"
#include "decide/donation/provider_choice.h"
#include "decide/donation/roster.h"
#include "decide/donation/terms.h"
#include "decide/lasting_demands.h"
#include "decide/progress.h"

namespace swapd::decide {

struct DonationConfig {
  DonationRules rules;
  Duration rescan = std::chrono::milliseconds(250);      // holders of what is awaited, while the wait lasts
  Duration keep_watch = std::chrono::seconds(1);         // a provider is watched this long after its last wait tree
  Duration linger_wall = std::chrono::milliseconds(50);  // what lingers ends then whatever CPU time was used
  bool quota = false;                                    // boosts are charged to the requester's user
};

class DonationDecider final : public Decider {
 public:
  static constexpr std::string_view decider_name = "donation";
  explicit DonationDecider(DonationConfig config);

  [[nodiscard]] std::string_view name() const override { return decider_name; }
  [[nodiscard]] bool admits(const Event& event, const model::Model& model) const override;
  void before(const Event& event, const model::Model& model) override;
  void after(const Event& event, const model::Model& model) override;
  void on(const Input& input) override;
  void forget(ThreadId thread) override;
  void decide(const model::Model& model, const Turn& turn, Plan& plan) override;
  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;

  [[nodiscard]] const Vector<Donation>& donations() const { return current_; }
  [[nodiscard]] bool watches(ThreadId thread) const { return attention_.watches(thread); }

 private:
  struct NewWait {
    ThreadId requester;
    Time since{};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.requester, self.since);
    }
  };
  struct Quantum {
    ThreadId provider;
    Duration period{};
    std::uint64_t serial = 0;
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.provider, self.period, self.serial);
    }
  };

  // --- events
  void begin_wait(ThreadId requester, const model::Model& model);
  void end_wait(ThreadId requester, std::optional<ThreadId> by = {});
  void stop_waiting(ThreadId requester);
  void keep_while_it_moves(const Blocked& blocked, const model::Model& model);
  void learn_whom_to_expect(const Woken& woken, const model::Model& model);
  void note_conversation(const Conversed& conversed, const Resource& through);
  void touch(const Event& event, const model::Model& model);
  void timer_fired(const TimerFired& fired);
  // --- a turn
  void begin_turn(const model::Model& model, const Turn& turn, Plan& plan);
  void rank_threads(const model::Model& model, Time now);
  void rank_thread(ThreadId id, const model::Model& model, Time now);
  void look_after_waits(const model::Model& model, const Turn& turn, Plan& plan);
  [[nodiscard]] bool explore(const model::Model& model, Time now);
  void look_again(const model::Model& model, Plan& plan);
  void settle(const model::Model& model, const Turn& turn, Plan& plan);
  void attend_to_conversations(Time now);
  [[nodiscard]] bool takes_part(ThreadId thread) const;
  void keep_conversations_watched(Time now);
  void end_what_lingers_in_vain(const model::Model& model);
  void time_quanta();
  void trace_candidates();
  // --- the plan
  void demand(const model::Model& model, Time now, Plan& plan);
  void give_way(const model::Model& model, Plan& plan);
  void choose(const model::Model& model);
  [[nodiscard]] const Donation* current(ThreadId requester) const;
  [[nodiscard]] bool waits_for(const model::Model& model, ThreadId requester, const Resource& resource) const;
  [[nodiscard]] ClassId class_of(ThreadId thread) const;
  [[nodiscard]] bool whole_chains_are_open() const;
  [[nodiscard]] bool needs_calls(const model::Model& model, Time now);

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive);

  DonationConfig config_;
  Roster roster_;
  ProviderChoice choice_;
  Attention attention_;
  Inquiry inquiry_;
  Linger linger_;
  Conversation conversation_;
  LastingDemands for_conversations_;  // what their threads run as …
  std::vector<RunAs> found_;          // … as it is found; kept for its memory
  bool conversations_stale_ = false;  // … before the roster changed
  Progress progress_;
  Terms terms_;
  Alternatives alternatives_;

  Set<ThreadId> waiting_;  // important and blocked on something that a thread may provide
  // Those of them that donate, or for which something has changed since it was decided last: the others need no look.
  Set<ThreadId> active_;
  Vector<Donation> current_;
  Map<ThreadId, Quantum> quanta_;  // by requester
  std::uint64_t next_serial_ = 1;
  Vector<NewWait> sysv_waits_;  // that have begun lately

  // News since the last decision.
  struct News {
    Vector<ThreadId> enrolled, blocked;
    Vector<Event> feedback;
    Vector<ThreadId> give_way;      // requesters the first half of whose linger is over
    Vector<ThreadId> linger_ended;  // … the whole: the last of the present way may wait untold
    std::pair<int, Weight> ranked_lowest{0, usual_weight};
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive);
  } news_;
  // Within a turn.
  struct Pass {
    Set<ThreadId> seen;        // explored
    Vector<ThreadId> growing;  // … whose trees had threads that were not watched yet
    Vector<ThreadId> helped;   // requesters that donated before the turn
  } pass_;
  // Every wait has its turn: what it needs stays watched, and what it awaits is asked about again.
  struct Round {
    Vector<ThreadId> left;
    Time begun = never;
    Duration last{};  // how long the last one took
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.left, self.begun, self.last);
    }
  } round_;
};

}  // namespace swapd::decide
