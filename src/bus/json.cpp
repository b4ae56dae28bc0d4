#include "bus/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace swapd::bus {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json attributes(const SchedAttr& attr) {
  return {{"policy", name(attr.policy)}, {"nice", attr.nice}, {"rt_priority", attr.rt_priority}};
}

// A whole number is written without a fraction: ids and priorities are what most numbers of events are.
Json number(double value) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::abs(value) < exact && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return value;
}

Json wait_tree(const std::vector<WaitNode>& waits);

Json provider(const ProviderNode& node) {
  return {{"pid", node.pid},
          {"tid", node.tid},
          {"comm", node.comm},
          {"confidence", node.confidence},
          {"favoured", node.favoured},
          {"evidence", node.evidence},
          {"state", node.state ? word(*node.state) : ""},
          {"waiting_for", wait_tree(node.waiting_for)}};
}

Json wait_tree(const std::vector<WaitNode>& waits) {
  Json list = Json::array();
  for (const WaitNode& wait : waits) {
    Json providers = Json::array();
    for (const ProviderNode& node : wait.providers) providers.push_back(provider(node));
    list.push_back({{"resource", text(wait.resource)},
                    {"kind", name(wait.resource.kind)},
                    {"call", wait.call},
                    {"providers", std::move(providers)}});
  }
  return list;
}

Json pieces(const std::vector<MissingPiece>& missing) {
  Json list = Json::array();
  for (const MissingPiece& piece : missing)
    list.push_back({{"what", piece.what}, {"why", piece.why}, {"instead", piece.instead}});
  return list;
}

}  // namespace

Json jobs_json(const std::vector<JobView>& jobs) {
  Json out = Json::array();
  for (const JobView& job : jobs) {
    Json members = Json::array();
    for (const JobView::Member& one : job.members)
      members.push_back({{"tid", one.tid}, {"share", one.share}, {"cpu", one.cpu}, {"waiting", one.waiting}});
    out.push_back({{"id", job.id},
                   {"comm", job.comm},
                   {"state", job.state},
                   {"members", std::move(members)},
                   {"waste", job.waste},
                   {"due", job.due},
                   {"calls_granted", job.slots},
                   {"calls_refused", job.refused_busy + job.refused_debt},
                   {"calls_refused_by", {{"other_job", job.refused_busy}, {"debt", job.refused_debt}}},
                   {"used_s", job.used_s},
                   {"entitled_s", job.entitled_s},
                   {"fairness", job.entitled_s > 0 ? job.used_s / job.entitled_s : 1.0}});
  }
  return out;
}

namespace {

Json away_json(const MemoryView::Away& one) {
  return {{"pid", one.pid},     {"comm", one.comm},       {"state", one.state},
          {"group", one.group}, {"since_s", one.since_s}, {"swapped_out_bytes", one.swapped_out}};
}

Json memory_json(const MemoryView& memory) {
  Json groups = Json::array(), away = Json::array();
  for (const MemoryView::Group& one : memory.groups)
    groups.push_back({{"group", one.group}, {"thrashes", one.thrashes}, {"lost", one.lost}, {"stuck", one.stuck}});
  for (const MemoryView::Away& one : memory.away) away.push_back(away_json(one));
  return {{"on", memory.on},
          {"groups", std::move(groups)},
          {"away", std::move(away)},
          {"swapped_out_total_bytes", memory.swapped_out_total}};
}

}  // namespace

