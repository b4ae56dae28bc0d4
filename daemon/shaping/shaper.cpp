#include "shaping/shaper.h"

#include <fcntl.h>

#include <algorithm>
#include <mutex>

#include "observe/io/io_target.h"
#include "shaping/mmap_throttler.h"
#include "shaping/io_admission.h"
#include "sys/bpf/bpf_pieces.h"
#include "sys/netlink/socket_route.h"

namespace swapd::daemon {

namespace {
constexpr Duration max_owed = std::chrono::seconds(2);  // at an automatic limit that has just been set

bool limits_networks(const decide::ClassLimits& limits) {
  return limits.networks.limits() || std::ranges::any_of(limits.devices, [](const auto& entry) {
           return entry.first.kind == decide::Device::Kind::network && entry.second.limits();
         });
}
}  // namespace

// A call that waits.
class Shaper::HeldCall final : public actuate::Delayed {
 public:
  HeldCall(Shaper& shaper, std::shared_ptr<ShapedCall> call, pid_t tid, bool favoured_wait, Time since)
      : shaper_(shaper), call_(std::move(call)), tid_(tid), favoured_wait_(favoured_wait), since_(since) {
    const std::lock_guard lock(shaper_.mutex_);
    call_->held = true;
    shaper_.held_[tid_] = {this, since_, favoured_wait_};
    shaper_.count_held();
    ++shaper_.delayed_total_;
  }
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;
  // Where there was no room to hold it, it is forgotten with this.
  ~HeldCall() override {
    const std::lock_guard lock(shaper_.mutex_);
    call_->held = false;
    const auto own = shaper_.held_.find(tid_);  // its next call may be held already
    if (own != shaper_.held_.end() && own->second.call == this) shaper_.held_.erase(own);
    shaper_.count_held();
  }
  [[nodiscard]] Time due(Time now) override {
    const std::lock_guard lock(shaper_.mutex_);
    if (favoured_wait_ || !shaper_.favoured_.contains(tid_)) return call_->due(shaper_.shaping_, now);
    shaper_.shaping_.postpone(call_->passage, now);
    return now;
  }
  void disturbed(std::uint64_t signals) override {
    const std::lock_guard lock(shaper_.mutex_);
    call_->signals = signals;
  }
  // With the lock.
  [[nodiscard]] decide::Tokens share() const { return call_->passage.rest() > 0 ? call_->asked : 0; }
  [[nodiscard]] decide::Tokens debt() const { return call_->debts ? call_->debts->rest() : 0; }
  void ended(bool made, Time now) override {
    const std::lock_guard lock(shaper_.mutex_);
    call_->waited = now - since_;
    call_->held = false;
    if (made || call_->settled || call_->withdrawn) return;
    call_->withdrawn = true;
    shaper_.shaping_.cancel(call_->passage, now);
  }

