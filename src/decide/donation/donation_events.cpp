// The donation decider's events: what they make of its own state. What it wants comes of them in decide()
// (donation_decider.cpp).
#include <algorithm>
#include <utility>

#include "decide/donation/donation_decider.h"
#include "model/model.h"

namespace swapd::decide {

// A hint by the requester's own last message names a provider where none is known, and orders those that are. It does
// not add to a list that scans made.
bool DonationDecider::admits(const Event& event, const model::Model& model) const {
  const auto* access = std::get_if<Accessed>(&event);
  if (access == nullptr || access->evidence != Evidence::sent_to) return true;
  const auto known = model.providers(access->resource, std::nullopt);
  if (std::ranges::any_of(known, [&](const auto& p) { return p.thread == access->thread; })) return true;
  return std::ranges::all_of(known, [&](const auto& p) {
    const auto waiter = model.thread(p.thread);
    return waiter && waiter->state == model::RunState::blocked && waiting_.contains(p.thread);
  });
}

void DonationDecider::before(const Event& event, const model::Model& model) {
  if (const auto* woken = std::get_if<Woken>(&event)) {
    learn_whom_to_expect(*woken, model);
    if (woken->by && !woken->unrelated)
      note_conversation({woken->time, woken->thread, *woken->by, 1}, woken->through.value_or(Resource{}));
  }
  if (const auto* blocked = std::get_if<Blocked>(&event)) keep_while_it_moves(*blocked, model);
  if (const auto* exited = std::get_if<Exited>(&event)) {  // after it the model has forgotten what it provided
    touch(event, model);
    inquiry_.provider_left(model, exited->thread);
  }
}

void DonationDecider::after(const Event& event, const model::Model& model) {
  if (const auto* conversed = std::get_if<Conversed>(&event)) return note_conversation(*conversed, {});
  if (const auto* blocked = std::get_if<Blocked>(&event)) {
    news_.blocked.push_back(blocked->thread);
    if (terms_.is_important(blocked->thread) && !blocked->awaited.empty())
      begin_wait(blocked->thread, model);
    else if (waiting_.contains(blocked->thread) && blocked->awaited.empty())
      end_wait(blocked->thread);
  } else if (const auto* woken = std::get_if<Woken>(&event)) {
    if (waiting_.contains(woken->thread)) end_wait(woken->thread, woken->unrelated ? std::nullopt : woken->by);
  } else if (const auto* enrolled = std::get_if<Enrolled>(&event)) {
    roster_.add(*enrolled);
    conversations_stale_ = true;
    news_.enrolled.push_back(enrolled->thread);
  } else if (const auto* ranked = std::get_if<Ranked>(&event)) {
    roster_.rank(*ranked);
    conversations_stale_ = true;
    news_.enrolled.push_back(ranked->thread);
  } else if (const auto* exited = std::get_if<Exited>(&event)) {
    roster_.remove(exited->thread);
    conversations_stale_ = true;
    return;
  }
  touch(event, model);
}

// The resource of a wait has become another one, as when its connection was accepted.
void DonationDecider::keep_while_it_moves(const Blocked& blocked, const model::Model& model) {
  const auto view = model.thread(blocked.thread);
  const bool waits = view && view->state == model::RunState::blocked;
  if (waits && !std::ranges::equal(view->awaited, blocked.awaited)) choice_.lapse(blocked.thread);
  const Donation* before = current(blocked.thread);
  if (before == nullptr || before->refusal != Refusal::none) return;
  if (!waits || view->since != blocked.time) return;
  if (blocked.awaited.empty() || std::ranges::find(blocked.awaited, before->resource) != blocked.awaited.end()) return;
  linger_.moved(*before);
}

// If one thread alone can end a wait, and does, nothing is to be learnt from the next such wait, nor to be done as
// long as that thread has a CPU. If there is a choice, the same holds once its confidence cannot rise further.
void DonationDecider::learn_whom_to_expect(const Woken& woken, const model::Model& model) {
  if (!attention_.watches(woken.thread)) return;
  const ThreadId by = woken.by && !woken.unrelated ? *woken.by : ThreadId{};
  if (by == attention_.expected(woken.thread)) return;
  ThreadId expected;
  const auto view = by.valid() ? model.thread(woken.thread) : std::nullopt;
  if (view && view->state == model::RunState::blocked) {
    for (const Resource& resource : view->awaited) {
      const auto providers = model.providers(resource, woken.thread);
      const auto provider = std::ranges::find(providers, by, &model::ProviderView::thread);
      if (provider == providers.end()) continue;
      const auto& settings = model.settings().of(view->class_id, resource.kind);
      if (providers.size() == 1 || provider->confidence >= 2 * settings.base_confidence) expected = by;
    }
  }
  attention_.expect(woken.thread, expected);
}

// Real-time requesters are helped wait by wait alone: what they lend does not stay.
void DonationDecider::note_conversation(const Conversed& conversed, const Resource& through) {
  const Roster::Thread* woken = roster_.find(conversed.thread);
  const Roster::Thread* waker = roster_.find(conversed.by);
  if (woken == nullptr || waker == nullptr) return;
  if (progress_.suspected(conversed.by)) return;  // it spins for another thread, which would get no CPU
  const auto ended = [&](ThreadId requester, ThreadId provider) -> std::optional<Conversation::Ended> {
    const Roster::Thread* known = roster_.find(requester);
    if (known == nullptr || known->counts_as().realtime()) return std::nullopt;
    return Conversation::Ended{.time = conversed.time,
                               .requester = requester,
                               .provider = provider,
                               .rank = rank(known->counts_as()),
                               .through = through,
                               .waits = conversed.waits,
                               .lasts = config_.rules.of(known->class_id).conversation};
  };
  if (terms_.is_important(conversed.thread)) {
    if (const auto wait = ended(conversed.thread, conversed.by)) conversation_.wait_ended(*wait);
    return;
  }
  // It was helped, and rightly, if it stood on the way of the requester's donation; else the thread that answers may
  // have waited for any of its clients.
  const ThreadId requester = conversation_.answers_for(conversed.thread);
  const Donation* donation = current(requester);
  const auto on_the_way = [&](ThreadId thread) {
    return donation != nullptr && donation->refusal == Refusal::none &&
           std::ranges::find(donation->path, thread) != donation->path.end();
  };
  const auto of_requester = ended(requester, conversed.by);
  if (of_requester && on_the_way(conversed.thread) && on_the_way(conversed.by))
    return conversation_.helped(*of_requester);
  if (terms_.is_important(conversed.by) &&
      config_.rules.permit(waker->uid, waker->class_id, woken->uid, woken->class_id))
    if (const auto service = ended(conversed.by, conversed.thread)) conversation_.served(*service);
  if (of_requester && !conversation_.only_serves(conversed.thread)) conversation_.supported(*of_requester);
}

void DonationDecider::begin_wait(ThreadId requester, const model::Model& model) {
  waiting_.insert(requester);
  active_.insert(requester);
  const auto view = model.thread(requester);
  if (view && std::ranges::any_of(view->awaited, is_sysv, &Resource::kind))
    sysv_waits_.push_back({requester, view->since});
}

void DonationDecider::stop_waiting(ThreadId requester) {
  waiting_.erase(requester);
  active_.erase(requester);
  choice_.forget(requester);
  quanta_.erase(requester);
  linger_.end_moved(requester);
}

void DonationDecider::end_wait(ThreadId requester, std::optional<ThreadId> by) {
  stop_waiting(requester);
  linger_.wait_ended(requester, by);
}

// Whatever waits for what has changed must be decided anew.
void DonationDecider::touch(const Event& event, const model::Model& model) {
  if (active_.size() == waiting_.size()) return;  // all are to be decided already
  for (const ThreadId waiter : model.concerned_by(event))
    if (waiting_.contains(waiter)) active_.insert(waiter);
}

void DonationDecider::on(const Input& input) {
  if (const auto* fired = std::get_if<TimerFired>(&input)) {
    timer_fired(*fired);
  } else if (const auto* used = std::get_if<CpuUsed>(&input)) {
    progress_.used(used->on_behalf_of, used->thread, used->cpu);
  } else if (const auto* ended = std::get_if<WaitEnded>(&input)) {
    progress_.ended(ended->requester, ended->by);
  } else if (const auto* delivered = std::get_if<Delivered>(&input)) {
    if (delivered->by_blocking)
      progress_.blocked(delivered->thread);
    else
      progress_.delivered(delivered->thread);
  } else if (const auto* judged = std::get_if<Judged>(&input)) {
    progress_.judged(judged->thread, judged->verdict);
  } else if (const auto* forked = std::get_if<Forked>(&input)) {
    attention_.forked(forked->parent, forked->time);
  } else if (const auto* changed = std::get_if<PatienceChanged>(&input)) {
    attention_.set_patience(changed->patience);
  }
}

void DonationDecider::timer_fired(const TimerFired& fired) {
  if (fired.kind == Timer::Kind::linger) {
    bool first_half_over = false;
    const bool goes_on = linger_.expired(fired.requester, fired, first_half_over);
    if (first_half_over && waiting_.contains(fired.requester)) news_.give_way.push_back(fired.requester);
    if (!goes_on) news_.linger_ended.push_back(fired.requester);
    return;
  }
  const auto quantum = quanta_.find(fired.requester);
  if (quantum == quanta_.end() || quantum->second.serial != fired.serial) return;
  if (fired.gone) {
    quanta_.erase(quantum);
    return;
  }
  quantum->second.serial = next_serial_++;  // the next quantum begins
  const auto path = choice_.favoured(fired.requester);
  news_.feedback.push_back(QuantumUsed{fired.time, fired.requester, {path.begin(), path.end()}});
}

void DonationDecider::forget(ThreadId thread) {
  stop_waiting(thread);
  linger_.forget(thread);
  conversation_.forget(thread);
  conversations_stale_ = true;
  std::erase_if(current_, [&](const Donation& donation) { return donation.requester == thread; });
  std::erase_if(quanta_, [&](const auto& one) { return one.second.provider == thread; });
  attention_.forget(thread);
  progress_.forget(thread);
  roster_.remove(thread);
}

}  // namespace swapd::decide
