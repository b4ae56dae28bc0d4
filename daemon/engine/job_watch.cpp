#include "engine/job_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "engine/launchers.h"
#include "sys/process/eventfd.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {

namespace {
constexpr int first_windows = 4;        // are short ones
constexpr std::size_t max_windows = 8;  // that wait for the engine; of more the oldest goes

// It may be waiting on its CPU (decide/coscheduling/job_finder.h says more).
bool may_wait(const ProfileWindow::Thread& thread) {
  const sys::CpuProfile::Thread& seen = thread.seen;
  return thread.yields || (thread.waits() + seen.yields) * 10 >= seen.samples ||
         (thread.shares_memory && seen.blocks == 0);
}

// A thread that gives its CPU away has many short turns; so has one that is preempted by each thread that it wakes.
// Samples tell the two apart.
bool samples_may_yield(const ProfileWindow::Thread& thread) {
  constexpr std::uint64_t enough = 3;
  return thread.seen.samples < enough || thread.seen.yields + thread.waits() > 0;
}

// A thread that was found without samples says nothing of its group: that is not to be lowered because of it.
void find_group_others(std::span<const sys::CpuProfile::Thread> all, double samples, ProfileWindow& window) {
  std::map<std::uint64_t, double> whole;
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> of_job;
  for (const sys::CpuProfile::Thread& seen : all) whole[seen.whole_group] += static_cast<double>(seen.samples);
  for (const ProfileWindow::Thread& thread : window.threads)
    of_job[{thread.seen.whole_group, thread.job}] += static_cast<double>(thread.seen.samples);
  for (ProfileWindow::Thread& thread : window.threads) {
    const std::uint64_t group = thread.seen.whole_group;
    if (group != 0) thread.group_others = (whole[group] - of_job[{group, thread.job}]) / std::max(samples, 1.0);
  }
}

// A message may be what it waits for, if it is its process's only busy thread and no process of this machine is known
// to be its mate (decide/coscheduling/job_finder.h). One that was found because it yields has hardly any samples.
bool any_may_be_called(const ProfileWindow& window, const MemorySharers& sharers, BusyWaiters& waiters) {
  for (const ProfileWindow::Thread& thread : window.threads)
    waiters.add(thread.seen.tid, thread.waits() + thread.seen.yields, thread.seen.samples);
  const auto busy_of = [&](std::uint64_t job) {
    return std::ranges::count_if(window.threads, [&](const ProfileWindow::Thread& thread) {
      return thread.job == job && thread.demand >= CpuDemand::little;
    });
  };
  const bool any = std::ranges::any_of(window.threads, [&](const ProfileWindow::Thread& thread) {
    return (thread.yields || waiters.waits(thread.seen.tid)) && !sharers.has_mates(thread.seen.tgid) &&
           busy_of(thread.job) == 1;
  });
  waiters.end_window();
  return any;
}

}  // namespace

JobWatch::JobWatch(const Kernel& kernel, std::function<void()> notify)
    : JobWatch(kernel, std::move(notify), Config{}) {}

JobWatch::JobWatch(const Kernel& kernel, std::function<void()> notify, Config config)
    : kernel_(kernel),
      notify_(std::move(notify)),
      config_(config),
      changed_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

JobWatch::~JobWatch() { stop(); }

void JobWatch::start(bool wanted) {
  thread_ = std::thread([this, wanted] { run(wanted); });
}

void JobWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    shared_.stops = true;
  }
  sys::signal_eventfd(changed_.get());
  if (thread_.joinable()) thread_.join();
}

void JobWatch::set_processes(std::vector<pid_t> pids, bool enough) {
  {
    const std::lock_guard lock(mutex_);
    const bool begins = enough && !shared_.enough;
    if (!std::ranges::includes(shared_.pids, pids)) turns_.program_begins();
    shared_.pids = std::move(pids);
    shared_.enough = enough;
    if (!begins) return;
  }
  sys::signal_eventfd(changed_.get());
}

std::vector<ProfileWindow> JobWatch::take(bool coscheduled) {
  const std::lock_guard lock(mutex_);
  shared_.coscheduled = coscheduled;
  return std::exchange(shared_.windows, {});
}

Duration JobWatch::cpu_time() const {
  const std::lock_guard lock(mutex_);
  return shared_.tid == 0 ? Duration::zero() : sys::own_thread_cpu_time(shared_.tid);
}

std::shared_ptr<sys::MessageCalls> JobWatch::calls() const {
  const std::lock_guard lock(mutex_);
  return shared_.calls;
}

