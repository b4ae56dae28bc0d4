// Launches and the receivers that come of them (docs/design.md, Launch). Control thread, but for the threads that wait
// for a launcher.
//
// Each launch has a short-lived thread that waits for the launcher's listener, so that the control thread never waits.
// The steps after it: a duplicate to the guard, receiving, membership, and only then the launcher's go-ahead.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "bus/backend.h"
#include "engine/engine.h"
#include "guard/fd_store.h"
#include "guard/guard.h"
#include "guard/guard_takeover.h"
#include "shaping/shaper.h"
#include "sys/seccomp/launch.h"

namespace swapd::daemon {

class Launches {
 public:
  // log: one line for the journal, from any thread.
  Launches(Engine& engine, Guard& guard, const FdStore& store, Shaper& shaper, const Clock& clock,
           std::function<void(std::string)> log);
  ~Launches();
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  // Takes over the request; the launcher learns the outcome through its memory.
  [[nodiscard]] Status begin(bus::LaunchRequest request);
  // An earlier swapd's listener: held, received and answered from now on.
  [[nodiscard]] Status adopt(OrphanListener left);
  [[nodiscard]] bool receives(int listener);
  // A listener of a process that stands still: held and received from now on. joins: runs on the engine thread once the
  // receiver does. Any thread.
  [[nodiscard]] Status receive(OrphanListener from,
                               const std::function<void(Engine&, std::shared_ptr<observe::Receiver>)>& joins);
  // Ends receivers whose listener has hung up and joins finished threads; call when wake_fd() is readable.
  void reap();
  [[nodiscard]] int wake_fd() const { return wake_.get(); }
  void stop();

 private:
  struct Launch {
    bus::LaunchRequest request;
    sys::launch::Shared* shared = nullptr;
    std::jthread thread;
    std::atomic<bool> done{false};
  };
  struct Listening {
    ListenerSlot* slot = nullptr;  // the guard's
    std::shared_ptr<observe::Receiver> receiver;
    std::atomic<bool> done{false};
  };

  void run(Launch& launch, const std::stop_token& stop);
  [[nodiscard]] Status attach(Launch& launch, Fd listener);

  Engine& engine_;
  Guard& guard_;
  const FdStore& store_;
  Shaper& shaper_;
  const Clock& clock_;
  std::function<void(std::string)> log_;
  Fd wake_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Launch>> launches_;
  std::list<std::unique_ptr<Listening>> listening_;
};

}  // namespace swapd::daemon