 private:
  Shaper& shaper_;
  std::shared_ptr<ShapedCall> call_;
  pid_t tid_;
  bool favoured_wait_;
  Time since_;
};

Shaper::Shaper(const sys::Procfs& procfs, const Clock& clock, std::span<DelayedCall> memory, Options options)
    : procfs_(procfs), clock_(clock), options_(std::move(options)), delays_(procfs, memory, options_.slice) {}

Shaper::~Shaper() = default;

// With the lock.
void Shaper::set_one(View view) {
  view.index = shaping_.set(view.name, view.limits, clock_.now());
  views_[view.index] = std::make_shared<const View>(view);
  ++generation_;
}

template <typename Counter>
void Shaper::take(Result<std::unique_ptr<Counter>> opened, std::shared_ptr<Counter>& counter, const char* lost,
                  const char* instead) {
  const std::lock_guard lock(mutex_);
  if (opened)
    counter = std::move(opened).value();
  else
    missing_.push_back({lost, sys::refusal_of(opened.error()), instead});
}

std::vector<MissingPiece> Shaper::missing() const {
  const std::lock_guard lock(mutex_);
  return missing_;
}

void Shaper::want_ends() {
  std::call_once(ends_wanted_, [&] {
    take(sys::LastIo::open(), ends_, "what a thread moved before its end (lastio)",
         "its last call is charged what it asked for");
  });
}

void Shaper::set_class(const std::string& name, const decide::ClassLimits& limits, bool inherits_own) {
  const bool networks = limits_networks(limits);
  if (networks && !std::exchange(traffic_tried_, true))
    take(sys::NetIo::open(), traffic_, "how much traffic threads move (netio)",
         "send and receive calls are charged what they ask for");
  if (limits.limits()) want_ends();
  {
    const std::lock_guard lock(mutex_);
    Said& said = said_[name];
    said.limits = limits;
    said.inherits_own = inherits_own;
    apply(name);
    if (limits.freezes && !pages_ && !options_.dry_run)
      pages_ = std::make_unique<MmapThrottler>(*this, options_.frozen, options_.state_dir);
  }
  delays_.look_again();
}

void Shaper::set_automatic(const std::string& name, std::optional<decide::Tokens> bytes) {
  if (bytes) want_ends();
  {
    const std::lock_guard lock(mutex_);
    const auto said = said_.find(name);
    if (said == said_.end() || said->second.automatic == bytes) return;
    said->second.automatic = bytes;
    apply(name);
    // What was owed at the rate before would be paid for minutes at a much lower one.
    for (const auto& [index, view] : views_)
      if (view->of == name) shaping_.cap_debt(index, max_owed, clock_.now());
  }
  delays_.look_again();
}

// With the lock. For the class, and those that are like it.
void Shaper::apply(const std::string& name) {
  const Said& said = said_.at(name);
  decide::ClassLimits limits = said.limits;
  if (said.automatic) {
    const auto lower = [&](decide::DeviceLimits& of) {
      if (of.both.bytes && *of.both.bytes <= *said.automatic) return;
      of.both.bytes = *said.automatic;
      of.both.burst.reset();  // queues shall drain; a large one would fill them
    };
    lower(limits.disks);
    for (auto& [device, of] : limits.devices)
      if (device.kind == decide::Device::Kind::disk) lower(of);
  }
  View view{.name = name,
            .of = name,
            .limits = limits,
            .limited = limits.limits(),
            .inherits_own = said.inherits_own,
            .traffic = limits_networks(limits) ? traffic_ : nullptr,
            .ends = limits.limits() ? ends_ : nullptr};
  set_one(view);
  view.like = shaping_.find(name);
  std::vector<std::string> alike;
  for (const auto& [index, other] : views_)
    if (other->like == view.like) alike.push_back(other->name);
  for (std::string& other : alike) {
    view.name = std::move(other);
    set_one(view);
  }
}

void Shaper::remove_class(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    said_.erase(name);
    ++generation_;
    const auto base = shaping_.find(name);
    if (!base) return;
    std::erase_if(views_, [&](const auto& entry) {
      const bool gone = entry.first == *base || entry.second->like == base;
      if (!gone) return false;
      shaping_.remove(entry.second->name);
      std::erase_if(members_, [&](const auto& member) { return member.second == entry.first; });
      return true;
    });
  }
  delays_.look_again();
}

// With those that single processes have for themselves.
std::vector<decide::Shaping::Account> Shaper::accounts(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto index = shaping_.find(name);
  if (!index) return {};
  auto all = shaping_.accounts(*index, clock_.now());
  for (const auto& [other, view] : views_) {
    if (view->like != index) continue;
    for (const decide::Shaping::Account& one : shaping_.accounts(other, clock_.now())) {
      const auto same = std::ranges::find(all, one.device, &decide::Shaping::Account::device);
      if (same == all.end())
        all.push_back(one);
      else
        same->add(one);
    }
  }
  return all;
}

