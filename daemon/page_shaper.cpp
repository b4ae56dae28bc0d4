#include "page_shaper.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

#include "observe/io_target.h"
#include "state_file.h"
#include "sys/self.h"

namespace swapd::daemon {
namespace {

using decide::Device;
using decide::Tokens;
using decide::Way;

constexpr std::chrono::milliseconds look_every{5}, seek_every{100};
constexpr Duration list_every = std::chrono::milliseconds(50);   // who is frozen
constexpr Duration least_freeze = std::chrono::milliseconds(2);  // less is owed until the next look
constexpr Duration vouched = std::chrono::milliseconds(200);     // to the guard, for a look before that
constexpr Duration believed = std::chrono::seconds(1), again_after = std::chrono::seconds(10);
constexpr Duration first_pause = std::chrono::milliseconds(100), most_pause = std::chrono::seconds(10);
constexpr int most_tries = 100;  // to remove a group at the end, a millisecond each

Tokens part_of(std::uint64_t before, std::uint64_t now, double share) {
  if (now <= before) return 0;
  const auto grown = std::min<std::uint64_t>(now - before, decide::most_burst);
  return static_cast<Tokens>(share * static_cast<double>(grown));
}

bool moved(const sys::IoCounters& before, const sys::IoCounters& now) {
  return now.read_bytes != before.read_bytes || now.written_bytes != before.written_bytes;
}

std::string file_in(const std::string& state_dir) { return state_dir + "/frozen"; }

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

PageShaper::PageShaper(Shaper& shaper, std::span<FrozenGroup> memory, std::string state_dir)
    : shaper_(shaper),
      memory_(memory),
      state_dir_(std::move(state_dir)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (std::size_t i = memory_.size(); i-- > 0;) free_.push_back(i);
  if (!state_dir_.empty())
    for (const std::string& directory : lines_of(file_in(state_dir_)))
      if (auto found = sys::FreezerGroup::found(directory)) leaving_.push_back({std::move(found).value(), {}, {}});
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PageShaper::~PageShaper() {
  thread_.request_stop();
  look_now();
  thread_.join();
  for (auto& [tgid, process] : processes_) thaw(process);
  for (auto& [tgid, process] : processes_) end(process);
  processes_.clear();
  for (int i = 0; i < most_tries && !leaving_.empty(); ++i) {
    (void)remove_left(Time::max());
    if (!leaving_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  write_down();
}

// What cannot be removed yet stays in the list, for the next PageShaper.
void PageShaper::clear_left(const std::string& state_dir) {
  std::string left;
  const auto lines = lines_of(file_in(state_dir));
  for (const std::string& directory : lines) {
    auto found = sys::FreezerGroup::found(directory);
    if (found && !found->dissolve()) left += directory + "\n";
  }
  if (!lines.empty()) (void)write_text(file_in(state_dir), left);
}

void PageShaper::write_down() const {
  if (state_dir_.empty()) return;
  std::string text;
  for (const auto& [tgid, process] : processes_)
    if (!process.directory.empty()) text += process.directory + "\n";
  for (const Leaving& one : leaving_) text += one.group.directory() + "\n";
  if (const Status written = write_text(file_in(state_dir_), text); !written && !std::exchange(warned_, true))
    spdlog::warn("{}; a cgroup may be left behind if swapd is killed", written.error().text());
}

void PageShaper::look_now() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void PageShaper::forget_thread(pid_t tid) const {
  const std::lock_guard lock(shaper_.mutex_);
  shaper_.paid_.erase(tid);
}

// It is nobody's to freeze any more.
void PageShaper::end(Process& process) {
  thaw(process);
  for (const auto& [tid, thread] : process.threads) forget_thread(tid);
  leave_group(process);
}

void PageShaper::leave_group(Process& process) {
  if (process.group && !process.group->dissolve())
    leaving_.push_back({std::move(*process.group), shaper_.clock_.now() + first_pause, first_pause});
  process.group.reset();
  process.directory.clear();
}

// True: some have been.
bool PageShaper::remove_left(Time now) {
  return std::erase_if(leaving_, [&](Leaving& one) {
           if (now < one.next) return false;
           if (one.group.dissolve()) return true;
           one.pause = std::clamp<Duration>(2 * one.pause, first_pause, most_pause);
           if (now != Time::max()) one.next = now + one.pause;
           return false;
         }) > 0;
}

void PageShaper::run(const std::stop_token& stop) {
  sys::name_thread("swapd-pages");
  (void)sys::set_thread_nice(0, -20);
  while (!stop.stop_requested()) {
    round();
    pollfd wait{wake_.get(), POLLIN, 0};
    (void)::poll(&wait, 1, static_cast<int>((members_.empty() ? seek_every : look_every).count()));
    std::uint64_t rung = 0;
    (void)!::read(wake_.get(), &rung, sizeof rung);
  }
}

void PageShaper::round() {
  if (auto members = shaper_.paying_at_once(generation_)) members_ = std::move(*members);
  bool changed = false;
  for (auto& [tgid, process] : processes_)
    if (!members_.contains(tgid)) thaw(process);
  for (auto at = processes_.begin(); at != processes_.end();) {
    if (members_.contains(at->first)) {
      ++at;
      continue;
    }
    changed = changed || at->second.group;
    end(at->second);
    at = processes_.erase(at);
  }
  // Who stands still first: whatever ends that shall not wait for the others.
  for (auto& [tgid, process] : processes_) {
    process.view = members_.at(tgid);
    if (process.place) look_at_frozen(tgid, process);
  }
  changed = remove_left(shaper_.clock_.now()) || changed;
  if (changed) write_down();
  made_one_ = false;
  for (const auto& [tgid, view] : members_) {
    Process& process = processes_[tgid];
    process.view = view;
    if (!process.place && has_gate(tgid, process)) look(tgid, process);
  }
}

bool PageShaper::has_gate(pid_t tgid, Process& process) const {
  const Time now = shaper_.clock_.now();
  if (process.has_gate || now - process.gate_sought < believed) return process.has_gate;
  process.gate_sought = now;
  std::function<bool(pid_t)> ask;
  {
    const std::lock_guard lock(shaper_.mutex_);
    ask = shaper_.has_gate_;
  }
  return process.has_gate = ask && ask(tgid);
}

Time PageShaper::due(const Process& process, Time now) const {
  const std::lock_guard lock(shaper_.mutex_);
  return std::max(shaper_.shaping_.due(process.owed[0], now), shaper_.shaping_.due(process.owed[1], now));
}

// A signal, also one that it blocks, because the thread that would look for it stands still too; a debugger, who could
// do nothing with it; an important thread that waits for it. A frozen process does nothing about that by itself.
bool PageShaper::goes_on(const Process& process, const std::vector<pid_t>& threads) const {
  if (!process.view->limits.favoured_wait) {
    const std::lock_guard lock(shaper_.mutex_);
    for (const pid_t tid : threads)
      if (shaper_.favoured_.contains(tid)) return true;
  }
  return std::ranges::any_of(threads, [&](pid_t tid) {
    const auto found = shaper_.procfs_.interruption(tid);
    return found && (found->signals != 0 || (found->pending & ~process.signals) != 0 || found->tracer != 0);
  });
}

// The signals that wait for any of its threads.
std::uint64_t PageShaper::pending(pid_t tgid) const {
  std::uint64_t out = 0;
  const auto threads = shaper_.procfs_.threads(tgid);
  if (!threads) return out;
  for (const pid_t tid : *threads)
    if (const auto found = shaper_.procfs_.interruption(tid)) out |= found->pending;
  return out;
}

void PageShaper::look_at_frozen(pid_t tgid, Process& process) {
  const Time now = shaper_.clock_.now();
  // What waits for the process shows at each thread; all of them are looked at now and then.
  if (due(process, now) <= now || goes_on(process, {tgid})) return thaw(process);
  if (now - process.listed >= list_every) {
    list_frozen(tgid, process, now);
    if (goes_on(process, process.frozen)) return thaw(process);
    if (!process.group->keep_only(tgid)) {  // somebody has moved it elsewhere
      thaw(process);
      leave_group(process);
      process.owes = true;
      return;
    }
  }
  // Where the guard has ended it meanwhile, because nobody looked, it is stopped again.
  if (memory_[*process.place].until.exchange((now + vouched).time_since_epoch().count()) == 0)
    (void)process.group->freeze();
}

void PageShaper::look(pid_t tgid, Process& process) {
  const Time now = shaper_.clock_.now();
  if (now < process.stay_away || now < process.next_look) return;
  const bool moves = charge(tgid, process, now);
  if (moves) process.last_moved = now;
  if (now - process.last_moved > believed) process.next_look = now + list_every;
  process.owes = moves || process.owes;
  if (!process.owes && process.group && now - process.last_frozen > again_after) {
    leave_group(process);
    write_down();
  }
  if (!process.owes) return;
  if (const auto stat = shaper_.procfs_.stat(tgid); stat && stat->state == 'T') return;  // it stands still as it is
  if (due(process, now) - now >= least_freeze) {
    const auto threads = shaper_.procfs_.threads(tgid);
    process.signals = pending(tgid);
    if (threads && !goes_on(process, *threads)) return freeze(tgid, process);
  }
  process.owes = false;
}

// True: it has moved pages.
bool PageShaper::charge(pid_t tgid, Process& process, Time now) {
  const auto all = sys::process_io(shaper_.procfs_.root(), tgid);
  if (!all) return false;
  // While nobody looked, it had no limit: what it moved then is nobody's.
  const Duration since = now - std::exchange(process.charged, now);
  const double share = since <= vouched ? 1 : std::chrono::duration<double>(vouched) / since;
  if (process.counted && !moved(*process.counted, *all)) return false;
  process.counted = *all;
  const auto threads = shaper_.procfs_.threads(tgid);
  if (!threads) return false;
  std::erase_if(process.threads, [&](const auto& entry) {
    const bool gone = std::ranges::find(*threads, entry.first) == threads->end();
    if (gone) forget_thread(entry.first);
    return gone;
  });
  bool any = false;
  for (const pid_t tid : *threads) {
    auto known = process.threads.find(tid);
    if (known == process.threads.end()) {
      auto io = sys::ThreadIo::open(shaper_.procfs_.root(), tid);
      if (!io) continue;
      known = process.threads.emplace(tid, Thread{.io = std::move(io).value(), .counted = {}}).first;
      known->second.entered = ~std::uint64_t{0};  // what it does at this moment is not known
    }
    any = charge(tgid, process, known->second, tid, share, now) || any;
  }
  return any;
}

bool PageShaper::charge(pid_t tgid, Process& process, Thread& thread, pid_t tid, double share, Time now) {
  const auto counted = thread.io.read();
  if (!counted) {  // it has ended
    process.threads.erase(tid);
    forget_thread(tid);
    return false;
  }
  // Read after the counters: where it is the same as before, all that they have grown by lies outside of calls.
  const Shaper::Entries entered = shaper_.entries(tid);
  if (std::exchange(thread.entered, entered.count) != entered.count) thread.outside = false;
  const sys::IoCounters before = std::exchange(thread.counted, *counted);
  if (!thread.outside) {
    const auto state = shaper_.procfs_.syscall(tid);
    const bool is_over = entered.count > 0 && counted->calls > entered.calls_before;  // its last call
    thread.outside = is_over || (state && (state->running ? entered.count == 0 : !state->in_call));
    return false;
  }
  const Tokens read = part_of(before.read_bytes, counted->read_bytes, share);
  const Tokens written = part_of(before.written_bytes, counted->written_bytes, share);
  if (read == 0 && written == 0) return false;
  const Device disk = disk_of(tgid, process, now);
  const std::lock_guard lock(shaper_.mutex_);
  const auto charge_one = [&](Way way, Tokens bytes, decide::Passage& owed) {
    if (bytes > 0) owed = shaper_.shaping_.charge(process.view->index, disk, way, bytes, now);
  };
  charge_one(Way::read, read, process.owed[0]);
  charge_one(Way::write, written, process.owed[1]);
  Shaper::Paid& paid = shaper_.paid_[tid];
  paid.read += part_of(before.read_bytes, counted->read_bytes, 1);
  paid.written += part_of(before.written_bytes, counted->written_bytes, 1);
  return true;
}

// The disk of the largest file that it has mapped.
Device PageShaper::disk_of(pid_t tgid, Process& process, Time now) const {
  if (now - process.disk_sought < believed) return process.disk;
  process.disk_sought = now;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes;  // by device
  shaper_.procfs_.each_mapping(tgid, [&](const sys::Mapping& m) {
    if (m.ino != 0) sizes[m.dev] += m.end - m.start;
  });
  std::uint64_t largest = 0;
  process.disk = {Device::Kind::disk, 0};
  for (const auto& [device, size] : sizes) {
    if (size <= largest) continue;
    const auto chain = shaper_.disks_.chain(device);
    if (chain.empty()) continue;
    largest = size;
    const auto named = std::ranges::find_if(chain, [&](dev_t one) {
      return process.view->limits.devices.contains({Device::Kind::disk, observe::disk_number(one)});
    });
    const auto whole = std::ranges::find_if(chain, [&](dev_t one) { return !shaper_.disks_.is_partition(one); });
    const dev_t meant = named != chain.end() ? *named : whole != chain.end() ? *whole : chain.front();
    process.disk.number = observe::disk_number(meant);
  }
  return process.disk;
}

// Makes one where it has none. False: not now.
bool PageShaper::has_group(pid_t tgid, Process& process, Time now) {
  if (process.group && process.group->keep_only(tgid) && !process.group->has_groups()) return true;
  if (made_one_) return false;
  made_one_ = true;
  const bool had = process.group.has_value();
  leave_group(process);
  const auto give_up = [&](const Error& error) {
    leave_group(process);
    if (had || !error.gone()) write_down();
    process.stay_away = now + again_after;
    process.counted.reset();
    process.threads.clear();
    if (!error.gone() && !std::exchange(warned_, true))
      spdlog::warn("process {} cannot be frozen ({}); it pays for its mapped files at its next call", tgid,
                   error.text());
    return false;
  };
  const std::string of_it = std::string(sys::FreezerGroup::prefix) + std::to_string(tgid) + "-";
  if (had && std::ranges::any_of(leaving_, [&](const Leaving& one) {
        return one.group.directory().find(of_it) != std::string::npos && one.group.has_groups();
      }))
    return give_up(Error(EBUSY, "it has made groups below its own"));
  const auto directory = sys::FreezerGroup::place_for(tgid, shaper_.procfs_.root(), shaper_.options_.cgroups);
  if (!directory) return give_up(directory.error());
  process.directory = *directory;
  write_down();
  auto made = sys::FreezerGroup::make(*directory, tgid);
  if (!made) return give_up(made.error());
  process.group = std::move(made).value();
  return true;
}

void PageShaper::list_frozen(pid_t tgid, Process& process, Time now) {
  process.listed = now;
  auto threads = shaper_.procfs_.threads(tgid).value_or({});
  const std::lock_guard lock(shaper_.mutex_);
  for (const pid_t tid : process.frozen) shaper_.frozen_.erase(tid);
  process.frozen = std::move(threads);
  for (const pid_t tid : process.frozen)
    shaper_.frozen_[tid] = {
        .call = nullptr, .since = process.frozen_since, .favoured_wait = process.view->limits.favoured_wait};
  shaper_.count_held();
}

void PageShaper::freeze(pid_t tgid, Process& process) {
  if (free_.empty() || !has_group(tgid, process, shaper_.clock_.now())) return;
  const std::string control = process.group->control_file();
  FrozenGroup& place = memory_[free_.back()];
  const std::string_view text = sys::thawed(control);
  if (control.size() >= place.file.size() || text.size() >= place.thaw.size()) return;
  const Time now = shaper_.clock_.now();
  *std::copy(text.begin(), text.end(), place.thaw.begin()) = '\0';
  *std::copy(control.begin(), control.end(), place.file.begin()) = '\0';
  place.until.store((now + vouched).time_since_epoch().count(), std::memory_order_release);
  process.place = free_.back();
  free_.pop_back();
  process.frozen_since = now;
  list_frozen(tgid, process, now);
  const bool frozen = process.group->freeze().ok();
  if (!frozen) process.stay_away = now + again_after;
  // The guard may have been there before it: then nobody would end it if swapd ended now.
  if (!frozen || place.until.load(std::memory_order_acquire) == 0) return thaw(process);
  (void)process.group->keep_only(tgid);
}

void PageShaper::thaw(Process& process) {
  if (!process.place) return;
  process.owes = false;
  process.last_frozen = shaper_.clock_.now();
  (void)process.group->thaw();
  FrozenGroup& place = memory_[*process.place];
  place.file.front() = '\0';
  place.until.store(0, std::memory_order_release);
  free_.push_back(*std::exchange(process.place, std::nullopt));
  const std::lock_guard lock(shaper_.mutex_);
  for (const pid_t tid : process.frozen) shaper_.frozen_.erase(tid);
  process.frozen.clear();
  shaper_.count_held();
  ++shaper_.delayed_total_;
  shaper_.shaping_.waited(process.owed[process.owed[0].empty() ? 1 : 0], shaper_.clock_.now() - process.frozen_since);
}

}  // namespace swapd::daemon
