// Calls that wait for messages, locks, signals, children and time.
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "busy.h"

namespace busy {
namespace {

struct Message {
  long type = 1;
  std::uint64_t number = 0;
};

template <bool full>
class SysvQueue final : public Case {
 public:
  SysvQueue() : id_(::msgget(IPC_PRIVATE, 0600)), owner_(::getpid()) {
    const Message message;
    while (full && ::msgsnd(id_, &message, sizeof message.number, IPC_NOWAIT) == 0) {
    }
  }
  ~SysvQueue() override {
    if (::getpid() == owner_) ::msgctl(id_, IPC_RMID, nullptr);
  }
  bool wait(unsigned round) override { return full ? send(round) : receive(round); }
  void end(int, unsigned round) override {
    Message message;
    if (full ? ::msgrcv(id_, &message, sizeof message.number, 0, 0) < 0 : !send(round)) std::abort();
  }

 private:
  [[nodiscard]] bool send(unsigned round) const {
    const Message message{1, round};
    return ::msgsnd(id_, &message, sizeof message.number, 0) == 0;
  }
  [[nodiscard]] bool receive(unsigned round) const {
    Message message;
    return ::msgrcv(id_, &message, sizeof message.number, 0, 0) == sizeof message.number && message.number == round;
  }
  int id_;
  pid_t owner_;
};

template <bool timed>
class Semaphore final : public Case {
 public:
  Semaphore() : id_(::semget(IPC_PRIVATE, 1, 0600)), owner_(::getpid()) {}
  ~Semaphore() override {
    if (::getpid() == owner_) ::semctl(id_, 0, IPC_RMID);
  }
  bool wait(unsigned) override {
    sembuf down{0, -1, 0};
    const timespec limit{.tv_sec = 20, .tv_nsec = 0};
    return (timed ? ::semtimedop(id_, &down, 1, &limit) : ::semop(id_, &down, 1)) == 0;
  }
  void end(int, unsigned) override {
    sembuf up{0, 1, 0};
    if (::semop(id_, &up, 1) != 0) std::abort();
  }

 private:
  int id_;
  pid_t owner_;
};

template <bool full>
class Mq final : public Case {
 public:
  Mq() {
    const std::string name = "/swapd-busy-" + std::to_string(::getpid()) + (full ? "-full" : "");
    mq_attr attr{};
    attr.mq_maxmsg = 2;
    attr.mq_msgsize = sizeof(std::uint64_t);
    fd_ = ::mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    if (fd_ < 0) std::abort();
    ::mq_unlink(name.c_str());
    if (full)
      for (unsigned i = 0; i < 2; ++i) (void)send(0);
  }
  bool wait(unsigned round) override { return full ? send(round) : receive(round); }
  void end(int, unsigned round) override {
    std::uint64_t number = 0;
    if (full ? ::mq_receive(fd_, reinterpret_cast<char*>(&number), sizeof number, nullptr) < 0 : !send(round))
      std::abort();
  }

 private:
  [[nodiscard]] static timespec limit() {
    timespec at{};
    ::clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 20;
    return at;
  }
  [[nodiscard]] bool send(std::uint64_t number) const {
    const timespec at = limit();
    return ::mq_timedsend(fd_, reinterpret_cast<const char*>(&number), sizeof number, 0, &at) == 0;
  }
  [[nodiscard]] bool receive(unsigned round) const {
    std::uint64_t number = 0;
    const timespec at = limit();
    return ::mq_timedreceive(fd_, reinterpret_cast<char*>(&number), sizeof number, nullptr, &at) == sizeof number &&
           number == round;
  }
  mqd_t fd_;
};

// The other side has the lock and gives it back; then they change places, through pipes that only order them.
enum class LockKind { flock, posix, ofd };
template <LockKind kind>
class Lock final : public Case {
 public:
  Lock() {
    std::string name = "/tmp/swapd-busy-XXXXXX";
    const int made = ::mkstemp(name.data());
    path_ = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(made);
    if (made < 0 || ::pipe(taken_) != 0 || ::pipe(free_) != 0) std::abort();
    ::unlink(name.c_str());
    give(free_[1]);
  }
  void prepare() override { await(taken_[0]); }
  bool wait(unsigned) override {
    const bool got = change(file(), true);
    if (got) (void)change(file(), false);
    give(free_[1]);
    return got;
  }
  void end(int, unsigned) override { (void)change(file(), false); }
  void hinder() override {
    await(free_[0]);
    if (!change(file(), true)) std::abort();
    give(taken_[1]);
  }

