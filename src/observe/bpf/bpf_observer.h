// The bpf observer: who waits and who wakes, from the scheduler itself (docs/design.md, Observers; docs/bpf.md).
//
// No call is touched and nothing is needed in the target. The kernel keeps the managed set; a watched thread's blocks
// and wakes come as records, with the call it waits in and the call of the thread that ended the wait. A wake names the
// provider where its call resolves to a resource that was awaited, or where the call says nothing of what it is about
// and its thread is known to provide that. A signal, a timeout, an unrelated descriptor and a borrowed interrupt name
// no provider.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ignore_gone.h"
#include "observe/bpf/patient_threads.h"
#include "observe/bpf/wait_rate.h"
#include "observe/observer.h"
#include "observe/resolve/families.h"
#include "observe/resolve/relays.h"
#include "observe/wait_state.h"
#include "sys/bpf/bpf_tracer.h"

namespace swapd::observe {

class BpfObserver final : public Observer {
 public:
  static constexpr std::size_t records_a_drain = 8192;  // the engine's turn stays bounded
  BpfObserver(std::unique_ptr<sys::BpfTracer> tracer, const sys::Procfs& procfs, Resolver& resolver, Hooks hooks);
  BpfObserver(const BpfObserver&) = delete;
  BpfObserver& operator=(const BpfObserver&) = delete;
  ~BpfObserver() override;

  [[nodiscard]] bool follows_children() const override { return tracer_->tells_lives(); }
  [[nodiscard]] Status manage(const Member& member) override;
  void release(ThreadId thread) override;
  [[nodiscard]] bool inherits(pid_t tid) const override { return !tracer_->tells_lives() || tracer_->manages(tid); }
  [[nodiscard]] Status listen(sys::EventLoop& loop) override;
  [[nodiscard]] std::optional<Time> deadline() const override;
  void drain(Time now, std::vector<Event>& out) override;
  void report_new(Time now, std::vector<Event>& out) override;
  void watch(const Member& member, bool sender) override;
  void unwatch(ThreadId thread) override;
  void set_urgent(ThreadId thread, bool urgent) override;
  void expect(ThreadId thread, ThreadId provider) override;
  [[nodiscard]] bool waits_unreported(ThreadId thread) override;
  void be_patient(ThreadId thread, Duration patience) override;
  void nap(bool on) override { tracer_->nap(on); }
  [[nodiscard]] bool counts_cpu() const override { return true; }
  [[nodiscard]] std::optional<Duration> cpu_time(ThreadId thread, Time now) const override {
    const auto used = tracer_->cpu_time(thread.tid, now);
    return used ? std::optional(*used) : std::nullopt;
  }
  void time_exactly(ThreadId thread, bool on) override { ignore_gone(tracer_->time_exactly(thread.tid, on)); }
  void look_if_unreported(ThreadId thread, Time since, std::vector<Event>& out) override;
  void look_at_unreported(Time now, std::vector<Event>& out) override;
  void look(ThreadId thread, Time now, std::vector<Event>& out) override;
  void resolve_again(ThreadId thread) override;
  void trace_wakes(ThreadId /*thread*/) override {}  // every wake names its waker
  void untrace_wakes(ThreadId /*thread*/) override {}
  bool held_by(const Resource& resource, const std::vector<ThreadId>& strangers, std::vector<Event>& out) override;
  [[nodiscard]] bool relays(ThreadId thread) const override;
  void answer(const WaitAnswer& answer, std::vector<Event>& out) override;
  void answer(const AccessAnswer& answer, std::vector<Event>& out) override;
  void forget(ThreadId thread) override;
  [[nodiscard]] Costs costs() const override;

 private:
  // How a waker's call was understood the last time; the same waker mostly comes again with the same call.
  struct Understood {
    pid_t waker = 0;
    std::int32_t call = -1;
    std::uint64_t arg = 0;
    std::vector<Resource> awaited;
    std::optional<Resource> through;
    bool unrelated = false;
  };
  struct Watched {
    WaitState wait;
    bool sender = false;
    bool fresh = true;       // its slot has not been read yet
    bool unsure = true;      // … nor again, when what was being written as the watch began has arrived
    Time began{};            // of the last wait, as the kernel's program says: tells it from others
    Time told{};             // the newest event of it: the next is not older, whenever its wait is said to have begun
    std::int32_t call = -1;  // of the last wait, as the kernel numbers it
    // The last wait that has ended: can it be told from others by its call and first argument, and which are they?
    struct Ended {
      bool distinct = false;
      std::int32_t call = -1;
      std::uint64_t arg = 0;
    } ended;
    // The kernel thread that ended the last wait for which no thread could be named, and its call.
    ThreadId kernel_thread;
    std::int32_t kernel_call = -1;
    // The last kind of wait for which it was asked who had been sent to, and when in vain.
    std::int32_t hinted_call = -1;
    std::uint64_t hinted_arg = 0;
    std::uint32_t hinted_order = 0;  // of the message that told it last: the how-many-eth wake
    Time hint_missed = Time::min();
    Understood understood;
    std::optional<Family> family;  // of its process, once that was asked
    Time ended_at{};               // when its last wait ended
    // The threads that a relay has passed its message of this wait on to; the relay of which that is still to be asked.
    std::vector<ThreadId> passed_to;
    pid_t passes_on = 0;
    std::uint64_t kin_told = 0;  // version of senders_ that its wait for signals was told of
    Time nobody_found{};         // when the worker last found no provider for a wait that names none
    WaitRate rate;
    std::uint32_t conversed_waits = 0;  // how many it had begun when it was told last that it waits often, and …
    Time conversed{};                   // … when that was, and
    ThreadId conversed_by;              // … which thread had ended the last
    std::uint32_t asked_waits = 0;      // how many waits it had begun when waits_unreported() was asked last
  };

