#include "engine/engine.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "observe/bpf/bpf_observer.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {

constexpr std::uint64_t key_wake = 1;
constexpr auto roster_period = std::chrono::seconds(1);
constexpr auto roster_period_a_thread = std::chrono::milliseconds(1);  // reading one takes some 20 us
constexpr std::size_t max_followed = 8;                                // threads whose CPUs the engine keeps off
constexpr auto competitors_period = std::chrono::milliseconds(500);
constexpr auto competitors_again = std::chrono::milliseconds(110);
constexpr auto longest_without_competitors = std::chrono::seconds(5);
constexpr Duration chain_nap = std::chrono::microseconds(150);
constexpr unsigned longest_rest = 2;  // ticks without a look at where a member in a real-time class runs

void ring(int fd) {
  const std::uint64_t one = 1;
  (void)!::write(fd, &one, sizeof one);
}
void silence(int fd) {
  std::uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
}

}  // namespace

Engine::Engine(const sys::Procfs& procfs, const sys::Scheduler& scheduler, const sys::Groups& groups,
               observe::Resolver& resolver, const Clock& clock, Options options, std::unique_ptr<sys::BpfTracer> tracer,
               Shaper& shaper)
    : procfs_(procfs),
      scheduler_(scheduler),
      resolver_(resolver),
      clock_(clock),
      options_(std::move(options)),
      shaper_(shaper),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      notes_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      membership_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      members_(options_.classes),
      model_(options_.model),
      actuator_(scheduler, groups, options_.actuate),
      worker_(procfs, scheduler, groups, options_.actuate.disk_groups, resolver, [this] { ring(wake_fd_.get()); }) {
  observe::Observer::Hooks hooks{.identify = [this](pid_t tid) { return identify(tid); },
                                 .ask = [this](observe::WaitQuestion q) { worker_.ask(q); },
                                 .ask_access = [this](observe::AccessQuestion q) { worker_.ask(q); },
                                 .lifecycle = [this](const sys::ProcEvent& e) { happened(e, clock_.now()); },
                                 .every_life = [this] { return noted(Notes::all); },
                                 .lost = [this](std::uint64_t events) { request_rescan(events, clock_.now()); },
                                 .following = [this](const Status& status) { on_tracing_changed(status); }};
  if (tracer) {
    observer_ =
        std::make_unique<observe::BpfObserver>(std::move(tracer), procfs, resolver, std::move(hooks), epoll_.get());
  } else {
    resolver.guess_through_buses();
    auto observer =
        std::make_unique<observe::SeccompObserver>(procfs, resolver, options_.observe, std::move(hooks), epoll_.get());
    seccomp_ = observer.get();
    observer_ = std::move(observer);
  }
  std::vector<std::unique_ptr<decide::Decider>> deciders;
  auto donation = std::make_unique<decide::DonationDecider>(options_.donation);
  donation_ = donation.get();
  deciders.push_back(std::move(donation));
  decisions_ = std::make_unique<DecisionLoop>(DecisionLoop::Parts{.members = members_,
                                                                  .model = model_,
                                                                  .observer = *observer_,
                                                                  .actuator = actuator_,
                                                                  .questions = worker_,
                                                                  .procfs = procfs_,
                                                                  .records = records_,
                                                                  .epoll = epoll_.get()},
                                              options_.decisions, std::move(deciders));
  decisions_->takes_for_runnable([this](const Blocked& blocked) { return would_run(blocked); });
  members_.on_change([this] {
    if (!membership_told_.exchange(true)) ring(membership_fd_.get());
  });
  members_.on_member([this](const model::ManagedProcess& process, bool gone) {
    if (gone)
      shaper_.leave(process.tgid);
    else if (!process.kernel)
      shaper_.join(process.tgid, process.class_name);
  });
  actuator_.on_outcome([this](const actuate::Outcome& outcome) { note_outcome(outcome); });
}

Engine::~Engine() { stop(); }

void Engine::membership_seen() {
  silence(membership_fd_.get());
  membership_told_.store(false);
}

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

  epoll_event wake{.events = EPOLLIN, .data = {.u64 = key_wake}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_fd_.get(), &wake) != 0)
    return errno_error("setting up the engine's descriptors");
  worker_.start();
  std::promise<Status> realtime;
  auto started = realtime.get_future();
  thread_ = std::thread([this, &realtime] {
    sys::name_thread("swapd-engine");
    SchedAttr attr;
    attr.policy = SchedPolicy::fifo;
    attr.rt_priority = static_cast<std::uint8_t>(options_.priority);
    if (const auto cpus = scheduler_.affinity(0)) placement_.emplace(*cpus);
    realtime.set_value(scheduler_.set(0, attr));
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
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    commands_.push_back([this, command = std::move(command), done] {
      command(*this);
      done->set_value();
    });
  }
  ring(wake_fd_.get());
  finished.wait();
  return true;
}

