#include "enroll/restore_members.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/engine.h"
#include "engine/worker.h"
#include "enroll/enrollable.h"
#include "enroll/launches.h"
#include "guard/fd_store.h"
#include "guard/guard_takeover.h"
#include "shaping/classes.h"
#include "state/persistent_state.h"
#include "state/state_file.h"
#include "sys/process/self_process.h"
#include "sys/procfs/ticks.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::milliseconds write_pause{100};
constexpr std::chrono::seconds give_back_after{1};

std::string count(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

// The listeners that earlier guards hold. Each guard ends once all of its own have another holder.
std::size_t take_over(Launches& launches, FdStore& store, const std::string& state_dir,
                      std::vector<std::string>& notes) {
  std::size_t taken = 0;
  for (OrphanGuard& guard : OrphanGuard::find(state_dir)) {
    auto left = guard.take();
    if (!left) {
      notes.push_back("an earlier guard: " + left.error().text());
      continue;
    }
    for (OrphanListener& listener : *left) {
      const std::uint32_t index = listener.index;
      const Status adopted = launches.adopt(std::move(listener));
      if (adopted) {
        ++taken;
        (void)guard.done(index);
      } else {
        notes.push_back("taking a listener over: " + adopted.error().text() +
                        "; an earlier guard goes on answering it");
      }
    }
  }
  // Listeners that no guard had: it has ended, and their calls wait.
  for (OrphanListener& listener : store.take_left()) {
    const int fd = listener.listener.get();
    if (launches.receives(fd) || sys::hung_up(fd)) continue;
    store.answer_left(fd);
    if (const Status adopted = launches.adopt(std::move(listener)); adopted)
      ++taken;
    else
      notes.push_back("taking a listener over from the service manager: " + adopted.error().text());
  }
  return taken;
}

// The file is written a little late.
std::uint64_t since(std::uint64_t written) {
  constexpr std::uint64_t margin = sys::ticks_per_second;
  return written > margin ? written - margin : 0;
}

bool lives(const sys::Procfs& procfs, const model::Membership& member) {
  const auto id = procfs.thread_id(member.pid);
  return id && id->start_time == member.start_time;
}

}  // namespace

Resumed resume(Engine& engine, Launches& launches, FdStore& store, const sys::Procfs& procfs,
               const sys::Scheduler& scheduler, const policy::Policy& policy, const Classes& classes,
               const std::string& state_dir, const std::string& boot_id) {
  Resumed out;
  auto left = read_members(state_dir, boot_id);
  if (!left) {
    set_aside(members_file(state_dir));
    out.notes.push_back(left.error().context() + "; set aside as members.damaged, and begun anew");
  }
  const std::size_t listeners = take_over(launches, store, state_dir, out.notes);
  std::unordered_map<pid_t, model::Membership> members;
  std::vector<pid_t> pids;
  for (model::Membership& member : left ? left->members : std::vector<model::Membership>{}) {
    if (!lives(procfs, member)) continue;
    if (!classes.exists(member.class_name)) member.class_name = "default";
    pids.push_back(member.pid);
    members[member.pid] = std::move(member);
  }
  std::set<pid_t> again, lost;
  // Children of a thread that are born before the thread is enrolled are found by looking again.
  constexpr int max_rounds = 16;
  std::size_t added = 1;
  for (int round = 0; round < max_rounds && added != 0; ++round) {
    added = 0;
    // Each process belongs to the nearest member above it. What is older than the file and not in it was not managed.
    std::unordered_map<pid_t, std::vector<RosterAnswer::Entry>> of_member;
    for (const RosterAnswer::Entry& e :
         list_threads(procfs, scheduler, {.members = pids, .descendants = true}).threads) {
      const model::Membership& owner = members.at(e.parent == 0 ? e.tgid : e.parent);
      if (e.tgid == owner.pid ? e.process_start != owner.start_time : e.process_start < since(left->written)) continue;
      if (e.tgid != owner.pid && !may_enroll(procfs, e.tgid, policy.observe.never).ok()) continue;
      of_member[owner.pid].push_back(e);
    }
    for (const auto& of : of_member) {  // no binding: clang 14 takes none into a lambda
      const pid_t pid = of.first;
      const std::vector<RosterAnswer::Entry>& threads = of.second;
      const model::Membership& member = members.at(pid);
      if (!member.managed && !engine.needs_listeners()) {
        engine.call([&](Engine& e) { e.membership().remember_released(member.pid, member.start_time); });
        continue;
      }
      Result<std::size_t> taken = Error(ESHUTDOWN, "swapd is stopping");
      engine.call([&](Engine& e) { taken = e.membership().reenroll(threads, member); });
      if (!taken && lost.insert(pid).second) out.lost.push_back(member);
      if (!taken) continue;
      if (member.managed) added += *taken;
      if (member.managed)
        for (const RosterAnswer::Entry& e : threads) again.insert(e.tgid);
    }
  }
  if (!again.empty() || listeners != 0)
    out.notes.push_back("taken over from an earlier swapd: " + count(again.size(), "process") + ", " +
                        count(listeners, "listener"));
  if (!lost.empty())
    out.notes.push_back(count(lost.size(), "process") +
                        " of an earlier swapd cannot be observed: without their listeners they run on unmanaged");
  return out;
}

MembersFile::MembersFile(sd_event* loop, Engine& engine, const sys::Procfs& procfs, std::string state_dir,
                         std::string boot_id, std::vector<model::Membership> lost)
    : engine_(engine),
      procfs_(procfs),
      state_dir_(std::move(state_dir)),
      boot_id_(std::move(boot_id)),
      lost_(std::move(lost)),
      changes_(loop, [this] { write_soon(); }),
      write_(loop, [this] { write(); }),
      give_back_(loop, [this] { give_back_memory(); }) {
  if (const Status watched = changes_.watch(engine_.membership().signal().fd()); !watched)
    spdlog::error("{}; the next swapd will not know the members of this one", watched.error().text());
  write();
}

// The last member left a second ago.
void MembersFile::give_back_memory() {
  bool empty = false;
  engine_.call([&](Engine& e) { empty = e.members().empty(); });
  if (!empty) return;
  if (const Status locked = sys::give_back_memory(); !locked)
    spdlog::debug("{}", locked.error().text());  // said at the start, where it could not be locked at all
}

// A storm of forks is written down ten times a second, not at each.
void MembersFile::write_soon() {
  if (std::chrono::steady_clock::now() - written_ > write_pause) return write();
  changes_.pause();
  if (!write_.start(write_pause)) write();
}

void MembersFile::write() {
  engine_.membership().signal().clear();
  changes_.go_on();
  std::vector<model::Membership> members;
  if (!engine_.call([&](Engine& e) { members = e.membership().tracker().memberships(); })) return;
  written_ = std::chrono::steady_clock::now();
  std::erase_if(lost_, [&](const model::Membership& m) { return !lives(procfs_, m); });
  std::erase_if(members, [&](const model::Membership& m) { return !m.managed && !lives(procfs_, m); });
  members.insert(members.end(), lost_.begin(), lost_.end());
  const Status written = write_members(state_dir_, boot_id_, members);
  if (!written && !std::exchange(failed_, true))
    spdlog::warn("{}; the next swapd will not know whom this one managed", written.error().text());
  if (written) failed_ = false;
  if (std::exchange(had_members_, !members.empty()) && members.empty()) (void)give_back_.start(give_back_after);
}

}  // namespace swapd::daemon
