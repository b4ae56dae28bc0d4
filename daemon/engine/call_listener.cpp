#include "engine/call_listener.h"

#include <algorithm>
#include <utility>

namespace swapd::daemon {

namespace {
constexpr std::size_t max_named = 256;  // of more the one that was named first is forgotten
}  // namespace

void CallListener::use(std::shared_ptr<sys::MessageCalls> calls) {
  if (calls == calls_) return;
  ready_.reset();
  named_.clear();
  called_.clear();
  calls_ = std::move(calls);
  if (!calls_) return;
  auto ready = loop_.add(calls_->fd(), [](const sys::EventLoop::Ready&) {});  // take() reads
  if (ready) ready_ = std::move(ready).value();
}

// A thread that is not named now may be again, and what has come in between is to be known then.
void CallListener::set(std::span<const ThreadId> threads) {
  if (!calls_) return;
  for (Named& one : named_)
    if (std::ranges::find(threads, one.thread) == threads.end()) one.listens = false;
  for (const ThreadId thread : threads) {
    auto at = std::ranges::find(named_, thread, &Named::thread);
    if (at != named_.end() && at->listens) continue;
    const sys::MessageCalls::State state = calls_->listen(thread.tid);
    if (at == named_.end()) {
      if (named_.size() >= max_named) named_.erase(named_.begin());
      at = named_.insert(named_.end(), {.thread = thread, .messages = state.messages});
    }
    at->before = state.messages - std::exchange(at->messages, state.messages);
    at->listens = true;
    if (state.waits) called_.push_back({.time = {}, .thread = thread, .waits = true, .messages = at->before});
  }
}

void CallListener::take(Time now, const std::function<void(const decide::MessageCalled&)>& tell) {
  for (decide::MessageCalled& call : std::exchange(called_, {})) {
    call.time = now;
    tell(call);
  }
  if (!calls_) return;
  for (const sys::MessageCalls::Call& call : calls_->read()) {
    const auto at =
        std::ranges::find_if(named_, [&](const Named& one) { return one.thread.tid == call.tid && one.listens; });
    if (at == named_.end()) continue;  // it is not named any more
    at->listens = false;
    tell({.time = now, .thread = at->thread, .waits = false, .messages = at->before});
  }
}

}  // namespace swapd::daemon
