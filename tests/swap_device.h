// Swap for a test: compressed memory (zram) where the machine has it, off again at the end. A machine that swaps
// already keeps what it has.
#pragma once

#include <fcntl.h>
#include <sys/swap.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace swapd::test {

class SwapDevice {
 public:
  explicit SwapDevice(std::int64_t bytes) {
    std::ifstream swaps("/proc/swaps");
    std::string line;
    std::getline(swaps, line);
    if (std::getline(swaps, line)) return;  // it swaps already
    std::ofstream("/sys/block/zram0/disksize") << bytes;
    std::ifstream size("/sys/block/zram0/disksize");
    std::int64_t has = 0;
    if (!(size >> has) || has < bytes || !make()) {
      failure_ = "no swap, and no zram to make some of";
      return;
    }
    made_ = ::swapon(device, 0) == 0;
    if (!made_) failure_ = "swapon: " + std::string(std::strerror(errno));
  }
  ~SwapDevice() {
    if (!made_) return;
    (void)::swapoff(device);
    std::ofstream("/sys/block/zram0/reset") << 1;
  }
  SwapDevice(const SwapDevice&) = delete;
  SwapDevice& operator=(const SwapDevice&) = delete;
  [[nodiscard]] const std::string& failure() const { return failure_; }  // empty: there is swap

 private:
  static constexpr const char* device = "/dev/zram0";
  // As mkswap(8) writes it: version and last page behind the boot bits, the magic word at the end of the first page.
  static bool make() {
    std::ifstream size("/sys/block/zram0/disksize");
    std::uint64_t bytes = 0;
    size >> bytes;
    std::array<char, 4096> page{};
    const std::uint32_t version = 1, last = static_cast<std::uint32_t>(bytes / page.size() - 1);
    std::memcpy(page.data() + 1024, &version, sizeof version);
    std::memcpy(page.data() + 1028, &last, sizeof last);
    std::memcpy(page.data() + page.size() - 10, "SWAPSPACE2", 10);
    const int fd = ::open(device, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool written = ::write(fd, page.data(), page.size()) == static_cast<ssize_t>(page.size());
    ::close(fd);
    return written;
  }
  std::string failure_;
  bool made_ = false;
};

}  // namespace swapd::test
