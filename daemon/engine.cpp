#include "engine.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sys/self.h"

namespace swapd::daemon {

namespace {

constexpr std::uint64_t key_wake = 1;
constexpr auto roster_period = std::chrono::seconds(1);
constexpr std::size_t most_followed = 8;  // threads whose CPUs the engine keeps off
constexpr auto competitors_period = std::chrono::milliseconds(500);

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
               observe::Resolver& resolver, const Clock& clock, Options options)
    : procfs_(procfs),
      scheduler_(scheduler),
      clock_(clock),
      options_(std::move(options)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      notes_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      model_(options_.model),
      actuator_(scheduler, groups, options_.actuate),
      worker_(procfs, scheduler, groups, resolver, [this] { ring(wake_fd_.get()); }) {
  observe::Observer::Hooks hooks{.identify = [this](pid_t tid) { return identify(tid); },
                                 .ask = [this](observe::WaitQuestion q) { worker_.ask(std::move(q)); },
                                 .ask_access = [this](observe::AccessQuestion q) { worker_.ask(std::move(q)); }};
  observer_ =
      std::make_unique<observe::SeccompObserver>(procfs, resolver, options_.observe, std::move(hooks), epoll_.get());
  donor_ = std::make_unique<Donor>(options_.donor, members_, model_, *observer_, actuator_, worker_, epoll_.get());
  actuator_.on_outcome([this](const actuate::Outcome& outcome) { note_outcome(outcome); });
}

Engine::~Engine() { stop(); }

Status Engine::start(std::vector<std::string>& warnings) {
  for (const std::string& line : observer_->missing()) warnings.push_back(line);
  if (auto opened = sys::ProcEvents::open())
    proc_events_ = std::move(opened).value();
  else
    warnings.push_back("process connector: " + opened.error().text() + "; children are found by scans instead");
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
  if (auto set = started.get(); !set)
    warnings.push_back("the engine runs in the ordinary class: " + set.error().text() +
                       "; donations come late under load");
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
    if (const auto due = observer_->deadline()) wake_at = std::min(wake_at, *due);
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
      else if (key >= Donor::timer_keys)
        donor_->timer_expired(key, (ready.at(static_cast<std::size_t>(i)).events & EPOLLHUP) != 0, now);
    }
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

void Engine::drain_all(Time now) {
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (auto& command : commands) command();
  if (stopping_) return;
  take_proc_events(now);
  events_.clear();
  observer_->drain(now, events_);
  // Receivers, records and traces each come in order; a stable sort merges them by time.
  std::ranges::stable_sort(events_, {},
                           [](const Event& e) { return std::visit([](const auto& x) { return x.time; }, e); });
  for (const Event& event : events_) take(event);
  take_answers(now);
  if (now >= next_tick_) {
    next_tick_ = now + options_.tick;
    tick(now);
  }
  donor_->reconcile(now);
  hear_calls_at_once(donor_->needs_calls_at_once(now));
}

// Receivers leave calls for the next batch, unless one of them may name the provider that is looked for.
void Engine::hear_calls_at_once(bool wanted) {
  if (wanted == urgent_) return;
  urgent_ = wanted;
  for (const auto& receiver : receivers_) receiver->set_urgent(wanted);
  if (wanted) ring(wake_fd_.get());  // what came in between
}

void Engine::take(const Event& event) {
  donor_->take(event);
  if (notes_wanted_.load(std::memory_order_relaxed)) note_event(event);
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
      donor_->found(*scan, now);
    } else if (const auto* roster = std::get_if<RosterAnswer>(&answer)) {
      take_roster(*roster, now);
    } else if (auto* competitors = std::get_if<actuate::Competitors>(&answer)) {
      actuator_.set_competitors(std::move(*competitors));
    }
  }
}

// --- the managed set ---

