#include "engine/event_feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <type_traits>
#include <variant>

namespace swapd::daemon {

namespace {
// Keys of told_: things that are told sparingly of one thread.
constexpr std::uint32_t about_ceiling = 0;
constexpr std::uint32_t about_quota = 1;
constexpr std::uint32_t about_progress = 2;
constexpr std::uint32_t about_members = 3;
}  // namespace

EventFeed::EventFeed(const model::ManagedSet& members, const Clock& clock)
    : members_(members), clock_(clock), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), queue_(wake_.get()) {}

std::vector<Note> EventFeed::take() {
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  return queue_.take();
}

void EventFeed::push(Note note) {
  if (!queue_.push(note)) ++lost_;
}

pid_t EventFeed::tgid_of(ThreadId thread) const {
  const model::ManagedThread* member = members_.thread(thread);
  return member == nullptr ? 0 : member->tgid;
}

void EventFeed::on_event(const Event& event, bool whole_process) {
  const bool decision = std::holds_alternative<Enrolled>(event) || std::holds_alternative<Exited>(event);
  if (!wants(decision ? Notes::decisions : Notes::all)) return;
  Note out{.process = whole_process};
  std::visit(
      [&](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        out.time = e.time;
        if constexpr (!std::is_same_v<T, Holders> && !std::is_same_v<T, QuantumUsed>) {
          out.thread = e.thread;
          out.tgid = tgid_of(e.thread);
        }
        const auto with = [&](const Resource& resource) {
          out.resource = resource;
          out.has_resource = true;
        };
        if constexpr (std::is_same_v<T, Enrolled>) {
          out.type = Note::Type::enrolled;
          out.attr = e.base;
        } else if constexpr (std::is_same_v<T, Accessed>) {
          out.type = Note::Type::accessed;
          with(e.resource);
        } else if constexpr (std::is_same_v<T, Released>) {
          out.type = Note::Type::released;
          with(e.resource);
        } else if constexpr (std::is_same_v<T, Blocked>) {
          out.type = Note::Type::blocked;
          if (!e.awaited.empty()) with(e.awaited.front());
        } else if constexpr (std::is_same_v<T, Woken>) {
          out.type = Note::Type::woken;
          if (e.by) out.other = *e.by;
          if (e.through) with(*e.through);
        } else if constexpr (std::is_same_v<T, Execed>) {
          out.type = Note::Type::execed;
        } else if constexpr (std::is_same_v<T, Exited>) {
          out.type = Note::Type::exited;
        }
      },
      event);
  if (out.thread.valid()) push(out);
}

void EventFeed::on_spawned(ThreadId child, pid_t tgid, ThreadId parent, Time now) {
  if (wants(Notes::all))
    push({.type = Note::Type::spawned, .time = now, .thread = child, .tgid = tgid, .other = parent});
}

void EventFeed::on_managed(ThreadId leader, bool managed, Time now) {
  if (!wants(Notes::decisions)) return;
  push({.type = managed ? Note::Type::enrolled : Note::Type::unenrolled,
        .time = now,
        .thread = leader,
        .tgid = leader.tid,
        .process = true});
}

void EventFeed::on_over_quota(ThreadId thread, pid_t tgid, std::uint32_t uid, Time now) {
  if (!wants(Notes::decisions)) return;
  if (!told_.tell({.first = {tgid, uid}, .what = about_members}, now)) return;
  push({.type = Note::Type::limit_reached, .time = now, .thread = thread, .tgid = tgid, .limit = "members"});
}

void EventFeed::on_donations(const Vector<decide::Donation>& donations) {
  if (!wants(Notes::decisions)) {
    found_.clear();
    return;
  }
  now_.clear();
  for (const decide::Donation& donation : donations) {
    if (donation.path.empty()) continue;
    const ThreadId provider = donation.path.back();
    now_.emplace(donation.requester, provider);
    if (found_.contains({donation.requester, provider})) continue;
    const Time now = clock_.now();
    if (!told_.tell({.first = donation.requester, .second = provider}, now)) continue;
    push({.type = Note::Type::inversion_found,
          .time = now,
          .thread = provider,
          .tgid = tgid_of(provider),
          .other = donation.requester,
          .other_tgid = tgid_of(donation.requester),
          .resource = donation.resource,
          .has_resource = true,
          .attr = donation.attr});
  }
  found_.swap(now_);
}

void EventFeed::on_outcome(const actuate::Outcome& outcome) {
  using What = actuate::Outcome::What;
  using actuate::Ineffective;
  const bool followed = wants(Notes::decisions);
  const bool journal = journal_wanted_.load(std::memory_order_relaxed);
  if (!followed && !journal) return;
  if (outcome.what == What::changed || outcome.what == What::rebased) return;
  Note out{.time = clock_.now(),
           .thread = outcome.boost.thread,
           .tgid = tgid_of(outcome.boost.thread),
           .other = outcome.boost.requester,
           .resource = outcome.boost.resource,
           .has_resource = true,
           .attr = outcome.lent,
           .reason = outcome.reason,
           .limited = outcome.limited};
  const auto may_tell = [&](std::uint32_t what) {
    return followed && told_.tell({.first = out.thread, .what = what}, out.time).has_value();
  };
  if (outcome.what == What::begun)
    out.type = Note::Type::donation_begun;
  else if (outcome.what == What::ended)
    out.type = Note::Type::donation_ended;
  else
    out.type = Note::Type::ineffective;
  if (outcome.what == What::ineffective) {
    if (outcome.reason == Ineffective::ceiling || outcome.reason == Ineffective::quota) {  // ten times a second
      if (!may_tell(outcome.reason == Ineffective::quota ? about_quota : about_ceiling)) return;
      out.type = Note::Type::limit_reached;
      out.limit = actuate::name(outcome.reason);
      return push(out);
    }
    if (outcome.reason == Ineffective::no_progress && !may_tell(about_progress)) return;  // it comes and goes
  }
  if (journal && out.type != Note::Type::donation_ended)
    out.journalled = journalled_.tell({out.other, out.thread, out.type == Note::Type::ineffective ? 1U : 0U}, out.time);
  if (out.journalled && !journal_room_.take(out.time)) out.journalled.reset();
  out.other_tgid = tgid_of(out.other);
  if (followed || out.journalled) push(out);
}

}  // namespace swapd::daemon
