// A server that computes until it is told to stop, and a client that waits for it: the smallest priority inversion.
//
//   pair server SOCKET FLAG   answers each request on SOCKET after spinning until FLAG exists (at most 20 s)
//   pair late SOCKET FLAG     accepts only once SOCKET.go exists, in a child that then serves as above
//   pair reader SOCKET FILE   answers each request once it has read FILE, 64 KiB at a time, four times over
//   pair client SOCKET        one request; exit status 0 when the answer came
//   pair echo SOCKET          answers each request at once
//   pair talk SOCKET FLAG     one request after another, until FLAG exists (at most 20 s)
//   pair spin SECONDS         a hog
//   pair gaps SECONDS         a hog that prints the longest time, in ms, for which it had no CPU: of each second,
//                             and of these the median
//   pair sync FILE FLAG       writes to FILE and has the kernel write it back, until FLAG exists (at most 20 s)
//   pair fill FILE FLAG       writes 64 MiB to the start of FILE again and again, at nice 19, until FLAG exists
//   pair poke FILE FLAG       writes one byte to FILE every 20 ms, until FLAG exists; as the others 20 s at most
//   pair visit FILE FLAG      asks what FILE is, every 20 ms, until FLAG exists
//   pair forks N              N short children, one after another and ten at a time
//   pair threads N            N threads that end
//   pair hold-threads N FLAG  N more threads that stay until FLAG exists
//   pair thread-exec FLAG COMMAND…  a thread that is not the first one becomes COMMAND once FLAG exists
//   pair typist TERMINAL SOCKET  each byte that comes from TERMINAL is asked of SOCKET, and the answer written to it
//   pair typist TERMINAL      each byte that comes from TERMINAL is computed upon for two seconds
//   pair relay SOCKET NEXT    passes requests on to NEXT and answers when it is answered
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../patience.h"

namespace {

using Clock = std::chrono::steady_clock;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

int connect_to(const std::string& path) {
  const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  const auto end = Clock::now() + std::chrono::seconds(10 * swapd::test::patience());
  while (::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (Clock::now() > end) return -1;
    ::usleep(1000);
  }
  return s;
}

int listen_at(const std::string& path) {
  const int s = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path + ".new");
  ::unlink(address.sun_path);
  if (::bind(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(s, 5) != 0) return -1;
  ::rename(address.sun_path, path.c_str());  // whoever sees it can connect
  return s;
}

bool exists(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0;
}

void serve(int connection, const std::string& flag) {
  char byte = 0;
  while (::read(connection, &byte, 1) == 1) {
    const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
    volatile unsigned long work = 0;
    while (!exists(flag) && Clock::now() < end)
      for (int i = 0; i < 100000; ++i) work = work + 1;
    if (::write(connection, &byte, 1) != 1) break;
  }
  ::close(connection);
}

int server(const std::string& path, const std::string& flag) {
  const int s = listen_at(path);
  for (;;) {
    const int c = ::accept(s, nullptr, nullptr);
    if (c < 0) return 1;
    serve(c, flag);
  }
}

int reader(const std::string& path, const char* file) {
  const int s = listen_at(path), data = ::open(file, O_RDONLY | O_CLOEXEC);
  static char block[64 << 10];
  for (;;) {
    const int c = ::accept(s, nullptr, nullptr);
    char byte = 0;
    if (c < 0 || ::read(c, &byte, 1) != 1) return 1;
    for (int round = 0; round < 4; ++round) {
      ::lseek(data, 0, SEEK_SET);
      while (::read(data, block, sizeof block) > 0) {
      }
    }
    if (::write(c, &byte, 1) != 1) return 1;
    ::close(c);
  }
}

int late(const std::string& path, const std::string& flag) {
  const int s = listen_at(path);
  while (!exists(path + ".go")) ::usleep(1000);
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    const int c = ::accept(s, nullptr, nullptr);
    ::close(s);
    if (c >= 0) serve(c, flag);
    ::_exit(0);
  }
  ::close(s);
  int status = 0;
  return ::waitpid(child, &status, 0) == child ? 0 : 1;
}

int client(const std::string& path) {
  const int s = connect_to(path);
  char byte = 'q';
  if (s < 0 || ::write(s, &byte, 1) != 1) return 1;
  return ::read(s, &byte, 1) == 1 ? 0 : 1;
}

int echo(const std::string& path) {
  const int s = listen_at(path);
  for (;;) {
    const int c = ::accept(s, nullptr, nullptr);
    if (c < 0) return 1;
    char byte = 0;
    while (::read(c, &byte, 1) == 1 && ::write(c, &byte, 1) == 1) {
    }
    ::close(c);
  }
}

int talk(const std::string& path, const std::string& flag) {
  const int s = connect_to(path);
  const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
  char byte = 'q';
  while (!exists(flag) && Clock::now() < end)
    if (::write(s, &byte, 1) != 1 || ::read(s, &byte, 1) != 1) return 1;
  return 0;
}

int sync_until(const std::string& path, const std::string& flag) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return 1;
  const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
  const std::string block(1 << 20, 'x');  // so much that the kernel takes a while
  for (off_t at = 0; !exists(flag) && Clock::now() < end; at = (at + std::ssize(block)) % (1 << 24)) {
    if (::pwrite(file, block.data(), block.size(), at) != std::ssize(block) || ::syncfs(file) != 0) return 1;
  }
  return 0;
}