void Engine::enrol(ThreadId id, pid_t tgid, const SchedAttr& base, std::uint32_t uid, Time now) {
  const MemberThread* known = members_.thread(id.tid);
  if (known != nullptr && known->id != id) exited(id.tid, now);  // a recycled tid
  if (members_.process(tgid) == nullptr) return;                 // and its process went with it
  members_.add_thread({.id = id, .tgid = tgid, .base = base});
  const MemberProcess* process = members_.process(tgid);
  if (process != nullptr && process->managed) {
    take(Enrolled{.time = now, .thread = id, .tgid = tgid, .uid = uid, .base = base});
    donor_->base_changed();
  }
}

void Engine::child(const sys::ProcEvent& fork, Time now) {
  const pid_t tid = fork.tid;
  const pid_t tgid = fork.tgid;
  const bool new_process = tid == tgid;
  // Of a new thread the connector names the parent of its process; what counts is the process.
  const pid_t parent_tgid = new_process ? fork.parent_tgid : tgid;
  const MemberProcess* parent = members_.process(parent_tgid);
  if (parent == nullptr) return;
  const auto id = procfs_.thread_id(tid);
  const auto attr = scheduler_.get(tid);
  if (!id || !attr) return;  // gone already
  if (const MemberProcess* stale = members_.process(tgid);
      new_process && stale != nullptr && stale->start_time != id->start_time) {
    for (const pid_t thread : std::vector(stale->threads)) exited(thread, now);  // of their end nothing was heard
    parent = members_.process(parent_tgid);
    if (parent == nullptr) return;
  }
  if (new_process && members_.process(tgid) == nullptr) {
    const std::string class_name = parent->class_name;
    const bool managed = parent->managed;
    members_.add_process(tgid, id->start_time, parent->uid, class_name).managed = managed;
    parent = members_.process(parent_tgid);  // the table may have moved
    if (const auto listener = listener_of_.find(parent_tgid); listener != listener_of_.end())
      listener_of_[tgid] = listener->second;
  }
  SchedAttr base = *attr;
  // What a boosted parent's child starts with is reset-on-fork's; the actuator knows, for a while, who was boosted when
  // it forked.
  const MemberThread* from = members_.thread(new_process ? fork.parent_tid : tgid);
  constexpr std::size_t most_makers = 64;  // of a thread: any thread of its process
  if (new_process && from != nullptr) actuator_.adopt_child(*id, from->id);
  for (std::size_t i = 0; !new_process && i < std::min(parent->threads.size(), most_makers); ++i)
    actuator_.adopt_child(*id, members_.thread(parent->threads[i])->id);
  if (const auto again = scheduler_.get(tid)) base = *again;
  enrol(*id, tgid, base, members_.process(tgid)->uid, now);
  if (new_process && parent->managed) {
    // Whoever waits for it, or for any child of that parent, waits for this thread: no scan need find it.
    const auto u64 = [](pid_t pid) { return static_cast<std::uint64_t>(pid); };
    const Resource itself{ResourceKind::child_exit, {u64(tgid), id->start_time}};
    const Resource any{ResourceKind::child_exit, {0, 0, u64(parent->tgid), parent->start_time}};
    for (const Resource& resource : {itself, any})
      take(Accessed{.time = now, .thread = *id, .resource = resource, .evidence = Evidence::child});
  }
  if (notes_wanted_.load(std::memory_order_relaxed)) {
    note(
        {.type = Note::Type::spawned, .time = now, .thread = *id, .tgid = tgid, .other = from ? from->id : ThreadId{}});
  }
}

void Engine::exited(pid_t tid, Time now) {
  const MemberThread* member = members_.thread(tid);
  if (member == nullptr) return;
  const ThreadId id = member->id;
  const pid_t tgid = member->tgid;
  take(Exited{.time = now, .thread = id});
  donor_->forget(id, true);
  members_.remove_thread(tid);
  if (members_.process(tgid) == nullptr) listener_of_.erase(tgid);
  donor_->base_changed();
}

std::optional<observe::Member> Engine::identify(pid_t tid) {
  const MemberThread* member = members_.thread(tid);
  if (member == nullptr) return std::nullopt;
  const MemberProcess* process = members_.process(member->tgid);
  if (process == nullptr || !process->managed) return std::nullopt;
  return observe::Member{member->id, member->tgid};
}

