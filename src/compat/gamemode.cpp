#include "compat/gamemode.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "sys/process/pidfd.h"
#include "sys/process/self_process.h"
#include "sys/sched/scheduler.h"

namespace swapd::compat {
namespace {

constexpr const char* gamemode_name = "com.feralinteractive.GameMode";
constexpr const char* gamemode_object = "/com/feralinteractive/GameMode";
constexpr const char* game_interface = "com.feralinteractive.GameMode.Game";
constexpr std::string_view games_below = "/com/feralinteractive/GameMode/Games/";
constexpr std::size_t max_games = 256;  // as gamemoded has it

std::string path_of(pid_t game) { return std::string(games_below) + std::to_string(game); }

GameMode& games_of(void* data) { return *static_cast<GameMode*>(data); }

}  // namespace

const sd_bus_vtable GameMode::manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("RegisterGame", "i", "i", on_own, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("UnregisterGame", "i", "i", on_own, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("QueryStatus", "i", "i", on_own, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("RegisterGameByPID", "ii", "i", on_other, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("UnregisterGameByPID", "ii", "i", on_other, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("QueryStatusByPID", "ii", "i", on_other, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("RegisterGameByPIDFd", "hh", "i", on_descriptor, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("UnregisterGameByPIDFd", "hh", "i", on_descriptor, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("QueryStatusByPIDFd", "hh", "i", on_descriptor, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("RefreshConfig", "", "i", on_refresh, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ListGames", "", "a(io)", on_list, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_PROPERTY("ClientCount", "i", count, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_SIGNAL("GameRegistered", "io", 0),
    SD_BUS_SIGNAL("GameUnregistered", "io", 0),
    SD_BUS_VTABLE_END,
};
const sd_bus_vtable GameMode::game_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("ProcessId", "i", game_pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Executable", "s", game_exe, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_VTABLE_END,
};

Status GameMode::serve() {
  sd_bus_slot* slot = nullptr;
  int r = sd_bus_add_object_vtable(bus_, &slot, gamemode_object, gamemode_name, manager_vtable, this);
  manager_.reset(slot);
  if (r >= 0) {
    r = sd_bus_add_fallback_vtable(bus_, &slot, std::string(games_below.substr(0, games_below.size() - 1)).c_str(),
                                   game_interface, game_vtable, find, this);
    objects_.reset(slot);
  }
  if (r >= 0) r = sd_bus_request_name(bus_, gamemode_name, 0);
  return r < 0 ? Status(Error(-r, gamemode_name)) : Done{};
}

int GameMode::query(pid_t game) const {
  if (games_.contains(game)) return registered;
  return games_.empty() ? inactive : active;
}

int GameMode::add(Fd pidfd, pid_t pid) {
  if (games_.contains(pid)) return failed;
  if (games_.size() >= max_games) {
    spdlog::warn("process {} is no game: there are {} already", pid, max_games);
    return failed;
  }
  Game game{.self = this,
            .pid = pid,
            .pidfd = std::move(pidfd),
            .was_managed = swapd_.is_managed(pid),
            .exe = procfs_.exe(pid).value_or("")};
  if (!game.was_managed) {
    if (const Status managed = swapd_.manage_tree(game.pidfd, options_.class_name); !managed) {
      spdlog::warn("game {} ({}) is not managed: {}", pid, game.exe, managed.error().context());
      return rejected;
    }
  }
  if (options_.nice) {
    const auto before = sys::LinuxScheduler().nice(pid);
    const Status set = swapd_.set_nice(pid, *options_.nice);
    if (before && set)
      game.nice_before = *before;
    else if (!set)
      spdlog::warn("game {} ({}) keeps its nice value: {}", pid, game.exe, set.error().context());
  }
  Game& kept = games_[pid] = std::move(game);
  sd_event_source* end = nullptr;
  if (sd_event_add_io(loop_, &end, kept.pidfd.get(), EPOLLIN, on_end, &kept) >= 0) kept.end.reset(end);
  spdlog::info("game {} ({}) is managed", pid, kept.exe);
  tell("GameRegistered", pid);
  return done;
}

// One that was managed before is left as it was.
int GameMode::remove(pid_t pid) {
  const auto at = games_.find(pid);
  if (at == games_.end()) return failed;
  const Game game = std::move(at->second);
  games_.erase(at);
  if (!sys::has_exited(game.pidfd.get())) {
    if (game.nice_before)
      if (const Status back = swapd_.set_nice(pid, *game.nice_before); !back)
        spdlog::warn("game {} keeps its nice value: {}", pid, back.error().context());
    if (!game.was_managed)
      if (const Status released = swapd_.release(pid); !released)
        spdlog::warn("game {} remains managed: {}", pid, released.error().context());
  }
  tell("GameUnregistered", pid);
  return done;
}

void GameMode::tell(const char* signal, pid_t game) {
  (void)sd_bus_emit_signal(bus_, gamemode_object, gamemode_name, signal, "io", game, path_of(game).c_str());
  (void)sd_bus_emit_properties_changed(bus_, gamemode_object, gamemode_name, "ClientCount", nullptr);
}

int GameMode::on_end(sd_event_source*, int, std::uint32_t, void* data) {
  const auto& game = *static_cast<Game*>(data);
  (void)game.self->remove(game.pid);
  return 0;
}

int GameMode::answer(const std::string& member, Fd pidfd, pid_t game) {
  if (game <= 0) return failed;
  if (member.starts_with("Query")) return query(game);
  return member.starts_with("Unregister") ? remove(game) : add(std::move(pidfd), game);
}

int GameMode::on_own(sd_bus_message* call, void* data, sd_bus_error*) {
  std::int32_t game = 0;
  if (const int r = sd_bus_message_read(call, "i", &game); r < 0) return r;
  auto pidfd = sys::open_pidfd(game);
  const int said = pidfd ? games_of(data).answer(sd_bus_message_get_member(call), std::move(*pidfd), game) : failed;
  return sd_bus_reply_method_return(call, "i", said);
}

// A portal or gamemoded(8) speaks for the game: the first number is that process's.
int GameMode::on_other(sd_bus_message* call, void* data, sd_bus_error*) {
  std::int32_t requester = 0;
  std::int32_t game = 0;
  if (const int r = sd_bus_message_read(call, "ii", &requester, &game); r < 0) return r;
  auto pidfd = sys::open_pidfd(game);
  const int said = pidfd ? games_of(data).answer(sd_bus_message_get_member(call), std::move(*pidfd), game) : failed;
  return sd_bus_reply_method_return(call, "i", said);
}

int GameMode::on_descriptor(sd_bus_message* call, void* data, sd_bus_error*) {
  int requester = -1;
  int game = -1;
  if (const int r = sd_bus_message_read(call, "hh", &requester, &game); r < 0) return r;
  Fd own(::fcntl(game, F_DUPFD_CLOEXEC, 0));  // the message's is closed with it
  const auto pid = sys::pid_of_pidfd(own.get());
  const int said = pid ? games_of(data).answer(sd_bus_message_get_member(call), std::move(own), *pid) : failed;
  return sd_bus_reply_method_return(call, "i", said);
}

int GameMode::on_refresh(sd_bus_message* call, void*, sd_bus_error*) {
  return sd_bus_reply_method_return(call, "i", done);
}

int GameMode::on_list(sd_bus_message* call, void* data, sd_bus_error*) {
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_return(call, &made);
  const Message reply(made);
  if (r >= 0) r = sd_bus_message_open_container(made, 'a', "(io)");
  for (const auto& [pid, game] : games_of(data).games_)
    if (r >= 0) r = sd_bus_message_append(made, "(io)", pid, path_of(pid).c_str());
  if (r >= 0) r = sd_bus_message_close_container(made);
  return r < 0 ? r : sd_bus_send(nullptr, made, nullptr);
}

int GameMode::count(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*) {
  return sd_bus_message_append(reply, "i", static_cast<std::int32_t>(games_of(data).games_.size()));
}

int GameMode::find(sd_bus*, const char* path, const char*, void* data, void** found, sd_bus_error*) {
  for (auto& [pid, game] : games_of(data).games_) {
    if (path_of(pid) != path) continue;
    *found = &game;
    return 1;
  }
  return 0;
}

int GameMode::game_pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data,
                       sd_bus_error*) {
  return sd_bus_message_append(reply, "i", static_cast<std::int32_t>(static_cast<Game*>(data)->pid));
}

int GameMode::game_exe(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data,
                       sd_bus_error*) {
  return sd_bus_message_append(reply, "s", static_cast<Game*>(data)->exe.c_str());
}

}  // namespace swapd::compat
