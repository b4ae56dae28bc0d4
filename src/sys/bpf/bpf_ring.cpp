#include "sys/bpf/bpf_ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace swapd::sys {
namespace {

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Result<BpfRing> BpfRing::map(int fd, std::size_t bytes) {
  const std::size_t page = page_size();
  BpfRing ring;
  void* reader = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (reader == MAP_FAILED) return errno_error("mapping a BPF ring");
  ring.reader_ = static_cast<std::uint64_t*>(reader);
  ring.bytes_ = bytes;
  void* rest = ::mmap(nullptr, page + 2 * bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(page));
  if (rest == MAP_FAILED) return errno_error("mapping a BPF ring");
  ring.rest_ = static_cast<std::byte*>(rest);
  return ring;
}

BpfRing::BpfRing(BpfRing&& other) noexcept
    : reader_(std::exchange(other.reader_, nullptr)),
      rest_(std::exchange(other.rest_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

BpfRing& BpfRing::operator=(BpfRing&& other) noexcept {
  std::swap(reader_, other.reader_);
  std::swap(rest_, other.rest_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

BpfRing::~BpfRing() {
  if (reader_ != nullptr) ::munmap(reader_, page_size());
  if (rest_ != nullptr) ::munmap(rest_, page_size() + 2 * bytes_);
}

// A record: u32 length with two flags, u32 of the kernel's own, the data, up to a multiple of 8.
bool BpfRing::next(void* out, std::size_t size) {
  const std::byte* data = rest_ + page_size();
  const std::uint64_t written =
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(rest_)).load(std::memory_order_acquire);
  std::atomic_ref position(*reader_);
  std::uint64_t at = position.load(std::memory_order_relaxed);
  bool found = false;
  while (!found && at < written) {
    auto* header = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(data + (at & (bytes_ - 1))));
    const std::uint32_t length = std::atomic_ref(*header).load(std::memory_order_acquire);
    if ((length & BPF_RINGBUF_BUSY_BIT) != 0) break;  // still being written; what follows waits for it
    const std::size_t held = length & ~BPF_RINGBUF_DISCARD_BIT;
    if (held == length && held == size) {
      std::memcpy(out, reinterpret_cast<std::byte*>(header) + BPF_RINGBUF_HDR_SZ, size);
      found = true;
    }
    at += (held + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    position.store(at, std::memory_order_release);
  }
  return found;
}

}  // namespace swapd::sys
