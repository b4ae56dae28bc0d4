#include "engine/observation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "observe/bpf/bpf_observer.h"

namespace swapd::daemon {

Observation::Observation(const Kernel& kernel, observe::Resolver& resolver,
                         const observe::SeccompObserver::Settings& settings, std::unique_ptr<sys::BpfTracer> tracer,
                         observe::Observer::Hooks hooks)
    : resolver_(resolver) {
  // No waits are seen meanwhile, which `status` says for as long as that lasts.
  hooks.following = [this](const Status& status) {
    trouble_ = status ? "" : status.error().text() + "; nothing is lent until that works: it is tried again";
  };
  if (tracer) {
    events_.reserve(observe::BpfObserver::records_a_drain);
    observer_ = std::make_unique<observe::BpfObserver>(std::move(tracer), kernel.procfs, resolver, std::move(hooks));
    return;
  }
  auto observer = std::make_unique<observe::SeccompObserver>(kernel.procfs, resolver, settings, std::move(hooks));
  seccomp_ = observer.get();
  observer_ = std::move(observer);
}

std::vector<std::string> Observation::missing() const {
  return seccomp_ != nullptr ? seccomp_->missing() : std::vector<std::string>{};
}

void Observation::add(const std::shared_ptr<observe::Receiver>& receiver) {
  if (seccomp_ != nullptr)
    seccomp_->add(receiver);
  else
    receiver->keep_to_itself();
}

void Observation::remove(const observe::Receiver* receiver) {
  if (seccomp_ != nullptr) seccomp_->remove(receiver);
}

const std::vector<Event>& Observation::drain(Time now) {
  events_.clear();
  observer_->drain(now, events_);
  // Receivers, records and traces each come in order; a stable sort, which takes memory, merges them by time.
  const auto time = [](const Event& e) { return std::visit([](const auto& x) { return x.time; }, e); };
  if (!std::ranges::is_sorted(events_, {}, time)) std::ranges::stable_sort(events_, {}, time);
  return events_;
}

}  // namespace swapd::daemon
