#include "oci_profile.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "enroll/oci_state.h"

namespace swapd::daemon {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view allow = "SCMP_ACT_ALLOW", notify = "SCMP_ACT_NOTIFY", refuse = "SCMP_ACT_ERRNO";

bool is_empty(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() || at->empty();
}

// An entry that allows its calls whatever their arguments, the architecture and the container's capabilities.
bool allows_always(const Json& entry) {
  return entry.is_object() && entry.value("action", "") == allow && is_empty(entry, "args") &&
         is_empty(entry, "includes") && is_empty(entry, "excludes") && entry.contains("names") &&
         entry["names"].is_array();
}

// Takes the calls out of entries that allow them always; returns those that some entry did.
std::set<std::string> take_out(Json& entries, const std::set<std::string>& calls) {
  std::set<std::string> out;
  Json kept = Json::array();
  for (Json& entry : entries) {
    if (allows_always(entry)) {
      Json names = Json::array();
      for (const Json& name : entry["names"]) {
        if (name.is_string() && calls.contains(name.get<std::string>()))
          out.insert(name.get<std::string>());
        else
          names.push_back(name);
      }
      if (names.empty()) continue;
      entry["names"] = names;
    }
    kept.push_back(entry);
  }
  entries = kept;
  return out;
}

std::string metadata_of(const OciProfileOptions& options) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  if (options.limits) add(std::string(oci_limits_word));
  if (options.observe) add(std::string(oci_observe_word));
  if (!options.class_name.empty()) add(std::string(oci_class_word) + options.class_name);
  return words;
}

Json entry_of(std::string_view action, const std::vector<std::string>& names) {
  Json entry = {{"names", names}, {"action", action}};
  return entry;
}

Json any_call_allowed() {
  return {{"defaultAction", allow}, {"architectures", {"SCMP_ARCH_X86_64"}}, {"syscalls", Json::array()}};
}

// Rules of one call are alternatives, so several values are several entries.
void add_conditional(Json& entries, const std::string& name, const sys::TrapRule& rule) {
  constexpr std::uint64_t all_bits = ~0ULL;
  for (const std::uint64_t value : rule.condition->values) {
    Json entry = entry_of(notify, {name});
    const bool whole = rule.condition->mask == all_bits;
    Json arg = {{"index", rule.condition->arg}, {"value", whole ? value : rule.condition->mask}};
    if (!whole) arg["valueTwo"] = value;
    arg["op"] = whole ? "SCMP_CMP_EQ" : "SCMP_CMP_MASKED_EQ";
    entry["args"] = Json::array({arg});
    entries.push_back(entry);
  }
}

}  // namespace

Result<Json> oci_profile(std::span<const sys::TrapRule> rules, const OciProfileOptions& options,
                         const std::optional<Json>& base) {
  Json profile = base.value_or(any_call_allowed());
  if (!profile.is_object() || !profile.contains("defaultAction") || !profile["defaultAction"].is_string())
    return Error(EINVAL, "no seccomp profile: it has no defaultAction");
  if (!profile.contains("syscalls")) profile["syscalls"] = Json::array();
  if (!profile["syscalls"].is_array()) return Error(EINVAL, "no seccomp profile: its syscalls are no list");
  if (profile.contains("listenerPath"))
    return Error(EINVAL, "the profile has a listenerPath already, and a container has room for one listener");
  const bool by_default = profile["defaultAction"] == allow;
  std::set<std::string> calls;
  for (const sys::TrapRule& rule : rules) calls.insert(sys::call_name(rule.nr));
  if (!options.write_call) calls.erase("write");
  Json& entries = profile["syscalls"];
  std::set<std::string> named;  // by an entry, conditional or not
  for (const Json& entry : entries)
    if (entry.is_object() && entry.contains("names"))
      for (const Json& name : entry["names"])
        if (name.is_string()) named.insert(name.get<std::string>());
  std::set<std::string> allowed = take_out(entries, calls);
  if (by_default)
    for (const std::string& call : calls)
      if (!named.contains(call)) allowed.insert(call);
  std::vector<std::string> trapped, refused;
  for (const sys::TrapRule& rule : rules) {
    const std::string name = sys::call_name(rule.nr);
    if (!allowed.contains(name)) continue;
    if (rule.refuse_with != 0)
      refused.push_back(name);
    else if (rule.condition && by_default)
      add_conditional(entries, name, rule);
    else
      trapped.push_back(name);  // where not all is allowed, in all forms: the others could not be allowed beside it
  }
  if (!trapped.empty()) entries.push_back(entry_of(notify, trapped));
  if (!refused.empty()) {
    Json entry = entry_of(refuse, refused);
    entry["errnoRet"] = ENOSYS;
    entries.push_back(entry);
  }
  profile["listenerPath"] = options.socket;
  if (const std::string metadata = metadata_of(options); !metadata.empty()) profile["listenerMetadata"] = metadata;
  return profile;
}

}  // namespace swapd::daemon
