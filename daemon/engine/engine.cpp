#include "engine/engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <future>
#include <span>
#include <utility>

#include "observe/bpf/bpf_observer.h"
#include "observe/io/io_calls.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {

constexpr std::size_t max_kept_off = 8;  // threads whose CPUs the engine keeps off
// Records gather for so long while a message goes along a chain all of which is lent to.
constexpr Duration chain_delay = std::chrono::microseconds(150);

bool counts_kernel_work(const model::Settings& settings) {
  for (std::size_t id = 0; id <= settings.classes.size(); ++id)
    if (settings.of(static_cast<ClassId>(id), ResourceKind::kernel_work).counts) return true;
  return false;
}

}  // namespace

Engine::Engine(const Kernel& kernel, observe::Resolver& resolver, Options options,
               std::unique_ptr<sys::BpfTracer> tracer, Shaper& shaper)
    : kernel_(kernel),
      resolver_(resolver),
      options_(std::move(options)),
      shaper_(shaper),
      members_(options_.classes),
      quota_(members_, options_.quota),
      model_(options_.model),
      actuator_(kernel.scheduler, kernel.groups, options_.actuate),
      worker_(kernel, options_.actuate.disk_groups, resolver, [this] { commands_.wake(); }),
      feed_(members_, kernel.clock),
      competitors_(actuator_, worker_),
      weights_(options_.donation.rules.look_at_weights(), members_, actuator_, worker_),
      pacer_(options_.tick, options_.idle_tick),
      own_cpu_(options_.budget),
      lends_to_kernel_threads_(counts_kernel_work(options_.model)) {
  observe::Observer::Hooks hooks{
      .identify = [this](pid_t tid) { return tracker_->identify(tid); },
      .ask = [this](observe::WaitQuestion q) { worker_.ask(q); },
      .ask_access = [this](observe::AccessQuestion q) { worker_.ask(q); },
      .lifecycle = [this](const sys::ProcEvent& e) { tracker_->on_process_event(e, kernel_.clock.now()); },
      .every_life = [this] { return feed_.wants(Notes::all); },
      .lost = [this](std::uint64_t events) { tracker_->on_lost(events, kernel_.clock.now()); },
      // No waits are seen meanwhile, which `status` says for as long as that lasts.
      .following =
          [this](const Status& status) {
            trouble_ = status ? "" : status.error().text() + "; nothing is lent until that works: it is tried again";
          }};
  if (tracer) {
    observer_ = std::make_unique<observe::BpfObserver>(std::move(tracer), kernel.procfs, resolver, std::move(hooks));
  } else {
    resolver.guess_through_buses();
    auto observer =
        std::make_unique<observe::SeccompObserver>(kernel.procfs, resolver, options_.observe, std::move(hooks));
    seccomp_ = observer.get();
    observer_ = std::move(observer);
  }
  tracker_.emplace(MemberTracker::Parts{kernel_, members_, *observer_, actuator_, listeners_, quota_, feed_, *this},
                   needs_listeners());
  std::vector<std::unique_ptr<decide::Decider>> deciders;
  auto donation = std::make_unique<decide::DonationDecider>(options_.donation);
  donation_ = donation.get();
  deciders.push_back(std::move(donation));
  auto auto_limits = std::make_unique<decide::AutoLimitDecider>();
  auto_limits_ = auto_limits.get();
  deciders.push_back(std::move(auto_limits));
  decisions_ = std::make_unique<DecisionLoop>(DecisionLoop::Parts{.members = members_,
                                                                  .model = model_,
                                                                  .observer = *observer_,
                                                                  .actuator = actuator_,
                                                                  .questions = worker_,
                                                                  .procfs = kernel_.procfs,
                                                                  .records = records_,
                                                                  .loop = loop_},
                                              options_.decisions, std::move(deciders));
  decisions_->limit_io_with(
      [this](const std::string& name, std::optional<std::int64_t> bytes) { shaper_.set_automatic(name, bytes); });
  decisions_->takes_for_runnable([this](const Blocked& blocked) { return would_run(blocked); });
  members_.on_change([this] { membership_.set(); });
  members_.on_member([this](const model::ManagedProcess& process, bool gone) {
    if (gone)
      shaper_.leave(process.tgid);
    else if (!process.kernel)
      shaper_.join(process.tgid, process.class_name);
  });
  actuator_.on_outcome([this](const actuate::Outcome& outcome) { on_outcome(outcome); });
}

