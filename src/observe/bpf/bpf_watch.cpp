// The bpf observer's managed set, and who of it is watched.
#include <algorithm>
#include <chrono>
#include <utility>

#include "observe/bpf/bpf_observer.h"

namespace swapd::observe {

namespace {

constexpr Duration follows_on = std::chrono::seconds(5);           // when nobody is watched any more
constexpr Duration refused_rest = std::chrono::milliseconds(100);  // before it is tried again
constexpr std::int32_t no_call = -2;                               // in which no thread waits

}  // namespace

Status BpfObserver::manage(const Member& member) {
  if (const auto known = managed_.find(member.id.tid); known != managed_.end() && known->second == member.id)
    return Done{};
  if (const auto relay = relays_.thread(member.id.tid)) stop_observing(*relay);
  if (Status taken = tracer_->manage(member.id.tid); !taken) return taken;
  managed_[member.id.tid] = member.id;
  return Done{};
}

void BpfObserver::release(ThreadId thread) {
  const auto found = managed_.find(thread.tid);
  if (found == managed_.end() || found->second != thread) return;  // its tid is another thread's by now
  managed_.erase(found);
  // Whoever waits for it in silence is looked at again.
  if (const auto slot = tracer_->slot(thread.tid); slot && slot->awaited_by != 0)
    if (const auto waiter = watched_.find(slot->awaited_by); waiter != watched_.end()) request_rescan(*waiter->second);
  ignore_gone(tracer_->unmanage(thread.tid));
}

void BpfObserver::forget(ThreadId thread) {
  senders_.forget(thread);
  services_.forget(thread);
  unwatch(thread);
  if (!tracer_->tells_lives()) return release(thread);
  if (const auto found = managed_.find(thread.tid); found != managed_.end() && found->second == thread)
    managed_.erase(found);  // the kernel has let it go when it ended
}

// Every switch and wake of the machine costs something as long as they are followed: so only while somebody is watched,
// and a while longer. What began before is as if nobody had been managed then, and procfs tells of it.
// Until that is granted no wait is told: of its end nothing would be heard.
void BpfObserver::follow() {
  follows_until_.reset();
  if (tracer_->follows()) return;
  const Status following = tracer_->follow(true);
  if (!following) {
    if (!std::exchange(not_followed_, true) && hooks_.following) hooks_.following(following);
    return;
  }
  if (std::exchange(not_followed_, false) && hooks_.following) hooks_.following(Done{});
  for (const auto& [tid, w] : watched_) {
    w->unsure = true;
    request_rescan(*w);
  }
}

void BpfObserver::follow_while_needed(Time now) {
  if (!watched_.empty()) {
    if (!tracer_->follows() && now >= follow_again_) {
      follow_again_ = now + refused_rest;
      follow();
    }
    follows_until_.reset();
    return;
  }
  if (std::exchange(not_followed_, false) && hooks_.following) hooks_.following(Done{});  // nobody needs it any more
  if (tracer_->follows()) {
    if (!follows_until_) follows_until_ = now + follows_on;
    if (now < *follows_until_) return;
    follows_until_.reset();
    (void)tracer_->follow(false);
  }
}

void BpfObserver::watch(const Member& member, bool sender) {
  if (!not_followed_) follow();  // else follow_while_needed() asks again, in time
  auto& slot = watched_[member.id.tid];
  if (slot && slot->wait.member.id == member.id) {
    slot->sender = slot->sender || sender;
    return;
  }
  if (slot) std::erase(fresh_, slot.get());
  slot = std::make_unique<Watched>();
  slot->wait.member = member;
  if (const auto known = hooks_.identify(member.id.tid); known && known->id == member.id) slot->wait.member = *known;
  slot->sender = sender;
  ignore_gone(tracer_->expect(member.id.tid, 0, -1, 0));   // also no child that it has had for long
  ignore_gone(tracer_->watch(member.id.tid, true, true));  // gone: its exit is on the way
  fresh_.push_back(slot.get());
}

void BpfObserver::unwatch(ThreadId thread) {
  const auto found = watched_.find(thread.tid);
  if (found == watched_.end() || found->second->wait.member.id != thread) return;
  patient_.remove(thread.tid);
  ignore_gone(tracer_->watch(thread.tid, false, false));
  ignore_gone(tracer_->expect(thread.tid, 0, -1, 0));
  std::erase(fresh_, found->second.get());
  watched_.erase(found);
}

BpfObserver::Watched* BpfObserver::find(ThreadId thread) {
  const auto found = watched_.find(thread.tid);
  return found != watched_.end() && found->second->wait.member.id == thread ? found->second.get() : nullptr;
}

void BpfObserver::set_urgent(ThreadId thread, bool urgent) {
  if (find(thread) != nullptr) ignore_gone(tracer_->watch(thread.tid, true, urgent));
}

void BpfObserver::expect(ThreadId thread, ThreadId provider) {
  Watched* w = find(thread);
  if (w == nullptr) return;
  // Whatever the next wait is in, a patient thread expects it (tracer.bpf.c, is_usual).
  const std::int32_t call = w->ended.distinct ? w->ended.call : no_call;
  ignore_gone(tracer_->expect(thread.tid, provider.tid, call, w->ended.arg));
  // A wait that has begun in silence for somebody else is looked at.
  if (const auto slot = tracer_->slot(thread.tid); slot && slot->silent) request_rescan(*w);
}

void BpfObserver::request_rescan(Watched& w) {
  if (!std::exchange(w.fresh, true)) fresh_.push_back(&w);
}

}  // namespace swapd::observe
