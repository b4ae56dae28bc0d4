#include "resume.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "engine.h"
#include "handover.h"
#include "launches.h"
#include "worker.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;

constexpr int version = 1;
constexpr std::size_t most_members = 100'000;

std::string file_in(const std::string& state_dir) { return state_dir + "/members"; }

std::string count(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

// The listeners that earlier guards hold. Each guard ends once all of its own have somebody else.
std::size_t take_over(Launches& launches, const std::string& state_dir, std::vector<std::string>& notes) {
  std::size_t taken = 0;
  for (LeftGuard& guard : LeftGuard::find(state_dir)) {
    auto left = guard.take();
    if (!left) {
      notes.push_back(left.error().text() + "; it goes on answering its programs");
      continue;
    }
    bool all = true;
    for (LeftListener& listener : *left) {
      const Status adopted = launches.adopt(std::move(listener));
      if (adopted) ++taken;
      if (!adopted) notes.push_back("taking a listener over: " + adopted.error().text());
      all = all && adopted.ok();
    }
    if (all) (void)guard.done();
  }
  return taken;
}

}  // namespace

Result<Fd> lock_state(const std::string& state_dir, Duration within) {
  const std::string path = state_dir + "/lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return errno_error(path);
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(path);
    if (std::chrono::steady_clock::now() > deadline)
      return Error(EBUSY,
                   "another swapd uses the state directory " + state_dir + "; stop it, or give another --state-dir");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return lock;
}

Status write_members(const std::string& state_dir, const std::string& boot_id, const std::vector<Membership>& members) {
  json list = json::array();
  for (const Membership& m : members)
    list.push_back({{"pid", m.pid},
                    {"start_time", m.start_time},
                    {"class", m.class_name},
                    {"managed", m.managed},
                    {"launch", m.launch}});
  const std::string path = file_in(state_dir);
  const std::string draft = path + ".new";
  {
    std::ofstream out(draft, std::ios::trunc);
    out << json{{"version", version}, {"boot_id", boot_id}, {"members", std::move(list)}} << '\n';
    if (!out.flush()) return errno_error(draft);
  }
  std::error_code failed;
  std::filesystem::rename(draft, path, failed);
  if (failed) return Error(failed.value(), path);
  return Done{};
}

Result<std::vector<Membership>> read_members(const std::string& state_dir, const std::string& boot_id) {
  const std::string path = file_in(state_dir);
  std::ifstream in(path);
  if (!in) return std::vector<Membership>{};
  const json file = json::parse(in, nullptr, false);
  const auto bad = [&](const std::string& why) { return Error(EBADMSG, path + ": " + why); };
  if (!file.is_object()) return bad("not a list of members");
  try {
    if (file.at("version").get<int>() != version) return bad("of another version");
    if (file.at("boot_id").get<std::string>() != boot_id) return std::vector<Membership>{};
    std::vector<Membership> out;
    for (const json& m : file.at("members")) {
      if (out.size() == most_members) return bad("too long");
      out.push_back({.pid = m.at("pid").get<pid_t>(),
                     .start_time = m.at("start_time").get<std::uint64_t>(),
                     .class_name = m.at("class").get<std::string>(),
                     .managed = m.at("managed").get<bool>(),
                     .launch = m.at("launch").get<pid_t>()});
    }
    return out;
  } catch (const json::exception&) {
    return bad("a field is missing, or of another type");
  }
}

std::vector<std::string> resume(Engine& engine, Launches& launches, const sys::Procfs& procfs,
                                const sys::Scheduler& scheduler, const policy::Policy& policy,
                                const std::string& state_dir, const std::string& boot_id) {
  std::vector<std::string> notes;
  // bpf needs no listener; whoever holds them goes on answering.
  const std::size_t listeners = engine.needs_listeners() ? take_over(launches, state_dir, notes) : 0;
  auto left = read_members(state_dir, boot_id);
  if (!left) {
    std::error_code ignored;
    std::filesystem::rename(file_in(state_dir), file_in(state_dir) + ".damaged", ignored);
    notes.push_back(left.error().context() + "; set aside as members.damaged, and begun anew");
    return notes;
  }
  std::erase_if(*left, [&](const Membership& m) {
    const auto id = procfs.thread_id(m.pid);
    return !id || id->start_time != m.start_time;
  });
  std::set<pid_t> again;
  std::size_t lost = 0;
  // First each with what it has started since, then each as it was itself.
  for (const bool descendants : {true, false}) {
    for (Membership& member : *left) {
      if (!policy.classes.contains(member.class_name)) member.class_name = "default";
      const RosterAnswer found = list_threads(procfs, scheduler, {.members = {member.pid}, .descendants = descendants});
      Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
      engine.call([&](Engine& e) { taken = e.take_in_again(found.threads, member); });
      if (!taken) {
        lost += descendants ? 1 : 0;
        continue;
      }
      for (const RosterAnswer::Entry& e : found.threads) again.insert(e.tgid);
      if (!descendants && !member.managed) {
        engine.call([&](Engine& e) { (void)e.release(member.pid); });
        again.erase(member.pid);
      }
    }
  }
  if (!again.empty() || listeners != 0)
    notes.push_back("taken over from an earlier swapd: " + count(again.size(), "process") + ", " +
                    count(listeners, "listener"));
  if (lost != 0)
    notes.push_back(count(lost, "process") + " of an earlier swapd cannot be observed any more: they run on unmanaged");
  return notes;
}

MembersFile::MembersFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id)
    : loop_(loop), engine_(engine), state_dir_(std::move(state_dir)), boot_id_(std::move(boot_id)) {
  sd_event_add_io(
      loop_, &changes_, engine_.membership_fd(), EPOLLIN,
      [](sd_event_source*, int, std::uint32_t, void* self) {
        static_cast<MembersFile*>(self)->write_soon();
        return 0;
      },
      this);
  write();
}

MembersFile::~MembersFile() {
  sd_event_source_unref(changes_);
  sd_event_source_unref(timer_);
}

// A storm of forks is written down ten times a second, not at each.
void MembersFile::write_soon() {
  constexpr std::uint64_t pause_us = 100'000;
  sd_event_source_set_enabled(changes_, SD_EVENT_OFF);
  timer_ = sd_event_source_unref(timer_);
  const int set = sd_event_add_time_relative(
      loop_, &timer_, CLOCK_MONOTONIC, pause_us, 10'000,
      [](sd_event_source*, std::uint64_t, void* self) {
        static_cast<MembersFile*>(self)->write();
        return 0;
      },
      this);
  if (set < 0) write();
}

void MembersFile::write() {
  engine_.membership_seen();
  sd_event_source_set_enabled(changes_, SD_EVENT_ON);
  std::vector<Membership> members;
  if (!engine_.call([&](Engine& e) { members = e.memberships(); })) return;
  const Status written = write_members(state_dir_, boot_id_, members);
  if (!written && !std::exchange(failed_, true))
    spdlog::warn("{}; the next swapd will not know whom this one managed", written.error().text());
  if (written) failed_ = false;
}

}  // namespace swapd::daemon