// Whoever of its threads calls execve(2) becomes the leader, with its tid and start time, and keeps its attributes:
// what was lent to the one it was is still on it. And the user may be another now.
void Engine::execed(const sys::ProcEvent& exec, Time now) {
  const MemberThread* leader = members_.thread(exec.tid);
  const MemberProcess* process = members_.process(exec.tgid);
  if (leader == nullptr || process == nullptr) return;
  const ThreadId id = leader->id;
  for (const pid_t tid : std::vector(process->threads)) {
    const MemberThread* sibling = members_.thread(tid);
    if (tid == exec.tid || sibling == nullptr || procfs_.thread_id(tid).ok()) continue;
    actuator_.became(sibling->id, id);
    exited(tid, now);
  }
  if (const auto uid = procfs_.uid(exec.tgid); uid && members_.set_uid(exec.tgid, *uid))
    if (const MemberThread* again = members_.thread(exec.tid)) enrol(id, exec.tgid, again->base, *uid, now);
  take(Execed{.time = exec.time, .thread = id});
}

void Engine::take_proc_events(Time now) {
  if (!proc_events_) return;
  std::array<sys::ProcEvent, 64> batch;
  for (;;) {
    const auto n = proc_events_->read(batch.data(), batch.size());
    if (!n) {  // some were lost: look at everything anew
      lost_.fetch_add(1, std::memory_order_relaxed);
      next_roster_ = now;
      rescan_ = true;
      if (n.error().code() == ENOBUFS) continue;
      proc_events_.reset();  // scans find the children from now on
      return;
    }
    for (const sys::ProcEvent& e : std::span(batch).first(*n)) {
      switch (e.what) {
        case sys::ProcEvent::What::fork:
          child(e, now);
          break;
        case sys::ProcEvent::What::exec:
          execed(e, now);
          break;
        case sys::ProcEvent::What::exit:
          exited(e.tid, now);
          break;
      }
    }
    if (*n < batch.size()) return;
  }
}

// What the worker read may be over by now: a priority that was lent then must not become the thread's own.
void Engine::take_roster(const RosterAnswer& answer, Time now) {
  std::unordered_set<pid_t> alive;
  std::unordered_set<pid_t> other_user;
  for (const RosterAnswer::Entry& e : answer.threads) {
    if (const MemberProcess* stale = members_.process(e.tgid);
        stale != nullptr && stale->start_time != e.process_start) {
      for (const pid_t tid : std::vector(stale->threads)) exited(tid, now);
      if (e.parent == 0) continue;  // the pid is a stranger's
    }
    alive.insert(e.id.tid);
    if (members_.process(e.tgid) == nullptr) {
      const MemberProcess* parent = members_.process(e.parent);
      if (parent == nullptr) continue;
      const std::string class_name = parent->class_name;
      const bool managed = parent->managed;
      members_.add_process(e.tgid, e.process_start, e.uid, class_name).managed = managed;
      if (const auto listener = listener_of_.find(e.parent); listener != listener_of_.end())
        listener_of_[e.tgid] = listener->second;
    }
    if (members_.set_uid(e.tgid, e.uid)) other_user.insert(e.tgid);
    const MemberThread* known = members_.thread(e.id.tid);
    if (known != nullptr && known->id == e.id && known->base == e.attr && !other_user.contains(e.tgid)) continue;
    if (actuator_.base(e.id)) {
      if (known != nullptr && other_user.contains(e.tgid)) enrol(e.id, e.tgid, known->base, e.uid, now);
      continue;
    }
    if (const auto attr = scheduler_.get(e.id.tid)) enrol(e.id, e.tgid, *attr, e.uid, now);
  }
  std::vector<pid_t> gone;
  for (const pid_t pid : answer.question.members) {
    const MemberProcess* process = members_.process(pid);
    if (process == nullptr) continue;
    for (const pid_t tid : process->threads)
      if (!alive.contains(tid) && !procfs_.thread_id(tid).ok()) gone.push_back(tid);
  }
  for (const pid_t tid : gone) exited(tid, now);
}

