// Blocks on pipes, FIFOs, ptys, eventfds, POSIX queues and locks.
#include <mqueue.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <string>

#include "programs/block.h"

using block::must;

namespace {

// The waiter uses `mine`, the provider keeps `other`.
template <typename Wait>
void ends(int mine, int other, const Wait& wait) {
  const pid_t provider = block::spawn([&] {
    ::close(mine);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    ::close(other);
    wait();
  });
  ::close(mine);
  ::close(other);
  block::report(waiter, provider);
}

std::array<int, 2> new_pipe() {
  std::array<int, 2> out{};
  must(::pipe(out.data()), "pipe");
  return out;
}

void pipe_read() {
  const auto p = new_pipe();
  ends(p[0], p[1], [&] { block::read_byte(p[0]); });
}

void pipe_write() {
  const auto p = new_pipe();
  ends(p[1], p[0], [&] { block::fill(p[1]); });
}

void pipe_splice() {
  const auto from = new_pipe();
  const auto to = new_pipe();
  ends(from[0], from[1], [&] { ::splice(from[0], nullptr, to[1], nullptr, 4096, 0); });
}

// The descriptor is not the one it was when the number was first used.
void pipe_reused() {
  const auto first = new_pipe();
  const auto second = new_pipe();
  ends(second[0], second[1], [&] {
    ::dup2(second[0], first[0]);
    ::close(second[0]);
    block::read_byte(first[0]);
  });
}

void pipe_dup() {
  const auto p = new_pipe();
  const pid_t provider = block::spawn([&] {
    must(::dup(p[1]), "dup");
    ::close(p[0]);
    ::close(p[1]);
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    const int copy = must(::dup(p[0]), "dup");
    ::close(p[0]);
    ::close(p[1]);
    block::read_byte(copy);
  });
  ::close(p[0]);
  ::close(p[1]);
  block::report(waiter, provider);
}

// The writing end goes to the provider in a message; nobody had it by fork.
void pipe_passed() {
  std::array<int, 2> channel{};
  must(::socketpair(AF_UNIX, SOCK_STREAM, 0, channel.data()), "socketpair");
  block::Gate passed;
  std::array<char, CMSG_SPACE(sizeof(int))> control{};
  char byte = 0;
  iovec bytes{&byte, 1};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const pid_t provider = block::spawn([&] {
    ::close(channel[1]);
    must(static_cast<int>(::recvmsg(channel[0], &message, 0)), "recvmsg");
    ::close(channel[0]);
    passed.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    ::close(channel[0]);
    const auto p = new_pipe();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &p[1], sizeof(int));
    must(static_cast<int>(::sendmsg(channel[1], &message, 0)), "sendmsg");
    ::close(p[1]);
    ::close(channel[1]);
    passed.wait();
    block::read_byte(p[0]);
  });
  ::close(channel[0]);
  ::close(channel[1]);
  passed.settle();
  block::report(waiter, provider);
}

// A file of the test's own, gone when the scenario ends.
class TemporaryFile {
 public:
  TemporaryFile() {
    fd_ = must(::mkstemp(path_.data()), "mkstemp");
    ::close(fd_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.data()); }
  [[nodiscard]] const char* path() const { return path_.data(); }
  [[nodiscard]] int open(int flags) const { return must(::open(path_.data(), flags), "open"); }

 private:
  std::array<char, 32> path_{"/tmp/swapd-test-XXXXXX"};
  int fd_ = -1;
};

void fifo() {
  const TemporaryFile file;
  ::unlink(file.path());
  must(::mkfifo(file.path(), 0600), "mkfifo");
  const int both = file.open(O_RDWR);  // so that neither open() waits
  const int reading = file.open(O_RDONLY);
  const int writing = file.open(O_WRONLY);
  ::close(both);
  ends(reading, writing, [&] { block::read_byte(reading); });
}

void pty(bool master_waits) {
  int master = -1;
  int slave = -1;
  must(::openpty(&master, &slave, nullptr, nullptr, nullptr), "openpty");
  const int mine = master_waits ? master : slave;
  ends(mine, master_waits ? slave : master, [&] { block::read_byte(mine); });
}

void event() {
  const int fd = must(::eventfd(0, 0), "eventfd");
  const pid_t provider = block::spawn([] { block::idle(); });
  const pid_t waiter = block::spawn([&] {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(fd, &count, sizeof count);
  });
  ::close(fd);
  block::report(waiter, provider);
}