std::string status_json(const StatusView& s) {
  return dump({{"version", s.version},
               {"pid", s.pid},
               {"observer", s.observer},
               {"observer_reason", s.observer_reason},
               {"managed_threads", s.managed_threads},
               {"managed_processes", s.managed_processes},
               {"listeners", s.listeners},
               {"donations_active", s.donations_active},
               {"donations_total", s.donations_total},
               {"notifications_total", s.notifications_total},
               {"events_lost", s.events_lost},
               {"rivals", s.rivals},
               {"warnings", s.warnings},
               {"missing", pieces(s.missing)},
               {"watch_method", s.watch_method},
               {"watched_threads", s.watched_threads},
               {"unheard_threads", s.unheard_threads},
               {"watch_wakeups_total", s.watch_wakeups_total},
               {"watch_polls_total", s.watch_polls_total},
               {"engine_cpu_s", s.cpu.engine_s},
               {"receivers_cpu_s", s.cpu.receivers_s},
               {"worker_cpu_s", s.cpu.worker_s},
               {"cpu",
                {{"engine_s", s.cpu.engine_s},
                 {"worker_s", s.cpu.worker_s},
                 {"receivers_s", s.cpu.receivers_s},
                 {"jobs_s", s.cpu.jobs_s},
                 {"memory_s", s.cpu.memory_s},
                 {"control_s", s.cpu.control_s},
                 {"total_s", s.cpu.total_s},
                 {"guard_s", s.cpu.guard_s}}},
               {"budget",
                {{"share", s.budget.share},
                 {"share_now", s.budget.share_now},
                 {"used", s.budget.used},
                 {"wait_ms", s.budget.wait_ms},
                 {"patience_ms", s.budget.patience_ms}}},
               {"jobs", jobs_json(s.jobs)},
               {"memory", memory_json(s.memory)},
               {"resources", s.resources},
               {"requesters", s.requesters},
               {"providers", s.providers},
               {"log_drops", s.log_drops},
               {"over_quota_total", s.over_quota},
               {"paused", s.paused},
               {"delayed_calls", s.delayed_calls},
               {"delayed_calls_total", s.delayed_calls_total},
               {"match_rules", s.match_rules},
               {"programs_total", s.programs},
               {"matched_total", s.matched},
               {"managed_by_policy_total", s.managed_by_policy}});
}

namespace {

// Names the source of the rank with which the thread has its CPU now.
std::string_view rank_from(const ThreadView& t) {
  if (!t.donated_by.empty() && t.effective != t.base) return "donation";
  if (t.job && t.job->coscheduled) return "coscheduling";
  if (t.level && t.level->level > t.level->base) return "level";
  return t.by_weight ? "weight" : "base";
}

Json job_of_thread(const ThreadView& t) {
  if (!t.job) return nullptr;
  const ThreadView::Job& job = *t.job;
  return {{"id", job.id},           {"comm", job.comm},   {"state", job.state},
          {"share", job.share},     {"cpu", job.cpu},     {"waiting", job.waiting},
          {"threads", job.threads}, {"mates", job.mates}, {"mates_cpu", job.mates_cpu}};
}

Json level_of_thread(const ThreadView& t) {
  if (!t.level) return nullptr;
  Json out = {{"level", t.level->level}, {"base", t.level->base}};
  if (t.level->awaited.empty()) return out;
  out["awaited"] = t.level->awaited;
  out["since_ms"] = t.level->since_ms;
  return out;
}

// The fields of a thread that `ps` and `why` share.
Json thread_json(const ThreadView& t, Json waiting_for) {
  Json out = {{"pid", t.pid},
              {"tid", t.tid},
              {"comm", t.comm},
              {"class", t.class_name},
              {"state", word(t.state)},
              {"since_ms", t.since_ms},
              {"since_known", t.since_known},
              {"call", t.call},
              {"polls", t.polls},
              {"base", attributes(t.base)},
              {"effective", attributes(t.effective)},
              {"importance", attributes(t.by_weight.value_or(t.base))},
              {"importance_from", t.by_weight ? "weight" : "base"},
              {"group_weight", t.group_weight},
              {"rank_from", rank_from(t)},
              {"job", job_of_thread(t)},
              {"level", level_of_thread(t)},
              {"waiting_for", std::move(waiting_for)},
              {"donated_by", t.donated_by}};
  if (t.share_bytes > 0) out["share_bytes"] = t.share_bytes;
  if (t.debt_bytes > 0) out["debt_bytes"] = t.debt_bytes;
  return out;
}

}  // namespace

std::string threads_json(const std::vector<ThreadView>& threads) {
  Json list = Json::array();
  for (const ThreadView& t : threads) {
    Json resources = Json::array();
    for (const WaitNode& wait : t.waiting_for) resources.push_back(text(wait.resource));
    list.push_back(thread_json(t, std::move(resources)));
  }
  return dump({{"threads", std::move(list)}});
}

