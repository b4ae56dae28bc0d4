// An observer without a kernel: remembers what it was told to observe, and tells what a test puts into it.
#pragma once

#include <vector>

#include "base/recycled.h"
#include "observe/observer.h"

namespace swapd::fakes {

class FakeObserver final : public observe::Observer {
 public:
  struct Watched {
    bool requester = false;
    bool urgent = true;
    bool traced = false;
    ThreadId expected;
    Duration patience{};
  };
  [[nodiscard]] Status listen(sys::EventLoop& /*loop*/) override { return Done{}; }
  [[nodiscard]] std::optional<Time> deadline() const override { return std::nullopt; }
  void drain(Time /*now*/, std::vector<Event>& /*out*/) override {}
  void report_new(Time /*now*/, std::vector<Event>& out) override {
    ++reports;
    out.insert(out.end(), new_ones.begin(), new_ones.end());
    new_ones.clear();
  }
  void watch(const observe::Member& member, bool sender) override { watched[member.id].requester = sender; }
  void unwatch(ThreadId thread) override { watched.erase(thread); }
  void set_urgent(ThreadId thread, bool urgent) override { watched[thread].urgent = urgent; }
  void expect(ThreadId thread, ThreadId provider) override { watched[thread].expected = provider; }
  void be_patient(ThreadId thread, Duration patience) override { watched[thread].patience = patience; }
  [[nodiscard]] bool waits_unreported(ThreadId thread) override { return unreported.contains(thread); }
  [[nodiscard]] bool counts_cpu() const override { return counts; }
  [[nodiscard]] std::optional<Duration> cpu_time(ThreadId thread, Time /*now*/) const override {
    const auto known = cpu.find(thread);
    return known == cpu.end() ? std::nullopt : std::optional(known->second);
  }
  void time_exactly(ThreadId thread, bool on) override {
    if (on)
      exact.insert(thread);
    else
      exact.erase(thread);
  }
  void look_if_unreported(ThreadId thread, Time /*since*/, std::vector<Event>& out) override { tell(thread, out); }
  void look(ThreadId thread, Time /*now*/, std::vector<Event>& out) override { tell(thread, out); }
  void resolve_again(ThreadId thread) override { resolved.push_back(thread); }
  void trace_wakes(ThreadId thread) override { watched[thread].traced = true; }
  void untrace_wakes(ThreadId thread) override { watched[thread].traced = false; }
  void answer(const observe::WaitAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void answer(const observe::AccessAnswer& /*answer*/, std::vector<Event>& /*out*/) override {}
  void forget(ThreadId thread) override { watched.erase(thread); }
  [[nodiscard]] observe::Costs costs() const override { return {}; }

  bool counts = true;
  Map<ThreadId, Watched> watched;
  Map<ThreadId, Duration> cpu;
  Map<ThreadId, std::vector<Event>> seen;  // what a look at the thread tells, once
  std::vector<Event> new_ones;             // what the next report_new() tells
  std::vector<ThreadId> resolved;
  Set<ThreadId> exact, unreported;
  int reports = 0;

 private:
  void tell(ThreadId thread, std::vector<Event>& out) {
    const auto known = seen.find(thread);
    if (known == seen.end()) return;
    out.insert(out.end(), known->second.begin(), known->second.end());
    seen.erase(known);
  }
};

}  // namespace swapd::fakes
