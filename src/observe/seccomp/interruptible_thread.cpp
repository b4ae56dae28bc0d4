#include "observe/seccomp/interruptible_thread.h"

#include <limits.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>

#include "sys/process/futex.h"
#include "sys/process/self_process.h"

namespace swapd::observe {
namespace {

// Enough for a loop around one system call and small callbacks. The sanitizers keep more there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t stack_size = 1 << 20;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t stack_size = 1 << 20;
#else
constexpr std::size_t stack_size = 64 << 10;
#endif
#else
constexpr std::size_t stack_size = 64 << 10;
#endif

// The other threads never get it, because it is sent to the thread.
int stop_signal() { return SIGRTMAX - 1; }

void install_stop_signal() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = 0;  // no SA_RESTART: the call shall come back
    ::sigaction(stop_signal(), &action, nullptr);
  });
}

}  // namespace

Status InterruptibleThread::start(const char* name, int nice, std::function<void()> body) {
  install_stop_signal();
  main_ = [this, name, nice, body = std::move(body)] { run(name, nice, body); };
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::max(stack_size, static_cast<std::size_t>(PTHREAD_STACK_MIN)));
  const int rc = ::pthread_create(
      &thread_, &attributes,
      [](void* self) -> void* {
        static_cast<InterruptibleThread*>(self)->main_();
        return nullptr;
      },
      this);
  ::pthread_attr_destroy(&attributes);
  if (rc != 0) return Error(rc, "starting a thread");
  started_ = true;
  tid_.wait(0);
  return Done{};
}

void InterruptibleThread::run(const char* name, int nice, const std::function<void()>& body) {
  sigset_t all_but_ours;
  ::sigfillset(&all_but_ours);
  ::sigdelset(&all_but_ours, stop_signal());
  ::pthread_sigmask(SIG_SETMASK, &all_but_ours, nullptr);
  sys::name_thread(name);
  (void)sys::set_thread_nice(0, nice);  // the daemon warns of missing privileges once, at its start
  tid_.store(sys::own_tid());
  tid_.notify_all();
  body();
  ended_.store(1);
  sys::futex_wake(ended_);
}

void InterruptibleThread::stop() {
  if (!std::exchange(started_, false)) return;
  stopping_.store(true);
  while (ended_.load() == 0) {
    ::pthread_kill(thread_, stop_signal());
    sys::futex_wait(ended_, 0, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  }
  ::pthread_join(thread_, nullptr);
}

}  // namespace swapd::observe
