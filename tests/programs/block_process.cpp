// Blocks on children, signals, System V objects and futexes.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>

#include "programs/block.h"

using block::must;

namespace {

pid_t own_tid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// Numbers that one process tells the others.
struct Board {
  std::atomic<pid_t> waiter{0};
  std::atomic<pid_t> provider{0};
  pthread_mutex_t mutex{};
  static Board& make() {
    void* page = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::exit(1);
    return *new (page) Board;
  }
};

enum class ChildWait { pid, any, id, pidfd };

void child(ChildWait how) {
  Board& board = Board::make();
  block::Gate forked;
  const pid_t waiter = block::spawn([&] {
    const pid_t pid = block::spawn([&] {
      forked.open();
      block::idle();
    });
    board.provider = pid;
    forked.open();
    siginfo_t info{};
    switch (how) {
      case ChildWait::pid:
        ::waitpid(pid, nullptr, 0);
        break;
      case ChildWait::any:
        ::waitpid(-1, nullptr, 0);
        break;
      case ChildWait::id:
        ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
        break;
      case ChildWait::pidfd:
        ::waitid(P_PIDFD, static_cast<id_t>(::syscall(SYS_pidfd_open, pid, 0)), &info, WEXITED);
        break;
    }
  });
  forked.wait();
  block::report(waiter, board.provider);
}

// The waiter is the first process of a pid namespace: its child is 2 there.
void child_in_namespace() {
  must(::unshare(CLONE_NEWPID), "unshare");
  block::Gate forked;
  const pid_t waiter = block::spawn([&] {
    const pid_t pid = block::spawn([&] {
      forked.open();
      block::idle();
    });
    forked.open();
    ::waitpid(pid, nullptr, 0);
  });
  forked.wait();
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/children", waiter, waiter);
  std::FILE* children = std::fopen(path.data(), "r");
  pid_t provider = 0;
  if (children == nullptr || std::fscanf(children, "%d", &provider) != 1) std::exit(1);
  std::fclose(children);
  block::report(waiter, provider);
}

template <typename Wait>
void signalled(const Wait& wait) {
  const pid_t provider = block::spawn([] { block::idle(); });
  block::report(block::spawn(wait), provider);
}

void with_sigsuspend() {
  signalled([] {
    sigset_t none;
    sigemptyset(&none);
    ::sigsuspend(&none);
  });
}

void with_sigwait() {
  signalled([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::sigwaitinfo(&set, nullptr);
  });
}

void semaphore_op(int id, short by) {
  sembuf op{};
  op.sem_op = by;
  must(::semop(id, &op, 1), "semop");
}

void semaphore() {
  const int id = must(::semget(IPC_PRIVATE, 1, 0600), "semget");
  block::Gate used;
  const pid_t provider = block::spawn([&] {
    semaphore_op(id, 1);
    semaphore_op(id, -1);
    used.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    used.wait();
    semaphore_op(id, -1);
  });
  used.settle();
  block::report(waiter, provider);
  ::semctl(id, 0, IPC_RMID);
}

void semaphore_in_namespace() {
  must(::unshare(CLONE_NEWIPC), "unshare");
  semaphore();
}

void message() {
  struct Message {
    long type = 1;
    char byte = 0;
  };
  const int id = must(::msgget(IPC_PRIVATE, 0600), "msgget");
  block::Gate used;
  const pid_t provider = block::spawn([&] {
    Message text;
    must(::msgsnd(id, &text, 1, 0), "msgsnd");
    must(static_cast<int>(::msgrcv(id, &text, 1, 0, 0)), "msgrcv");
    used.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    Message text;
    used.wait();
    ::msgrcv(id, &text, 1, 0, 0);
  });
  used.settle();
  block::report(waiter, provider);
  ::msgctl(id, IPC_RMID, nullptr);
}

// Two threads of one process; the owner of the mutex is not its main thread.
void mutex(int protocol, int robustness) {
  Board& board = Board::make();
  block::Gate ready;
  block::spawn([&] {
    static Board* shared = nullptr;
    shared = &board;
    static pthread_mutex_t lock;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robustness);
    pthread_mutex_init(&lock, &attributes);
    pthread_t owner{};
    static std::atomic<bool> locked{false};
    pthread_create(
        &owner, nullptr,
        [](void*) -> void* {
          pthread_mutex_lock(&lock);
          shared->provider = own_tid();
          locked = true;
          locked.notify_all();
          block::idle();
        },
        nullptr);
    locked.wait(false);
    board.waiter = own_tid();
    ready.open();
    pthread_mutex_lock(&lock);
  });
  ready.wait();
  block::report(board.waiter, board.provider);
}

void shared_mutex() {
  Board& board = Board::make();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&board.mutex, &attributes);
  block::Gate taken;
  const pid_t provider = block::spawn([&] {
    pthread_mutex_lock(&board.mutex);
    taken.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    taken.wait();
    pthread_mutex_lock(&board.mutex);
  });
  taken.settle();
  block::report(waiter, provider);
}

void join() {
  Board& board = Board::make();
  block::Gate ready;
  block::spawn([&] {
    static Board* shared = nullptr;
    static std::atomic<bool> known{false};
    shared = &board;
    pthread_t thread{};
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          shared->provider = own_tid();
          known = true;
          known.notify_all();
          block::idle();
        },
        nullptr);
    known.wait(false);
    board.waiter = own_tid();
    ready.open();
    pthread_join(thread, nullptr);
  });
  ready.wait();
  block::report(board.waiter, board.provider);
}

constexpr block::Scenario scenarios[] = {
    {"wait4", [] { child(ChildWait::pid); }},
    {"wait-any", [] { child(ChildWait::any); }},
    {"waitid", [] { child(ChildWait::id); }},
    {"waitid-pidfd", [] { child(ChildWait::pidfd); }},
    {"wait4-namespace", child_in_namespace},
    {"sigsuspend", with_sigsuspend},
    {"sigwaitinfo", with_sigwait},
    {"pause", [] { signalled([] { ::pause(); }); }},
    {"sleep", [] { signalled([] { ::sleep(1000); }); }},
    {"sysv-sem", semaphore},
    {"sysv-sem-namespace", semaphore_in_namespace},
    {"sysv-msg", message},
    {"mutex", [] { mutex(PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED); }},
    {"mutex-pi", [] { mutex(PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED); }},
    {"mutex-robust", [] { mutex(PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST); }},
    {"mutex-shared", shared_mutex},
    {"join", join},
};

}  // namespace

int main(int argc, char** argv) { return block::main_of(argc, argv, scenarios); }