Engine::~Engine() { stop(); }

Status Engine::start(std::vector<std::string>& warnings) {
  if (seccomp_ != nullptr)
    for (const std::string& line : seccomp_->missing()) warnings.push_back(line);
  if (!observer_->follows_children()) {
    if (auto opened = sys::ProcEvents::open())
      proc_events_ = std::move(opened).value();
    else
      warnings.push_back("process connector: " + opened.error().text() + "; children are found by scans instead");
  }
  if (auto recovered = actuator_.recover(); !recovered)
    warnings.push_back(recovered.error().text());
  else if (*recovered > 0)
    warnings.push_back("gave back the attributes of " + std::to_string(*recovered) +
                       " threads that an earlier run had changed");

  for (const std::string& line : actuator_.recovery_notes()) warnings.push_back(line);

  auto added = loop_.add(commands_.fd(), [this](const sys::EventLoop::Ready&) { commands_.clear(); });
  if (!added) return std::move(added).error().in("setting up the engine");
  hears_commands_ = std::move(added).value();
  if (Status listening = observer_->listen(loop_); !listening) return listening;
  worker_.start();
  std::promise<Status> realtime;
  auto started = realtime.get_future();
  thread_ = std::thread([this, &realtime] {
    sys::name_thread("swapd-engine");
    SchedAttr attr;
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = static_cast<std::uint8_t>(options_.priority);
    if (const auto cpus = kernel_.scheduler.affinity(0)) placement_.emplace(*cpus);
    realtime.set_value(kernel_.scheduler.set(0, attr));
    run();
  });
  if (auto set = started.get(); !set) {
    // It could not take the CPU back from a newborn that it has made real-time.
    call([](Engine& e) {
      actuate::Rules rules = e.options_.actuate.rules;
      rules.realtime = false;
      e.actuator_.set_rules(rules);
    });
    warnings.push_back("the engine runs in the ordinary class: " + set.error().text() +
                       "; donations come late under load");
  }
  return Done{};
}

void Engine::stop() {
  if (!thread_.joinable()) return;
  call([](Engine& e) { e.stopping_ = true; });
  thread_.join();
  worker_.stop();
}

bool Engine::call(std::function<void(Engine&)> command) {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  const bool taken = commands_.push([this, command = std::move(command), done] {
    command(*this);
    done->set_value();
  });
  if (taken) finished.wait();
  return taken;
}

void Engine::run() {
  pacer_.tick_soon(kernel_.clock.now());
  while (!stopping_) {
    loop_.wait(time_to_sleep(kernel_.clock.now()));
    Time now = kernel_.clock.now();
    loop_.dispatch(now);
    let_records_gather(now);
    round(now);
  }
  actuator_.restore_all();
  commands_.close();
}

// Empty: until something happens.
std::optional<Duration> Engine::time_to_sleep(Time now) const {
  Time wake_at = pacer_.next_tick(!members_.empty(), idle());
  if (const auto due = observer_->deadline()) wake_at = std::min(wake_at, *due);
  if (const auto due = decisions_->next()) wake_at = std::min(wake_at, *due);
  if (wake_at == Time::max()) return std::nullopt;
  return wake_at - now;
}

// A tick that finds nothing to do takes the caches and the TLB of whichever thread had the CPU: 65 us under a busy
// database. What ends the idleness wakes the engine. (Receivers leave calls for the next tick; a client that follows
// decisions hears of short lives, too.)
bool Engine::idle() const { return listeners_.size() == 0 && !feed_.wants(Notes::decisions) && decisions_->idle(); }

void Engine::let_records_gather(Time& now) {
  const bool in_chain = loop_.can_wait() && decisions_->may_batch();
  const Duration delay = std::max(pacer_.begin_turn(now), in_chain ? chain_delay : Duration::zero());
  if (delay == Duration::zero()) return;
  observer_->nap(true);
  const timespec moment{.tv_sec = 0, .tv_nsec = delay.count()};
  ::nanosleep(&moment, nullptr);
  observer_->nap(false);
  now = kernel_.clock.now();
}

