#include "shaping/shaper.h"

#include <fcntl.h>

#include <mutex>

#include "observe/io/io_target.h"
#include "shaping/io_admission.h"
#include "shaping/mmap_throttler.h"
#include "sys/netlink/socket_route.h"

namespace swapd::daemon {

Shaper::Shaper(const sys::Procfs& procfs, const Clock& clock, std::span<DelayedCall> memory, Options options)
    : clock_(clock),
      options_(std::move(options)),
      ledger_({.slice = options_.slice, .dry_run = options_.dry_run}),
      parts_{.procfs = procfs, .clock = clock, .disks = disks_, .ledger = ledger_, .counters = counters_},
      delays_(procfs, memory, options_.slice) {}

Shaper::~Shaper() = default;

void Shaper::set_class(const std::string& name, const decide::ClassLimits& limits, bool inherits_own) {
  if (limits.limits_networks()) counters_.want_traffic();
  if (limits.limits()) counters_.want_ends();
  ledger_->classes().set(name, limits, inherits_own, clock_.now());
  if (limits.freezes && !options_.dry_run) {
    const std::lock_guard lock(mutex_);
    if (!pages_)
      pages_ = std::make_unique<MmapThrottler>(parts_, MmapThrottler::Options{.memory = options_.frozen,
                                                                              .state_dir = options_.state_dir,
                                                                              .cgroups = options_.cgroups,
                                                                              .has_gate = [this](pid_t tgid) {
                                                                                const auto ask = [&] {
                                                                                  const std::lock_guard guarded(mutex_);
                                                                                  return has_gate_;
                                                                                }();
                                                                                return ask && ask(tgid);
                                                                              }});
  }
  delays_.look_again();
}

void Shaper::set_automatic(const std::string& name, std::optional<decide::Tokens> bytes) {
  if (bytes) counters_.want_ends();
  if (ledger_->classes().set_automatic(name, bytes, clock_.now())) delays_.look_again();
}

void Shaper::remove_class(const std::string& name) {
  if (ledger_->classes().remove(name)) delays_.look_again();
}

// With those that single processes have for themselves.
std::vector<decide::Shaping::Account> Shaper::accounts(const std::string& name) const {
  return ledger_->classes().accounts(name, clock_.now());
}

void Shaper::join(pid_t tgid, const std::string& class_name) {
  const bool freezes = [&] {
    const auto ledger = ledger_.lock();
    ledger->classes().join(tgid, class_name, clock_.now());
    const auto view = ledger->classes().member(tgid).view;
    return view && view->limits.freezes;
  }();
  if (freezes) look_at_pages_now();
}

// Its filter stays, and its calls come to it.
void Shaper::release(pid_t tgid, std::uint64_t start_time) {
  ledger_->classes().release(tgid, start_time, clock_.now());
}

void Shaper::born(pid_t tgid, pid_t parent) { ledger_->classes().born(tgid, parent, clock_.now()); }

void Shaper::leave(pid_t tgid) { ledger_->classes().leave(tgid, clock_.now()); }

void Shaper::favour(pid_t tid, bool favoured) {
  const auto stands_still = ledger_->held().favour(tid, favoured);
  if (stands_still.frozen) look_at_pages_now();
  if (stands_still.held) delays_.look_again();
}

// An eventfd: it waits for no thread.
void Shaper::look_at_pages_now() const {
  const std::lock_guard lock(mutex_);
  if (pages_) pages_->look_now();
}

std::unique_ptr<observe::CallFilter> Shaper::admission(int listener, std::uint32_t slot) {
  Fd own(::fcntl(listener, F_DUPFD_CLOEXEC, 3));
  if (!own) return nullptr;
  return std::make_unique<IoAdmission>(parts_, delays_, std::move(own), slot);
}

void Shaper::ask_of_gates(std::function<bool(pid_t)> has_gate) {
  const std::lock_guard lock(mutex_);
  has_gate_ = std::move(has_gate);
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

std::uint64_t Shaper::delayed_total() const { return ledger_->held().total(); }

std::unordered_map<pid_t, Shaper::Delay> Shaper::held_threads() const { return ledger_->held().delays(); }

std::vector<Shaper::Debt> Shaper::debts(const std::string& name) const { return ledger_->debts(name); }

bool Shaper::holds(pid_t tid) const { return ledger_->held().holds(tid); }

bool Shaper::would_run(pid_t tid) const { return ledger_.held_now() != 0 && ledger_->held().would_run(tid); }

std::vector<std::pair<pid_t, Time>> Shaper::would_run() const {
  if (ledger_.held_now() == 0) return {};
  return ledger_->held().would_run();
}

std::string Shaper::device_name(const decide::Device& device) const {
  if (device.number == 0) return device.kind == decide::Device::Kind::disk ? "disk:unknown" : "net:unknown";
  if (device.kind == decide::Device::Kind::disk) return disks_.name(observe::disk_of_number(device.number));
  return sys::link_name(device.number >> 32, static_cast<std::uint32_t>(device.number));
}

}  // namespace swapd::daemon
