#include "engine/engine.h"

#include <algorithm>
#include <ctime>
#include <span>
#include <utility>

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

// Makes the deciders, and tells which is which.
std::vector<std::unique_ptr<decide::Decider>> make(Deciders& which, const decide::DonationConfig& donation_config,
                                                   const decide::CoschedulingConfig& coscheduling_config,
                                                   const decide::LevelsConfig& levels_config,
                                                   const decide::MemoryConfig& memory_config) {
  auto donation = std::make_unique<decide::DonationDecider>(donation_config);
  auto auto_limits = std::make_unique<decide::AutoLimitDecider>();
  auto coscheduling = std::make_unique<decide::CoschedulingDecider>(coscheduling_config);
  auto levels = std::make_unique<decide::LevelsDecider>(levels_config);
  auto memory = std::make_unique<decide::MemoryDecider>(memory_config);
  which = {donation.get(), auto_limits.get(), coscheduling.get(), levels.get(), memory.get()};
  std::vector<std::unique_ptr<decide::Decider>> all;
  all.push_back(std::move(donation));
  all.push_back(std::move(auto_limits));
  all.push_back(std::move(coscheduling));
  all.push_back(std::move(levels));
  all.push_back(std::move(memory));
  return all;
}

// The CPUs of threads that matter now and share them by nice, the favoured ones first. Enough of them: where these are
// all that the engine may use, more change nothing.
std::vector<int> busy_cpus(std::span<const decide::Donation> donations, const sys::Procfs& procfs,
                           const EngineThread& engine) {
  std::vector<int> busy;
  for (const decide::Donation& donation : donations) {
    if (donation.attr.realtime()) continue;  // preempted, it goes on at once: no other thread may have its CPU
    for (const ThreadId thread : {donation.path.back(), donation.requester})
      if (const auto stat = procfs.stat(thread.tid)) busy.push_back(stat->processor);
    if (busy.size() >= max_kept_off || engine.has_no_other(busy)) break;
  }
  return busy;
}

void see_others(const ProfileWindow& window, const model::ManagedSet& members, const actuate::Actuator& actuator,
                OthersShare& others) {
  if (window.of_all <= 0) return;
  std::vector<OthersShare::Seen> seen;
  for (const ProfileWindow::Thread& thread : window.threads) {
    const model::ManagedThread* member = members.thread(thread.seen.tid);
    const bool matters = member != nullptr && (rank(member->base) > rank(SchedAttr{}) || actuator.base(member->id));
    seen.push_back({.tgid = thread.seen.tgid, .samples = thread.seen.samples, .matters = matters});
  }
  others.end_window(seen, window.others, window.of_all, window.ended);
}

// Tells the deciders what busy threads did.
void tell_profiles(std::span<const ProfileWindow> windows, const model::ManagedSet& members, DecisionLoop& decisions) {
  for (const ProfileWindow& window : windows) {
    for (const ProfileWindow::Thread& thread : window.threads) {
      const sys::CpuProfile::Thread& seen = thread.seen;
      const model::ManagedThread* member = members.thread(seen.tid);
      if (member == nullptr) continue;
      const auto part = [&](std::uint64_t count) {
        return seen.samples == 0 ? 0 : static_cast<double>(count) / static_cast<double>(seen.samples);
      };
      decisions.tell(decide::ThreadProfiled{.time = window.ended,
                                            .thread = member->id,
                                            .job = thread.job,
                                            .shares_memory = thread.shares_memory,
                                            .fits = thread.fits,
                                            .room = thread.room,
                                            .window = window.ended - window.begun,
                                            .cpu = seen.cpu_time,
                                            .spinning = part(thread.waits()),
                                            .yielding = thread.yields ? 1.0 : part(seen.yields),
                                            .share_known = seen.looks > 0,
                                            .inner = seen.inner,
                                            .upper = seen.upper,
                                            .group_use = thread.group_use,
                                            .group_others = thread.group_others,
                                            .weight = seen.weight,
                                            .group = seen.group,
                                            .cpu_number = seen.cpu,
                                            .blocks = seen.blocks,
                                            .rivals = seen.rivals,
                                            .demand = thread.demand});
    }
  }
}

}  // namespace

