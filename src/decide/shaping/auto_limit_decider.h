// Automatic limits as a decider: hears each period how the programs of a protected class fared, and demands the limit
// of the other class that leaves them what they need (auto_limit.h). Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "decide/decider.h"
#include "decide/shaping/auto_limit.h"

namespace swapd::decide {

class AutoLimitDecider final : public Decider {
 public:
  static constexpr std::string_view decider_name = "automatic-limits";
  [[nodiscard]] std::string_view name() const override { return decider_name; }
  void on(const Input& input) override;
  void decide(const model::Model& model, const Turn& turn, Plan& plan) override;
  void save(StateWriter& out) const override;
  void restore(StateReader& in) override;

  struct View {
    std::optional<Tokens> limit;  // bytes a second; none: no limit
    AutoLimit::State state = AutoLimit::State::off;
    bool in_vain = false;
    Tokens moved = 0;   // a second, by the protected programs in the last period
    double waited = 0;  // 0…1, by the protected thread that waited longest
    bool operator==(const View&) const = default;
    template <typename Self, typename Archive>
    static void state_of(Self& self, Archive& archive) {
      archive(self.limit, self.state, self.in_vain, self.moved, self.waited);
    }
  };
  // None: nothing was asked for this class.
  [[nodiscard]] std::optional<View> view(const std::string& class_name) const;

 private:
  struct Class {
    NeedJudge judge{{}};
    AutoLimit limit{0};
    View view;
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.judge, self.limit);
      View::state_of(self.view, archive);
    }
  };
  void fared(const ClassFared& fared);
  std::map<std::string, Class> classes_;
  bool changed_ = true;  // a limit, since it was demanded
};

}  // namespace swapd::decide