 private:
  // Each side an open file of its own.
  int file() {
    if (file_ < 0) file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (file_ < 0) std::abort();
    return file_;
  }
  static bool change(int fd, bool lock) {
    if (kind == LockKind::flock) return ::flock(fd, lock ? LOCK_EX : LOCK_UN) == 0;
    struct flock range {};
    range.l_type = static_cast<short>(lock ? F_WRLCK : F_UNLCK);
    return ::fcntl(fd, kind == LockKind::ofd ? F_OFD_SETLKW : F_SETLKW, &range) == 0;
  }
  static void give(int fd) {
    if (::write(fd, "", 1) != 1) std::abort();
  }
  static void await(int fd) {
    char byte = 0;
    if (::read(fd, &byte, 1) != 1) std::abort();
  }
  std::string path_;
  int file_ = -1;
  int taken_[2] = {-1, -1}, free_[2] = {-1, -1};
};

volatile sig_atomic_t handled = 0;

// A signal that a handler takes: EINTR is right, once for each.
template <bool suspend>
class Handler final : public Case {
 public:
  void prepare() override {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &one, nullptr);
    struct sigaction action {};
    action.sa_handler = [](int) { handled = handled + 1; };
    ::sigaction(SIGUSR1, &action, nullptr);
    handled = 0;
  }
  bool wait(unsigned) override {
    sigset_t none;
    ::sigemptyset(&none);
    if (suspend) return ::sigsuspend(&none) == -1 && errno == EINTR && handled == 1;
    const timespec limit{.tv_sec = 20, .tv_nsec = 0};
    return ::ppoll(nullptr, 0, &limit, &none) == -1 && errno == EINTR && handled == 1;
  }
  void end(int waiter, unsigned) override { ::kill(waiter, SIGUSR1); }
};

template <bool timed>
class SignalWait final : public Case {
 public:
  void prepare() override {
    ::sigemptyset(&one_);
    ::sigaddset(&one_, SIGUSR2);
    ::sigprocmask(SIG_BLOCK, &one_, nullptr);
  }
  bool wait(unsigned) override {
    const timespec limit{.tv_sec = 20, .tv_nsec = 0};
    return (timed ? ::sigtimedwait(&one_, nullptr, &limit) : ::sigwaitinfo(&one_, nullptr)) == SIGUSR2;
  }
  void end(int waiter, unsigned) override { ::kill(waiter, SIGUSR2); }

 private:
  sigset_t one_{};
};

template <bool waitid_call>
class Child final : public Case {
 public:
  bool wait(unsigned round) override {
    const int code = static_cast<int>(round % 100);
    const pid_t child = ::fork();
    if (child == 0) {
      ::usleep(2000);
      ::_exit(code);
    }
    if (waitid_call) {
      siginfo_t info{};
      return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED) == 0 && info.si_status == code;
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WEXITSTATUS(status) == code;
  }
  void end(int, unsigned) override {}
};

// Time that has passed, not less than was asked for.
class Sleep final : public Case {
 public:
  bool wait(unsigned) override {
    const auto began = std::chrono::steady_clock::now();
    const timespec time{.tv_sec = 0, .tv_nsec = 3'000'000};
    return ::nanosleep(&time, nullptr) == 0 && std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(3);
  }
  void end(int, unsigned) override {}
};

// No call at all: registers and memory are what they were.
class Compute final : public Case {
 public:
  bool wait(unsigned round) override {
    std::uint64_t sum = round;
    double other = 1;
    for (std::uint64_t i = 1; i <= 200000; ++i) {
      sum = sum * 6364136223846793005ULL + i;
      other = other * 1.0000001 + 1e-9;
    }
    for (std::uint64_t i = 200000; i >= 1; --i) sum = (sum - i) * inverse;
    return sum == round && other > 1;
  }
  void end(int, unsigned) override {}

 private:
  static constexpr std::uint64_t inverse = [] {  // of the multiplier, modulo 2^64
    std::uint64_t x = 6364136223846793005ULL;
    for (int i = 0; i < 6; ++i) x *= 2 - 6364136223846793005ULL * x;
    return x;
  }();
};

}  // namespace

const std::vector<Named>& other_cases() {
  static const std::vector<Named> cases{{"msgrcv", make<SysvQueue<false>>},
                                        {"msgsnd", make<SysvQueue<true>>},
                                        {"semop", make<Semaphore<false>>},
                                        {"semtimedop", make<Semaphore<true>>},
                                        {"mq_timedreceive", make<Mq<false>>},
                                        {"mq_timedsend", make<Mq<true>>},
                                        {"flock", make<Lock<LockKind::flock>>},
                                        {"fcntl", make<Lock<LockKind::posix>>},
                                        {"fcntl of an open file", make<Lock<LockKind::ofd>>},
                                        {"sigsuspend", make<Handler<true>>},
                                        {"ppoll for a signal", make<Handler<false>>},
                                        {"sigtimedwait", make<SignalWait<true>>},
                                        {"sigwaitinfo", make<SignalWait<false>>},
                                        {"wait4", make<Child<false>>},
                                        {"waitid", make<Child<true>>},
                                        {"nanosleep", make<Sleep>},
                                        {"no call", make<Compute>}};
  return cases;
}

}  // namespace busy