std::optional<bool> JobWatch::contended() const {
  const std::lock_guard lock(mutex_);
  return shared_.contended;
}

std::string JobWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  return shared_.trouble;
}

bool JobWatch::wait(Duration time) {
  pollfd ready{.fd = changed_.get(), .events = POLLIN, .revents = 0};
  const timespec limit = {.tv_sec = time / std::chrono::seconds(1),
                          .tv_nsec = static_cast<long>((time % std::chrono::seconds(1)).count())};
  (void)::ppoll(&ready, 1, time == Duration::max() ? nullptr : &limit, nullptr);
  sys::clear_eventfd(changed_.get());
  const std::lock_guard lock(mutex_);
  return !shared_.stops;
}

Duration JobWatch::loading_time() const {
  const std::lock_guard lock(mutex_);
  if (!shared_.loads_since) return shared_.loaded;
  return shared_.loaded + sys::own_thread_cpu_time(shared_.tid) - *shared_.loads_since;
}

std::vector<pid_t> JobWatch::processes() const {
  const std::lock_guard lock(mutex_);
  return shared_.enough ? shared_.pids : std::vector<pid_t>{};
}

// Threads that have or want a CPU, this one left out ("0.20 0.18 0.12 1/80 11206").
std::optional<int> JobWatch::runnable() const {
  const Fd file(::open((kernel_.procfs.root() + "/loadavg").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (n <= 0) return std::nullopt;
  std::string_view rest(text.data(), static_cast<std::size_t>(n));
  for (int i = 0; i < 3; ++i) {
    const auto space = rest.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(space + 1);
  }
  int count = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), count).ec != std::errc()) return std::nullopt;
  return count - 1;
}

void JobWatch::look_at_load() {
  const auto count = runnable();
  if (count) contention_.look(*count, static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L)));
  const std::lock_guard lock(mutex_);
  shared_.contended = count ? std::optional(contention_.often()) : std::nullopt;
}

void JobWatch::forget_load() {
  contention_ = {};
  const std::lock_guard lock(mutex_);
  shared_.contended.reset();
}

// Samples where threads compete, and rests where they do no more.
void JobWatch::follow_contention() {
  bool wanted = contention_.there();
  if (wanted) {
    const std::lock_guard lock(mutex_);
    wanted = turns_.on(kernel_.clock.now());
  }
  if (wanted && !profile_) open_profile();
  if (profile_ && wanted) profile_->resume();
  if (profile_ && !wanted) profile_->pause();
}

// The thread opens the profile as it begins: that takes as much CPU time as the budget has in two seconds, and once
// threads compete an important one may be waiting for swapd.
void JobWatch::open_profile() {
  loading(true);
  auto opened = sys::CpuProfile::open(config_.period);
  loading(false);
  const std::lock_guard lock(mutex_);
  shared_.trouble = opened ? "" : "no coscheduling of parallel jobs: " + opened.error().text();
  if (opened) profile_ = std::move(opened).value();
}

// Attached while there are threads that a message may call, and for five seconds after, as long as the CPUs are
// sampled.
void JobWatch::follow_messages(bool wanted) {
  constexpr Duration stays = std::chrono::seconds(5);
  const Time now = kernel_.clock.now();
  if (wanted) messages_.wanted_until = now + stays;
  if (wanted && !std::exchange(messages_.tried, true)) {
    loading(true);
    auto opened = sys::MessageCalls::open();
    loading(false);
    if (opened) {
      messages_.calls = std::move(opened).value();
    } else {
      const std::lock_guard lock(mutex_);
      shared_.trouble =
          "no message calls a thread that polls for it, so parallel jobs are run together only where they "
          "share memory or a launcher: " +
          opened.error().text();
    }
  }
  if (!messages_.calls) return;
  const bool on = now < messages_.wanted_until && samples();
  if (on && !messages_.calls->attach().ok()) return;
  if (!on) messages_.calls->detach();
  const std::lock_guard lock(mutex_);
  shared_.calls = on ? messages_.calls : nullptr;
}

// To load programs takes CPU time once, which does not count against the budget, and some MB of memory for the kernel's
// types, which go back at once.
void JobWatch::loading(bool begins) {
  if (!begins) (void)sys::give_back_memory();
  const std::lock_guard lock(mutex_);
  if (begins)
    shared_.loads_since = sys::own_cpu_time();
  else
    shared_.loaded += sys::own_cpu_time() - *std::exchange(shared_.loads_since, std::nullopt);
}

