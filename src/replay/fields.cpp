#include "replay/fields.h"

namespace swapd::replay {

const Json* Values::tuple(const Json& json, std::string_view key, std::size_t size) {
  if (json.is_array() && json.size() == size) return &json;
  wrong(key, "a list of " + std::to_string(size));
  return nullptr;
}

ThreadId Values::thread(const Json& json, std::string_view key) {
  const Json* pair = tuple(json, key, 2);
  if (pair == nullptr) return {};
  const ThreadId id{number<pid_t>((*pair)[0], key), number<std::uint64_t>((*pair)[1], key)};
  if (id.tid < 0) wrong(key, "a thread id");
  return id;
}

Resource Values::resource(const Json& json, std::string_view key) {
  Resource found;
  if (!json.is_array() || json.empty() || json.size() > 1 + found.ids.size() || !json[0].is_string()) {
    wrong(key, "a resource");
    return {};
  }
  const auto kind = kind_named(json[0].get_ref<const std::string&>());
  if (!kind) {
    wrong(key, "a resource of a known kind");
    return {};
  }
  found.kind = *kind;
  for (std::size_t id = 1; id < json.size(); ++id) found.ids.at(id - 1) = number<std::uint64_t>(json[id], key);
  return found;
}

SchedAttr Values::attr(const Json& json, std::string_view key) {
  SchedAttr found;
  Mistake inner;
  Fields fields(json, inner);
  const std::string policy = fields.text("policy");
  bool known = false;
  for (const SchedPolicy one : {SchedPolicy::other, SchedPolicy::batch, SchedPolicy::idle, SchedPolicy::fifo,
                                SchedPolicy::rr, SchedPolicy::deadline}) {
    if (name(one) != policy) continue;
    found.policy = one;
    known = true;
  }
  found.nice = fields.number_or<std::int8_t>("nice", 0);
  found.rt_priority = fields.number_or<std::uint8_t>("priority", 0);
  found.reset_on_fork = fields.flag_or("reset_on_fork", false);
  found.runtime_ns = fields.number_or<std::uint64_t>("runtime_ns", 0);
  found.deadline_ns = fields.number_or<std::uint64_t>("deadline_ns", 0);
  found.period_ns = fields.number_or<std::uint64_t>("period_ns", 0);
  if (inner || !known || found.nice < -20 || found.nice > 19 || found.rt_priority > 99)
    wrong(key, "scheduling attributes");
  return found;
}

const Json& Fields::at(const char* key) const {
  static const Json absent;
  if (!object_.is_object()) return absent;
  const auto found = object_.find(key);
  return found == object_.end() ? absent : *found;
}

bool Fields::flag(const char* key) {
  const Json& json = at(key);
  if (json.is_boolean()) return json.get<bool>();
  values_.wrong(key, "true or false");
  return false;
}

std::string Fields::text(const char* key) {
  const Json& json = at(key);
  if (json.is_string()) return json.get<std::string>();
  values_.wrong(key, "a text");
  return {};
}

double Fields::real(const char* key) {
  const Json& json = at(key);
  if (json.is_number()) return json.get<double>();
  values_.wrong(key, "a number");
  return 0;
}

Duration Fields::duration(const char* key) {
  constexpr std::int64_t far = std::int64_t{1} << 61;
  const auto ns = number<std::int64_t>(key);
  if (ns > -far && ns < far) return Duration(ns);
  values_.wrong(key, "a time in its range");
  return {};
}

}  // namespace swapd::replay