int relay(const std::string& path, const std::string& next) {
  const int s = listen_at(path);
  const int onward = connect_to(next);
  for (;;) {
    const int c = ::accept(s, nullptr, nullptr);
    if (c < 0) return 1;
    char byte = 0;
    while (::read(c, &byte, 1) == 1) {
      if (::write(onward, &byte, 1) != 1 || ::read(onward, &byte, 1) != 1) return 1;
      if (::write(c, &byte, 1) != 1) break;
    }
    ::close(c);
  }
}

// What a file's lock is held for long by, where others want a CPU.
int fill(const std::string& file, const std::string& flag) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::string data(std::size_t{64} << 20, 'x');
  if (fd < 0 || ::pwrite(fd, data.data(), data.size(), 0) < 0 || ::nice(19) == -1) return 1;
  const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
  while (!exists(flag) && Clock::now() < end)
    if (::pwrite(fd, data.data(), data.size(), 0) < 0) return 1;
  return 0;
}

int poke(const std::string& file, const std::string& flag) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
  while (fd >= 0 && !exists(flag) && Clock::now() < end) {
    if (::pwrite(fd, "x", 1, 0) != 1) return 1;
    ::usleep(20000);
  }
  return fd < 0 ? 1 : 0;
}

int visit(const std::string& file, const std::string& flag) {
  const auto end = Clock::now() + std::chrono::seconds(20 * swapd::test::patience());
  while (!exists(flag) && Clock::now() < end) {
    struct stat st {};
    if (::stat(file.c_str(), &st) != 0) return 1;
    ::usleep(20000);
  }
  return 0;
}

int spin(int seconds) {
  const auto end = Clock::now() + std::chrono::seconds(seconds * swapd::test::patience());
  volatile unsigned long work = 0;
  while (Clock::now() < end)
    for (int i = 0; i < 1000000; ++i) work = work + 1;
  return 0;
}

int typist(const char* terminal, const char* path) {
  const int t = ::open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC), s = path == nullptr ? -1 : connect_to(path);
  char byte = 0;
  while (::read(t, &byte, 1) == 1) {
    if (path == nullptr)
      spin(2);
    else if (::write(s, &byte, 1) != 1 || ::read(s, &byte, 1) != 1)
      return 1;
    if (::write(t, &byte, 1) != 1) return 1;
  }
  return 0;
}

int gaps(int seconds) {
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  const auto begun = Clock::now();
  std::vector<Clock::duration> longest(static_cast<std::size_t>(seconds) + 1);
  for (auto before = begun; before < end;) {
    const auto now = Clock::now();
    Clock::duration& so_far = longest[static_cast<std::size_t>((before - begun) / std::chrono::seconds(1))];
    so_far = std::max(so_far, now - before);
    before = now;
  }
  longest.pop_back();
  std::ranges::sort(longest);
  std::printf("%ld\n", static_cast<long>(longest[longest.size() / 2] / std::chrono::milliseconds(1)));
  return 0;
}

int forks(int n) {
  for (int done = 0; done < n;) {
    std::vector<pid_t> children;
    for (int i = 0; i < 10 && done < n; ++i, ++done) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(7);
      if (child < 0) return 1;
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      if (::waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 1;
    }
  }
  return 0;
}

int threads(int n) {
  for (int i = 0; i < n; i += 10) {
    std::vector<std::thread> some;
    for (int k = 0; k < 10; ++k) some.emplace_back([] { ::getpid(); });
    for (auto& t : some) t.join();
  }
  return 0;
}

int hold_threads(int n, const std::string& flag) {
  std::vector<std::thread> some;
  for (int k = 0; k < n; ++k)
    some.emplace_back([&] {
      while (!exists(flag)) ::usleep(10000);
    });
  for (auto& t : some) t.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::alarm(60U * static_cast<unsigned>(swapd::test::patience()));
  ::signal(SIGPIPE, SIG_IGN);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "server" && argc == 4) return server(argv[2], argv[3]);
  if (what == "reader" && argc == 4) return reader(argv[2], argv[3]);
  if (what == "late" && argc == 4) return late(argv[2], argv[3]);
  if (what == "client" && argc == 3) return client(argv[2]);
  if (what == "echo" && argc == 3) return echo(argv[2]);
  if (what == "talk" && argc == 4) return talk(argv[2], argv[3]);
  if (what == "sync" && argc == 4) return sync_until(argv[2], argv[3]);
  if (what == "fill" && argc == 4) return fill(argv[2], argv[3]);
  if (what == "poke" && argc == 4) return poke(argv[2], argv[3]);
  if (what == "visit" && argc == 4) return visit(argv[2], argv[3]);
  if (what == "relay" && argc == 4) return relay(argv[2], argv[3]);
  if (what == "typist" && (argc == 3 || argc == 4)) return typist(argv[2], argc == 4 ? argv[3] : nullptr);
  if (what == "spin" && argc == 3) return spin(std::atoi(argv[2]));
  if (what == "gaps" && argc == 3) return gaps(std::atoi(argv[2]));
  if (what == "forks" && argc == 3) return forks(std::atoi(argv[2]));
  if (what == "hold-threads" && argc == 4) return hold_threads(std::atoi(argv[2]), argv[3]);
  if (what == "threads" && argc == 3) return threads(std::atoi(argv[2]));
  if (what == "thread-exec" && argc > 3) {
    std::thread([argv] {
      while (!exists(argv[2])) ::usleep(1000);
      ::execv(argv[3], argv + 3);
    }).join();
    return 1;
  }
  std::fprintf(stderr, "pair: see the top of pair.cpp\n");
  return 2;
}
