// The classes of a running swapd: those of the policy, with what has been changed since, and those that were made at
// run time (`swapctl class`). What was changed or made stands in STATE_DIR/classes.toml and holds for the next swapd
// with that directory. Control thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "bus/backend.h"
#include "policy/policy.h"
#include "shaping/auto_limit_controller.h"
#include "shaping/shaper.h"

namespace swapd::daemon {

class Classes {
 public:
  // state_dir: empty: nothing is kept.
  Classes(Shaper& shaper, const policy::Policy& policy, std::string state_dir);
  // Automatic limits begin with this: it needs to know who is in which class, and they who limits them.
  void begin_automatic(AutoLimitController& shaper);

  // The limits of the policy, and what was changed before: what could not be had, a line each.
  [[nodiscard]] std::vector<std::string> begin();

  [[nodiscard]] bool exists(const std::string& name) const { return rules_.contains(name); }
  [[nodiscard]] bool is_open(const std::string& name) const;
  // Its programs have a filter for I/O calls from their start.
  [[nodiscard]] bool shaped(const std::string& name) const;

  // Its programs may use io_uring; where not, they do without from their start.
  [[nodiscard]] bool may_io_uring(const std::string& name) const {
    const auto found = rules_.find(name);
    return found == rules_.end() || found->second.io_uring;
  }

  // It counts operations, so that calls about directories and inodes are trapped, too.
  [[nodiscard]] bool counts_operations(const std::string& name) const {
    const auto found = rules_.find(name);
    return found != rules_.end() && found->second.counts_operations();
  }

  // Its members are held back somewhere.
  [[nodiscard]] bool limited(const std::string& name) const {
    const auto found = rules_.find(name);
    return found != rules_.end() && found->second.limits();
  }

  // EINVAL: it exists, its name or a limit is wrong; then nothing is changed.
  [[nodiscard]] Status create(const std::string& name, const std::vector<bus::LimitChange>& changes);
  // ENOENT.
  [[nodiscard]] Status set(const std::string& name, const std::vector<bus::LimitChange>& changes);
  // ENOENT; EINVAL: it is the policy's.
  [[nodiscard]] Status remove(const std::string& name);

  // Limits, for `class list` and `class show`.
  [[nodiscard]] std::vector<bus::ClassView> views() const;

 private:
  [[nodiscard]] Result<policy::IoRules> changed(const std::string& name, policy::IoRules from,
                                                const std::vector<bus::LimitChange>& changes) const;
  [[nodiscard]] Status apply(const std::string& name, const policy::IoRules& rules);
  [[nodiscard]] Status keep() const;
  [[nodiscard]] std::string file() const { return state_dir_ + "/classes.toml"; }

  Shaper& shaper_;
  AutoLimitController* automatic_ = nullptr;
  const policy::Policy& policy_;
  std::string state_dir_;
  std::map<std::string, policy::IoRules> rules_;
  std::set<std::string> changed_;  // those that are not as the policy has them, or are not in it
};

}  // namespace swapd::daemon
