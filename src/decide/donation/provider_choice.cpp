#include "decide/donation/provider_choice.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {
namespace {

using model::Candidate;
using model::Model;
using model::RunState;
using model::ThreadView;

struct Requester {
  ThreadId id;
  int importance = 0;
  Time since{};
};

// Not std::hash, which is the library's affair: this value stands in recordings.
std::uint64_t mixed(ThreadId id) { return static_cast<std::uint64_t>(id.tid) * 0x9E3779B97F4A7C15ULL ^ id.start_time; }

// A value for the set of candidates, whatever their order and confidence.
std::uint64_t graph_of(std::span<const Candidate* const> candidates) {
  std::uint64_t graph = 0;
  for (const Candidate* candidate : candidates) {
    std::uint64_t one = mixed(candidate->direct) * 0x9E3779B97F4A7C15ULL;
    one = (one ^ (one >> 29) ^ mixed(candidate->leaf)) * 0xBF58476D1CE4E5B9ULL;
    graph += one ^ (one >> 32);
  }
  return graph;
}

}  // namespace

SchedAttr DonationRules::lend(const SchedAttr& base, ClassId requester, ClassId provider) const {
  LendingRules rules = of(requester).lending;
  rules.realtime_allowed = rules.realtime_allowed && of(provider).lending.realtime_allowed;
  return lent_by(base, rules);
}

SchedAttr DonationRules::lend_on_guess(const SchedAttr& base, ClassId requester) const {
  LendingRules rules = of(requester).lending;
  rules.realtime_allowed = rules.strict = false;
  return lent_by(base, rules);
}

SchedAttr DonationRules::importance(const SchedAttr& base, Weight weight, ClassId requester, Weight other) const {
  const Weight above = of(requester).weight_above;
  return above == 0 || weight <= above ? base : raised_by(base, weight, other);
}

ProviderChoice::ProviderChoice(DonationRules rules) : rules_(std::move(rules)) {}
void ProviderChoice::set_rules(DonationRules rules) { rules_ = std::move(rules); }
void ProviderChoice::forget(ThreadId requester) { favoured_.erase(requester); }

std::span<const ThreadId> ProviderChoice::favoured(ThreadId requester) const {
  const auto found = favoured_.find(requester);
  return found == favoured_.end() ? std::span<const ThreadId>{} : found->second.path;
}

void ProviderChoice::lapse(ThreadId requester) {
  if (const auto found = favoured_.find(requester); found != favoured_.end()) found->second.path.clear();
}

Vector<Donation> ProviderChoice::decide(const Model& model, std::span<const ThreadId> requesters) {
  Vector<Requester> ranked;
  ranked.reserve(requesters.size());
  for (const ThreadId id : requesters) {
    const std::optional<ThreadView> view = model.thread(id);
    if (view && view->state == RunState::blocked)
      ranked.push_back({id, rank(rules_.importance(view->counts_as, view->weight, view->class_id)), view->since});
    else
      forget(id);
  }
  std::sort(ranked.begin(), ranked.end(), [](const Requester& a, const Requester& b) {
    if (a.importance != b.importance) return a.importance > b.importance;
    if (a.since != b.since) return a.since < b.since;
    return a.id < b.id;
  });
  ranked.erase(
      std::unique(ranked.begin(), ranked.end(), [](const Requester& a, const Requester& b) { return a.id == b.id; }),
      ranked.end());

  chosen_among_.clear();
  Vector<Donation> donations;
  for (const Requester& requester : ranked) {
    if (std::optional<Donation> donation = donate(model, requester.id)) donations.push_back(std::move(*donation));
  }
  return donations;
}

std::optional<Donation> ProviderChoice::donate(const Model& model, ThreadId requester) {
  const Vector<Candidate> candidates = model.candidates(requester);
  if (candidates.empty()) {
    forget(requester);
    return std::nullopt;
  }
  const ThreadView waiting = *model.thread(requester);
  const auto permitted = [&](const Candidate& candidate) {
    return std::all_of(candidate.path.begin(), candidate.path.end(), [&](ThreadId id) {
      const std::optional<ThreadView> view = model.thread(id);
      return view && rules_.permit(waiting.uid, waiting.class_id, view->uid, view->class_id);
    });
  };
  Vector<const Candidate*> open;
  open.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    if (permitted(candidate)) open.push_back(&candidate);
  }
  const bool refused = open.empty();
  if (refused) {
    for (const Candidate& candidate : candidates) open.push_back(&candidate);
  }
  const Candidate& chosen = choose(requester, open);

  // The thread of the way whose group weighs least lacks most: the requester counts as much towards all of the way.
  Weight least = waiting.weight;
  for (const ThreadId id : chosen.path)
    if (const std::optional<ThreadView> view = model.thread(id)) least = std::min(least, view->weight);
  const SchedAttr counts_as = rules_.importance(waiting.counts_as, waiting.weight, waiting.class_id, least);
  Donation donation;
  donation.requester = requester;
  donation.attr = chosen.guessed ? rules_.lend_on_guess(counts_as, waiting.class_id)
                                 : rules_.lend(counts_as, waiting.class_id, waiting.class_id);
  donation.resource = chosen.resource;
  donation.path = chosen.path;
  donation.refusal = refused ? Refusal::policy : Refusal::none;
  donation.quantum = model.settings().of(waiting.class_id, chosen.resource.kind).quantum;
  const bool lifts = std::any_of(chosen.path.begin(), chosen.path.end(), [&](ThreadId id) {
    const std::optional<ThreadView> view = model.thread(id);
    if (!view) return false;
    const SchedAttr lent = chosen.guessed ? donation.attr : rules_.lend(counts_as, waiting.class_id, view->class_id);
    return rank(lent) > rank(view->base);
  });
  if (!lifts) return std::nullopt;
  donation.choice = model.has_choice(requester, chosen.path);
  if (!donation.choice) return donation;
  donation.one_leaf = std::ranges::all_of(candidates, [&](const Candidate& one) { return one.leaf == chosen.leaf; });
  for (const Candidate& candidate : candidates) chosen_among_.push_back(candidate.direct);
  return donation;
}

// The one that had it keeps it, so that it can use its quantum up; confidences that other waits move meanwhile do not
// take it away. The graph may: a thread that has just become a candidate ([SWAP04 fig. 1]: P3 once P4 has woken
// it) does not stand in line behind one of lower confidence.
const Candidate& ProviderChoice::choose(ThreadId requester, std::span<const Candidate* const> candidates) {
  const Candidate* chosen = candidates.front();
  const std::uint64_t graph = graph_of(candidates);
  const auto before = favoured_.find(requester);
  if (before != favoured_.end() && !before->second.path.empty()) {
    const Candidate* kept = nullptr;
    for (const Candidate* candidate : candidates) {
      if (candidate->direct != before->second.direct) continue;
      if (kept == nullptr || candidate->leaf == before->second.leaf) kept = candidate;
    }
    const bool better = kept != nullptr && chosen->confidence > kept->confidence * (1 + 1e-9);
    if (kept != nullptr && (graph == before->second.graph || !better)) chosen = kept;
  }
  favoured_[requester] = {chosen->direct, chosen->leaf, graph, chosen->path};
  return *chosen;
}

}  // namespace swapd::decide
