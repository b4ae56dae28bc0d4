// The far ends of all sessions: a viewer for each X server, and a reader of what the important player says. One thread,
// which runs with the harness's priority: people who look do not compete for the server's CPUs.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "thin_client/rfb_client.h"

namespace swapd::bench {

// Counts the status lines of mplayer, which says one for each frame when the X server has drawn it ("V: 1.2 30/30 …",
// and a carriage return). Pure.
class StatusLines {
 public:
  // How many of them begin in this piece of output, or ended in it what began in the last one.
  [[nodiscard]] int take(std::string_view output);

 private:
  char last_ = 0;
};

class Audience {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Audience() = default;
  ~Audience() { stop(); }
  Audience(const Audience&) = delete;
  Audience& operator=(const Audience&) = delete;
  // Before start().
  [[nodiscard]] Status add_viewer(const std::string& socket);
  [[nodiscard]] Status add_player(const std::string& fifo);
  void start();
  void stop();
  // Updates of the screen that each viewer has had, in the order in which they were added.
  [[nodiscard]] std::vector<int> updates() const;
  // When the player's frames were drawn.
  [[nodiscard]] std::vector<Time> frames() const;

 private:
  struct Viewer {
    Fd fd;
    RfbClient client;
  };
  void watch();
  void serve(Viewer& viewer);
  void read_player();

  std::vector<Viewer> viewers_;
  Fd player_;
  StatusLines lines_;
  std::vector<Time> frames_;
  std::vector<char> buffer_ = std::vector<char>(256 << 10);
  mutable std::mutex mutex_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace swapd::bench
