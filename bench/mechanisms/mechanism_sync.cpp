// What synchronises without moving data: System V semaphores (empty and full, as in [SWAP04 §5.1]), eventfd, signals.
// The answer itself lies in the shared memory.
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <unistd.h>

#include "mechanisms/mechanism.h"

namespace swapd::bench {

namespace {

class InMemory : public Mechanism {
 protected:
  Shared* shared_ = nullptr;
  void compute_answer(const Computation& compute) {
    compute();
    stamp(shared_->answers[0].data());
  }
  Status check_answer() { return check(shared_->answers[0].data()); }
};

class Semaphores final : public InMemory {
 public:
  ~Semaphores() override {
    if (owned_ >= 0) ::semctl(owned_, 0, IPC_RMID);
  }
  Status create(Place& place) override {
    owned_ = ::semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);
    if (owned_ < 0) return errno_error("semget");
    id_ = owned_;
    place.client.word = place.server.word = std::to_string(owned_);
    return change(empty, 1);
  }
  Status attach_client(const Peer& peer) override { return take(peer); }
  Status attach_server(const Peer& peer) override { return take(peer); }
  Status serve(const Computation& compute) override {
    if (const auto waited = change(empty, -1); !waited) return waited;
    compute_answer(compute);
    return change(full, 1);
  }
  Status await() override {
    if (const auto waited = change(full, -1); !waited) return waited;
    if (const auto good = check_answer(); !good) return good;
    return change(empty, 1);
  }

 private:
  static constexpr unsigned short empty = 0, full = 1;
  Status take(const Peer& peer) {
    id_ = std::stoi(peer.word);
    shared_ = peer.shared;
    return Done{};
  }
  Status change(unsigned short which, short by) const {
    sembuf operation{which, by, 0};
    if (::semop(id_, &operation, 1) != 0) return errno_error("semop");
    return Done{};
  }
  int owned_ = -1;
  int id_ = -1;
};

class EventFd final : public InMemory {
 public:
  Status create(Place& place) override {
    Fd fd(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
    Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd || !copy) return errno_error("eventfd");
    place.client.fds.push_back(std::move(fd));
    place.server.fds.push_back(std::move(copy));
    return Done{};
  }
  Status attach_client(const Peer& peer) override { return take(peer); }
  Status attach_server(const Peer& peer) override { return take(peer); }
  Status serve(const Computation& compute) override {
    compute_answer(compute);
    return ::eventfd_write(fd_, 1) == 0 ? Status(Done{}) : Status(errno_error("eventfd_write"));
  }
  Status await() override {
    eventfd_t one = 0;
    if (::eventfd_read(fd_, &one) != 0) return errno_error("eventfd_read");
    return Done{};
  }

 private:
  Status take(const Peer& peer) {
    fd_ = peer.fds.at(0);
    shared_ = peer.shared;
    return Done{};
  }
  int fd_ = -1;
};

volatile sig_atomic_t answers_seen = 0;
void note_answer(int) { answers_seen = answers_seen + 1; }

// The client signals the server and sleeps in sigsuspend; the server sleeps in sigwaitinfo.
class Signals final : public InMemory {
 public:
  Status create(Place&) override { return Done{}; }
  Status attach_client(const Peer& peer) override {
    shared_ = peer.shared;
    struct sigaction action {};
    action.sa_handler = note_answer;
    ::sigaction(SIGUSR1, &action, nullptr);
    return block(SIGUSR1);
  }
  Status attach_server(const Peer& peer) override {
    shared_ = peer.shared;
    return block(SIGUSR2);
  }
  Status request(const Computation&) override { return tell(shared_->server_pid, SIGUSR2); }
  Status serve(const Computation& compute) override {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGUSR2);
    if (::sigwaitinfo(&set, nullptr) < 0) return errno_error("sigwaitinfo");
    compute_answer(compute);
    return tell(shared_->client_pid, SIGUSR1);
  }
  Status await() override {
    sigset_t open = before_;
    ::sigdelset(&open, SIGUSR1);
    while (answers_seen == answers_taken_) ::sigsuspend(&open);
    answers_taken_ = answers_seen;
    return check_answer();
  }

 private:
  Status block(int number) {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, number);
    if (::sigprocmask(SIG_BLOCK, &set, &before_) != 0) return errno_error("sigprocmask");
    return Done{};
  }
  static Status tell(pid_t pid, int number) {
    if (::kill(pid, number) != 0) return errno_error("kill");
    return Done{};
  }
  sigset_t before_{};
  sig_atomic_t answers_taken_ = 0;
};

}  // namespace

std::unique_ptr<Mechanism> make_sync_mechanism(std::string_view name) {
  if (name == "sem") return std::make_unique<Semaphores>();
  if (name == "eventfd") return std::make_unique<EventFd>();
  if (name == "signal") return std::make_unique<Signals>();
  return nullptr;
}

}  // namespace swapd::bench