Engine::Engine(const Kernel& kernel, observe::Resolver& resolver, Options options,
               std::unique_ptr<sys::BpfTracer> tracer, Shaper& shaper)
    : kernel_(kernel),
      options_(std::move(options)),
      thread_(kernel_, {.priority = options_.priority,
                        .tick = options_.tick,
                        .idle_tick = options_.idle_tick,
                        .budget = options_.budget}),
      members_(options_.classes),
      model_(options_.model),
      actuator_(kernel.scheduler, kernel.groups, options_.actuate),
      background_{.worker{kernel, options_.actuate.disk_groups, resolver, [this] { thread_.wake(); }},
                  .jobs{kernel_, [this] { thread_.wake(); }},
                  .calls = CallListener(thread_.loop()),
                  .memory{kernel_, options_.memory_manager, [this] { thread_.wake(); }}},
      feed_(members_, kernel.clock),
      observation_(kernel_, resolver, options_.observe, std::move(tracer),
                   {.identify = [this](pid_t tid) { return membership_.tracker().identify(tid); },
                    .ask = [this](observe::WaitQuestion q) { background_.worker.ask(q); },
                    .ask_access = [this](observe::AccessQuestion q) { background_.worker.ask(q); },
                    .lifecycle = [this](const sys::ProcEvent& e) { membership_.on_process_event(e); },
                    .every_life = [this] { return feed_.wants(Notes::all); },
                    .lost = [this](std::uint64_t events) { membership_.on_lost(events); }}),
      decisions_({.members = members_,
                  .model = model_,
                  .observer = observation_.observer(),
                  .actuator = actuator_,
                  .questions = background_.worker,
                  .procfs = kernel_.procfs,
                  .records = records_,
                  .loop = thread_.loop()},
                 options_.decisions,
                 make(deciders_, options_.donation, options_.coscheduling, options_.levels, options_.memory)),
      membership_({.kernel = kernel_,
                   .members = members_,
                   .observation = observation_,
                   .actuator = actuator_,
                   .decisions = decisions_,
                   .worker = background_.worker,
                   .feed = feed_,
                   .thread = thread_,
                   .shaper = shaper},
                  {.quota = options_.quota,
                   .weights_count = options_.donation.rules.look_at_weights(),
                   .kernel_threads_help = counts_kernel_work(options_.model),
                   .receiver_priority = options_.priority + 1,
                   .dry_run = options_.actuate.dry_run}),
      competitors_(actuator_, background_.worker),
      shaped_(shaper, members_) {
  decisions_.use({// A thread that its class's limits hold goes on as soon as it is favoured. And each of the calls that
                  // are trapped for them sleeps until the receiver has looked at it, which is no reason to take
                  // anything back; nor is it where it then waits for the disk, which its priority holds for, too.
                  .runnable =
                      [this](const Blocked& blocked) {
                        return shaped_.holds(blocked.thread.tid) || membership_.awaits_receiver(blocked);
                      },
                  .limit_io = [&shaper](const std::string& name,
                                        std::optional<std::int64_t> bytes) { shaper.set_automatic(name, bytes); },
                  .listen = [this](std::span<const ThreadId> threads) { background_.calls.set(threads); },
                  .short_turns = [this](const decide::ShortTurns& turns) { background_.preempt_clock.set(turns); },
                  .put_away = [this](std::span<const pid_t> tgids) { background_.memory.put_away(tgids); }});
  actuator_.on_outcome([this](const actuate::Outcome& outcome) {
    if (outcome.what == actuate::Outcome::What::rebased) membership_.rebased(outcome.boost.thread, outcome.base);
    shaped_.on_outcome(outcome);
    feed_.on_outcome(outcome);
  });
}

Engine::~Engine() { stop(); }

