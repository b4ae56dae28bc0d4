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
constexpr int first_windows = 4;  // are short ones

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
    if (!mappings_.looks.due(pid, now)) continue;
    const Duration before = sys::own_cpu_time();  // whatever else has the CPU meanwhile
    bool is_there = false;
    std::vector<MemorySharers::Place> places;
    std::vector<WaitLibraries::Part> libraries;
    kernel_.procfs.each_mapping(pid, [&](const sys::Mapping& one, std::string_view file) {
      is_there = true;
      if (WaitLibraries::is_one(file)) libraries.push_back({one.start, one.end});
      if (one.shared && one.writable && one.ino != 0) places.emplace_back(one.dev, one.ino);
      return places.size() < 256;
    });
    mappings_.libraries.set(pid, std::move(libraries));
    const bool changed =
        is_there && mappings_.sharers.set(pid, std::move(places), launcher_of(kernel_.procfs, pid).tid);
    mappings_.looks.looked(pid, changed, sys::own_cpu_time() - before, now);
  }
  mappings_.sharers.keep_only(managed);
  mappings_.libraries.keep_only(managed);
  mappings_.looks.keep_only(managed);
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
