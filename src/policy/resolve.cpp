// A policy's settings for one class: its own values on top of those for all.
#include "policy/policy.h"

namespace swapd::policy {
namespace {

ModelRules resolved(ModelRules rules, const ModelOverrides& over) {
  rules.confidence = over.confidence.value_or(rules.confidence);
  rules.quantum = over.quantum.value_or(rules.quantum);
  rules.providers = over.providers.value_or(rules.providers);
  rules.feedback = over.feedback.value_or(rules.feedback);
  rules.counts = over.counts.value_or(rules.counts);
  return rules;
}

}  // namespace

DonationPolicy donation_of(const Policy& policy, std::string_view class_name) {
  DonationPolicy found = policy.donation;
  const auto own = policy.classes.find(class_name);
  if (own == policy.classes.end()) return found;
  const DonationOverrides& over = own->second.donation;
  found.strict = over.strict.value_or(found.strict);
  found.realtime = over.realtime.value_or(found.realtime);
  found.ceiling = over.ceiling.value_or(found.ceiling);
  found.ceiling_share = over.ceiling_share.value_or(found.ceiling_share);
  found.ceiling_window = over.ceiling_window.value_or(found.ceiling_window);
  found.cross_user = over.cross_user.value_or(found.cross_user);
  found.group_action = over.group_action.value_or(found.group_action);
  found.weight_above = over.weight_above.value_or(found.weight_above);
  found.linger = over.linger.value_or(found.linger);
  found.conversation = over.conversation.value_or(found.conversation);
  return found;
}

ModelRules model_of(const Policy& policy, std::string_view class_name, ResourceKind kind) {
  const auto said_of = [kind](const std::map<ResourceKind, ModelOverrides>& kinds) {
    const auto found = kinds.find(kind);
    return found == kinds.end() ? ModelOverrides{} : found->second;
  };
  // Nothing is lent to kernel threads unless a policy says so of this very kind.
  const auto of_all_kinds = [kind](ModelOverrides over) {
    if (kind == ResourceKind::kernel_work && over.counts == true) over.counts.reset();
    return over;
  };
  ModelRules rules = policy.model;
  if (kind == ResourceKind::kernel_work) rules.counts = false;
  rules = resolved(rules, said_of(policy.kinds));
  const auto own = policy.classes.find(class_name);
  if (own == policy.classes.end()) return rules;
  return resolved(resolved(rules, of_all_kinds(own->second.model)), said_of(own->second.kinds));
}

}  // namespace swapd::policy
