// Moves bytes in one way and says how many in what time: what is shaped in the tests.
//
//   mover WAY BLOCK SECONDS|COUNTx ARGUMENT...     e.g. mover read 65536 2 FILE, mover write 4096 100x FILE
//   ways: read write pread readv mapped mapped-null pages dirty dirty-sync sendfile sendfile-tcp copy splice readahead
//   ring-read ring-write aio-read aio-write (FILE [TO]); tcp-send udp-send msg-send (PORT); tcp-receive (PORT)
//
// Prints "BYTES SECONDS CALLS ERRORS BEGUN" at the end (BEGUN: CLOCK_MONOTONIC seconds); with MOVER_THEN in the
// environment a thread becomes `sh -c MOVER_THEN` instead. On SIGUSR1 (a handler, no SA_RESTART) it counts on, on
// SIGTERM it ends with what it has. A file is read from its begin again at its end.
#include <arpa/inet.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::size_t block = 0;
  double seconds = 0;
  long count = 0;
  char* buffer = nullptr;  // aligned as O_DIRECT wants it
};

volatile sig_atomic_t signals = 0, ended = 0;

int open_or_die(const char* path, int flags) {
  const int fd = ::open(path, flags | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  std::perror(path);
  std::exit(1);
}

sockaddr_in loopback(const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  return address;
}

int connected(int type, const char* port) {
  const sockaddr_in to = loopback(port);
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  return fd;
}

// One step: how much it moved; below 0: a failure.
using Step = std::function<ssize_t()>;

// Four requests a round.
Step ring_step(bool writes, Job& job, const char* file, int flags) {
  static io_uring ring;
  if (::io_uring_queue_init(8, &ring, 0) != 0) {
    std::perror("io_uring");
    std::exit(1);
  }
  const int fd = open_or_die(file, writes ? O_WRONLY | O_CREAT | O_TRUNC | flags : O_RDONLY | flags);
  struct stat st {};
  ::fstat(fd, &st);
  const auto size = static_cast<std::size_t>(writes ? 256 << 20 : st.st_size);
  return [&job, fd, size, writes, at = std::size_t{0}]() mutable -> ssize_t {
    constexpr int requests = 4;
    for (int i = 0; i < requests; ++i) {
      io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);
      if (writes)
        ::io_uring_prep_write(sqe, fd, job.buffer, static_cast<unsigned>(job.block), at);
      else
        ::io_uring_prep_read(sqe, fd, job.buffer, static_cast<unsigned>(job.block), at);
      at = (at + job.block) % size;
    }
    ::io_uring_submit(&ring);
    ssize_t sum = 0;
    for (int i = 0; i < requests; ++i) {
      io_uring_cqe* done = nullptr;
      while (::io_uring_wait_cqe(&ring, &done) == -EINTR) {
      }
      sum = done->res < 0 || sum < 0 ? -1 : sum + done->res;
      ::io_uring_cqe_seen(&ring, done);
    }
    return sum;
  };
}

// Linux AIO, four requests a round.
Step aio_step(bool writes, Job& job, const char* file, int flags) {
  static aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 8, &context) != 0) {
    std::perror("io_setup");
    std::exit(1);
  }
  const int fd = open_or_die(file, writes ? O_WRONLY | O_CREAT | O_TRUNC | flags : O_RDONLY | flags);
  struct stat st {};
  ::fstat(fd, &st);
  const auto size = static_cast<std::size_t>(writes ? 256 << 20 : st.st_size);
  return [&job, fd, size, writes, at = std::size_t{0}]() mutable -> ssize_t {
    constexpr long requests = 4;
    iocb all[requests] = {};
    iocb* pointers[requests];
    for (long i = 0; i < requests; ++i) {
      all[i].aio_lio_opcode = writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
      all[i].aio_fildes = static_cast<std::uint32_t>(fd);
      all[i].aio_buf = reinterpret_cast<std::uint64_t>(job.buffer);
      all[i].aio_nbytes = job.block;
      all[i].aio_offset = static_cast<std::int64_t>(at);
      at = (at + job.block) % size;
      pointers[i] = &all[i];
    }
    if (::syscall(SYS_io_submit, context, requests, pointers) != requests) return -1;
    io_event events[requests];
    long done = 0;
    ssize_t sum = 0;
    while (done < requests) {
      const long got = ::syscall(SYS_io_getevents, context, 1L, requests - done, events, nullptr);
      if (got < 0 && errno != EINTR) return -1;
      for (long i = 0; i < got; ++i) sum += static_cast<ssize_t>(events[i].res);
      done += std::max(got, 0L);
    }
    return sum;
  };
}

