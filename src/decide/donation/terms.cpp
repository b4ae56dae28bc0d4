#include "decide/donation/terms.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

namespace {
ClassId class_of(const Roster::Thread* thread) { return thread == nullptr ? ClassId{} : thread->class_id; }
}  // namespace

bool Terms::is_important(ThreadId thread) const {
  if (roster_.is_important(thread)) return true;
  const Roster::Thread* known = roster_.find(thread);
  if (known == nullptr) return false;
  return rank(rules_.importance(known->counts_as(), known->weight, known->class_id, roster_.lowest_weight())) >
         roster_.lowest_rank();
}

std::optional<SchedAttr> Terms::importance(const Donation& donation) const {
  const Roster::Thread* requester = roster_.find(donation.requester);
  if (requester == nullptr) return std::nullopt;
  Weight least = requester->weight;
  for (const ThreadId id : donation.path)
    if (const Roster::Thread* thread = roster_.find(id)) least = std::min(least, thread->weight);
  return rules_.importance(requester->counts_as(), requester->weight, requester->class_id, least);
}

// The demands from `first` on are those for the providers.
bool Terms::lifts_requester(const Donation& donation, const Plan& plan, std::size_t first) const {
  const auto own = importance(donation);
  if (!own || rank(donation.attr) <= rank(*own)) return false;
  return std::any_of(plan.demands.begin() + static_cast<std::ptrdiff_t>(first), plan.demands.end(),
                     [](const Demand& demand) {
                       const auto& run = std::get<RunAs>(demand);
                       return run.attr.realtime() && !run.withheld;
                     });
}

SchedAttr Terms::attr_for(const Donation& donation, ClassId requester_class, ClassId provider_class) const {
  if (!donation.attr.realtime() || rules_.of(provider_class).lending.realtime_allowed) return donation.attr;
  const auto own = importance(donation);
  if (!own) return donation.attr;  // and the donation ends
  return rules_.lend(*own, requester_class, provider_class);
}

// Takes back by steps what has not helped.
void Terms::step_down(RunAs& run, Time now) const {
  const Step step = progress_.step(run.cause.on_behalf_of, run.thread, now);
  run.withheld = step == Step::none;
  run.doubted = step == Step::less;
  if (!run.doubted) return;
  if (run.second_best)
    run.attr = *std::exchange(run.second_best, std::nullopt);
  else
    run.attr.nice /= 2;
}

// Quotas are for other users' sake: a user that is alone has none, and neither has root.
Payer Terms::payer_for(const Roster::Thread* requester) const {
  Payer payer{.requester_class = class_of(requester)};
  if (quota_ && roster_.users() > 1 && requester != nullptr) payer.user = requester->uid;
  return payer;
}

void Terms::demand(const Donation& donation, std::string_view decider, Time now, Plan& plan) const {
  if (donation.refusal != Refusal::none) return;
  Payer payer = payer_for(roster_.find(donation.requester));
  std::optional<SchedAttr> second_best;
  if (donation.attr.realtime())
    if (const auto own = importance(donation)) second_best = lent_by(*own, {.realtime_allowed = false});
  const std::size_t first = plan.demands.size();
  for (const ThreadId thread : donation.path) {
    payer.provider_class = class_of(roster_.find(thread));
    RunAs run{.thread = thread,
              .attr = attr_for(donation, payer.requester_class, payer.provider_class),
              .cause = {decider, donation.requester, donation.resource},
              .payer = payer,
              .second_best = second_best};
    step_down(run, now);
    plan.demands.emplace_back(run);
  }
  if (!lifts_requester(donation, plan, first)) return;
  payer.provider_class = payer.requester_class;
  SchedAttr above = donation.attr;  // when it wakes, it does not stand behind its provider
  ++above.rt_priority;
  plan.demands.emplace_back(RunAs{.thread = donation.requester,
                                  .attr = above,
                                  .cause = {decider, donation.requester, donation.resource},
                                  .payer = payer,
                                  .second_best = std::nullopt});
}

void Terms::demand(const Conversation& conversation, std::string_view decider, std::vector<RunAs>& demands) const {
  for (const auto& [thread, part] : conversation.answering()) demand(thread, part, true, decider, demands);
  for (const auto& [thread, part] : conversation.asking()) demand(thread, part, false, decider, demands);
  for (const auto& [thread, part] : conversation.supporting()) demand(thread, part, false, decider, demands);
}

void Terms::demand(const Conversation& conversation, ThreadId thread, std::string_view decider,
                   std::vector<RunAs>& demands) const {
  const auto of = [&](const Map<ThreadId, Conversation::Part>& parts, bool lends) {
    if (const auto found = parts.find(thread); found != parts.end())
      demand(thread, found->second, lends, decider, demands);
  };
  of(conversation.answering(), true);
  of(conversation.asking(), false);
  of(conversation.supporting(), false);
}

// Never real-time: that would take the CPU from all others for as long as the conversation lasts.
void Terms::demand(ThreadId thread, const Conversation::Part& part, bool lends, std::string_view decider,
                   std::vector<RunAs>& demands) const {
  if (!part.joined() || !is_important(part.requester)) return;
  const Roster::Thread* own = roster_.find(thread);
  const Roster::Thread* requester = roster_.find(part.requester);
  if (own == nullptr || requester == nullptr || own->base.policy != SchedPolicy::other) return;
  if (!rules_.permit(requester->uid, requester->class_id, own->uid, own->class_id)) return;
  RunAs run{.thread = thread,
            .attr = own->base,
            .cause = {decider, part.requester, part.through},
            .payer = {.requester_class = requester->class_id, .provider_class = own->class_id},
            .second_best = std::nullopt};
  const SchedAttr counts_as =
      rules_.importance(requester->counts_as(), requester->weight, requester->class_id, own->weight);
  const SchedAttr lent = rules_.lend_on_guess(counts_as, requester->class_id);
  if (lends && rank(lent) > rank(own->base)) {
    run.attr = lent;
    run.payer.user = payer_for(requester).user;
  } else {
    run.slice_only = run.quiet = true;  // which costs no other user anything
  }
  run.stands = true;
  run.attr.reset_on_fork = !run.slice_only;
  run.attr.runtime_ns = conversation_slice_ns;
  demands.push_back(run);
}

}  // namespace swapd::decide
