#include "shaping/freezer_groups.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "state/state_file.h"
#include "sys/process/self_process.h"

namespace swapd::daemon {
namespace {

constexpr Duration first_pause = std::chrono::milliseconds(100), max_pause = std::chrono::seconds(10);
constexpr Duration write_pause = std::chrono::seconds(1);  // after one that failed
constexpr int max_tries = 100;                             // to remove a group at the end, a millisecond each

constexpr std::array files = {"frozen", "away"};  // of all that freeze

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

FreezerGroups::FreezerGroups(std::span<FrozenGroup> memory, Places places)
    : memory_(memory), places_(std::move(places)) {
  for (std::size_t i = memory_.size(); i-- > 0;) free_.push_back(i);
  if (places_.state_dir.empty()) return;
  for (const std::string& directory : lines_of(file())) {
    changed_ = true;
    if (auto found = sys::FreezerGroup::found(directory))
      leaving_.push_back({.own = {.group = std::move(found).value(), .place = {}}});
  }
}

FreezerGroups::~FreezerGroups() {
  changed_ = changed_ || entering_;
  entering_.reset();  // once it is there, it leaves again
  for (auto& [tgid, own] : of_) thaw(tgid);
  while (!of_.empty()) leave(of_.begin()->first, {});
  for (int i = 0; i < max_tries && !leaving_.empty(); ++i) {
    std::erase_if(leaving_, [this](Leaving& one) { return dissolve(one.own); });
    if (!leaving_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  write_down(write_next_);
}

std::string FreezerGroups::file() const { return places_.state_dir + "/" + places_.file; }

// A group that cannot be removed yet stays in the list.
void FreezerGroups::clear_left(const std::string& state_dir) {
  for (const char* name : files) {
    const std::string path = state_dir + "/" + name;
    std::string left;
    const auto lines = lines_of(path);
    for (const std::string& directory : lines) {
      auto found = sys::FreezerGroup::found(directory);
      if (found && !found->dissolve()) left += directory + "\n";
    }
    if (!lines.empty()) (void)replace_file(path, left);
  }
}

Result<bool> FreezerGroups::enter(pid_t tgid, Time now) {
  const auto known = of_.find(tgid);
  const bool had_one = known != of_.end();
  if (had_one && known->second.group.keep_only(tgid) && !known->second.group.has_groups()) return true;
  if (failed_ && failed_->first == tgid) return std::exchange(failed_, std::nullopt)->second;
  if (entering_) return false;
  leave(tgid, now);
  if (had_one && has_left_groups(tgid)) return Error(EBUSY, "it has made groups below its own");
  const auto directory = sys::FreezerGroup::place_for(tgid, places_.proc_root, places_.cgroups);
  if (!directory) return directory.error();
  changed_ = true;
  write_down(now, *directory);
  try {
    entering_ = {.tgid = tgid, .directory = *directory, .made = std::async(std::launch::async, [=] {
                                                          sys::name_thread("swapd-moves");
                                                          (void)sys::set_thread_nice(0, -20);
                                                          return sys::FreezerGroup::make(*directory, tgid);
                                                        })};
  } catch (const std::system_error& refused) {  // no thread is to be had
    changed_ = true;
    return Error(refused.code().value(), "starting a thread");
  }
  return false;
}

void FreezerGroups::take_entered(Time now) {
  if (!entering_ || entering_->made.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  auto made = entering_->made.get();
  const pid_t tgid = entering_->tgid;
  const bool stays = !entering_->is_to_leave;
  entering_.reset();
  changed_ = true;
  if (made) of_.emplace(tgid, Own{.group = std::move(made).value(), .place = {}});
  if (!made && stays) failed_ = {tgid, made.error()};
  if (!stays) leave(tgid, now);
}

Result<bool> FreezerGroups::freeze(pid_t tgid, Time until) {
  Own& own = of_.at(tgid);
  const std::string control = own.group.control_file();
  const std::string_view text = sys::thawed(control);
  FrozenGroup& place = memory_[free_.back()];
  if (control.size() >= place.file.size() || text.size() >= place.thaw.size()) return Error(ENAMETOOLONG, control);
  *std::copy(text.begin(), text.end(), place.thaw.begin()) = '\0';
  *std::copy(control.begin(), control.end(), place.file.begin()) = '\0';
  place.until.store(until.time_since_epoch().count(), std::memory_order_release);
  own.place = free_.back();
  free_.pop_back();
  const Status frozen = own.group.freeze();
  // The guard may have been there before it: then no process would end it if swapd ended now.
  if (!frozen || place.until.load(std::memory_order_acquire) == 0) {
    thaw(tgid);
    if (!frozen) return frozen.error();
    return false;
  }
  (void)own.group.keep_only(tgid);
  return true;
}

bool FreezerGroups::is_frozen(pid_t tgid) const {
  const auto known = of_.find(tgid);
  return known != of_.end() && known->second.place;
}

bool FreezerGroups::vouch(pid_t tgid, Time until) {
  return memory_[of_.at(tgid).place.value()].until.exchange(until.time_since_epoch().count()) != 0;
}

void FreezerGroups::thaw(pid_t tgid) {
  if (!is_frozen(tgid)) return;
  Own& own = of_.at(tgid);
  const Status thawed = own.group.thaw();
  if (thawed || thawed.error().code() == ENOENT || thawed.error().code() == ENODEV) free_place(own);
}

void FreezerGroups::free_place(Own& own) {
  if (!own.place) return;
  FrozenGroup& place = memory_[*own.place];
  place.file.front() = '\0';
  place.until.store(0, std::memory_order_release);
  free_.push_back(*std::exchange(own.place, std::nullopt));
}

bool FreezerGroups::dissolve(Own& own) {
  if (!own.group.dissolve()) return false;
  free_place(own);
  return true;
}

bool FreezerGroups::keep(pid_t tgid) const {
  const auto known = of_.find(tgid);
  return known != of_.end() && known->second.group.keep_only(tgid);
}

void FreezerGroups::leave(pid_t tgid, Time now) {
  if (entering_ && entering_->tgid == tgid) entering_->is_to_leave = true;
  if (failed_ && failed_->first == tgid) failed_.reset();
  thaw(tgid);
  auto known = of_.extract(tgid);
  if (!known) return;
  changed_ = true;
  if (!dissolve(known.mapped())) leaving_.push_back({std::move(known.mapped()), now + first_pause, first_pause});
}

void FreezerGroups::tidy(Time now) {
  take_entered(now);
  std::erase_if(leaving_, [&](Leaving& one) {
    if (now < one.next) return false;
    if (dissolve(one.own)) return changed_ = true;
    one.pause = std::clamp<Duration>(2 * one.pause, first_pause, max_pause);
    one.next = now + one.pause;
    return false;
  });
  write_down(now);
}

bool FreezerGroups::has_left_groups(pid_t tgid) const {
  const std::string of_it = std::string(sys::FreezerGroup::prefix) + std::to_string(tgid) + "-";
  return std::ranges::any_of(leaving_, [&](const Leaving& one) {
    return one.own.group.directory().find(of_it) != std::string::npos && one.own.group.has_groups();
  });
}

void FreezerGroups::write_down(Time now, const std::string& about_to_be_made) {
  if (places_.state_dir.empty() || !changed_ || (now < write_next_ && about_to_be_made.empty())) return;
  std::string text;
  for (const auto& [tgid, own] : of_) text += own.group.directory() + "\n";
  for (const Leaving& one : leaving_) text += one.own.group.directory() + "\n";
  if (entering_) text += entering_->directory + "\n";
  if (!about_to_be_made.empty()) text += about_to_be_made + "\n";
  const Status written = replace_file(file(), text);
  changed_ = !written;
  if (written) return;
  write_next_ = now + write_pause;
  if (!std::exchange(warned_, true))
    spdlog::warn("{}; a cgroup may be left behind if swapd is killed", written.error().text());
}

}  // namespace swapd::daemon
