#include "cli/progress.h"

#include <unistd.h>

#include <csignal>
#include <utility>

#include "cli/render.h"

namespace swapd::cli {

Progress::Progress(std::string what, int fd, std::function<std::string()> how_far)
    : what_(std::move(what)), fd_(fd), how_far_(std::move(how_far)) {
  if (::isatty(fd_) != 1) return;
  // Signals are the first thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Progress::run() {
  using Clock = std::chrono::steady_clock;
  constexpr const char* erase = "\r\033[K";
  const auto begun = Clock::now();
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, patience, [this] { return over_; })) {
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begun).count();
    std::string line = erase + what_ + " " + duration(ms);
    if (how_far_) line += ", " + how_far_();
    (void)!::write(fd_, line.data(), line.size());
    shown = true;
  }
  if (shown) (void)!::write(fd_, erase, 4);
}

}  // namespace swapd::cli