void Engine::run() {
  std::array<epoll_event, 32> ready{};
  next_tick_ = clock_.now();
  while (!stopping_) {
    Time now = clock_.now();
    Time wake_at = members_.empty() ? Time::max() : next_tick_;
    if (rests()) wake_at = std::max(wake_at, next_tick_ - options_.tick + options_.resting_tick);
    if (const auto due = observer_->deadline()) wake_at = std::min(wake_at, *due);
    if (const auto due = decisions_->next()) wake_at = std::min(wake_at, *due);
    timespec wait{};
    const bool bounded = wake_at != Time::max();
    if (bounded && wake_at > now) {
      const auto left = wake_at - now;
      wait.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
      wait.tv_nsec = (left % std::chrono::seconds(1)).count();
    }
    const int n =
        ::epoll_pwait2(epoll_.get(), ready.data(), static_cast<int>(ready.size()), bounded ? &wait : nullptr, nullptr);
    now = clock_.now();
    for (int i = 0; i < n; ++i) {
      const std::uint64_t key = ready.at(static_cast<std::size_t>(i)).data.u64;
      if (key == key_wake) silence(wake_fd_.get());
      if (key >= observe::Observer::first_key)
        observer_->ready(key, (ready.at(static_cast<std::size_t>(i)).events & EPOLLHUP) != 0);
      else if (key >= CpuClocks::first_key)
        decisions_->clock_ready(key, (ready.at(static_cast<std::size_t>(i)).events & EPOLLHUP) != 0, now);
    }
    const bool records_only = n > 0 && std::all_of(ready.begin(), ready.begin() + n, [](const epoll_event& e) {
                                return e.data.u64 >= observe::Observer::first_key;
                              });
    nap(now, records_only && decisions_->may_batch() ? chain_nap : Duration::zero());
    drain_all(now);
  }
  actuator_.restore_all();
  std::vector<std::function<void()>> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(commands_);
  }
  for (auto& command : left) command();  // whoever asked waits for it
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

void Engine::drain_all(Time now) {
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  // Who gives a command may know of what has happened to a program and not been read yet: that comes first.
  if (!commands.empty()) take_what_happened(now);
  for (auto& command : commands) command();
  if (stopping_) return;
  take_what_happened(now);
  take_answers(now);
  decisions_->run_clocks(now);
  if (now >= next_tick_) {
    next_tick_ = now + options_.tick;
    tick(now);
    pace(now);
  }
  decisions_->run(now);
  if (noted(Notes::decisions))
    note_inversions();
  else if (!helped_.empty())
    helped_.clear();
  set_receivers_urgent(decisions_->needs_calls());
}

// Receivers leave calls for the next batch, unless one of them may name the provider that is looked for.
void Engine::set_receivers_urgent(bool wanted) {
  if (wanted == urgent_) return;
  urgent_ = wanted;
  for (const auto& receiver : receivers_) receiver->set_urgent(wanted);
  if (wanted) ring(wake_fd_.get());  // what came in between
}

void Engine::take(const Event& event) {
  if (const auto* blocked = std::get_if<Blocked>(&event); blocked != nullptr && lends_to_kernel_threads())
    enroll_kernel_threads(*blocked);
  decisions_->take(event);
  if (noted(Notes::decisions)) note_event(event);
}

void Engine::take_answers(Time now) {
  for (Answer& answer : worker_.take()) {
    if (const auto* wait = std::get_if<observe::WaitAnswer>(&answer)) {
      std::vector<Event> events;
      observer_->answer(*wait, events);
      for (const Event& event : events) take(event);
    } else if (const auto* access = std::get_if<observe::AccessAnswer>(&answer)) {
      if (members_.thread(access->question.thread) == nullptr) continue;  // gone meanwhile
      std::vector<Event> events;
      observer_->answer(*access, events);
      for (const Event& event : events) take(event);
    } else if (const auto* scan = std::get_if<ScanAnswer>(&answer)) {
      decisions_->found(*scan, now);
    } else if (const auto* roster = std::get_if<RosterAnswer>(&answer)) {
      take_roster(*roster, now);
    } else if (auto* competitors = std::get_if<actuate::Competitors>(&answer)) {
      if (competitors->unsure) next_competitors_ = std::min(next_competitors_, now + competitors_again);
      actuator_.set_competitors(std::move(*competitors));
      competitors_seen_ = now;
    }
  }
}

