// Threads that keep waiting for each other, thousands of times a second perhaps (docs/design.md, Donation). Pure.
//
// Help for one wait at a time comes too late there, and costs as much as it gives. So what a wait lends stays with the
// threads of the conversation from one wait to the next: who waits *asks*, who ends the wait *answers*, and so do those
// that were helped because that one waited for them. Who wakes a thread that answers *supports* it: that thread may
// wait for any of its clients, so nothing is lent there but a short slice, which takes nothing from others; unless an
// important thread in its turn ends the waits of the one that supports, which then works for it, and answers too. An
// important thread of many connections has a wait ended by one provider out of many, so one that has answered it goes
// on as long as it takes what that thread sends. It is over for a thread when nothing has been heard of its waits, or
// of those that it ends, for a while.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/event.h"
#include "base/recycled.h"

namespace swapd::decide {

class Conversation {
 public:
  static constexpr std::uint32_t enough = 4;                            // told waits make a conversation …
  static constexpr Duration window = std::chrono::milliseconds(250);    // … in this time
  static constexpr Duration answers_within = std::chrono::seconds(10);  // one that is sent work, to go on answering

  // A thread's part in it.
  struct Part {
    ThreadId requester;  // the important thread that it takes part for
    int rank = 0;        // … of this rank
    Resource through;    // what a wait was for
    std::uint32_t waits = 0;
    Time begun = never;     // of the window
    Time until = never;     // it takes part until then
    Time answered = never;  // it has ended a wait of the requester's
    bool serves = false;    // it answers for no other reason than that the requester ends its waits
    [[nodiscard]] bool joined() const { return until != never; }
    template <typename Self, typename Archive>
    static void state(Self& self, Archive& archive) {
      archive(self.requester, self.rank, self.through, self.waits, self.begun, self.until, self.answered, self.serves);
    }
  };
  // A wait that was told is over, or several that were not.
  struct Ended {
    Time time;
    ThreadId requester, provider;
    int rank = 0;  // the requester's
    Resource through;
    std::uint32_t waits = 1;
    Duration lasts{};  // how long its threads stay in the conversation; 0: there is none
  };
  void wait_ended(const Ended& ended);
  // The wait of a thread that answers this requester is over. helped: the provider was lent to for it, else it
  // supports.
  void helped(const Ended& ended);
  void supported(const Ended& ended);
  // The requester has ended the wait of a thread that supports: `provider` works for it, unless it answers another one.
  // Or of one that has answered it lately: that goes on, or joins.
  void served(const Ended& ended);
  // It answers only so: no thread is known to wait for it.
  [[nodiscard]] bool only_serves(ThreadId thread) const;
  // For which important thread it answers; an invalid one: it does not.
  [[nodiscard]] ThreadId answers_for(ThreadId thread) const;
  [[nodiscard]] bool supports(ThreadId thread) const;
  [[nodiscard]] const Map<ThreadId, Part>& asking() const { return asking_; }
  [[nodiscard]] const Map<ThreadId, Part>& answering() const { return answering_; }
  [[nodiscard]] const Map<ThreadId, Part>& supporting() const { return supporting_; }
  [[nodiscard]] bool empty() const { return asking_.empty() && answering_.empty() && supporting_.empty(); }

  void end_what_is_over(Time now);  // looks at all parts only where one may be over
  // It takes no part any more, until it joins anew: what stands with it does not help. With a requester: no part for
  // that one.
  void leave(ThreadId thread, ThreadId requester = {});
  void forget(ThreadId thread);
  // Threads that have joined or left since the last call, or take part for another requester.
  [[nodiscard]] Vector<ThreadId> take_changed();

  template <typename Self, typename Archive>
  static void state(Self& self, Archive& archive) {
    if constexpr (!std::is_const_v<Self>) self.next_end_ = {};
    archive(self.asking_, self.answering_, self.supporting_, self.changed_);
  }

 private:
  // Its part, once it has joined; null: it has none.
  [[nodiscard]] static const Part* joined(const Map<ThreadId, Part>& parts, ThreadId thread);
  [[nodiscard]] static Time end_of(const Part& part);
  void note(Map<ThreadId, Part>& parts, ThreadId thread, const Ended& ended);
  void note_answer(const Ended& ended);
  void note_at_once(Map<ThreadId, Part>& parts, Ended ended);

  Map<ThreadId, Part> asking_, answering_, supporting_;  // those that may join yet, too
  Vector<ThreadId> changed_;
  Time next_end_{};  // no part is over before
};

}  // namespace swapd::decide