void Engine::round(Time now) {
  const std::vector<CommandQueue::Command> commands = commands_.take();
  // A command may be about what has happened to a program and not been read yet: that comes first.
  if (!commands.empty()) take_what_happened(now);
  for (const CommandQueue::Command& command : commands) command();
  if (stopping_) return;
  take_what_happened(now);
  take_answers(now);
  decisions_->run_clocks(now);
  if (pacer_.begin_tick(now)) {
    tick(now);
    pacer_.measure(sys::own_cpu_time(), now);
    keep_to_budget(now);
  }
  weights_.ask();
  decisions_->run(now);
  feed_.on_donations(donation_->donations());
  // Receivers leave calls for the next batch, unless one of them may name the provider that is looked for.
  const bool urgent = decisions_->needs_calls();
  if (listeners_.set_urgent(urgent) && urgent) commands_.wake();  // calls that came in between
}

void Engine::take_what_happened(Time now) {
  take_proc_events(now);
  events_.clear();
  observer_->drain(now, events_);
  // Receivers, records and traces each come in order; a stable sort merges them by time.
  std::ranges::stable_sort(events_, {},
                           [](const Event& e) { return std::visit([](const auto& x) { return x.time; }, e); });
  for (const Event& event : events_) take(event);
}

void Engine::take_proc_events(Time now) {
  if (!proc_events_) return;
  std::array<sys::ProcEvent, 64> batch;
  for (;;) {
    const auto n = proc_events_->read(batch.data(), batch.size());
    if (!n) {  // some were lost
      tracker_->on_lost(1, now);
      if (n.error().code() == ENOBUFS) continue;
      proc_events_.reset();  // scans find the children from now on
      return;
    }
    for (const sys::ProcEvent& e : std::span(batch).first(*n)) tracker_->on_process_event(e, now);
    if (*n < batch.size()) return;
  }
}

void Engine::take(const Event& event) {
  if (const auto* blocked = std::get_if<Blocked>(&event); blocked != nullptr && lends_to_kernel_threads_)
    tracker_->enroll_kernel_threads(*blocked);
  decisions_->take(event);
  feed_.on_event(event, false);
}

void Engine::take_answers(Time now) {
  std::vector<Event> events;
  for (Answer& answer : worker_.take()) {
    events.clear();
    if (const auto* wait = std::get_if<observe::WaitAnswer>(&answer)) {
      observer_->answer(*wait, events);
    } else if (const auto* access = std::get_if<observe::AccessAnswer>(&answer)) {
      if (members_.thread(access->question.thread) == nullptr) continue;  // gone meanwhile
      observer_->answer(*access, events);
    } else if (const auto* scan = std::get_if<ScanAnswer>(&answer)) {
      decisions_->found(*scan, now);
    } else if (const auto* roster = std::get_if<RosterAnswer>(&answer)) {
      tracker_->take_roster(*roster, now);
    } else if (const auto* weights = std::get_if<WeightsAnswer>(&answer)) {
      weights_.take(*weights, *tracker_, now);
    } else if (auto* competitors = std::get_if<actuate::Competitors>(&answer)) {
      competitors_.take(std::move(*competitors), now);
    }
    for (const Event& event : events) take(event);
  }
}

void Engine::tick(Time now) {
  poll_held_threads(now);
  decisions_->tick(now);
  check_waiting_priorities(now);
  have_receivers_follow();
  keep_off_members(now);
  const bool children_are_told = proc_events_ != nullptr || observer_->follows_children();
  if (auto roster = tracker_->next_roster(now, children_are_told)) {
    worker_.ask(std::move(*roster));
    weights_.look_at_all();
  }
  competitors_.tick(now);
}

void Engine::keep_to_budget(Time now) {
  const auto patience = own_cpu_.measure(now, actuator_.active().size(), actuator_.total());
  if (!patience) return;
  decisions_->tell(decide::PatienceChanged{now, *patience});
  pacer_.set_patience(*patience);
}