Status Engine::start(std::vector<std::string>& warnings) {
  for (const std::string& line : observation_.missing()) warnings.push_back(line);
  membership_.open_events(warnings);
  if (auto recovered = actuator_.recover(); !recovered)
    warnings.push_back(recovered.error().text());
  else if (*recovered > 0)
    warnings.push_back("gave back the attributes of " + std::to_string(*recovered) +
                       " threads that an earlier run had changed");

  for (const std::string& line : actuator_.recovery_notes()) warnings.push_back(line);

  if (Status listening = thread_.listen(); !listening) return listening;
  if (Status listening = observation_.observer().listen(thread_.loop()); !listening) return listening;
  background_.worker.start();
  background_.jobs.start(options_.coscheduling.wanted());
  background_.memory.start();
  if (auto set = thread_.start([this] { run(); }); !set) {
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
  if (!thread_.stop()) return;
  background_.worker.stop();
  background_.jobs.stop();
  background_.preempt_clock.set({});
  background_.memory.stop();
}

bool Engine::call(std::function<void(Engine&)> command) {
  return thread_.call([this, command = std::move(command)] { command(*this); });
}

void Engine::run() {
  thread_.tick_soon(kernel_.clock.now());
  while (!thread_.stopping()) {
    const Time woken = thread_.wait(deadline(), !members_.empty(), idle());
    round(let_records_gather(woken));
  }
  actuator_.restore_all();
  thread_.close();
}

// Besides ticks. Time::max(): none.
Time Engine::deadline() const {
  return std::min(observation_.observer().deadline().value_or(Time::max()), decisions_.next().value_or(Time::max()));
}

// A tick that finds nothing to do takes the caches and the TLB of whichever thread had the CPU: 65 us under a busy
// database. What ends the idleness wakes the engine. (Receivers leave calls for the next tick; a client that follows
// decisions hears of short lives, too.)
bool Engine::idle() const {
  return membership_.listeners().size() == 0 && !feed_.wants(Notes::decisions) && decisions_.idle();
}

// Returns the time after that.
Time Engine::let_records_gather(Time now) {
  const bool in_chain = thread_.loop().can_wait() && decisions_.may_batch();
  const Duration wanted = std::max(thread_.begin_turn(now), in_chain ? chain_delay : Duration::zero());
  const Duration delay = Pacer::before(decisions_.punctual_next(), wanted, now);
  if (delay == Duration::zero()) return now;
  observation_.observer().nap(true);
  thread_.rest(delay);
  observation_.observer().nap(false);
  return kernel_.clock.now();
}

void Engine::round(Time now) {
  const std::vector<CommandQueue::Command> commands = thread_.take_commands();
  // A command may be about what has happened to a program and not been read yet: that comes first.
  if (!commands.empty()) take_what_happened(now);
  for (const CommandQueue::Command& command : commands) command();
  if (thread_.stopping()) return;
  take_what_happened(now);
  take_answers(now);
  background_.calls.take(now, [this](const decide::MessageCalled& call) { decisions_.tell(call); });
  const auto windows = background_.jobs.take(!deciders_.coscheduling->gangs().all().empty());
  if (!windows.empty()) background_.calls.use(background_.jobs.calls());  // windows tell when there are others
  tell_profiles(windows, members_, decisions_);
  for (const ProfileWindow& window : windows) see_others(window, members_, actuator_, background_.others);
  for (const decide::Input& input : background_.memory.take()) decisions_.tell(input);
  decisions_.run_clocks(now);
  if (thread_.begin_tick(now)) {
    tick(now);
    thread_.end_tick(now);
    keep_to_budget(now);
  }
  membership_.ask_weights();
  decisions_.run(now);
  if (background_.calls.waiting()) thread_.wake();
  feed_.on_donations(deciders_.donation->donations());
  // Receivers leave calls for the next batch, unless one of them may name the provider that is looked for.
  const bool urgent = decisions_.needs_calls();
  if (membership_.set_urgent(urgent) && urgent) thread_.wake();  // calls that came in between
  background_.tell_processes(members_, options_.coscheduling.wanted());
}

void Engine::Background::tell_processes(const model::ManagedSet& members, bool coscheduling) {
  const std::pair set(members.changes(), members.managed_threads());
  if (std::exchange(they_know, set) == set) return;
  std::vector<pid_t> pids = members.managed_pids();
  std::ranges::sort(pids);
  memory.set_processes(pids);
  jobs.set_processes(std::move(pids), set.second >= 1 && coscheduling);
}

void Engine::take_what_happened(Time now) {
  membership_.read_events(now);
  take(observation_.drain(now));
}

void Engine::take(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* blocked = std::get_if<Blocked>(&event)) membership_.on_blocked(*blocked);
    decisions_.take(event);
    feed_.on_event(event, false);
  }
}

void Engine::take_answers(Time now) {
  std::vector<Event> events;
  for (Answer& answer : background_.worker.take()) {
    events.clear();
    if (const auto* wait = std::get_if<observe::WaitAnswer>(&answer)) {
      observation_.observer().answer(*wait, events);
    } else if (const auto* access = std::get_if<observe::AccessAnswer>(&answer)) {
      if (members_.thread(access->question.thread) == nullptr) continue;  // gone meanwhile
      observation_.observer().answer(*access, events);
    } else if (const auto* scan = std::get_if<ScanAnswer>(&answer)) {
      decisions_.found(*scan, now);
    } else if (const auto* roster = std::get_if<RosterAnswer>(&answer)) {
      membership_.take(*roster, now);
    } else if (const auto* weights = std::get_if<WeightsAnswer>(&answer)) {
      membership_.take(*weights, now);
    } else if (auto* competitors = std::get_if<actuate::Competitors>(&answer)) {
      competitors_.take(std::move(*competitors), now);
    }
    take(events);
  }
}

void Engine::keep_to_budget(Time now) {
  const OwnCpu::Help help{.boosts = actuator_.any_active() ? 1U : 0U,
                          .begun = actuator_.total(),
                          .gangs = deciders_.coscheduling->gangs().all().size(),
                          .competes = background_.jobs.contended().value_or(true) && background_.others.counts()};
  const Duration apart =
      background_.jobs.loading_time() + background_.memory.paging_time() + background_.preempt_clock.cpu_time();
  thread_.set_many(observation_.has_many());
  if (const auto patience = thread_.keep_to_budget(now, help, apart))
    decisions_.tell(decide::PatienceChanged{now, *patience});
  observation_.hear(thread_.heard());
}

void Engine::tick(Time now) {
  for (const Woken& held : shaped_.newly_held(now)) decisions_.take(held);
  decisions_.tick(now);
  membership_.tick(deciders_.donation->donations(), now);
  if (thread_.may_move(now)) thread_.keep_off(busy_cpus(deciders_.donation->donations(), kernel_.procfs, thread_), now);
  competitors_.tick(now);
}

}  // namespace swapd::daemon
