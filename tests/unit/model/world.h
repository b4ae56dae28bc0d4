// A model with a clock and names, so that tests read like the papers' examples.
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "decide/donation/provider_choice.h"
#include "model/model.h"

namespace swapd::test {

using std::chrono::milliseconds;

inline model::Settings all_kinds(const model::KindSettings& kind) {
  model::Settings settings;
  settings.kinds.fill(kind);
  return settings;
}
// K = 20, T = 100 ms: the figure of [SWAP04 §4].
inline model::Settings figure(model::Feedback feedback) {
  return all_kinds({.base_confidence = 20, .quantum = milliseconds(100), .feedback = feedback});
}

inline ThreadId thread(int number) { return {1000 + number, 1}; }
inline Resource resource(int number) { return {ResourceKind::socket, {static_cast<std::uint64_t>(number)}}; }

// As the papers call them.
inline const ThreadId p1 = thread(1), p2 = thread(2), p3 = thread(3), p4 = thread(4), p5 = thread(5), p6 = thread(6);
inline const Resource r1 = resource(1), r2 = resource(2), r3 = resource(3), r4 = resource(4);
inline SchedAttr nice(int value) { return {.policy = SchedPolicy::other, .nice = static_cast<std::int8_t>(value)}; }
inline SchedAttr fifo(int priority) {
  return {.policy = SchedPolicy::fifo, .rt_priority = static_cast<std::uint8_t>(priority)};
}

inline std::vector<ThreadId> threads_of(const model::Model& model) {
  std::vector<ThreadId> found;
  for (const model::ImageThread& thread : model.image().threads) found.push_back(thread.id);
  return found;
}

class World {
 public:
  explicit World(const model::Settings& settings = {}) : model(settings) {}

  Time tick() { return now += milliseconds(1); }
  void enroll(ThreadId id, SchedAttr base = {}, std::uint32_t uid = 1000, ClassId class_id = 0,
              Weight weight = usual_weight) {
    model.apply(Enrolled{tick(), id, id.tid, uid, base, class_id, weight});
  }
  void enroll(int first, int last) {
    for (int number = first; number <= last; ++number) enroll(thread(number));
  }
  void provides(ThreadId id, const Resource& what, Evidence evidence = Evidence::accessed) {
    model.apply(Accessed{tick(), id, what, evidence});
  }
  void blocks(ThreadId id, std::vector<Resource> awaited) {
    const auto before = model.thread(id);
    const Time since = before ? before->since : Time{};
    model.apply(Blocked{tick(), id, 0, std::move(awaited)});
    if (model.thread(id) && model.thread(id)->since != since) path.erase(id);  // another wait
  }
  void wakes(ThreadId id, ThreadId by, const Resource& through) {
    path.erase(id);
    model.apply(Woken{tick(), id, by, through, false});
  }
  void wakes_by_itself(ThreadId id) {
    path.erase(id);
    model.apply(Woken{tick(), id, {}, {}, true});
  }
  // The favoured provider loses its turn where there was a choice.
  void uses_quantum(ThreadId requester) {
    const Vector<ThreadId> way = path[requester];
    const bool choice = model.has_choice(requester, way);
    model.apply(QuantumUsed{tick(), requester, way});
    if (choice) path.erase(requester);
  }
  [[nodiscard]] std::optional<ThreadId> favoured(ThreadId requester) const {
    const auto known = path.find(requester);
    return known == path.end() || known->second.empty() ? std::nullopt : std::optional(known->second.front());
  }
  void holders(const Resource& what, std::vector<ThreadId> threads, Evidence evidence = Evidence::holder) {
    model.apply(Holders{tick(), what, evidence, std::move(threads)});
  }
  void exits(ThreadId id) { model.apply(Exited{tick(), id}); }

  // Favours the best candidate, as the decider does; an invalid id where there is none.
  ThreadId favour(ThreadId requester) {
    const auto found = model.candidates(requester);
    if (found.empty()) return {};
    path[requester] = found.front().path;
    return found.front().leaf;
  }
  [[nodiscard]] int confidence(ThreadId provider, const Resource& what) const {
    for (const model::ProviderView& view : model.providers(what, {})) {
      if (view.thread == provider) return view.confidence;
    }
    return -1;
  }
  [[nodiscard]] std::vector<ThreadId> leaves(ThreadId requester) const {
    std::vector<ThreadId> found;
    for (const model::Candidate& candidate : model.candidates(requester)) found.push_back(candidate.leaf);
    return found;
  }
  [[nodiscard]] double value(ThreadId requester, ThreadId leaf) const {
    for (const model::Candidate& candidate : model.candidates(requester)) {
      if (candidate.leaf == leaf) return candidate.confidence;
    }
    return -1;
  }

  model::Model model;
  std::map<ThreadId, Vector<ThreadId>> path;  // that was favoured last, by requester
  Time now{};
};

// Chooses for a world, and favours in it what it has chosen.
struct Chooser {
  Vector<decide::Donation> decide(World& world, const std::vector<ThreadId>& requesters) {
    for (const ThreadId requester : requesters)
      if (!world.favoured(requester)) choice.lapse(requester);
    auto donations = choice.decide(world.model, requesters);
    for (const ThreadId requester : requesters) {
      const auto way = choice.favoured(requester);
      world.path[requester] = {way.begin(), way.end()};
    }
    return donations;
  }
  decide::ProviderChoice choice{{}};
};

}  // namespace swapd::test

namespace swapd {
inline void PrintTo(const ThreadId& id, std::ostream* out) {
  *out << "thread " << id.tid - 1000 << '@' << id.start_time;
}
}  // namespace swapd
