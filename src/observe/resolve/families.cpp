#include "observe/resolve/families.h"

#include <algorithm>

namespace swapd::observe {

Family family_of(const sys::Procfs& procfs, pid_t tgid) {
  const auto stat = procfs.stat(tgid);
  if (!stat || stat->ppid <= 0) return {};
  const auto parent = procfs.thread_id(stat->ppid);
  const auto program = procfs.exe_identity(tgid);
  const auto parents = procfs.exe_identity(stat->ppid);
  if (!parent || !program || !parents || program->dev != parents->dev || program->ino != parents->ino) return {};
  return {.parent = *parent, .dev = program->dev, .ino = program->ino};
}

bool FamilySenders::knows(const Family& family, ThreadId by) const {
  const auto found = families_.find(family);
  return found != families_.end() &&
         std::ranges::find(found->second.senders, by, &Sender::thread) != found->second.senders.end();
}

bool FamilySenders::has_latches(const Family& family) const {
  const auto found = families_.find(family);
  return found != families_.end() && found->second.handled >= min_handled;
}

void FamilySenders::ended(const Family& family, ThreadId by, bool by_handler) {
  ++version_;
  if (families_.size() >= max_families && !families_.contains(family))
    families_.erase(std::ranges::min_element(families_, {}, [](const auto& known) { return known.second.last; }));
  Known& known = families_[family];
  known.last = version_;
  if (by_handler) known.handled = std::min(known.handled + 1, min_handled);
  auto found = std::ranges::find(known.senders, by, &Sender::thread);
  if (found == known.senders.end()) {
    if (known.senders.size() >= max_senders)
      known.senders.erase(std::ranges::min_element(known.senders, {}, &Sender::last));
    known.senders.push_back({.thread = by});
    found = known.senders.end() - 1;
  }
  found->last = version_;
  if (++found->wakes <= max_wakes) return;
  for (Sender& sender : known.senders) sender.wakes = sender.wakes / 2;
}

std::vector<ThreadId> FamilySenders::of(const Family& family) const {
  const auto found = families_.find(family);
  if (found == families_.end()) return {};
  std::vector<Sender> senders = found->second.senders;
  std::ranges::sort(senders, [](const Sender& a, const Sender& b) {
    return a.wakes != b.wakes ? a.wakes > b.wakes : a.last > b.last;
  });
  std::vector<ThreadId> out;
  for (const Sender& sender : senders) out.push_back(sender.thread);
  return out;
}

void FamilySenders::forget(ThreadId thread) {
  for (auto at = families_.begin(); at != families_.end();) {
    std::erase_if(at->second.senders, [&](const Sender& sender) { return sender.thread == thread; });
    at = at->second.senders.empty() || at->first.parent == thread ? families_.erase(at) : std::next(at);
  }
}

}  // namespace swapd::observe
