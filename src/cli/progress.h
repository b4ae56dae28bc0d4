// One line on the terminal while something takes long: what, for how long, and how far it is. Nothing where standard
// error is no terminal, or where it does not take long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace swapd::cli {

class Progress {
 public:
  static constexpr std::chrono::milliseconds patience{500};
  // how_far: asked twice a second, from another thread; empty: nothing but the time is known.
  Progress(std::string what, int fd, std::function<std::string()> how_far = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // The line is gone.
  ~Progress();

 private:
  void run();

  std::string what_;
  int fd_;
  std::function<std::string()> how_far_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace swapd::cli
