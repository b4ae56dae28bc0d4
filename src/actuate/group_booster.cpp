#include "actuate/group_booster.h"

#include <algorithm>

#include "actuate/attributes.h"

namespace swapd::actuate {
namespace {

constexpr int lowest_nice = 19;
constexpr Duration place_lifetime = std::chrono::seconds(1);
constexpr std::size_t max_places = 1024;
constexpr std::size_t max_formerly_held = 1024;

// A key of held_ that no path of a cgroup can be.
std::string autogroup_key(std::int64_t id) { return "autogroup-" + std::to_string(id); }
constexpr std::string_view idle_prefix = "idle ";
std::string idle_key(const std::string& group) { return std::string(idle_prefix) + group; }

bool better(Change::Kind kind, std::int64_t a, std::int64_t b) {
  return kind == Change::Kind::autogroup || kind == Change::Kind::idle_cgroup ? a < b   // a nice value, 0 for idle
                                                                              : a > b;  // a weight
}

// A live process of the autogroup: the thread it was touched for, its session's leader, or one that a scan finds. The
// scan is reached only when a provider died with the donation in force, and its session's leader before it.
std::optional<pid_t> member(const sys::Groups& groups, const Change& change) {
  for (const pid_t pid : {change.thread.tid, change.leader}) {
    if (pid <= 0) continue;
    if (const auto found = groups.autogroup(pid); found.ok() && found->id == change.group) return pid;
  }
  return groups.autogroup_member(change.group);
}

Result<std::int64_t> value(const sys::Groups& groups, const Change& change, pid_t pid) {
  if (change.kind == Change::Kind::autogroup) {
    auto seen = groups.autogroup(pid);
    if (!seen.ok()) return std::move(seen).error();
    return std::int64_t{seen->nice};
  }
  auto seen = groups.look(change.path);
  if (!seen.ok()) return std::move(seen).error();
  return change.kind == Change::Kind::idle_cgroup ? std::int64_t{seen->idle} : static_cast<std::int64_t>(seen->weight);
}

Status assign(const sys::Groups& groups, const Change& change, pid_t pid, std::int64_t to) {
  if (change.kind == Change::Kind::autogroup) return groups.set_autogroup_nice(pid, static_cast<int>(to));
  if (change.kind == Change::Kind::idle_cgroup) return groups.set_idle(change.path, to != 0);
  return groups.set_weight(change.path, static_cast<std::uint64_t>(to));
}

}  // namespace

std::vector<std::string> lineage(std::string group) {
  std::vector<std::string> all;
  while (group.size() > 1) {
    all.push_back(group);
    group.resize(group.rfind('/'));
  }
  return all;
}

Change::Kind kind_of(DiskGroups::By by) {
  return by == DiskGroups::By::bfq ? Change::Kind::bfq_cgroup : Change::Kind::iocost_cgroup;
}

std::size_t shared_depth(const std::string& a, const std::string& b) {
  std::size_t depth = 0;
  std::size_t from = 1;
  while (from < a.size() && from < b.size()) {
    const std::size_t end_a = std::min(a.find('/', from), a.size());
    const std::size_t end_b = std::min(b.find('/', from), b.size());
    if (end_a != end_b || a.compare(from, end_a - from, b, from, end_b - from) != 0) break;
    ++depth;
    from = end_a + 1;
  }
  return depth;
}

Result<bool> restore_group(const sys::Groups& groups, const Change& change) {
  pid_t pid = 0;
  if (change.kind == Change::Kind::autogroup) {
    const std::optional<pid_t> found = member(groups, change);
    if (!found) return false;
    pid = *found;
  }
  auto now = value(groups, change, pid);
  if (!now.ok()) {
    if (now.error().gone()) return false;
    return std::move(now).error();
  }
  if (*now != change.new_value) return false;
  auto written = assign(groups, change, pid, change.old_value);
  if (written.ok()) return true;
  if (written.error().gone()) return false;
  return std::move(written).error();
}

const GroupBooster::Place& GroupBooster::place(ThreadId thread, Time now) {
  if (!autogroups_seen_ || now - *autogroups_seen_ >= place_lifetime) {
    autogroups_ = groups_.autogroups();
    autogroups_seen_ = now;
  }
  const auto known = places_.find(thread);
  if (known != places_.end() && now - known->second.seen < place_lifetime) return known->second;
  if (places_.size() >= max_places) places_.clear();
  Place& found = places_[thread];
  found = Place{};
  found.seen = now;
  // Out of sight (another cgroup namespace): taken for the root, where no group can be acted upon either.
  found.group = groups_.group_of(thread.tid).value_or("/");
  for (const std::string& group : kind_ == Change::Kind::cgroup ? lineage(found.group) : std::vector<std::string>()) {
    const auto seen = groups_.look(group);
    if (seen.ok() && seen->quota > 0 && seen->quota < 1) found.tight.push_back(group);
    if (seen.ok() && seen->idle) found.idle.push_back(group);
    if (group == found.group) found.no_realtime = seen.ok() && seen->rt_runtime_us == 0;
  }
  if (const auto own = groups_.autogroup(thread.tid); own.ok()) found.autogroup = own->id;
  return found;
}

// Whether a quota holds the thread back: the scan has seen it hold threads of the group back, or has not looked yet and
// there is less than one CPU to be had.
bool GroupBooster::throttled(const Place& place) const {
  const auto seen = [&](const std::string& group) -> std::optional<bool> {
    if (!competitors_) return std::nullopt;
    const auto known = competitors_->throttled.find(group);
    return known == competitors_->throttled.end() ? std::nullopt : std::optional(known->second);
  };
  return std::ranges::any_of(lineage(place.group), [&](const std::string& group) { return seen(group) == true; }) ||
         std::ranges::any_of(place.tight, [&](const std::string& group) { return !seen(group); });
}

Ineffective GroupBooster::halted(ThreadId thread) const {
  if (!competitors_) return Ineffective::none;
  const auto& all = competitors_->halted;
  const auto found = std::ranges::find(all, thread, [](const auto& one) { return one.first; });
  return found == all.end() ? Ineffective::none : found->second;
}

// The groups that must have the donated nice value. Until the competitors are known, every group has some.
Ineffective GroupBooster::wants(const Place& place, int nice, std::vector<Want>& out) const {
  const auto& rivals = competitors_;
  if (place.group == "/") {
    // Without autogroups the thread itself competes at the root, and its nice value counts there.
    if (!autogroups_ || place.autogroup < 0) return Ineffective::none;
    const bool elsewhere =
        !rivals ||
        std::any_of(rivals->autogroups.begin(), rivals->autogroups.end(),
                    [&](std::int64_t id) { return id != place.autogroup; }) ||
        std::any_of(rivals->cpu_groups.begin(), rivals->cpu_groups.end(), [](const auto& path) { return path != "/"; });
    if (!elsewhere) return Ineffective::none;
    out.push_back({Change::Kind::autogroup, autogroup_key(place.autogroup), nice});
    return Ineffective::autogroup;
  }
  std::vector<std::string> levels = lineage(place.group);
  std::size_t apart = 0;  // components that the provider shares with the competitor furthest away
  if (rivals && rivals->autogroups.empty()) {
    apart = levels.size();
    for (const std::string& path : rivals->cpu_groups) apart = std::min(apart, shared_depth(place.group, path));
  }
  levels.resize(levels.size() - apart);
  Ineffective reason = levels.empty() ? Ineffective::none : Ineffective::cgroup_weight;
  for (std::string& level : levels) {
    // One that has been made an ordinary group already stays so.
    if (std::ranges::find(place.idle, level) != place.idle.end() || held_.contains(idle_key(level))) {
      out.push_back({Change::Kind::idle_cgroup, idle_key(level), nice});
      reason = Ineffective::cgroup_idle;
    }
    out.push_back({Change::Kind::cgroup, std::move(level), nice});
  }
  return reason;
}

// The levels at which another thread's group parts from the thread's: there, and nowhere else, weights are compared.
void GroupBooster::wants_at_disks(const Place& place, int nice, std::vector<Want>& out) const {
  if (!competitors_ || !std::ranges::binary_search(competitors_->boosted_at_disks, place.group)) return;
  std::vector<std::string> levels = lineage(place.group);
  for (std::size_t depth = levels.size(); std::string & level : levels) {
    --depth;  // of what is above
    if (std::ranges::any_of(competitors_->others_at_disks,
                            [&](const std::string& path) { return shared_depth(place.group, path) == depth; }))
      out.push_back({kind_, std::move(level), nice});
  }
}

Ineffective GroupBooster::lend(ThreadId thread, int nice, bool allowed, Time now) {
  if (kind_ != Change::Kind::cgroup && !(competitors_ && competitors_->at_disks())) {
    take_back(thread);
    return Ineffective::none;
  }
  const Place where = place(thread, now);
  std::vector<Want> asked;
  Ineffective reason = Ineffective::none;
  if (kind_ == Change::Kind::cgroup)
    reason = wants(where, nice, asked);
  else
    wants_at_disks(where, nice, asked);
  if (!allowed) asked.clear();
  if (kind_ != Change::Kind::cgroup) {
    std::erase_if(asked, [&](const Want& want) { return !hold(want, thread).ok(); });  // each level by itself
  } else if (allowed) {
    bool reached = true;
    for (const Want& want : asked) reached = reached && hold(want, thread).ok();
    if (reached) reason = Ineffective::none;
    if (!reached) asked.clear();
  }
  leave_all_but(asked, thread);
  return throttled(where) ? Ineffective::cgroup_quota : reason;
}

void GroupBooster::lower(ThreadId thread, Time now) {
  const Place where = place(thread, now);
  std::vector<Want> asked;
  if (where.group == "/" && autogroups_ && where.autogroup >= 0)
    asked.push_back({Change::Kind::autogroup, autogroup_key(where.autogroup), lowest_nice, true});
  std::erase_if(asked, [&](const Want& want) { return !hold(want, thread).ok(); });
  leave_all_but(asked, thread);
}

void GroupBooster::leave_all_but(const std::vector<Want>& asked, ThreadId thread) {
  for (auto held = held_.begin(); held != held_.end();) {
    const bool kept =
        std::any_of(asked.begin(), asked.end(), [&](const Want& want) { return want.key == held->first; });
    if (!kept) leave(held->second, thread);
    held = held->second.users.empty() ? held_.erase(held) : std::next(held);
  }
}

void GroupBooster::take_back(ThreadId thread) { leave_all_but({}, thread); }

// The wishes of those that use it: the best that is better than its own value; else the worst, which is to lower it.
std::int64_t GroupBooster::best(const Held& held) {
  const std::int64_t own = held.change.old_value;
  std::int64_t found = own;
  for (const auto& [user, value] : held.users) found = better(held.change.kind, value, found) ? value : found;
  if (found != own) return found;
  for (const auto& [user, value] : held.users) found = better(held.change.kind, found, value) ? value : found;
  return found;
}

void GroupBooster::forget(ThreadId thread) {
  take_back(thread);
  places_.erase(thread);
}

Status GroupBooster::hold(const Want& want, ThreadId thread) {
  const auto known = held_.find(want.key);
  Held fresh;
  Held& held = known == held_.end() ? fresh : known->second;
  const bool of_idle = want.kind == Change::Kind::idle_cgroup;
  const std::string path = of_idle ? want.key.substr(idle_prefix.size()) : want.key;
  sys::WeightedGroup seen;
  if (want.kind != Change::Kind::autogroup) {
    auto look = groups_.look(path);
    if (!look.ok()) return std::move(look).error();
    seen = *look;
  }
  if (seen.of_devices) return Error(ENOTSUP, "lending to " + want.key + ": single disks have weights of their own");
  if (known == held_.end()) {
    fresh.change.kind = want.kind;
    fresh.change.thread = thread;
    if (want.kind == Change::Kind::autogroup) {
      auto own = groups_.autogroup(thread.tid);
      if (!own.ok()) return std::move(own).error();
      if (want.key != autogroup_key(own->id)) return Error(ESRCH, "lending to " + want.key + ": it has left");
      fresh.change.group = own->id;
      fresh.change.leader = own->leader;
      fresh.change.old_value = own->nice;
    } else {
      fresh.change.path = path;
      fresh.change.old_value = of_idle ? std::int64_t{seen.idle} : static_cast<std::int64_t>(seen.weight);
    }
    fresh.change.new_value = fresh.change.old_value;
    fresh.of_idle = of_idle || held_.contains(idle_key(path));
  }
  std::int64_t asked = want.nice;
  if (of_idle) {
    asked = 0;
  } else if (want.kind != Change::Kind::autogroup) {
    const auto own = static_cast<std::uint64_t>(held.change.old_value);
    asked = static_cast<std::int64_t>(std::min(own * weight_of_nice(want.nice) / weight_of_nice(0), seen.max_weight));
  }
  const std::int64_t own = held.change.old_value;
  if (want.lowers && own != 0) return Error(ENOTSUP, "lowering " + want.key + ": it has a value of its own");
  if (known == held_.end() && !want.lowers && !better(want.kind, asked, own)) return Done{};
  std::erase_if(held.users, [&](const auto& user) { return user.first == thread; });
  // A boost that asks for less than the group's own asks for nothing.
  held.users.emplace_back(thread, want.lowers || better(want.kind, asked, own) ? asked : own);
  auto written = write(held, best(held));
  if (known != held_.end()) return written;  // on failure it stands as it was, and the caller leaves
  if (written.ok()) held_.emplace(want.key, std::move(fresh));
  return written;
}

// The record of the new value first, then the value, then away with the record of the old one.
Status GroupBooster::write(Held& held, std::int64_t to) {
  if (to == held.change.new_value || dry_run_) {
    held.change.new_value = to;
    return Done{};
  }
  ++changes_;
  Change next = held.change;
  next.new_value = to;
  pid_t pid = 0;
  if (next.kind == Change::Kind::autogroup) {
    // Its first user may be gone while others of the session still use it.
    for (const auto& [user, asked] : held.users) {
      if (const auto own = groups_.autogroup(user.tid); !own.ok() || own->id != next.group) continue;
      next.thread = user;
      pid = user.tid;
      break;
    }
    if (pid == 0) pid = member(groups_, next).value_or(0);
    if (pid == 0) return Error(ESRCH, "finding a process of autogroup " + std::to_string(next.group));
  }
  Journal::Slot slot = Journal::none;
  if (journal_ != nullptr) {
    auto kept = journal_->write(next);
    if (!kept.ok()) return std::move(kept).error();
    slot = *kept;
  }
  auto assigned = assign(groups_, next, pid, to);
  if (!assigned.ok()) {
    if (journal_ != nullptr) journal_->clear(slot);
    return assigned;
  }
  if (journal_ != nullptr) journal_->clear(held.slot);
  held.slot = slot;
  held.change = std::move(next);
  return Done{};
}

void GroupBooster::leave(Held& held, ThreadId thread) {
  if (std::erase_if(held.users, [&](const auto& user) { return user.first == thread; }) == 0) return;
  if (!held.users.empty()) {
    (void)write(held, best(held));  // on failure the group stands too high until the last one leaves
    return;
  }
  if (dry_run_) return;
  const auto restored = restore_group(groups_, held.change);
  if (held.change.kind != Change::Kind::autogroup) {
    if (formerly_held_.size() >= max_formerly_held) formerly_held_.clear();
    formerly_held_[held.change.path] = {own_weight(held), ++changes_};
  }
  // A value that could not be given back stays in the journal for the next start.
  if (restored.ok() && journal_ != nullptr) journal_->clear(held.slot);
}

std::uint64_t GroupBooster::own_weight(const Held& held) {
  return held.of_idle ? 0 : static_cast<std::uint64_t>(held.change.old_value);
}

std::optional<std::uint64_t> GroupBooster::own_weight(const std::string& group, std::uint64_t since) const {
  for (const std::string& key : {group, idle_key(group)})
    if (const auto held = held_.find(key); held != held_.end()) return own_weight(held->second);
  const auto former = formerly_held_.find(group);
  if (former == formerly_held_.end() || former->second.ended <= since) return std::nullopt;
  return former->second.own;
}

// For real-time runtime the kernel looks at the thread's own group only (kernel/sched/syscalls.c).
bool GroupBooster::lacks_realtime(ThreadId thread, Time now) { return place(thread, now).no_realtime; }

}  // namespace swapd::actuate
