// On what terms a donation is carried out: the attributes that each provider on its path runs with, and who pays. Pure.
#pragma once

#include <optional>

#include "decide/decider.h"
#include "decide/donation/conversation.h"
#include "decide/donation/provider_choice.h"
#include "decide/donation/roster.h"
#include "decide/progress.h"

namespace swapd::decide {

// Refers to what it is made with.
class Terms {
 public:
  // The kernel's shortest (sched_setattr(2)): as long as a thread of a conversation seldom needs.
  static constexpr std::uint64_t conversation_slice_ns = 100'000;
  // quota: what a donation gives is charged to the requester's user.
  Terms(const DonationRules& rules, const Roster& roster, const Progress& progress, bool quota)
      : rules_(rules), roster_(roster), progress_(progress), quota_(quota) {}

  // Could the thread donate? By its own attributes, or by its group's weight towards the thread whose group weighs
  // least.
  [[nodiscard]] bool is_important(ThreadId thread) const;
  // The attributes that the donation's requester counts with towards its providers. Empty: it has gone.
  [[nodiscard]] std::optional<SchedAttr> importance(const Donation& donation) const;
  // One RunAs for each provider on the path; none if the donation is refused. Where a strict policy lends more than the
  // requester has itself, one for the requester too, by one higher: else its provider would keep it from its CPU.
  void demand(const Donation& donation, std::string_view decider, Time now, Plan& plan) const;
  // One RunAs for each thread of the conversations: who answers has the requester's nice value, and all have a short
  // slice, so that a thread that is owed CPU time has it when it wakes, not when a busy loop's slice ends.
  void demand(const Conversation& conversation, std::string_view decider, std::vector<RunAs>& demands) const;
  // Those of one of its threads.
  void demand(const Conversation& conversation, ThreadId thread, std::string_view decider,
              std::vector<RunAs>& demands) const;

 private:
  [[nodiscard]] SchedAttr attr_for(const Donation& donation, ClassId requester_class, ClassId provider_class) const;
  void step_down(RunAs& run, Time now) const;
  [[nodiscard]] Payer payer_for(const Roster::Thread* requester) const;
  void demand(ThreadId thread, const Conversation::Part& part, bool lends, std::string_view decider,
              std::vector<RunAs>& demands) const;
  [[nodiscard]] bool lifts_requester(const Donation& donation, const Plan& plan, std::size_t first) const;

  const DonationRules& rules_;
  const Roster& roster_;
  const Progress& progress_;
  bool quota_;
};

}  // namespace swapd::decide