// Through a pipe to nowhere, or to a file, as much as goes at once.
Step splice_step(Job& job, const char* file, const char* end) {
  const int fd = open_or_die(file, O_RDONLY), to = open_or_die(end, O_WRONLY | O_CREAT);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) std::exit(1);
  return [&job, fd, to, in = pipe[1], out = pipe[0]]() -> ssize_t {
    const ssize_t n = ::splice(fd, nullptr, in, nullptr, job.block, 0);
    if (n == 0) ::lseek(fd, 0, SEEK_SET);
    for (ssize_t left = n; left > 0;) {
      const ssize_t on = ::splice(out, nullptr, to, nullptr, static_cast<std::size_t>(left), 0);
      if (on <= 0) return on;
      left -= on;
    }
    return n;
  };
}

Step ahead_step(Job& job, const char* file) {
  const int fd = open_or_die(file, O_RDONLY);
  struct stat st {};
  ::fstat(fd, &st);
  return [&job, fd, size = st.st_size, at = off_t{0}]() mutable -> ssize_t {
    if (::readahead(fd, at, job.block) != 0) return -1;
    at = (at + static_cast<off_t>(job.block)) % size;
    return static_cast<ssize_t>(job.block);
  };
}

Step file_step(const std::string& way, Job& job, char** argv, int argc) {
  if (way == "read" || way == "pread" || way == "readv" || way.starts_with("mapped") || way == "pages") {
    const int fd = open_or_die(argv[0], O_RDONLY | (argc > 1 && std::string(argv[1]) == "direct" ? O_DIRECT : 0));
    struct stat st {};
    ::fstat(fd, &st);
    if (way.starts_with("mapped") || way == "pages") {
      auto* all = static_cast<volatile char*>(
          ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0));
      ::madvise(const_cast<char*>(all), static_cast<std::size_t>(st.st_size), MADV_RANDOM);
      // A call, at which it may be held: of the same file, or of none that is on a disk.
      const int null = open_or_die("/dev/null", O_WRONLY);
      return [&job, fd, null, all, way, size = static_cast<std::size_t>(st.st_size), at = std::size_t{0}]() mutable {
        char sum = 0;
        for (std::size_t i = 0; i < job.block; i += 4096) sum = static_cast<char>(sum + all[(at + i) % size]);
        at = (at + job.block) % size;
        if (way == "mapped") (void)!::pread(fd, job.buffer, 1, 0);
        if (way == "mapped-null") (void)!::write(null, job.buffer, 1);
        job.buffer[0] = sum;
        return static_cast<ssize_t>(job.block);
      };
    }
    return [&job, fd, way, at = off_t{0}, size = st.st_size]() mutable -> ssize_t {
      if (way == "pread") {
        const ssize_t n = ::pread(fd, job.buffer, job.block, at);
        if (n > 0) at = (at + n) % size;
        return n;
      }
      iovec parts[2] = {{job.buffer, job.block / 2}, {job.buffer + job.block / 2, job.block / 2}};
      const ssize_t n = way == "readv" ? ::readv(fd, parts, 2) : ::read(fd, job.buffer, job.block);
      if (n == 0) ::lseek(fd, 0, SEEK_SET);
      return n;
    };
  }
  if (way == "dirty" || way == "dirty-sync") {  // what is there already, in a mapping that is shared
    const int fd = open_or_die(argv[0], O_RDWR);
    struct stat st {};
    ::fstat(fd, &st);
    auto* all = static_cast<volatile char*>(
        ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    return [&job, fd, all, syncs = way == "dirty-sync", size = static_cast<std::size_t>(st.st_size),
            at = std::size_t{0}]() mutable {
      for (std::size_t i = 0; i < job.block; i += 4096) all[(at + i) % size] = 'y';
      if (syncs) ::fdatasync(fd);
      at = (at + job.block) % size;
      ::usleep(500);  // as a disk that is not memory
      return static_cast<ssize_t>(job.block);
    };
  }
  if (way == "write") {
    const int fd = open_or_die(argv[0], O_WRONLY | O_CREAT | O_TRUNC);
    return [&job, fd, at = off_t{0}]() mutable {
      const ssize_t n = ::pwrite(fd, job.buffer, job.block, at);
      if (n > 0) at = (at + n) % (256 << 20);
      return n;
    };
  }
  const int flags = argc > 1 && std::string(argv[1]) == "direct" ? O_DIRECT : 0;
  if (way.starts_with("ring-")) return ring_step(way == "ring-write", job, argv[0], flags);
  if (way.starts_with("aio-")) return aio_step(way == "aio-write", job, argv[0], flags);
  if (way == "splice") return splice_step(job, argv[0], argc > 1 ? argv[1] : "/dev/null");
  if (way == "readahead") return ahead_step(job, argv[0]);
  const int from = open_or_die(argv[0], O_RDONLY), to = open_or_die(argv[1], O_WRONLY | O_CREAT | O_TRUNC);
  return [&job, from, to, way]() -> ssize_t {
    const ssize_t n = way == "sendfile" ? ::sendfile(to, from, nullptr, job.block)
                                        : ::copy_file_range(from, nullptr, to, nullptr, job.block, 0);
    if (n == 0) {
      ::lseek(from, 0, SEEK_SET);
      ::lseek(to, 0, SEEK_SET);
    }
    return n;
  };
}