void Shaper::join(pid_t tgid, const std::string& class_name) {
  const std::lock_guard lock(mutex_);
  ++generation_;
  released_.erase(tgid);
  const auto index = shaping_.find(class_name);
  if (const auto member = members_.find(tgid); member != members_.end() && index) {
    const auto own = views_.find(member->second);
    if (own != views_.end() && own->second->like == index) return;  // one of its own that is like it
  }
  drop_own(tgid);
  if (!index) return;
  members_[tgid] = *index;
  if (pages_ && views_.at(*index)->limits.freezes) pages_->look_now();  // an eventfd: nobody is waited for
}

// Its filter stays, and so does the gate that it comes to.
void Shaper::release(pid_t tgid, std::uint64_t start_time) {
  const std::lock_guard lock(mutex_);
  drop_own(tgid);
  if (released_.size() >= max_released) released_.clear();
  released_[tgid] = start_time;
}

void Shaper::born(pid_t tgid, pid_t parent) {
  const std::lock_guard lock(mutex_);
  ++generation_;
  const auto above = members_.find(parent);
  if (above == members_.end()) return;
  const auto view = views_.find(above->second);
  if (view == views_.end() || !view->second->inherits_own) {
    members_[tgid] = view == views_.end() ? above->second : view->second->like.value_or(above->second);
    return;
  }
  View own = *view->second;
  if (!own.like) own.like = own.index;
  own.name = own.of + "#" + std::to_string(tgid);
  set_one(own);
  members_[tgid] = *shaping_.find(own.name);
}

void Shaper::leave(pid_t tgid) {
  const std::lock_guard lock(mutex_);
  drop_own(tgid);
}

// With the lock. What a process had for itself ends with it; what it has moved stays the class's.
void Shaper::drop_own(pid_t tgid) {
  const auto member = members_.find(tgid);
  if (member == members_.end()) return;
  const auto view = views_.find(member->second);
  members_.erase(member);
  ++generation_;
  if (view == views_.end() || !view->second->like) return;
  shaping_.merge_into(view->second->name, *view->second->like, clock_.now());
  views_.erase(view);
}

void Shaper::favour(pid_t tid, bool favoured) {
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    if (favoured)
      favoured_.insert(tid);
    else
      favoured_.erase(tid);
    waits = favoured && held_.contains(tid);
    if (favoured && pages_ && frozen_.contains(tid)) pages_->look_now();
  }
  if (waits) delays_.look_again();
}

Shaper::ViewPtr Shaper::view(pid_t tgid) const {
  std::optional<std::uint64_t> released;  // start time
  {
    const std::lock_guard lock(mutex_);
    const auto member = members_.find(tgid);
    if (member != members_.end()) {
      const auto found = views_.find(member->second);
      return found == views_.end() ? unlimited_ : found->second;
    }
    if (const auto found = released_.find(tgid); found != released_.end()) released = found->second;
  }
  if (!released) return nullptr;
  const auto id = procfs_.thread_id(tgid);
  return id && id->start_time == *released ? unlimited_ : nullptr;
}

Shaper::ViewPtr Shaper::view_of_class(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto index = shaping_.find(name);
  const auto found = index ? views_.find(*index) : views_.end();
  return found == views_.end() ? nullptr : found->second;
}

std::unique_ptr<observe::Gate> Shaper::gate(int listener, std::uint32_t slot) {
  Fd own(::fcntl(listener, F_DUPFD_CLOEXEC, 3));
  if (!own) return nullptr;
  return std::make_unique<IoAdmission>(*this, std::move(own), slot);
}

void Shaper::ask_of_gates(std::function<bool(pid_t)> has_gate) {
  const std::lock_guard lock(mutex_);
  has_gate_ = std::move(has_gate);
}

std::optional<std::unordered_map<pid_t, Shaper::ViewPtr>> Shaper::paying_at_once(std::uint64_t& generation) const {
  const std::lock_guard lock(mutex_);
  if (generation == generation_) return std::nullopt;
  generation = generation_;
  std::unordered_map<pid_t, ViewPtr> out;
  if (std::ranges::none_of(views_, [](const auto& entry) { return entry.second->limits.freezes; })) return out;
  for (const auto& [tgid, index] : members_) {
    const auto found = views_.find(index);
    if (found != views_.end() && found->second->limited && found->second->limits.freezes) out[tgid] = found->second;
  }
  return out;
}

