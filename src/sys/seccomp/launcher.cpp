#include "sys/seccomp/launcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "sys/process/futex.h"
#include "sys/seccomp/seccomp.h"

namespace swapd::sys::launch {
namespace {

constexpr int exit_failed = 1;

// The unfiltered thread. It sleeps until it is told to end, or to say why the launch has failed and end the process.
class Reporter {
 public:
  explicit Reporter(const Go& go) {
    const std::string begin = std::string(go.name) + ": swapd ";
    const std::string end = "; nothing was run\n";
    timed_out_ = begin + "did not answer within " + std::to_string(go.timeout.count()) + " ms" + end;
    refused_ = begin + "refused the launch (its log tells why)" + end;
  }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  ~Reporter() {
    if (!started_) return;
    tell(Order::end);
    ::pthread_join(thread_, nullptr);
  }

  Status start() {
    // Signals for the process are the caller's business.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = ::pthread_create(
        &thread_, nullptr,
        [](void* self) -> void* {
          static_cast<Reporter*>(self)->run();
          return nullptr;
        },
        this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (rc != 0) return Error(rc, "starting a thread for the launch");
    started_ = true;
    return Done{};
  }

  // Async-signal-safe, and without any system call but futex.
  [[noreturn]] void fail(bool refused) {
    tell(refused ? Order::say_refused : Order::say_timed_out);
    for (;;) futex_wait(order_, order_.load(), std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }

 private:
  enum class Order : std::int32_t { wait, end, say_timed_out, say_refused };

  void tell(Order order) {
    order_.store(static_cast<std::int32_t>(order));
    futex_wake(order_);
  }
  void run() {
    constexpr auto waiting = static_cast<std::int32_t>(Order::wait);
    while (order_.load() == waiting)
      futex_wait(order_, waiting, std::chrono::steady_clock::now() + std::chrono::hours(1));
    const auto order = static_cast<Order>(order_.load());
    if (order == Order::end) return;
    const std::string& line = order == Order::say_refused ? refused_ : timed_out_;
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(exit_failed);
  }

  std::string timed_out_, refused_;
  std::atomic<std::int32_t> order_{0};
  pthread_t thread_{};
  bool started_ = false;
};

void tell_listener(Shared& shared, std::int32_t value) {
  shared.listener.store(value);
  futex_wake(shared.listener);
}

}  // namespace

Status install_and_wait(const Go& go) {
  Shared& shared = *go.shared;
  Reporter reporter(go);
  if (Status started = reporter.start(); !started) {
    tell_listener(shared, not_installed);
    return started;
  }
  auto listener = install_filter(go.program, {.allow_no_new_privs = go.allow_no_new_privs});
  if (!listener) {
    tell_listener(shared, not_installed);
    return std::move(listener).error();
  }
  // From here on: futex(2) and close(2) alone, which no filter of ours traps.
  const Time deadline = std::chrono::steady_clock::now() + go.timeout;
  tell_listener(shared, listener->get());
  while (shared.answer.load() == no_answer && std::chrono::steady_clock::now() < deadline)
    futex_wait(shared.answer, no_answer, deadline);
  std::int32_t answer = no_answer;
  if (shared.answer.compare_exchange_strong(answer, gave_up)) answer = gave_up;  // else: what swapd wrote
  listener->reset();
  if (answer == go_on) return Done{};  // swapd receives: every call works again
  reporter.fail(answer == refused);
}

Result<Shared*> map_shared(int memory) {
  const int seals = ::fcntl(memory, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return Error(EINVAL, "the launch memory is not sealed");
  struct stat info {};
  if (::fstat(memory, &info) != 0) return errno_error("looking at the launch memory");
  if (info.st_size < static_cast<off_t>(sizeof(Shared))) return Error(EINVAL, "the launch memory is too small");
  void* mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (mapped == MAP_FAILED) return errno_error("mapping the launch memory");
  auto* shared = static_cast<Shared*>(mapped);
  if (shared->magic == Shared::magic_value) return shared;
  unmap_shared(shared);
  return Error(EINVAL, "the launch memory has another version's format");
}

void unmap_shared(Shared* shared) { ::munmap(shared, sizeof(Shared)); }

}  // namespace swapd::sys::launch
