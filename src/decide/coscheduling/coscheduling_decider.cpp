#include "decide/coscheduling/coscheduling_decider.h"

#include <algorithm>
#include <utility>

#include "decide/state.h"
#include "model/model.h"

namespace swapd::decide {

namespace {

constexpr std::uint8_t slot_priority = 1;  // real-time, below all that is donated

bool ordinary(const SchedAttr& attr) { return attr.policy == SchedPolicy::other; }

}  // namespace

void CoschedulingDecider::on(const Input& input) {
  if (const auto* seen = std::get_if<ThreadProfiled>(&input))
    window_.push_back(*seen);
  else if (const auto* time = std::get_if<RunTime>(&input))
    gangs_.settle(time->thread, time->cpu, time->runnable, time->time);
  else if (const auto* call = std::get_if<MessageCalled>(&input))
    take_call(*call);
}

void CoschedulingDecider::take_call(const MessageCalled& call) {
  finder_.called(call.thread, call.time);
  gangs_.call(call);
}

void CoschedulingDecider::forget(ThreadId thread) {
  finder_.forget(thread);
  std::erase_if(window_, [&](const ThreadProfiled& one) { return one.thread == thread; });
  changed_ = note_turns() || changed_;
  if (!gangs_.forget(thread)) return;  // the demands are what they were
  for (const auto& [id, job] : finder_.jobs())
    if (job.running && !gangs_.all().contains(id)) finder_.set_running(id, false);
  changed_ = true;
}

// True: they are others than before.
bool CoschedulingDecider::note_turns() {
  auto turns = finder_.short_turns();
  return std::exchange(short_turns_, turns) != turns;
}

bool CoschedulingDecider::takes(const model::Model& model, ThreadId thread) const {
  const auto view = model.thread(thread);
  return view && ordinary(view->base) && config_.of(view->class_id) != CoschedulingConfig::Mode::off;
}

// No thread of any job has been seen for long: what they are due is no longer known, and perhaps they have ended.
void CoschedulingDecider::end_if_unheard(Time now) {
  if ((gangs_.all().empty() && short_turns_.empty()) || now - heard_ <= config_.finder.forget_after) return;
  finder_.end_turns();
  short_turns_.clear();
  for (const auto& [id, job] : finder_.jobs()) {
    gangs_.remove(id);
    finder_.set_running(id, false);
  }
  changed_ = true;
}

void CoschedulingDecider::take_window(const model::Model& model, Time now) {
  if (window_.empty()) return end_if_unheard(now);
  heard_ = now;
  for (const ThreadProfiled& seen : window_) {
    if (!takes(model, seen.thread)) continue;
    const auto view = model.thread(seen.thread);
    finder_.add(seen, config_.of(view->class_id) == CoschedulingConfig::Mode::on);
  }
  window_.clear();
  finder_.end_window(config_.cpus, now);
  std::vector<JobFinder::JobId> ended;
  for (const auto& [id, gang] : gangs_.all())
    if (!finder_.jobs().contains(id)) ended.push_back(id);
  for (const auto& [id, job] : finder_.jobs()) {
    const bool runs = gangs_.all().contains(id);
    if (runs && job.against >= config_.finder.windows) ended.push_back(id);
    if (job.verdict != JobFinder::State::wanted || (!runs && job.for_ < config_.finder.windows)) continue;
    std::vector<Gangs::Thread> threads;
    for (const JobFinder::Member& member : job.members)
      threads.push_back({member.thread, member.share, member.cpu_number});
    gangs_.set(id, threads, now, job.room);
    gangs_.set_by_messages(id, job.polls);
    finder_.set_running(id, true);
    changed_ = true;
  }
  for (const JobFinder::JobId id : ended) {
    gangs_.remove(id);
    finder_.set_running(id, false);
    changed_ = true;
  }
  changed_ = note_turns() || changed_;
  // Those that no message has called lately, or once only, are to be told of the next one.
  changed_ = changed_ || std::ranges::any_of(finder_.jobs(), [](const auto& one) { return one.second.polls; });
}

void CoschedulingDecider::listen(Plan& plan) const {
  plan.called = gangs_.callable();
  for (const auto& [id, job] : finder_.jobs())
    if (job.polls && !gangs_.all().contains(id)) plan.called.push_back(job.members.front().thread);
}

void CoschedulingDecider::demand(const model::Model& model, Plan& plan) const {
  for (const auto& [id, gang] : gangs_.all()) {
    if (gang.rests && !gang.slot_until) continue;
    const auto job = finder_.jobs().find(id);
    const bool lowers_group = job != finder_.jobs().end() && job->second.lowers_group;
    for (const ThreadId thread : gang.threads) {
      const auto view = model.thread(thread);
      if (!view || !takes(model, thread)) continue;
      RunAs run{.thread = thread,
                .attr = {.nice = view->base.nice, .reset_on_fork = true},
                .cause = {.by = name(), .on_behalf_of = {}, .through = {}},
                .payer = {.user = 0, .requester_class = view->class_id, .provider_class = view->class_id},
                .second_best = std::nullopt};
      if (!gang.slot_until) {
        run.attr.policy = SchedPolicy::idle;
        run.lowers = true;
      } else if (config_.realtime) {
        run.attr.policy = SchedPolicy::fifo;
        run.attr.rt_priority = slot_priority;
        run.second_best = SchedAttr{.nice = -20, .reset_on_fork = true};
      } else {
        run.attr.nice = -20;
      }
      run.quiet = true;
      run.lowers_group = lowers_group;
      plan.demands.emplace_back(run);
    }
  }
}

// A turn takes up to three rounds: slots end and their threads lose their CPUs; how much they have used is measured,
// which is exact only then; and slots begin.
void CoschedulingDecider::decide(const model::Model& model, const Turn& turn, Plan& plan) {
  take_window(model, turn.now);
  if (gangs_.all().empty() && !changed_) {
    plan.keeps_demands = true;
    return;
  }
  if (!std::exchange(asked_, false)) {
    std::vector<ThreadId> measure;
    if (gangs_.end_slots(turn.now, measure)) {
      for (const ThreadId thread : measure) plan.looks.push_back({.thread = thread, .at = Look::At::run_time});
      plan.complete = false;
      asked_ = changed_ = true;
    }
  } else if (gangs_.begin_slots(turn.now) || !gangs_.callable().empty()) {
    changed_ = true;
  }
  if (std::exchange(changed_, false)) {
    demand(model, plan);
    listen(plan);
    plan.short_turns = short_turns_;
  } else {
    plan.keeps_demands = true;
  }
  plan.next = gangs_.next();
  plan.punctual = true;
}

std::vector<CoschedulingDecider::JobView> CoschedulingDecider::jobs() const {
  std::vector<JobView> out;
  for (const auto& [id, job] : finder_.jobs()) {
    JobView view{.id = id, .state = job.verdict, .members = job.members, .waste = job.waste, .due = job.due};
    if (const auto gang = gangs_.all().find(id); gang != gangs_.all().end()) {
      if (!gang->second.rests) view.gang = gang->second.threads;
      view.slots = gang->second.slots;
      view.refused = gang->second.refused;
      view.used = gang->second.ledger.used();
      view.entitled = gang->second.ledger.entitled();
    }
    out.push_back(std::move(view));
  }
  return out;
}

void CoschedulingDecider::save(StateWriter& out) const {
  out(finder_, gangs_, window_, heard_, asked_, changed_, short_turns_);
}
void CoschedulingDecider::restore(StateReader& in) {
  in(finder_, gangs_, window_, heard_, asked_, changed_, short_turns_);
  changed_ = true;
}

}  // namespace swapd::decide