// A process that is not busy in one window keeps what is known of it.
void JobWatch::read_mappings(const std::vector<pid_t>& busy, const std::vector<pid_t>& managed, Time now) {
  for (const pid_t pid : busy) {
    if (!mapping_looks_.due(pid, now)) continue;
    const Duration before = sys::own_cpu_time();  // whatever else has the CPU meanwhile
    bool is_there = false;
    std::vector<MemorySharers::Place> places;
    kernel_.procfs.each_mapping(pid, [&](const sys::Mapping& one) {
      is_there = true;
      if (one.shared && one.writable && one.ino != 0) places.emplace_back(one.dev, one.ino);
      return places.size() < 256;
    });
    const bool changed = is_there && sharers_.set(pid, std::move(places), launcher_of(kernel_.procfs, pid).tid);
    mapping_looks_.looked(pid, changed, sys::own_cpu_time() - before, now);
  }
  sharers_.keep_only(managed);
  mapping_looks_.keep_only(managed);
}

// Looks at no more than so many threads of each process, and at no more than so many of all.
void JobWatch::add_yielders(const std::vector<pid_t>& managed, ProfileWindow& window) {
  constexpr std::size_t max_threads = 256, max_of_a_process = 64;
  const auto begun = yielders_.begin_round(window.ended, config_.yielders_again);
  if (!begun) return;
  const Duration since = std::min<Duration>(*begun, 2 * config_.yielders_again);
  std::size_t looked = 0;
  for (const pid_t pid : managed) {
    const auto tids = kernel_.procfs.threads(pid);
    if (!tids || tids->size() > max_of_a_process) continue;
    for (const pid_t tid : *tids) {
      const auto stat = ++looked > max_threads ? Error(E2BIG, "threads") : kernel_.procfs.schedstat(tid);
      if (!stat || !yielders_.look(tid, *stat, window.ended)) continue;
      profile_->follow(tid);
      const auto known = std::ranges::find(window.threads, tid, [](const auto& one) { return one.seen.tid; });
      if (known != window.threads.end()) {
        known->yields = samples_may_yield(*known);
        continue;
      }
      // The share that is due to the thread is a guess until a sample has met it.
      sys::CpuProfile::Thread seen{
          .tid = tid, .tgid = pid, .samples = 1, .yields = 1, .inner = 1 / contention_.crowd()};
      seen.cpu_time =
          yielders_.used(tid) * (window.ended - window.begun).count() / std::max<Duration::rep>(since.count(), 1);
      seen.looks = 1;
      seen.weight = 1024;
      window.threads.push_back({.seen = seen, .job = 0, .yields = true, .group_use = 1});
    }
  }
  yielders_.end_round();
}

void JobWatch::look_at_room(ProfileWindow& window) {
  for (const ProfileWindow::Thread& thread : window.threads)
    if (const auto allowed = kernel_.scheduler.affinity(thread.seen.tid))
      room_.cpus.set(thread.job, thread.seen.tid, *allowed, window.ended);
  look_at_demand(window);
  room_.cpus.end_window(window.ended);
  for (ProfileWindow::Thread& thread : window.threads) {
    thread.fits = room_.cpus.fits(thread.job);
    thread.room = room_.cpus.room(thread.job);
  }
}

// How much of the time the threads of jobs that may wait on their CPUs have or want one, those too that no sample has
// met in this window: they are added to it, because a mate that waits for its CPU is waited for, and one that sleeps is
// not.
void JobWatch::look_at_demand(ProfileWindow& window) {
  constexpr std::size_t max_looks = 64;
  std::map<std::uint64_t, ProfileWindow::Thread> waiting;  // by job, a thread of it
  std::set<pid_t> met;
  for (const ProfileWindow::Thread& thread : window.threads) {
    met.insert(thread.seen.tid);
    if (may_wait(thread)) waiting.emplace(thread.job, thread);
  }
  std::size_t looks = 0;
  for (const auto& [job, one] : waiting) {
    for (const pid_t tid : room_.cpus.threads_of(job)) {
      if (++looks > max_looks) return;
      const auto so_far = kernel_.procfs.schedstat(tid);
      const auto stat = kernel_.procfs.stat(tid);
      if (!so_far || !stat) continue;
      room_.demand.look(tid, so_far->cpu + so_far->waited, stat->state == 'R', window.ended);
      room_.cpus.sleeps(tid, room_.demand.of(tid) < CpuDemand::little);
      if (met.contains(tid)) continue;
      window.threads.push_back({.seen = {.tid = tid, .tgid = kernel_.procfs.tgid(tid).value_or(tid)},
                                .job = job,
                                .shares_memory = one.shares_memory});
    }
  }
  for (ProfileWindow::Thread& thread : window.threads) thread.demand = room_.demand.of(thread.seen.tid);
  room_.demand.forget_before(window.ended - CpuRoom::forget_after);
}

