// Uses memory: `memory_hog MIB FILE [lock PATH | listen PATH | pipe PATH]` touches so many MiB page after page, again and again, at
// most 120 s, and after each round writes how many rounds it has done to FILE. lock: it holds a lock of PATH, flock(2),
// all the time. listen: it writes a port of 127.0.0.1 to PATH, and answers each byte that comes there by one. pipe: it
// writes a byte to the FIFO PATH in each round in which there is room.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

bool write_number(const char* path, unsigned long number) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  std::fprintf(file, "%lu\n", number);
  return std::fclose(file) == 0;
}

bool serve(const char* path) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, any, length) != 0 || ::listen(listener, 1) != 0 || ::getsockname(listener, any, &length) != 0)
    return false;
  std::thread([listener] {
    const int connection = ::accept(listener, nullptr, nullptr);
    for (char byte = 0; ::read(connection, &byte, 1) == 1;)
      if (::write(connection, &byte, 1) != 1) break;
  }).detach();
  return write_number(path, ntohs(address.sin_port));
}

int pipe_end = -1;

bool open_pipe(const char* path) {
  pipe_end = ::open(path, O_RDWR | O_NONBLOCK);
  return pipe_end >= 0;
}

bool lock(const char* path) {
  const int file = ::open(path, O_RDWR | O_CREAT, 0600);
  return file >= 0 && ::flock(file, LOCK_EX) == 0;
}

bool begin(const char* what, const char* path) {
  if (std::strcmp(what, "lock") == 0) return lock(path);
  if (std::strcmp(what, "pipe") == 0) return open_pipe(path);
  return serve(path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 5) return 2;
  const std::size_t size = std::strtoull(argv[1], nullptr, 10) << 20;
  if (argc == 5 && !begin(argv[3], argv[4])) return 1;
  auto* memory =
      static_cast<std::uint8_t*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  unsigned state = static_cast<unsigned>(::getpid());
  for (unsigned long rounds = 1; std::chrono::steady_clock::now() < end; ++rounds) {
    for (std::size_t at = 0; at < size; at += 4096) {
      // Half of each page does not compress.
      for (std::size_t i = 0; i < 2048 && rounds == 1; i += 4) {
        state = state * 1664525U + 1013904223U;
        *reinterpret_cast<unsigned*>(memory + at + i) = state;
      }
      // Some work with each page: a program that only touches them leaves the kernel none that was not used just now.
      unsigned sum = 0;
      for (std::size_t i = 0; i < 4096; ++i) sum = sum * 31 + memory[at + i];
      memory[at] = static_cast<std::uint8_t>(sum);
    }
    if (pipe_end >= 0 && ::write(pipe_end, "x", 1) != 1 && errno != EAGAIN) return 1;
    (void)write_number(argv[2], rounds);
  }
  return 0;
}