void Engine::tick(Time now) {
  poll_held_threads(now);
  decisions_->tick(now);
  check_waiting_priorities(now);
  follow_members();
  keep_off_members(now);
  if (now >= next_roster_) {
    next_roster_ = now + std::max<Duration>(roster_period, members_.threads().size() * roster_period_a_thread);
    std::vector<pid_t> all;
    for (const auto& [tgid, process] : members_.processes())
      if (!process.kernel) all.push_back(tgid);
    const bool followed = proc_events_ != nullptr || observer_->follows_children();
    const bool descendants = std::exchange(rescan_, false) || !followed;
    if (all.empty()) {  // nobody is left for whom they could work
      std::vector<pid_t> kernel_threads;
      for (const auto& [tgid, process] : members_.processes()) kernel_threads.push_back(tgid);
      for (const pid_t tgid : kernel_threads) (void)release(tgid);
    } else {
      worker_.ask(RosterQuestion{std::move(all), descendants});
    }
  }
  if (now - competitors_seen_ > longest_without_competitors) actuator_.forget_what_passes();
  // Where there are many threads the look takes long, and then it is taken less often.
  if (now < next_competitors_ || !(worker_.rested(now) || now > next_competitors_ + longest_without_competitors))
    return;
  std::set<pid_t> boosted;
  for (const auto& active : actuator_.active()) boosted.insert(active.boost.thread.tid);
  if (boosted.empty()) return;
  next_competitors_ = now + competitors_period;
  worker_.ask(CompetitorsQuestion{std::move(boosted)});
}

// Priorities change while their owners wait [SWAP04 §4]: a waiting thread's own attributes are read each tick.
void Engine::check_waiting_priorities(Time now) {
  for (const decide::Donation& donation : std::vector(donation_->donations())) {
    const model::ManagedThread* member = members_.thread(donation.requester);
    if (member == nullptr || actuator_.base(member->id)) continue;
    const auto attr = scheduler_.get(member->id.tid);
    if (!attr || *attr == member->base) continue;
    const model::ManagedProcess* process = members_.process(member->tgid);
    (void)enroll(member->id, member->tgid, *attr, process->uid, now);
  }
}

// A member in a real-time class must not wait for a receiver of the ordinary class, behind whoever else is real-time on
// its CPU (docs/design.md, Threads): its receiver follows it, as long as there is one.
void Engine::follow_members() {
  if (receivers_.empty()) return;
  std::unordered_map<const observe::Receiver*, pid_t> leads;
  const auto consider = [&](pid_t tid) {
    const model::ManagedThread* member = members_.thread(tid);
    const auto listener = member == nullptr ? listener_of_.end() : listener_of_.find(member->tgid);
    if (listener == listener_of_.end()) return;
    pid_t& lead = leads[listener->second];
    if (lead == 0 || tid == listener->second->last_caller()) lead = tid;
  };
  for (const pid_t tid : members_.realtime()) consider(tid);
  for (const actuate::Actuator::Active& active : actuator_.active())
    if (active.lent.realtime()) consider(active.boost.thread.tid);
  for (const auto& receiver : receivers_) {
    Follow& state = following_[receiver.get()];
    const std::uint64_t received = receiver->received();
    const auto lead = leads.find(receiver.get());
    int cpu = -1;
    if (lead != leads.end()) {
      const bool same = state.cpu >= 0 && state.lead == lead->second;
      if (same && state.rest > 0) {
        --state.rest;
        continue;
      }
      if (same && received == state.received) continue;  // it has slept, or computed: the next call will tell
      state.received = received;
      const auto stat = procfs_.stat(lead->second);
      if (!stat) continue;
      cpu = stat->processor;
      state.lead = lead->second;
      state.settled = same && cpu == state.cpu ? std::min(state.settled + 1, longest_rest) : 0;
      state.rest = state.settled;
    }
    if (cpu == state.cpu) continue;
    if (receiver->follow(cpu, options_.priority + 1)) state.cpu = cpu;
  }
}

void Engine::keep_off_members(Time now) {
  if (!placement_) return;
  std::vector<int> busy;
  for (const decide::Donation& donation : donation_->donations()) {
    if (donation.attr.realtime()) continue;  // preempted, it goes on at once: nobody else may have its CPU
    for (const ThreadId thread : {donation.path.back(), donation.requester})
      if (const auto stat = procfs_.stat(thread.tid)) busy.push_back(stat->processor);
    if (busy.size() >= max_followed) break;
  }
  if (cpu_set_t cpus; placement_->move(::sched_getcpu(), busy, now, cpus)) (void)scheduler_.set_affinity(0, cpus);
}

}  // namespace swapd::daemon
