// Uses memory: `memory_hog MIB FILE` touches so many MiB page after page, again and again, at most 120 s, and after
// each round writes how many rounds it has done to FILE.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::size_t size = std::strtoull(argv[1], nullptr, 10) << 20;
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
      // Some work with each page: who only touches them leaves the kernel none that was not used just now.
      unsigned sum = 0;
      for (std::size_t i = 0; i < 4096; ++i) sum = sum * 31 + memory[at + i];
      memory[at] = static_cast<std::uint8_t>(sum);
    }
    if (std::FILE* file = std::fopen(argv[2], "w")) {
      std::fprintf(file, "%lu\n", rounds);
      std::fclose(file);
    }
  }
  return 0;
}