Step step_of(const std::string& way, Job& job, char** argv, int argc) {
  if (way == "sendfile-tcp") {
    const int to = connected(SOCK_STREAM, argv[0]), from = open_or_die(argv[1], O_RDONLY);
    return [&job, to, from, at = off_t{0}]() mutable { return ::sendfile(to, from, &at, job.block); };
  }
  if (way == "tcp-send" || way == "udp-send") {
    const int fd = connected(way == "tcp-send" ? SOCK_STREAM : SOCK_DGRAM, argv[0]);
    return [&job, fd] { return ::send(fd, job.buffer, job.block, MSG_NOSIGNAL); };
  }
  if (way == "msg-send") {  // each says where it goes to
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return [&job, fd, to = loopback(argv[0])]() mutable {
      iovec part{job.buffer, job.block};
      msghdr message{};
      message.msg_name = &to;
      message.msg_namelen = sizeof to;
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      return ::sendmsg(fd, &message, MSG_NOSIGNAL);
    };
  }
  if (way == "tcp-receive") {
    const int fd = connected(SOCK_STREAM, argv[0]);
    return [&job, fd] { return ::recv(fd, job.buffer, job.block, 0); };
  }
  return file_step(way, job, argv, argc);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "mover: see the top of mover.cpp\n");
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { signals = signals + 1; };
  ::sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = [](int) { ended = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  Job job;
  job.block = std::strtoul(argv[2], nullptr, 10);
  if (argv[3][std::strlen(argv[3]) - 1] == 'x')
    job.count = std::atol(argv[3]);
  else
    job.seconds = std::atof(argv[3]);
  const std::size_t room = (job.block + 8191) / 4096 * 4096;
  job.buffer = static_cast<char*>(std::aligned_alloc(4096, room));
  std::memset(job.buffer, 'x', room);
  const Step step = step_of(argv[1], job, argv + 4, argc - 4);
  long calls = 0, errors = 0;
  unsigned long long bytes = 0;
  const auto begin = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  while (ended == 0 && (job.count > 0 ? calls < job.count : passed() < job.seconds)) {
    const ssize_t n = step();
    ++calls;
    if (n > 0) bytes += static_cast<unsigned long long>(n);
    if (n < 0 && errno != EINTR && errno != ECONNREFUSED && errno != ENOBUFS) ++errors;
  }
  std::free(job.buffer);
  if (const char* then = std::getenv("MOVER_THEN"); then != nullptr)
    std::thread([then] { ::execl("/bin/sh", "sh", "-c", then, nullptr); }).join();
  std::printf("%llu %.6f %ld %ld %.6f\n", bytes, passed(), calls, errors,
              std::chrono::duration<double>(begin.time_since_epoch()).count());
  return errors == 0 ? 0 : 1;
}
