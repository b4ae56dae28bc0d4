// A host of the deciders with fakes only: threads, events and time are the test's.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "decide/donation/donation_decider.h"
#include "engine/decision_loop.h"
#include "fakes/fake_groups.h"
#include "fakes/fake_observer.h"
#include "fakes/fake_scheduler.h"
#include "unit/model/world.h"

namespace swapd::daemon {

class FakeQuestions final : public Questions {
 public:
  void ask(ScanQuestion question) override { asked.push_back(std::move(question)); }
  [[nodiscard]] bool rested(Time /*now*/) const override { return true; }
  [[nodiscard]] bool rested_from_scans(Time /*now*/) const override { return true; }
  std::vector<ScanQuestion> asked;
};

class DecisionLoopWorld {
 protected:
  explicit DecisionLoopWorld(std::unique_ptr<decide::Decider> more = nullptr) {
    std::vector<std::unique_ptr<decide::Decider>> deciders;
    auto donation = std::make_unique<decide::DonationDecider>(decide::DonationConfig{});
    donation_ = donation.get();
    deciders.push_back(std::move(donation));
    if (more) deciders.push_back(std::move(more));
    host.emplace(DecisionLoop::Parts{.members = members,
                                     .model = model,
                                     .observer = observer,
                                     .actuator = actuator,
                                     .questions = questions,
                                     .procfs = procfs,
                                     .records = records,
                                     .loop = loop},
                 DecisionLoop::Config{.budgets = {.ceiling = {.share = 0.5, .window = test::milliseconds(100)}},
                                      .wrong_provider = ""},
                 std::move(deciders));
    enroll(test::p1, test::fifo(50));
    for (const ThreadId id : {test::p2, test::p3, test::p4}) enroll(id, test::nice(0));
  }
  void enroll(ThreadId id, const SchedAttr& attr) {
    scheduler.add(id.tid, attr);
    observer.cpu[id] = Duration::zero();
    members.add_process(id.tid, id.start_time, 1000, "default");
    members.add_thread({.id = id, .tgid = id.tid, .base = attr});
    host->take(Enrolled{now, id, id.tid, 1000, attr, 0});
  }
  void provides(ThreadId id, const Resource& what) { host->take(Accessed{now, id, what, Evidence::accessed}); }
  void blocks(ThreadId id, std::vector<Resource> awaited) { host->take(Blocked{now, id, 0, std::move(awaited)}); }
  void wakes(ThreadId id, ThreadId by, const Resource& through) { host->take(Woken{now, id, by, through, false}); }
  void run(Duration later = std::chrono::microseconds(1)) {
    now += later;
    host->run_clocks(now);
    host->run(now);
  }
  void tick(Duration later = test::milliseconds(10)) {
    now += later;
    host->run_clocks(now);
    host->tick(now);
    host->run(now);
  }
  SchedAttr attr(ThreadId id) { return scheduler.threads.at(id.tid).attr; }

  Time now{std::chrono::hours(1)};
  fakes::FakeScheduler scheduler;
  fakes::FakeGroups groups;
  fakes::FakeObserver observer;
  FakeQuestions questions;
  model::ManagedSet members;
  model::Model model{{}};
  sys::Procfs procfs;
  sys::EventLoop loop;
  RecordRing records{-1};
  actuate::Actuator actuator{scheduler,
                             groups,
                             {.boot_id = "test",
                              .start_time = [](pid_t) { return 1; },
                              .newborn = [](ThreadId) { return false; },
                              .rest = [](Duration) {}}};
  const decide::DonationDecider* donation_ = nullptr;
  std::optional<DecisionLoop> host;
};

}  // namespace swapd::daemon
