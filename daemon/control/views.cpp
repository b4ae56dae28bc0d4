#include "control/views.h"

#include <algorithm>

#include "observe/resolve/relays.h"
#include "observe/resolve/syscall_table.h"
#include "sys/perf/perf.h"

namespace swapd::daemon {

namespace {

constexpr int deepest = 32;
// Providers in one answer, however the threads wait for one another: twenty threads at both ends of one pipe have more
// paths than there are atoms.
constexpr int max_shown = 2000;

bool same_file(const Resource& a, const Resource& b) {
  return a.kind == b.kind && a.ids[0] == b.ids[0] && a.ids[1] == b.ids[1];
}

std::string id_of(ThreadId id) { return "thread:" + std::to_string(id.tid); }

actuate::Ineffective reason_of(ThreadState halted) {
  return halted == ThreadState::stopped ? actuate::Ineffective::stopped : actuate::Ineffective::frozen;
}

// Whether the thread has a CPU at this moment, and does not only wait for one: then its CPU time moves between two
// looks. Of the clocks of another process's thread only perf's is exact. It is opened for the two looks: it costs some
// 10 us, and, where the thread runs, an interrupt of its CPU. So it is asked for threads of an answer that are runnable
// alone, and by the control thread; nothing in swapd needs to know it otherwise.
bool has_cpu(pid_t tid) {
  const auto clock = sys::CpuTimer::open(tid);
  if (!clock) return false;
  const Duration before = (*clock)->used();
  return (*clock)->used() > before;
}

}  // namespace

std::string call_text(std::int32_t nr) {
  if (nr < 0) return "none";
  const std::string known(observe::call_name(nr));
  return known.empty() ? "syscall-" + std::to_string(nr) : known;
}

Views::Views(Snapshot snapshot, const sys::Procfs& procfs, observe::Resolver& resolver)
    : snapshot_(std::move(snapshot)), procfs_(procfs), resolver_(resolver) {
  for (const auto& [id, thread] : snapshot_.threads)
    if (std::ranges::find(members_, thread.tgid) == members_.end()) members_.push_back(thread.tgid);
  keep_jobs();
}

std::string Views::comm(pid_t tid) const { return procfs_.comm(tid).value_or("?"); }

bool Views::relays(ThreadId stranger) const {
  return snapshot_.relays.contains(stranger) || observe::is_message_bus(comm(stranger.tid));
}

const decide::Donation* Views::donation_of(ThreadId requester) const {
  const auto found = std::ranges::find(snapshot_.donations, requester, &decide::Donation::requester);
  return found == snapshot_.donations.end() ? nullptr : &*found;
}

// Favoured for `waiter`: it comes next on some donation's way, whether the waiter is the way's requester or a step of
// it.
bool Views::favoured(ThreadId waiter, ThreadId provider) const {
  return std::ranges::any_of(snapshot_.donations, [&](const decide::Donation& d) {
    ThreadId before = d.requester;
    for (const ThreadId step : d.path) {
      if (before == waiter && step == provider) return true;
      before = step;
    }
    return false;
  });
}

std::optional<ThreadState> Views::halted(pid_t tid, char state) {
  if (state == 'T' || state == 't') return ThreadState::stopped;
  const bool sleeps = state == 'S' || state == 'D';
  return sleeps && freezer_.freezes(tid) ? std::optional(ThreadState::frozen) : std::nullopt;
}

std::optional<ThreadState> Views::halted(const Vector<ThreadId>& path) {
  for (const ThreadId thread : path)
    if (const auto stat = procfs_.stat(thread.tid); stat && stat->start_time == thread.start_time)
      if (const auto state = halted(thread.tid, stat->state)) return state;
  return std::nullopt;
}

std::optional<ThreadState> Views::what_holds_up(ThreadId waiter, const Looked& looked) {
  for (const Resource& resource : looked.awaited) {
    const auto known = snapshot_.providers.find(resource);
    if (known == snapshot_.providers.end()) continue;
    for (const model::ProviderView& provider : known->second) {
      if (provider.thread == waiter) continue;
      if (const auto state = halted({provider.thread})) return state;
    }
  }
  return std::nullopt;
}

Views::Looked Views::look(const SnapshotThread& thread) {
  Looked out;
  if (const auto delayed = snapshot_.delayed.find(thread.id.tid); delayed != snapshot_.delayed.end()) {
    out.state = ThreadState::delayed;
    if (const auto now = procfs_.syscall(thread.id.tid); now && now->in_call) out.call = now->nr;
    out.since = snapshot_.time - delayed->second.since;
    out.share = delayed->second.share;
    out.debt = delayed->second.debt;
    return out;
  }
  const auto stat = procfs_.stat(thread.id.tid);
  const char state = stat ? stat->state : 'X';
  if (const auto held = halted(thread.id.tid, state)) {
    out.state = *held;
    return out;
  }
  if (thread.watched && thread.state == model::RunState::blocked) {
    out.call = thread.call;
    out.awaited = thread.awaited;
    out.since = snapshot_.time - thread.since;
    return out;
  }
  const auto now = procfs_.syscall(thread.id.tid);
  if (!now || now->running || state == 'R') {
    out.state = has_cpu(thread.id.tid) ? ThreadState::running : ThreadState::queued;
    if (thread.watched && thread.state == model::RunState::runnable) out.since = snapshot_.time - thread.since;
    return out;
  }
  if (!now->in_call) return out;
  out.call = now->nr;
  out.awaited = resolver_.full({.tid = thread.id.tid, .tgid = thread.tgid, .nr = now->nr, .args = now->args}).awaited;
  return out;
}

Vector<model::ProviderView> Views::providers(ThreadId waiter, const Resource& resource, int depth) {
  Vector<model::ProviderView> out;
  if (const auto known = snapshot_.providers.find(resource); known != snapshot_.providers.end())
    for (const model::ProviderView& p : known->second)
      if (p.thread != waiter) out.push_back(p);
  if (!out.empty() || depth <= 0 || snapshot_.unenrolled.contains(resource)) return out;
  const std::vector<Resource> one{resource};
  for (const observe::Found& found : resolver_.scan(waiter.tid, one, members_)) {
    for (const ThreadId id : found.threads)
      if (id != waiter) out.push_back({.thread = id, .confidence = 0, .debits = 0, .evidence = found.evidence});
    if (!found.unenrolled.empty()) snapshot_.unenrolled[resource] = found.unenrolled;
  }
  return out;
}

std::vector<bus::WaitNode> Views::waits(ThreadId waiter, const Looked& looked, int depth,
                                        std::vector<ThreadId>& above) {
  std::vector<bus::WaitNode> out;
  above.push_back(waiter);
  for (const Resource& resource : looked.awaited) {
    bus::WaitNode node{.resource = resource, .call = call_text(looked.call), .providers = {}};
    if (depth > 0) {
      for (const model::ProviderView& p : providers(waiter, resource, depth)) {
        if (++shown_ > max_shown) break;
        bus::ProviderNode provider{.pid = p.thread.tid,
                                   .tid = p.thread.tid,
                                   .comm = comm(p.thread.tid),
                                   .confidence = static_cast<double>(p.confidence),
                                   .favoured = favoured(waiter, p.thread),
                                   .evidence = std::string(name(p.evidence)),
                                   .state = {},
                                   .waiting_for = {}};
        const auto member = snapshot_.threads.find(p.thread);
        if (member != snapshot_.threads.end()) {
          provider.pid = member->second.tgid;
          if (std::ranges::find(above, p.thread) == above.end()) {
            const Looked at = look(member->second);
            provider.state = at.state;
            provider.waiting_for = waits(p.thread, at, depth - 1, above);
          }
        }
        node.providers.push_back(std::move(provider));
      }
      if (const auto strangers = snapshot_.unenrolled.find(resource); strangers != snapshot_.unenrolled.end())
        for (const ThreadId id : strangers->second)
          node.providers.push_back({.pid = procfs_.tgid(id.tid).value_or(id.tid),
                                    .tid = id.tid,
                                    .comm = comm(id.tid),
                                    .confidence = 0,
                                    .favoured = false,
                                    .evidence = relays(id) ? "relay" : "unenrolled",
                                    .state = halted({id}),  // only what keeps it from going on is of interest
                                    .waiting_for = {}});
    }
    out.push_back(std::move(node));
  }
  // A thread that wants a lock alone waits for its only holder as well as for those that share it: of the two, the one
  // that there is.
  const auto is_idle_half = [&](const bus::WaitNode& one) {
    return one.providers.empty() && std::ranges::any_of(out, [&](const bus::WaitNode& other) {
             const bool before = &other < &one;
             return &other != &one && one.resource.kind == ResourceKind::flock &&
                    same_file(one.resource, other.resource) && (!other.providers.empty() || before);
           });
  };
  if (depth > 0) {
    std::vector<bus::WaitNode> shown;
    for (const bus::WaitNode& one : out)
      if (!is_idle_half(one)) shown.push_back(one);
    out = std::move(shown);
  }
  above.pop_back();
  return out;
}

// Those of several threads, which were seen lately: what a job did before nothing competed any more is over.
void Views::keep_jobs() {
  constexpr Duration lately = std::chrono::seconds(3);
  std::erase_if(snapshot_.jobs, [&](const decide::CoschedulingDecider::JobView& job) {
    return job.members.size() < 2 || std::ranges::any_of(job.members, [&](const decide::JobFinder::Member& one) {
             return snapshot_.time - one.seen >= lately;
           });
  });
}

std::optional<bus::ThreadView::Job> Views::job_of(ThreadId thread) const {
  constexpr std::size_t max_mates = 16;
  for (const decide::CoschedulingDecider::JobView& job : snapshot_.jobs) {
    const auto member = std::ranges::lower_bound(job.members, thread, {}, &decide::JobFinder::Member::thread);
    if (member == job.members.end() || member->thread != thread) continue;
    bus::ThreadView::Job out{.id = job.id,
                             .comm = comm(static_cast<pid_t>(job.id)),
                             .state = std::string(decide::job_state_words.of(job.state)),
                             .share = member->share,
                             .cpu = member->cpu,
                             .waiting = member->waiting,
                             .coscheduled = std::ranges::binary_search(job.gang, thread),
                             .threads = job.members.size()};
    for (const decide::JobFinder::Member& mate : job.members)
      if (mate.thread != thread && out.mates.size() < max_mates) {
        out.mates.push_back(mate.thread.tid);
        out.mates_cpu.push_back(mate.cpu);
      }
    return out;
  }
  return std::nullopt;
}

bus::ThreadView Views::thread(const SnapshotThread& thread, int depth) {
  bus::ThreadView out{.pid = thread.tgid,
                      .tid = thread.id.tid,
                      .comm = comm(thread.id.tid),
                      .class_name = thread.class_name,
                      .base = thread.base,
                      .effective = thread.base,
                      .group_weight = thread.weight};
  if (thread.importance != thread.base) out.by_weight = thread.importance;
  out.job = job_of(thread.id);
  if (thread.level) {
    out.level = bus::ThreadView::Level{.level = thread.level->level(), .base = thread.level->base()};
    if (thread.level->since() != never) {
      out.level->awaited = std::string(decide::awaited_words.of(thread.level->why()));
      out.level->since_ms = std::chrono::duration<double, std::milli>(snapshot_.time - thread.level->since()).count();
    }
  }
  const Looked looked = look(thread);
  out.state = looked.state;
  out.call = call_text(looked.call);
  out.polls = resolver_.polls(thread.id.tid);  // between two sleeps it runs, and polls still
  out.since_known = looked.since.has_value();
  if (looked.since) out.since_ms = looked.since->count();
  out.share_bytes = looked.share;
  out.debt_bytes = looked.debt;
  std::vector<ThreadId> above;
  out.waiting_for = waits(thread.id, looked, std::min(depth, deepest), above);
  for (const decide::Donation& d : snapshot_.donations)
    if (d.refusal == decide::Refusal::none && std::ranges::find(d.path, thread.id) != d.path.end())
      out.donated_by.push_back(d.requester.tid);
  const auto boost_of = [&](ThreadId id) {
    const auto boost = std::ranges::find(snapshot_.boosts, id, [](const auto& a) { return a.boost.thread; });
    return boost == snapshot_.boosts.end() ? nullptr : &*boost;
  };
  if (const auto* boost = boost_of(thread.id)) {
    if (std::ranges::find(out.donated_by, boost->boost.requester.tid) == out.donated_by.end())
      out.donated_by.push_back(boost->boost.requester.tid);  // a lingering donation
    out.has_donation = true;
    out.donation_reason = actuate::name(boost->reason);
    out.donation_effective = boost->reason == actuate::Ineffective::none;
    if (out.donation_effective) out.effective = boost->lent;
    if (out.donation_effective) out.donation_limited = actuate::name(boost->limited);
  }
  if (const decide::Donation* lent = donation_of(thread.id)) {
    if (out.state == ThreadState::blocked) out.state = ThreadState::virtual_runnable;
    const auto* boost = lent->path.empty() ? nullptr : boost_of(lent->path.back());
    out.has_donation = true;
    actuate::Ineffective reason = actuate::Ineffective::none;
    if (lent->refusal == decide::Refusal::policy) reason = actuate::Ineffective::policy;
    if (boost != nullptr) reason = boost->reason;
    if (const auto held = halted(lent->path)) reason = reason_of(*held);
    out.donation_reason = actuate::name(reason);
    out.donation_effective = reason == actuate::Ineffective::none && boost != nullptr;
    if (out.donation_effective) out.donation_limited = actuate::name(boost->limited);
  } else if (looked.state == ThreadState::blocked) {
    // Blocked, and a thread that it waits for could run: virtual runnable, though it donates nothing.
    const bool somebody = std::ranges::any_of(looked.awaited, [&](const Resource& r) {
      const auto known = snapshot_.providers.find(r);
      return known != snapshot_.providers.end() && std::ranges::any_of(known->second, [&](const auto& p) {
               const auto member = snapshot_.threads.find(p.thread);
               return p.thread != thread.id && member != snapshot_.threads.end() && member->second.watched &&
                      member->second.state == model::RunState::runnable;
             });
    });
    if (somebody) out.state = ThreadState::virtual_runnable;
    const bool strangers =
        std::ranges::any_of(looked.awaited, [&](const Resource& r) { return snapshot_.unenrolled.contains(r); });
    if (somebody || depth == 0) return out;
    const auto held = what_holds_up(thread.id, looked);
    if (!held && !strangers) return out;
    out.has_donation = true;
    out.donation_reason = actuate::name(held ? reason_of(*held) : actuate::Ineffective::unmanaged);
  }
  return out;
}

std::vector<const SnapshotThread*> Views::select(pid_t pid) const {
  std::vector<const SnapshotThread*> out;
  for (const auto& [id, thread] : snapshot_.threads)
    if (thread.tgid == pid) out.push_back(&thread);
  if (out.empty())
    for (const auto& [id, thread] : snapshot_.threads)
      if (id.tid == pid) out.push_back(&thread);
  std::ranges::sort(out, {}, [](const SnapshotThread* t) { return t->id; });
  return out;
}

bus::GraphView Views::graph() {
  bus::GraphView out;
  std::unordered_set<std::string> nodes;
  const auto node = [&](const std::string& id, std::string_view type, const std::string& label) {
    if (nodes.insert(id).second) out.nodes.push_back({id, std::string(type), label});
  };
  const auto thread_node = [&](ThreadId id) {
    node(id_of(id), "thread", comm(id.tid) + " " + std::to_string(id.tid));
    return id_of(id);
  };
  std::unordered_set<std::string> provided;
  for (const auto& [id, thread] : snapshot_.threads) {
    const std::string from = thread_node(id);
    for (const Resource& resource : look(thread).awaited) {
      const std::string to = text(resource);
      node(to, "resource", to);
      out.edges.push_back({.from = from, .to = to, .type = "requests", .confidence = 0});
      if (!provided.insert(to).second) continue;
      const auto known = snapshot_.providers.find(resource);
      if (known == snapshot_.providers.end()) continue;
      for (const model::ProviderView& p : known->second)
        out.edges.push_back({.from = thread_node(p.thread),
                             .to = to,
                             .type = "provides",
                             .confidence = static_cast<double>(p.confidence)});
    }
  }
  for (const decide::CoschedulingDecider::JobView& job : snapshot_.jobs) {
    const std::string to = "job:" + std::to_string(job.id);
    node(to, "job",
         comm(static_cast<pid_t>(job.id)) + " " + std::to_string(job.id) + ", " +
             std::string(decide::job_state_words.of(job.state)));
    for (const decide::JobFinder::Member& member : job.members)
      if (member.waiting > 0)
        out.edges.push_back(
            {.from = thread_node(member.thread), .to = to, .type = "spins", .confidence = member.waiting});
  }
  return out;
}

std::vector<bus::ThreadView> Views::threads() {
  std::vector<bus::ThreadView> out;
  for (const auto& [id, one] : snapshot_.threads) out.push_back(thread(one, 0));
  std::ranges::sort(out, {}, [](const bus::ThreadView& t) { return std::pair(t.pid, t.tid); });
  return out;
}

bus::WorldView Views::world() {
  bus::WorldView out{.threads = threads(), .resources = {}};
  std::unordered_set<Resource> seen;
  for (const bus::ThreadView& thread : out.threads) {
    for (const bus::WaitNode& wait : thread.waiting_for) {
      if (!seen.insert(wait.resource).second) continue;
      bus::ResourceView& resource = out.resources.emplace_back();
      resource.resource = wait.resource;
      const auto known = snapshot_.providers.find(wait.resource);
      if (known == snapshot_.providers.end()) continue;
      for (const model::ProviderView& p : known->second) {
        const auto member = snapshot_.threads.find(p.thread);
        resource.providers.push_back({.pid = member == snapshot_.threads.end() ? p.thread.tid : member->second.tgid,
                                      .tid = p.thread.tid,
                                      .confidence = static_cast<double>(p.confidence)});
      }
    }
  }
  return out;
}

}  // namespace swapd::daemon