std::string why_json(const std::vector<ThreadView>& threads) {
  Json list = Json::array();
  for (const ThreadView& t : threads) {
    Json one = thread_json(t, wait_tree(t.waiting_for));
    // Always there, so that a reader needs no null check: `active` says whether there is one at all.
    one["donation"] = {{"active", t.has_donation},
                       {"effective", t.has_donation && t.donation_effective},
                       {"reason", t.donation_reason.empty() ? "none" : t.donation_reason},
                       {"limited", t.donation_limited.empty() ? "none" : t.donation_limited}};
    one["away"] = t.away ? away_json(*t.away) : Json();
    list.push_back(std::move(one));
  }
  return dump({{"threads", std::move(list)}});
}

std::string graph_json(const GraphView& graph) {
  Json nodes = Json::array();
  for (const GraphView::Node& n : graph.nodes) nodes.push_back({{"id", n.id}, {"type", n.type}, {"label", n.label}});
  Json edges = Json::array();
  for (const GraphView::Edge& e : graph.edges)
    edges.push_back({{"from", e.from}, {"to", e.to}, {"type", e.type}, {"confidence", e.confidence}});
  return dump({{"nodes", std::move(nodes)}, {"edges", std::move(edges)}});
}

static Json automatic_json(const ClassView& c) {
  if (!c.automatic) return nullptr;
  const ClassView::Automatic& a = *c.automatic;
  return {{"protects", a.protects},
          {"need_rate", a.rate ? Json(*a.rate) : Json(nullptr)},
          {"need_wait_percent", a.wait_percent ? Json(*a.wait_percent) : Json(nullptr)},
          {"least", a.least},
          {"state", a.state},
          {"limit", a.limit ? Json(*a.limit) : Json(nullptr)},
          {"in_vain", a.in_vain},
          {"moved", a.moved},
          {"waited", number(a.waited)}};
}

std::string limits_json(const std::vector<ClassView>& classes) {
  Json list = Json::array();
  for (const ClassView& c : classes) {
    Json limits = Json::array(), devices = Json::array();
    for (const ClassView::Limit& l : c.limits)
      limits.push_back({{"device", l.device}, {"key", l.key}, {"value", l.value}});
    for (const ClassView::Device& d : c.devices) {
      Json debts = Json::array();
      for (const auto& [tid, bytes] : d.debts) debts.push_back({{"tid", tid}, {"bytes", bytes}});
      devices.push_back({{"device", d.device},
                         {"kind", d.network ? "network" : "disk"},
                         {"read_bytes", d.read_bytes},
                         {"written_bytes", d.written_bytes},
                         {"cached_bytes", d.cached_bytes},
                         {"mapped_bytes", d.mapped_bytes},
                         {"written_off_bytes", d.written_off_bytes},
                         {"debts", std::move(debts)},
                         {"calls", d.calls},
                         {"delayed_calls", d.delayed_calls},
                         {"delayed_s", number(d.delayed_s)},
                         {"limit", d.limit ? Json(*d.limit) : Json(nullptr)},
                         {"tokens", d.tokens ? Json(*d.tokens) : Json(nullptr)}});
    }
    list.push_back({{"name", c.name},
                    {"mode", c.device_mode ? "device" : "logical"},
                    {"inherit", c.inherits_own ? "new" : "join"},
                    {"mapped", c.freezes ? "freeze" : "next-call"},
                    {"shaped", c.shaped},
                    {"limited", c.limited},
                    {"origin", !c.of_policy ? "made"
                               : c.changed  ? "changed"
                                            : "policy"},
                    {"auto", automatic_json(c)},
                    {"limits", std::move(limits)},
                    {"devices", std::move(devices)}});
  }
  return dump({{"classes", std::move(list)}});
}

std::string policy_json(const std::vector<SettingView>& settings) {
  Json list = Json::array();
  for (const SettingView& s : settings)
    list.push_back({{"table", s.table}, {"key", s.key}, {"value", s.value}, {"where", s.where}});
  return dump({{"settings", std::move(list)}});
}

std::string event_json(const EventView& event) {
  Json json = {
      {"time", event.time}, {"type", event.type}, {"pid", event.pid}, {"tid", event.tid}, {"comm", event.comm}};
  for (const auto& [key, value] : event.fields)
    if (!json.contains(key)) json[key] = value;
  for (const auto& [key, value] : event.numbers)
    if (!json.contains(key)) json[key] = number(value);
  return dump(json);
}

std::string valid_utf8(const std::string& text) { return Json::parse(dump(Json(text))).get<std::string>(); }

}  // namespace swapd::bus