// Neither a thread of the kernel nor of swapd.
bool JobWatch::is_users(pid_t tgid) const {
  constexpr pid_t kthreadd = 2;
  if (tgid == ::getpid() || tgid == kthreadd) return false;
  const auto stat = kernel_.procfs.stat(tgid);
  return stat.ok() && stat->ppid != kthreadd;
}

void JobWatch::tell_window(Time begun) {
  const std::vector<pid_t> managed = processes();
  ProfileWindow window{.begun = begun, .ended = kernel_.clock.now(), .threads = {}};
  std::vector<pid_t> busy;
  std::map<std::pair<std::uint64_t, int>, std::uint64_t> group_samples;  // by group and CPU
  const std::vector<sys::CpuProfile::Thread> all = profile_->read();
  for (const sys::CpuProfile::Thread& seen : all) group_samples[{seen.group, seen.cpu}] += seen.samples;
  const auto samples = static_cast<double>((window.ended - window.begun) / config_.period);
  window.of_all = samples * contention_.cpus();
  for (const sys::CpuProfile::Thread& seen : all) {
    if (!std::ranges::binary_search(managed, seen.tgid)) {
      // More than a tenth need not be told apart: on a large machine the reads of /proc would be many.
      if (static_cast<double>(window.others) * 10 < window.of_all && is_users(seen.tgid)) window.others += seen.samples;
      continue;
    }
    profile_->follow(seen.tid);
    const double used = static_cast<double>(group_samples[{seen.group, seen.cpu}]) / std::max(samples, 1.0);
    window.threads.push_back({.seen = seen, .job = 0, .group_use = std::min(used, 1.0)});
  }
  add_yielders(managed, window);
  for (const ProfileWindow::Thread& thread : window.threads) busy.push_back(thread.seen.tgid);
  std::ranges::sort(busy);
  busy.erase(std::unique(busy.begin(), busy.end()), busy.end());
  read_mappings(busy, managed, window.ended);
  for (ProfileWindow::Thread& thread : window.threads) {
    thread.job = static_cast<std::uint64_t>(sharers_.job_of(thread.seen.tgid));
    thread.shares_memory = sharers_.shares(thread.seen.tgid);
  }
  find_group_others(all, samples, window);
  look_at_room(window);
  follow_messages(any_may_be_called(window, sharers_, messages_.waiters));
  const bool waiting = std::ranges::any_of(window.threads, may_wait);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    turns_.end_window(waiting || shared_.coscheduled, window.ended);
    first = shared_.windows.empty();
    if (shared_.windows.size() >= max_windows) shared_.windows.erase(shared_.windows.begin());
    shared_.windows.push_back(std::move(window));
  }
  if (first) notify_();
}

void JobWatch::run(bool wanted) {
  sys::name_thread("swapd-jobs");
  sys::go_before_ordinary_threads();
  {
    const std::lock_guard lock(mutex_);
    shared_.tid = ::gettid();
  }
  if (wanted) open_profile();
  if (profile_) profile_->pause();
  Time looked{}, begun = kernel_.clock.now();
  int windows = 0;  // since the sampling has begun
  for (;;) {
    const bool idle = processes().empty();
    if (idle) {
      if (profile_) profile_->pause();
      forget_load();
      follow_messages(false);
    }
    const Duration look = contention_.there() ? config_.look : config_.first_look;
    const Duration window = windows < first_windows ? config_.first_window : config_.window;
    if (!wait(idle ? Duration::max() : samples() ? window : look)) break;
    const Time now = kernel_.clock.now();
    if (idle || processes().empty()) continue;
    if (samples()) {
      tell_window(std::exchange(begun, now));
      ++windows;
    }
    if (now - looked < look * 9 / 10) continue;
    looked = now;
    look_at_load();
    const bool sampled = samples();
    follow_contention();
    if (sampled && !samples()) follow_messages(false);
    if (!sampled) {
      begun = kernel_.clock.now();
      windows = 0;
    }
  }
  profile_.reset();
}

}  // namespace swapd::daemon