void Engine::tick(Time now) {
  donor_->tick(now);
  check_waiting_priorities(now);
  follow_members();
  keep_off_members(now);
  if (now >= next_roster_) {
    next_roster_ = now + roster_period;
    std::vector<pid_t> all;
    for (const auto& [tgid, process] : members_.processes()) all.push_back(tgid);
    const bool descendants = std::exchange(rescan_, false) || proc_events_ == nullptr;
    if (!all.empty()) worker_.ask(RosterQuestion{std::move(all), descendants});
  }
  if (now < next_competitors_) return;
  std::set<pid_t> boosted;
  for (const auto& active : actuator_.active()) boosted.insert(active.boost.thread.tid);
  if (boosted.empty()) return;
  next_competitors_ = now + competitors_period;
  worker_.ask(CompetitorsQuestion{std::move(boosted)});
}

// Priorities change while their owners wait (papers/001, section 4): a waiting thread's own attributes are read each
// tick.
void Engine::check_waiting_priorities(Time now) {
  for (const decide::Donation& donation : std::vector(donor_->donations())) {
    const MemberThread* member = members_.thread(donation.requester);
    if (member == nullptr || actuator_.base(member->id)) continue;
    const auto attr = scheduler_.get(member->id.tid);
    if (!attr || *attr == member->base) continue;
    const MemberProcess* process = members_.process(member->tgid);
    enrol(member->id, member->tgid, *attr, process->uid, now);
  }
}

// A member in a real-time class must not wait for a receiver of the ordinary class, behind whoever else is real-time on
// its CPU (DESIGN.md section 2, threads): its receiver follows it, as long as there is one.
void Engine::follow_members() {
  if (receivers_.empty()) return;
  std::unordered_map<const observe::Receiver*, pid_t> leads;
  const auto consider = [&](pid_t tid) {
    const MemberThread* member = members_.thread(tid);
    const auto listener = member == nullptr ? listener_of_.end() : listener_of_.find(member->tgid);
    if (listener == listener_of_.end()) return;
    pid_t& lead = leads[listener->second];
    if (lead == 0 || tid == listener->second->last_caller()) lead = tid;
  };
  for (const pid_t tid : members_.realtime()) consider(tid);
  for (const actuate::Actuator::Active& active : actuator_.active())
    if (active.boost.attr.realtime()) consider(active.boost.thread.tid);
  for (const auto& receiver : receivers_) {
    Follow& state = following_[receiver.get()];
    const bool calls = std::exchange(state.received, receiver->received()) != receiver->received();
    const auto lead = leads.find(receiver.get());
    int cpu = -1;
    if (lead != leads.end()) {
      const bool same = state.cpu >= 0 && state.lead == lead->second;
      if (same && !calls) continue;  // it has slept, or computed: the next call will tell
      const auto stat = procfs_.stat(lead->second);
      if (!stat) continue;
      cpu = stat->processor;
      state.lead = lead->second;
    }
    if (cpu == state.cpu) continue;
    if (receiver->follow(cpu, options_.priority + 1)) state.cpu = cpu;
  }
}

void Engine::keep_off_members(Time now) {
  if (!placement_) return;
  std::vector<int> busy;
  for (const decide::Donation& donation : donor_->donations()) {
    if (donation.attr.realtime()) continue;  // preempted, it goes on at once: nobody else may have its CPU
    for (const ThreadId thread : {donation.path.back(), donation.requester})
      if (const auto stat = procfs_.stat(thread.tid)) busy.push_back(stat->processor);
    if (busy.size() >= most_followed) break;
  }
  if (cpu_set_t cpus; placement_->move(::sched_getcpu(), busy, now, cpus)) (void)scheduler_.set_affinity(0, cpus);
}

}  // namespace swapd::daemon
