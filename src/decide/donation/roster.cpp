#include "decide/donation/roster.h"

namespace swapd::decide {

void Roster::count(const Thread& thread, int by) {
  const auto add = [by](auto& table, const auto& key) {
    const auto at = table.try_emplace(key, 0).first;
    at->second += by;
    if (at->second <= 0) table.erase(at);
  };
  add(ranks_, swapd::rank(thread.base));
  add(weights_, thread.weight);
  add(users_, thread.uid);
}

void Roster::add(const Enrolled& enrolled) {
  const Thread* known = find(enrolled.thread);
  const Thread thread{enrolled.tgid, enrolled.uid,    enrolled.class_id,
                      enrolled.base, enrolled.weight, known == nullptr ? std::nullopt : known->ranked};
  remove(enrolled.thread);
  threads_[enrolled.thread] = thread;
  count(thread, 1);
}

void Roster::remove(ThreadId thread) {
  const auto known = threads_.find(thread);
  if (known == threads_.end()) return;
  count(known->second, -1);
  threads_.erase(known);
}

void Roster::rank(const Ranked& ranked) {
  if (const auto known = threads_.find(ranked.thread); known != threads_.end()) known->second.ranked = ranked.counts_as;
}

Roster::Ranks Roster::counted_otherwise() const {
  Ranks out;
  for (const auto& [id, thread] : threads_)
    if (thread.ranked) out.emplace(id, *thread.ranked);
  return out;
}

void Roster::restore(const Ranks& ranks) {
  for (const auto& [id, attr] : ranks)
    if (const auto known = threads_.find(id); known != threads_.end()) known->second.ranked = attr;
}

const Roster::Thread* Roster::find(ThreadId thread) const {
  const auto known = threads_.find(thread);
  return known == threads_.end() ? nullptr : &known->second;
}

bool Roster::is_important(ThreadId thread) const {
  const Thread* known = find(thread);
  return known != nullptr && swapd::rank(known->counts_as()) > lowest_rank();
}

}  // namespace swapd::decide
