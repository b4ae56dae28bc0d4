#include "decide/donation/conversation.h"

#include <algorithm>
#include <utility>

namespace swapd::decide {

void Conversation::wait_ended(const Ended& ended) {
  if (ended.lasts <= Duration::zero() || ended.provider == ended.requester) return;
  note(asking_, ended.requester, ended);
  note(answering_, ended.provider, ended);
  note_answer(ended);
}

void Conversation::helped(const Ended& ended) {
  note_at_once(answering_, ended);
  note_answer(ended);
}

void Conversation::note_answer(const Ended& ended) {
  const auto at = answering_.find(ended.provider);
  if (at == answering_.end()) return;
  at->second.serves = false;
  if (at->second.requester == ended.requester) at->second.answered = ended.time;
}

void Conversation::supported(const Ended& ended) { note_at_once(supporting_, ended); }

void Conversation::served(const Ended& ended) {
  if (ended.lasts <= Duration::zero()) return;
  const auto at = answering_.find(ended.provider);
  const bool has_answered = at != answering_.end() && at->second.requester == ended.requester && !at->second.serves;
  if (has_answered && ended.time - at->second.answered <= answers_within)
    return note(answering_, ended.provider, ended);
  if (!supports(ended.provider)) return;
  Part& part = answering_[ended.provider];
  if (part.joined() && part.requester != ended.requester) return;
  if (!part.joined() || has_answered) part.serves = true;
  note(answering_, ended.provider, ended);
}

bool Conversation::only_serves(ThreadId thread) const {
  const Part* part = joined(answering_, thread);
  return part != nullptr && part->serves;
}

void Conversation::note_at_once(Map<ThreadId, Part>& parts, Ended ended) {
  if (ended.lasts <= Duration::zero() || ended.provider == ended.requester) return;
  ended.waits = enough;
  note(parts, ended.provider, ended);
}

void Conversation::note(Map<ThreadId, Part>& parts, ThreadId thread, const Ended& ended) {
  Part& part = parts[thread];
  if (part.begun == never || ended.time - part.begun > window) {
    part.begun = ended.time;
    part.waits = 0;
  }
  next_end_ = std::min(next_end_, end_of(part));
  part.waits += ended.waits;
  // The most important of several requesters counts, of equals the first.
  const bool own = part.requester == ended.requester;
  const bool other = own ? ended.rank != part.rank : ended.rank > part.rank;
  if (part.joined() && !own && !other) return;  // it does not go on for one on behalf of another
  if (!part.joined() || other) {
    if (!own) part.answered = never;
    part.requester = ended.requester;
    part.rank = ended.rank;
    part.through = ended.through;
  }
  if (!part.joined() && part.waits < enough) return;
  if (!part.joined() || other) changed_.push_back(thread);
  part.until = ended.time + ended.lasts;
  next_end_ = std::min(next_end_, part.until);
}

Time Conversation::end_of(const Part& part) { return part.joined() ? part.until : part.begun + window + Duration(1); }

const Conversation::Part* Conversation::joined(const Map<ThreadId, Part>& parts, ThreadId thread) {
  const auto found = parts.find(thread);
  return found != parts.end() && found->second.joined() ? &found->second : nullptr;
}

ThreadId Conversation::answers_for(ThreadId thread) const {
  const Part* part = joined(answering_, thread);
  return part == nullptr ? ThreadId{} : part->requester;
}

bool Conversation::supports(ThreadId thread) const { return joined(supporting_, thread) != nullptr; }

void Conversation::end_what_is_over(Time now) {
  if (now < next_end_) return;
  next_end_ = Time::max();
  for (Map<ThreadId, Part>* parts : {&asking_, &answering_, &supporting_})
    std::erase_if(*parts, [&](const auto& one) {
      const auto& [thread, part] = one;
      const Time end = end_of(part);
      if (now >= end) {
        if (part.joined()) changed_.push_back(thread);
        return true;
      }
      next_end_ = std::min(next_end_, end);
      return false;
    });
}

void Conversation::leave(ThreadId thread, ThreadId requester) {
  for (Map<ThreadId, Part>* parts : {&asking_, &answering_, &supporting_}) {
    const auto found = parts->find(thread);
    if (found == parts->end() || (requester.valid() && found->second.requester != requester)) continue;
    if (found->second.joined()) changed_.push_back(thread);
    parts->erase(found);
  }
}

void Conversation::forget(ThreadId thread) {
  for (Map<ThreadId, Part>* parts : {&asking_, &answering_, &supporting_})
    std::erase_if(*parts, [&](const auto& one) {
      if (one.first != thread && one.second.requester != thread) return false;
      if (one.second.joined()) changed_.push_back(one.first);
      return true;
    });
}

Vector<ThreadId> Conversation::take_changed() { return std::exchange(changed_, {}); }

}  // namespace swapd::decide