Shaper::Entries Shaper::entries(pid_t tid) const {
  const std::lock_guard lock(mutex_);
  return entries_of(tid);
}

Shaper::Entries Shaper::entries_of(pid_t tid) const {
  const auto found = entered_.find(tid);
  return found == entered_.end() ? Entries() : found->second;
}

void Shaper::leave() {
  std::unique_ptr<MmapThrottler> pages;
  {
    const std::lock_guard lock(mutex_);
    pages = std::move(pages_);
  }
  pages.reset();
  delays_.leave();
}

std::uint64_t Shaper::delayed_total() const {
  const std::lock_guard lock(mutex_);
  return delayed_total_;
}

std::unordered_map<pid_t, Shaper::Delay> Shaper::held_threads() const {
  const std::lock_guard lock(mutex_);
  std::unordered_map<pid_t, Delay> out;
  for (const auto& [tid, hold] : held_)
    out.try_emplace(tid, Delay{.since = hold.since, .share = hold.call->share(), .debt = hold.call->debt()});
  for (const auto& [tid, hold] : frozen_)
    out.try_emplace(tid, Delay{.since = hold.since, .share = 0, .debt = hold.debts ? hold.debts->rest() : 0});
  return out;
}

std::vector<Shaper::Debt> Shaper::debts(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<Debt> out;
  for (const auto& [index, view] : views_) {
    if (view->of != name) continue;
    const auto add = [&, of = index](pid_t tid, const decide::Debts& debts) {
      for (const auto& [device, bytes] : shaping_.owed(debts, of))
        if (bytes > 0) out.push_back({.tid = tid, .device = device, .bytes = bytes});
    };
    for (const auto& [tid, debts] : debts_) add(tid, *debts);
    for (const auto& [tgid, debts] : process_debts_) add(tgid, *debts);
  }
  return out;
}

bool Shaper::holds(pid_t tid) const {
  const std::lock_guard lock(mutex_);
  return held_.contains(tid) || frozen_.contains(tid);
}

bool Shaper::would_run(pid_t tid) const {
  if (held_now_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto goes_on = [&](const auto& held) {
    const auto found = held.find(tid);
    return found != held.end() && !found->second.favoured_wait;
  };
  return goes_on(held_) || goes_on(frozen_);
}

std::vector<std::pair<pid_t, Time>> Shaper::would_run() const {
  std::vector<std::pair<pid_t, Time>> out;
  if (held_now_.load(std::memory_order_relaxed) == 0) return out;
  const std::lock_guard lock(mutex_);
  for (const auto* held : {&held_, &frozen_})
    for (const auto& [tid, hold] : *held)
      if (!hold.favoured_wait) out.emplace_back(tid, hold.since);
  return out;
}

std::string Shaper::device_name(const decide::Device& device) const {
  if (device.number == 0) return device.kind == decide::Device::Kind::disk ? "disk:unknown" : "net:unknown";
  if (device.kind == decide::Device::Kind::disk) return disks_.name(observe::disk_of_number(device.number));
  return sys::link_name(device.number >> 32, static_cast<std::uint32_t>(device.number));
}

// ---- the gate's side of a delay ----

bool IoAdmission::hold(const sys::Notification& notification, const Thread& thread, bool favoured_wait, Time due,
                     Time now) {
  auto held = std::make_shared<Shaper::HeldCall>(shaper_, thread.call, notification.tid, favoured_wait, now);
  const bool by_turns = [&] {
    const std::lock_guard lock(shaper_.mutex_);
    return thread.call->passage.rest() > 0 || thread.debts->rest() > 0;
  }();
  return shaper_.delays_.hold({.listener = listener_,
                               .slot = slot_,
                               .id = notification.id,
                               .tid = notification.tid,
                               .by_turns = by_turns,
                               .repeated = thread.signals,
                               .patience = thread.patience},
                              due, std::move(held));
}

}  // namespace swapd::daemon
