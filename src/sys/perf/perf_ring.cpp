#include "sys/perf/perf_ring.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>

namespace swapd::sys {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

Result<Fd> open_perf_event(perf_event_attr attr, pid_t tid, int cpu) {
  attr.size = sizeof attr;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  const long fd = ::syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  switch (errno) {
    case EACCES:
    case EPERM:
      return errno_error("opening a perf event (CAP_PERFMON, or a lower kernel.perf_event_paranoid)");
    default:
      return errno_error("opening a perf event");
  }
}

Result<PerfRing> PerfRing::map(int fd, std::size_t data_pages) {
  const std::size_t length = (1 + data_pages) * page_size();
  void* base = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return errno_error("mapping a perf ring (kernel.perf_event_mlock_kb)");
  return PerfRing(base, length);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), length_(std::exchange(other.length_, 0)) {}

PerfRing& PerfRing::operator=(PerfRing&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(length_, other.length_);
  return *this;
}

PerfRing::~PerfRing() {
  if (base_ != nullptr) ::munmap(base_, length_);
}

bool PerfRing::next(std::byte* out) {
  auto* control = static_cast<perf_event_mmap_page*>(base_);
  // The kernel publishes data_head after the records; it overwrites nothing before data_tail.
  const std::uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  const auto tail_ref = std::atomic_ref(control->data_tail);
  std::uint64_t tail = tail_ref.load(std::memory_order_relaxed);
  const std::size_t size = length_ - page_size();
  const auto* data = static_cast<const std::byte*>(base_) + page_size();
  const auto copy = [&](std::byte* to, std::size_t n) {  // a record may go round the end
    const std::size_t at = tail & (size - 1);
    const std::size_t first = std::min(n, size - at);
    std::memcpy(to, data + at, first);
    std::memcpy(to + first, data, n - first);
  };
  while (tail != head) {
    perf_event_header header{};
    copy(reinterpret_cast<std::byte*>(&header), sizeof header);
    if (header.size < sizeof header || header.size > head - tail) {  // never so, but the memory is shared: start afresh
      tail_ref.store(head, std::memory_order_release);
      return false;
    }
    const bool fits = header.size <= largest_record;
    if (fits) copy(out, header.size);
    tail += header.size;
    tail_ref.store(tail, std::memory_order_release);
    if (fits) return true;
  }
  return false;
}

bool PerfRing::discard() {
  auto* control = static_cast<perf_event_mmap_page*>(base_);
  const std::uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  return std::atomic_ref(control->data_tail).exchange(head, std::memory_order_release) != head;
}

}  // namespace swapd::sys