  void follow();
  void follow_while_needed(Time now);
  [[nodiscard]] Watched* find(ThreadId thread);
  void request_rescan(Watched& watched);
  void look_again(Time now, std::vector<Event>& out);
  void left(const sys::BpfRecord& record, std::vector<Event>& out);
  void read_slot(Watched& w, Time now, std::vector<Event>& out);
  void wake_by_last(Watched& w, Time now, const sys::ThreadSlot& read, std::vector<Event>& out);
  [[nodiscard]] bool runs(pid_t tid) const;
  void read_procfs(Watched& w, Time now, std::vector<Event>& out);
  void tell_past_wait(Watched& w, Time blocked_at, std::vector<Event>& out);
  void block_in(Watched& w, const sys::ThreadSlot& slot, std::vector<Event>& out);
  void block(Watched& w, Time began, std::int32_t call, const CallSite& site, std::vector<Event>& out);
  void wake(Watched& w, Time time, const sys::Waker* waker, std::vector<Event>& out);
  void note_kernel_thread(Watched& w, pid_t tid) const;
  void credit(Watched& w, const sys::Waker& waker, Woken& woken);
  Understood understand(const Watched& w, const Member& by, const sys::Waker& waker, Time time);
  void name_sent_to(Watched& w, std::vector<Event>& out);
  [[nodiscard]] const Family& family_of(Watched& w) const;
  void learn_sender(Watched& w, const sys::Waker& waker);
  void name_kin(Watched& w, std::vector<Event>& out, std::size_t first);
  // Messages that threads which are not managed pass on.
  void observe_relay(ThreadId thread);
  void stop_observing(ThreadId thread);
  void take_of_relay(const sys::BpfRecord& record, std::vector<Event>& out);
  bool name_passed_to(Watched& w, std::vector<Event>& out);
  [[nodiscard]] std::optional<std::vector<ThreadId>> woken_in(const Watched& w, const Relays::Run& run) const;
  [[nodiscard]] std::vector<ThreadId> woken_last(const Watched& w, const Relays::Run& run) const;
  [[nodiscard]] bool slept_through(ThreadId thread, const Relays::Run& run) const;
  [[nodiscard]] Family callers_of(pid_t relay, const Watched& w) const;
  [[nodiscard]] std::optional<Member> answered_meanwhile(const Watched& w, pid_t relay) const;
  void credit_through(Watched& w, const sys::Waker& relay, Woken& woken);
  void take(const sys::BpfRecord& record, std::vector<Event>& out);
  void expect_a_name(const Watched& w);
  void ask_for_names(Time now);
  void look_for_losses(Time now, std::vector<Event>& out);
  // Threads that wait often.
  void count_wait(Watched& w, const sys::BpfRecord& record);
  void tell_each_wait(Watched& w);
  void look_at_patient(Time now, std::vector<Event>& out);
  void inverted(const Watched& w, Time now);
  void tell_conversation(Watched& w, std::uint32_t waits, Time now, std::vector<Event>& out) const;
  [[nodiscard]] int least_running() const;

  std::unique_ptr<sys::BpfTracer> tracer_;
  sys::EventLoop::Registration ring_;  // the tracer's
  const sys::Procfs& procfs_;
  Hooks hooks_;
  Resolver& resolver_;
  WaitTeller teller_;
  std::unordered_map<pid_t, std::unique_ptr<Watched>> watched_;
  std::unordered_map<pid_t, ThreadId> managed_;
  std::vector<Watched*> fresh_;
  std::deque<std::pair<Time, ThreadId>> looked_at_;  // those that are still unsure, and when that was
  // Waits that name no provider, by their beginnings: asked about when they last. nameless_again_: those asked about in
  // vain lately.
  struct Nameless {
    Time due;
    ThreadId thread;
    std::uint64_t generation = 0;
  };
  std::deque<Nameless> nameless_;
  std::deque<Nameless> nameless_again_;
  FamilySenders senders_;
  Relays relays_;
  FamilySenders services_;  // by relay, and by the program that asks through it
  PatientThreads patient_;
  std::uint64_t wakeups_ = 0;
  std::uint64_t losses_ = 0;           // of the tracer, that have been told
  bool not_followed_ = false;          // though a thread is watched; that has been told
  Time follow_again_{};                // when that is tried again at the earliest
  std::optional<Time> follows_until_;  // no thread is watched any more
};

}  // namespace swapd::observe