void queue() {
  const std::string name = "/swapd-test-" + std::to_string(::getpid());
  mq_attr attributes{};
  attributes.mq_maxmsg = 1;
  attributes.mq_msgsize = 8;
  const mqd_t fd = must(::mq_open(name.c_str(), O_RDWR | O_CREAT, 0600, &attributes), "mq_open");
  const pid_t provider = block::spawn([] { block::idle(); });
  const pid_t waiter = block::spawn([&] {
    std::array<char, 8> message{};
    ::mq_receive(fd, message.data(), message.size(), nullptr);
  });
  ::mq_close(fd);
  ::mq_unlink(name.c_str());
  block::report(waiter, provider);
}

// The provider takes the lock, then the waiter asks for it.
template <typename Take, typename Ask>
void locked(const Take& take, const Ask& ask, bool with_child = false) {
  const TemporaryFile file;
  block::Gate taken;
  const pid_t provider = block::spawn([&] {
    take(file.open(O_RDWR));
    if (with_child) {
      block::spawn([&] {
        taken.open();
        block::idle();
      });
    }
    taken.open();
    block::idle();
  });
  const pid_t waiter = block::spawn([&] {
    const int fd = file.open(O_RDWR);
    taken.wait();
    ask(fd);
  });
  taken.settle();
  block::report(waiter, provider);
}

void whole(int held, int wanted) {
  locked([&](int fd) { must(::flock(fd, held), "flock"); }, [&](int fd) { ::flock(fd, wanted); });
}

struct flock range(int type, off_t start, off_t length, int whence = SEEK_SET) {
  struct flock out {};
  out.l_type = static_cast<short>(type);
  out.l_whence = static_cast<short>(whence);
  out.l_start = start;
  out.l_len = length;
  return out;
}

void ranges(int held_command, int held_type, int command, int type) {
  locked(
      [&](int fd) {
        auto lock = range(held_type, 10, 10);
        must(::fcntl(fd, held_command, &lock), "fcntl");
      },
      [&](int fd) {
        // Bytes 15 to 24, given backwards from the position 25.
        ::lseek(fd, 25, SEEK_SET);
        auto lock = range(type, 0, -10, SEEK_CUR);
        ::fcntl(fd, command, &lock);
      },
      held_command == F_SETLK);  // whose children have the descriptor, and not the lock
}

// The process that took the lock has ended; who inherited the descriptor holds it.
void inherited() {
  const TemporaryFile file;
  block::Gate taken;
  int numbers[2];
  must(::pipe(numbers), "pipe");
  block::spawn([&] {
    const int fd = file.open(O_RDWR);
    must(::flock(fd, LOCK_EX), "flock");
    const pid_t heir = must(::fork(), "fork");
    if (heir == 0) {
      ::close(numbers[1]);
      taken.open();
      block::idle();
    }
    [[maybe_unused]] const ssize_t sent = ::write(numbers[1], &heir, sizeof heir);
  });
  pid_t provider = -1;
  if (::read(numbers[0], &provider, sizeof provider) != sizeof provider) std::exit(1);
  ::waitpid(block::started().back(), nullptr, 0);
  block::started().back() = provider;
  const pid_t waiter = block::spawn([&] {
    const int fd = file.open(O_RDWR);
    taken.wait();
    ::flock(fd, LOCK_EX);
  });
  taken.settle();
  block::report(waiter, provider);
}

constexpr block::Scenario scenarios[] = {
    {"pipe-read", pipe_read},
    {"pipe-write", pipe_write},
    {"pipe-splice", pipe_splice},
    {"pipe-reused", pipe_reused},
    {"pipe-dup", pipe_dup},
    {"pipe-passed", pipe_passed},
    {"fifo", fifo},
    {"pty-slave", [] { pty(false); }},
    {"pty-master", [] { pty(true); }},
    {"eventfd", event},
    {"posix-mq", queue},
    {"flock-ex-ex", [] { whole(LOCK_EX, LOCK_EX); }},
    {"flock-ex-sh", [] { whole(LOCK_EX, LOCK_SH); }},
    {"flock-sh-ex", [] { whole(LOCK_SH, LOCK_EX); }},
    {"flock-inherited", inherited},
    {"record", [] { ranges(F_SETLK, F_WRLCK, F_SETLKW, F_WRLCK); }},
    {"record-read", [] { ranges(F_SETLK, F_WRLCK, F_SETLKW, F_RDLCK); }},
    {"ofd", [] { ranges(F_OFD_SETLK, F_WRLCK, F_OFD_SETLKW, F_WRLCK); }},
    {"ofd-record", [] { ranges(F_OFD_SETLK, F_RDLCK, F_SETLKW, F_WRLCK); }},
};

}  // namespace

int main(int argc, char** argv) { return block::main_of(argc, argv, scenarios); }
