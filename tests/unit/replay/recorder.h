// A live run and its recording: what the daemon does with a model, a decider and an encoder, without the daemon.
#pragma once

#include <string>
#include <vector>

#include "replay/encode.h"
#include "unit/model/world.h"

namespace swapd::test {

class Recorder {
 public:
  explicit Recorder(model::Settings settings = {}, decide::DonationRules rules = {})
      : model(settings), decider(rules), rules_(rules) {}

  // From here on all is recorded.
  void begin(std::uint64_t lost = 0) {
    if (text.empty()) encoder.add(text, replay::Header{.swapd = "test", .boot_id = "none"});
    if (lost > 0) encoder.add(text, replay::Gap{lost});
    encoder.add(text, model.settings());
    encoder.add(text, rules_);
    encoder.add(text, replay::Snapshot{now, model.image(), decider.image()});
    recording = true;
  }
  void apply(const Event& event) {
    now = std::visit([](const auto& e) { return e.time; }, event);
    model.apply(event);
    if (recording) encoder.add(text, event);
  }
  std::vector<decide::Donation> decide(const std::vector<ThreadId>& requesters) {
    std::vector<decide::Donation> donations = decider.decide(model, requesters, now);
    if (recording) encoder.add(text, replay::Decided{now, requesters, donations});
    return donations;
  }
  void forget(ThreadId requester) {
    decider.forget(requester);
    if (recording) encoder.add(text, replay::Forgotten{requester});
  }
  void end() { encoder.add(text, replay::End{}); }

  model::Model model;
  decide::DonationDecider decider;
  replay::Encoder encoder;
  std::string text;
  Time now{};
  bool recording = false;

 private:
  decide::DonationRules rules_;
};

}  // namespace swapd::test