// Priorities change while their owners wait [SWAP04 §4]: a waiting thread's own attributes are read each tick.
void Engine::check_waiting_priorities(Time now) {
  for (const decide::Donation& donation : std::vector(donation_->donations())) {
    const model::ManagedThread* member = members_.thread(donation.requester);
    if (member == nullptr || actuator_.base(member->id)) continue;
    const auto attr = kernel_.scheduler.get(member->id.tid);
    if (attr && *attr != member->base) tracker_->set_base(*member, *attr, now);
  }
}

void Engine::have_receivers_follow() {
  if (listeners_.size() == 0) return;
  std::vector<ListenerTable::Caller> realtime;
  const auto add = [&](pid_t tid) {
    if (const model::ManagedThread* member = members_.thread(tid)) realtime.push_back({tid, member->tgid});
  };
  for (const pid_t tid : members_.realtime()) add(tid);
  for (const actuate::Actuator::Active& active : actuator_.active())
    if (active.lent.realtime()) add(active.boost.thread.tid);
  listeners_.follow(realtime, options_.priority + 1, [this](pid_t tid) {
    const auto stat = kernel_.procfs.stat(tid);
    return stat ? std::optional(stat->processor) : std::nullopt;
  });
}

void Engine::keep_off_members(Time now) {
  if (!placement_) return;
  std::vector<int> busy;
  for (const decide::Donation& donation : donation_->donations()) {
    if (donation.attr.realtime()) continue;  // preempted, it goes on at once: no other thread may have its CPU
    for (const ThreadId thread : {donation.path.back(), donation.requester})
      if (const auto stat = kernel_.procfs.stat(thread.tid)) busy.push_back(stat->processor);
    if (busy.size() >= max_kept_off) break;
  }
  if (cpu_set_t cpus; placement_->move(::sched_getcpu(), busy, now, cpus))
    (void)kernel_.scheduler.set_affinity(0, cpus);
}

// Delayed by its class's limits, which end as soon as it is favoured. And each of the calls that are trapped for them
// sleeps until the receiver has looked at it, which is no reason to take anything back; nor is it where it then waits
// for the disk, which its priority holds for, too.
bool Engine::would_run(const Blocked& blocked) const {
  if (shaper_.would_run(blocked.thread.tid)) return true;
  if (!listeners_.any_io() || !blocked.awaited.empty() || observe::io_call(blocked.call) == nullptr) return false;
  const model::ManagedThread* member = members_.thread(blocked.thread);
  return member != nullptr && has_io(member->tgid);
}

// Also where it was seen to block before it was held.
void Engine::poll_held_threads(Time now) {
  std::unordered_map<pid_t, Time> held;
  for (const auto& [tid, since] : shaper_.would_run()) {
    held[tid] = since;
    const model::ManagedThread* member = members_.thread(tid);
    const auto before = held_before_.find(tid);
    if (member != nullptr && (before == held_before_.end() || before->second != since))
      decisions_->take(Woken{.time = now, .thread = member->id, .unrelated = true});
  }
  held_before_ = std::move(held);
}

void Engine::on_outcome(const actuate::Outcome& outcome) {
  // Favoured also where the boost does nothing for its CPU time.
  using What = actuate::Outcome::What;
  if (outcome.what == What::begun || outcome.what == What::changed || outcome.what == What::ineffective)
    shaper_.favour(outcome.boost.thread.tid, true);
  if (outcome.what == What::ended) shaper_.favour(outcome.boost.thread.tid, false);
  feed_.on_outcome(outcome);
}

void Engine::on_event(const Event& event) {
  weights_.on_event(event);
  decisions_->take(event);
}
void Engine::on_left(ThreadId thread, bool exited) { decisions_->forget(thread, exited); }
void Engine::on_forked(ThreadId parent, Time now) { decisions_->forked(parent, now); }
void Engine::on_process_born(pid_t child, pid_t parent) { shaper_.born(child, parent); }
void Engine::on_process_released(pid_t tgid, std::uint64_t start_time) { shaper_.release(tgid, start_time); }
void Engine::on_image_gone(pid_t tgid) { resolver_.forget(tgid); }
void Engine::on_number_free(pid_t tid) { shaper_.favour(tid, false); }

}  // namespace swapd::daemon
