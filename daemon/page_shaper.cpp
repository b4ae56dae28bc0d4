#include "page_shaper.h"

#include <spdlog/spdlog.h>

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
constexpr int most_tries = 100;                                  // to remove a group at the end
constexpr Duration least_freeze = std::chrono::milliseconds(2);  // less is owed until the next look
constexpr Duration vouched = std::chrono::milliseconds(100);     // to the guard, for a look before that
constexpr Duration disk_believed = std::chrono::seconds(1), again_after = std::chrono::seconds(10);

Tokens tokens(std::uint64_t count) { return static_cast<Tokens>(std::min<std::uint64_t>(count, decide::most_burst)); }

bool moved(const sys::IoCounters& before, const sys::IoCounters& now) {
  return now.read_bytes != before.read_bytes || now.written_bytes != before.written_bytes;
}

std::string file_in(const std::string& state_dir) { return state_dir + "/frozen"; }

}  // namespace

PageShaper::PageShaper(Shaper& shaper, std::span<FrozenGroup> memory, std::string state_dir)
    : shaper_(shaper), memory_(memory), state_dir_(std::move(state_dir)) {
  for (std::size_t i = memory_.size(); i-- > 0;) free_.push_back(i);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PageShaper::~PageShaper() {
  thread_.request_stop();
  thread_.join();
  for (auto& [tgid, process] : processes_) end(process, shaper_.clock_.now());
  processes_.clear();
  for (int i = 0; i < most_tries && !leaving_.empty(); ++i) {
    std::erase_if(leaving_, [](sys::FreezerGroup& group) { return group.dissolve(); });
    if (!leaving_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  write_down();
}

void PageShaper::clear_left(const std::string& state_dir) {
  std::ifstream in(file_in(state_dir));
  for (std::string line; std::getline(in, line);)
    if (sys::FreezerGroup::found(line)) continue;  // and with it, it has gone
  std::error_code ignored;
  std::filesystem::remove(file_in(state_dir), ignored);
}

void PageShaper::write_down() const {
  if (state_dir_.empty()) return;
  std::string text;
  for (const auto& [tgid, process] : processes_)
    if (process.group) text += process.group->directory() + "\n";
  for (const sys::FreezerGroup& group : leaving_) text += group.directory() + "\n";
  if (const Status written = write_text(file_in(state_dir_), text); !written)
    spdlog::warn("{}; a cgroup may be left behind if swapd is killed", written.error().text());
}

void PageShaper::forget_thread(pid_t tid) const {
  const std::lock_guard lock(shaper_.mutex_);
  shaper_.paid_.erase(tid);
  shaper_.frozen_.erase(tid);
}

void PageShaper::look_now() {
  {
    const std::lock_guard lock(mutex_);
    look_now_ = true;
  }
  wake_.notify_one();
}

// It is nobody's to freeze any more.
void PageShaper::end(Process& process, Time now) {
  thaw(process, now);
  for (const auto& [tid, thread] : process.threads) forget_thread(tid);
  if (process.group && !process.group->dissolve()) leaving_.push_back(std::move(*process.group));
  process.group.reset();
}

void PageShaper::run(const std::stop_token& stop) {
  sys::name_thread("swapd-pages");
  (void)sys::set_thread_nice(0, -20);
  while (!stop.stop_requested()) {
    const auto members = shaper_.paying_at_once();
    const Time now = shaper_.clock_.now();
    bool left = std::erase_if(leaving_, [](sys::FreezerGroup& group) { return group.dissolve(); }) > 0;
    for (auto at = processes_.begin(); at != processes_.end();) {
      if (members.contains(at->first)) {
        ++at;
        continue;
      }
      left = left || at->second.group;
      end(at->second, now);
      at = processes_.erase(at);
    }
    if (left) write_down();
    for (const auto& [tgid, view] : members) {
      Process& process = processes_[tgid];
      process.view = view;
      look(tgid, process, now);
    }
    std::unique_lock lock(mutex_);
    (void)wake_.wait_for(lock, stop, members.empty() ? seek_every : look_every, [&] { return look_now_; });
    look_now_ = false;
  }
}

Time PageShaper::due(const Process& process, Time now) const {
  const std::lock_guard lock(shaper_.mutex_);
  return std::max(shaper_.shaping_.due(process.owed[0], now), shaper_.shaping_.due(process.owed[1], now));
}

// What would end a blocking call. A frozen process does nothing about it by itself.
bool PageShaper::goes_on(Process& process) const {
  for (const auto& [tid, thread] : process.threads) {
    {
      const std::lock_guard lock(shaper_.mutex_);
      if (!process.view->limits.favoured_wait && shaper_.favoured_.contains(tid)) return true;
    }
    const auto found = shaper_.procfs_.interruption(tid);
    if (!found) continue;  // it has ended
    if (found->signals != 0 || (found->tracer != 0 && found->tracer != process.tracer)) return true;
  }
  return false;
}

void PageShaper::look(pid_t tgid, Process& process, Time now) {
  if (process.place) {
    if (due(process, now) <= now || goes_on(process)) return thaw(process, now);
    const auto until = (now + vouched).time_since_epoch().count();
    // Where the guard has ended it meanwhile, because nobody looked, it is stopped again.
    if (memory_[*process.place].until.exchange(until) == 0) (void)process.group->freeze();
    return;
  }
  process.owes = charge(tgid, process, now) || process.owes;
  if (!process.owes || now < process.stay_away) return;
  if (due(process, now) - now >= least_freeze && !goes_on(process)) return freeze(tgid, process, now);
  process.owes = false;
}

// True: it has moved pages.
bool PageShaper::charge(pid_t tgid, Process& process, Time now) {
  const auto all = sys::process_io(shaper_.procfs_.root(), tgid);
  if (!all) return false;
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
    Thread& thread = known->second;
    const auto counted = thread.io.read();
    if (!counted) {
      forget_thread(tid);
      process.threads.erase(known);
      continue;
    }
    // Read after the counters: where it is the same as before, all that they have grown by lies outside of calls.
    const std::uint64_t entered = shaper_.entered(tid);
    if (std::exchange(thread.entered, entered) != entered) thread.outside = false;
    const sys::IoCounters before = std::exchange(thread.counted, *counted);
    if (!thread.outside) {
      const auto state = shaper_.procfs_.syscall(tid);
      // One that runs may be within the call that it has made; one that has made none is not.
      thread.outside = state && (state->running ? entered == 0 : !state->in_call);
      continue;
    }
    const Tokens read = counted->read_bytes > before.read_bytes ? tokens(counted->read_bytes - before.read_bytes) : 0;
    const Tokens written =
        counted->written_bytes > before.written_bytes ? tokens(counted->written_bytes - before.written_bytes) : 0;
    if (read == 0 && written == 0) continue;
    const Device disk = disk_of(tgid, process, now);
    const std::lock_guard lock(shaper_.mutex_);
    const auto charge_one = [&](Way way, Tokens bytes, decide::Passage& owed) {
      if (bytes > 0) owed = shaper_.shaping_.charge(process.view->index, disk, way, bytes, now);
    };
    charge_one(Way::read, read, process.owed[0]);
    charge_one(Way::write, written, process.owed[1]);
    shaper_.paid_[tid].read += read;
    shaper_.paid_[tid].written += written;
    any = true;
  }
  return any;
}

// The disk of the largest file that it has mapped.
Device PageShaper::disk_of(pid_t tgid, Process& process, Time now) const {
  if (now - process.disk_sought < disk_believed) return process.disk;
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
    process.disk.number = observe::disk_number(named != chain.end()   ? *named
                                               : whole != chain.end() ? *whole
                                                                      : chain[0]);
  }
  return process.disk;
}

void PageShaper::freeze(pid_t tgid, Process& process, Time now) {
  if (free_.empty()) return;
  if (!process.group || !process.group->keep_only(tgid)) {
    process.group.reset();
    auto made = sys::FreezerGroup::make(tgid, shaper_.procfs_.root(), shaper_.options_.cgroups);
    if (!made) {
      if (!made.error().gone() && !std::exchange(warned_, true))
        spdlog::warn("process {} cannot be frozen ({}); it pays for its mapped files at its next call", tgid,
                     made.error().text());
      process.stay_away = now + again_after;
      return;
    }
    process.group = std::move(made).value();
    write_down();
  }
  const std::string control = process.group->control_file();
  FrozenGroup& place = memory_[free_.back()];
  const std::string_view text = sys::thawed(control);
  if (control.size() >= place.file.size() || text.size() >= place.thaw.size()) return;
  *std::copy(control.begin(), control.end(), place.file.begin()) = '\0';
  *std::copy(text.begin(), text.end(), place.thaw.begin()) = '\0';
  place.until.store((now + vouched).time_since_epoch().count(), std::memory_order_release);
  process.place = free_.back();
  free_.pop_back();
  process.frozen_since = now;
  process.tracer = 0;
  if (const auto found = shaper_.procfs_.interruption(tgid)) process.tracer = found->tracer;
  {
    const std::lock_guard lock(shaper_.mutex_);
    for (const auto& [tid, thread] : process.threads)
      shaper_.frozen_[tid] = {.call = nullptr, .since = now, .favoured_wait = process.view->limits.favoured_wait};
    shaper_.count_held();
  }
  if (!process.group->freeze()) {
    process.stay_away = now + again_after;
    return thaw(process, now);
  }
  (void)process.group->keep_only(tgid);  // a child of the last moment
}

void PageShaper::thaw(Process& process, Time now) {
  if (!process.place) return;
  process.owes = false;
  (void)process.group->thaw();
  memory_[*process.place].until.store(0, std::memory_order_release);
  free_.push_back(*std::exchange(process.place, std::nullopt));
  const std::lock_guard lock(shaper_.mutex_);
  for (const auto& [tid, thread] : process.threads) shaper_.frozen_.erase(tid);
  shaper_.count_held();
  ++shaper_.delayed_total_;
  shaper_.shaping_.waited(process.owed[process.owed[0].empty() ? 1 : 0], now - process.frozen_since);
}

}  // namespace swapd::daemon
