#include "enroll/rule_settings.h"

#include <string>

#include "sys/kernel_file.h"

namespace swapd::daemon {
namespace {

constexpr int class_shift = 13;       // linux/ioprio.h
constexpr int usual_io_priority = 4;  // of best effort

bool has_own(const SchedAttr& attr) {
  return attr.policy != SchedPolicy::other || attr.nice != 0 || attr.runtime_ns != 0;
}

}  // namespace

std::optional<AskedPriority> asked_by(const policy::MatchRule& rule, const SchedAttr& own) {
  if (!rule.base && !rule.sched && !rule.slice) return std::nullopt;
  if (rule.base && rule.base->realtime()) return AskedPriority(*rule.base);
  if (!rule.sched && !rule.slice) return AskedPriority::only_nice(rule.base->nice);  // it stays in its class
  SchedAttr attr = own.realtime() ? SchedAttr{} : own;
  if (rule.sched) attr.policy = *rule.sched;
  if (rule.base) attr.nice = rule.base->nice;
  if (rule.slice) attr.runtime_ns = static_cast<std::uint64_t>(rule.slice->count());
  return AskedPriority(attr);
}

std::optional<int> io_priority_by(const policy::MatchRule& rule) {
  if (!rule.io_class && !rule.io_priority) return std::nullopt;
  const policy::IoClass io_class = rule.io_class.value_or(policy::IoClass::best_effort);
  const int level = io_class == policy::IoClass::idle ? 0 : rule.io_priority.value_or(usual_io_priority);
  return ((static_cast<int>(io_class) + 1) << class_shift) | level;
}

std::optional<AskedPriority> RuleSettings::asked(const policy::MatchRule& rule, pid_t pid) const {
  const auto own = scheduler_.get(pid);
  if (rule.keep_own && own && has_own(*own)) return std::nullopt;
  return asked_by(rule, own.value_or(SchedAttr{}));
}

Status RuleSettings::give(const policy::MatchRule& rule, pid_t pid) const {
  if (const auto raw = io_priority_by(rule))
    if (Status given = give_io_priority(*raw, rule.keep_own, pid); !given && !given.error().gone()) return given;
  if (rule.oom_score_adj)
    if (Status given = give_oom_score(*rule.oom_score_adj, rule.keep_own, pid); !given && !given.error().gone())
      return given;
  return Done{};
}

Status RuleSettings::give_io_priority(int raw, bool keep_own, pid_t pid) const {
  const auto threads = procfs_.threads(pid);
  if (!threads) return threads.error();
  for (const pid_t tid : *threads) {
    if (keep_own && (scheduler_.io_priority(tid).value_or(0) >> class_shift) != 0) continue;
    if (Status set = scheduler_.set_io_priority(tid, raw); !set && !set.error().gone()) return set;
  }
  return Done{};
}

Status RuleSettings::give_oom_score(int score, bool keep_own, pid_t pid) const {
  const std::string file = procfs_.root() + "/" + std::to_string(pid) + "/oom_score_adj";
  if (keep_own) {
    const auto own = sys::read_text(file);
    if (own && own->find_first_of("123456789") != std::string::npos) return Done{};
  }
  return sys::write_text(file, std::to_string(score));
}

}  // namespace swapd::daemon
