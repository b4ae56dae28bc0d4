// An actuator over threads and groups that exist only in the test, with a journal in a directory of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "actuate/actuator.h"
#include "fakes/fake_groups.h"
#include "fakes/fake_scheduler.h"

namespace swapd::actuate {

inline SchedAttr nice_of(int nice) {
  SchedAttr attr;
  attr.nice = static_cast<std::int8_t>(nice);
  return attr;
}
inline SchedAttr fifo(int priority) {
  SchedAttr attr;
  attr.policy = SchedPolicy::fifo;
  attr.rt_priority = static_cast<std::uint8_t>(priority);
  return attr;
}
inline SchedAttr lent(SchedAttr attr) {
  attr.reset_on_fork = true;
  return attr;
}

using What = Outcome::What;

class ActuatorTest : public testing::Test {
 protected:
  ActuatorTest() {
    std::string pattern = testing::TempDir() + "swapd-actuate-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
    groups_.enabled = false;
    disk_groups_.enabled = false;
  }
  ~ActuatorTest() override {
    actuator_.reset();
    std::filesystem::remove_all(dir_);
  }

  Actuator::Options options() {
    Actuator::Options options;
    options.state_dir = dir_;
    options.boot_id = "this-boot";
    options.disk_groups = {{DiskGroups::By::bfq, &disk_groups_}};
    options.start_time = [this](pid_t tid) -> std::optional<std::uint64_t> {
      if (!scheduler_.threads.contains(tid)) return std::nullopt;
      return start_times_.contains(tid) ? start_times_[tid] : 1;
    };
    return options;
  }
  Actuator& actuator() {
    if (!actuator_) start(options());
    return *actuator_;
  }
  void start(Actuator::Options options) {
    actuator_.reset();
    actuator_ = std::make_unique<Actuator>(scheduler_, groups_, std::move(options));
    actuator_->on_outcome([this](const Outcome& outcome) { outcomes_.push_back(outcome); });
  }

  static ThreadId id(pid_t tid) { return {tid, 1}; }
  static Boost boost(pid_t tid, const SchedAttr& attr, pid_t requester = 900) {
    return {id(tid), id(requester), {ResourceKind::pipe, {7}}, lent(attr)};
  }
  void apply(std::vector<Boost> boosts) { actuator().apply(boosts, clock_.now()); }
  SchedAttr attr(pid_t tid) { return scheduler_.threads.at(tid).attr; }
  // The outcomes reported since the last call.
  std::vector<std::pair<What, Ineffective>> heard() {
    std::vector<std::pair<What, Ineffective>> all;
    for (const Outcome& outcome : outcomes_) all.emplace_back(outcome.what, outcome.reason);
    outcomes_.clear();
    return all;
  }
  using Heard = std::vector<std::pair<What, Ineffective>>;

  std::string dir_;
  fakes::FakeScheduler scheduler_;
  fakes::FakeGroups groups_, disk_groups_;
  std::map<pid_t, std::uint64_t> start_times_;
  ManualClock clock_;
  std::vector<Outcome> outcomes_;
  std::unique_ptr<Actuator> actuator_;
};

}  // namespace swapd::actuate
