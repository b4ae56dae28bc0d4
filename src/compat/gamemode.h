// The interface of gamemode's daemon (com.feralinteractive.GameMode), on the user's bus: a game that registers is
// managed by swapd, with whatever it starts, until it unregisters or ends. Helpful for what a game waits for; governor,
// screen saver and GPU are left as they are.
//
// Source: gamemoded(8), and the interface's introspection.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/fd.h"
#include "compat/bus.h"
#include "compat/swapd_client.h"
#include "sys/procfs/procfs.h"

namespace swapd::compat {

class GameMode {
 public:
  struct Options {
    std::string class_name;   // that games come into; empty: default
    std::optional<int> nice;  // that they have meanwhile; polkit may refuse it (org.swapd1.raise-priority)
  };
  // Answers of the interface.
  static constexpr int done = 0, failed = -1, rejected = -2;
  static constexpr int inactive = 0, active = 1, registered = 2;

  // loop, bus, swapd: outlive it.
  GameMode(sd_event* loop, sd_bus* bus, SwapdClient& swapd, Options options)
      : loop_(loop), bus_(bus), swapd_(swapd), options_(std::move(options)) {}
  // Takes the name, and serves from the event loop on. EEXIST: another program has the name.
  [[nodiscard]] Status serve();

  // The interface's methods.
  [[nodiscard]] int add(Fd pidfd, pid_t game);
  [[nodiscard]] int remove(pid_t game);
  [[nodiscard]] int query(pid_t game) const;

 private:
  struct Game {
    GameMode* self = nullptr;
    pid_t pid = 0;
    Fd pidfd;
    bool was_managed = false;
    std::optional<int> nice_before;  // it was changed
    std::string exe;
    EventSource end;
  };
  // sd_bus_message_handler_t's and property getters.
  static int on_own(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_other(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_descriptor(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_refresh(sd_bus_message* call, void* data, sd_bus_error* error);
  static int on_list(sd_bus_message* call, void* data, sd_bus_error* error);
  static int count(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*);
  static int find(sd_bus*, const char* path, const char* interface, void* data, void** found, sd_bus_error*);
  static int game_pid(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*);
  static int game_exe(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* data, sd_bus_error*);
  static int on_end(sd_event_source* source, int fd, std::uint32_t events, void* data);
  static const sd_bus_vtable manager_vtable[], game_vtable[];

  [[nodiscard]] int answer(const std::string& member, Fd pidfd, pid_t game);
  void tell(const char* signal, pid_t game);

  sd_event* loop_;
  sd_bus* bus_;
  SwapdClient& swapd_;
  Options options_;
  sys::Procfs procfs_;
  std::map<pid_t, Game> games_;
  Slot manager_, objects_;
};

}  // namespace swapd::compat
