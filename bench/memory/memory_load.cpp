#include "memory/memory_load.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace swapd::bench {

namespace {

constexpr std::size_t page = 4096;
constexpr const char* zram = "/dev/zram0";
constexpr const char* zram_settings = "/sys/block/zram0/";

Status write_value(const std::string& path, const std::string& value) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size())) return Done{};
  return errno_error(path);
}

// The head of a swap area, as mkswap(8) writes it.
Status write_head(const std::string& path, std::int64_t bytes) {
  std::array<char, page> head{};
  const std::uint32_t version = 1, last = static_cast<std::uint32_t>(bytes / static_cast<std::int64_t>(page) - 1);
  std::memcpy(head.data() + 1024, &version, sizeof version);
  std::memcpy(head.data() + 1028, &last, sizeof last);
  std::memcpy(head.data() + page - 10, "SWAPSPACE2", 10);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), head.data(), head.size()) == static_cast<ssize_t>(head.size())) return Done{};
  return errno_error(path);
}

// The first round fills it, half of each page with what does not compress.
int use_memory(std::size_t bytes, std::uint64_t* count, std::uint64_t* taken, MemoryLoads loads, int gate) {
  ::setpgid(0, 0);
  // The harness's ends of pipes are inherited: a gate that it opens would stay shut.
  ::close_range(3, static_cast<unsigned>(gate) - 1, 0);
  ::close_range(static_cast<unsigned>(gate) + 1, ~0U, 0);
  char byte = 0;
  (void)!::read(gate, &byte, 1);  // until the harness has put it into its group
  auto* memory =
      static_cast<std::uint8_t*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 1;
  auto state = static_cast<std::uint32_t>(::getpid());
  std::uint64_t left = 0;  // of the load that it does
  for (bool first = true;; first = false) {
    for (std::size_t at = 0; at < bytes; at += page) {
      if (loads.count > 0 && !first && left-- == 0) {
        if (std::atomic_ref(*taken).fetch_add(1) >= loads.count) return 0;
        left = loads.pages - 1;
      }
      for (std::size_t i = 0; first && i < page / 2; i += sizeof state) {
        state = state * 1'664'525 + 1'013'904'223;
        std::memcpy(memory + at + i, &state, sizeof state);
      }
      std::uint32_t sum = 0;  // some work with each page
      for (std::size_t i = 0; i < page; ++i) sum = sum * 31 + memory[at + i];
      std::memcpy(memory + at, &sum, sizeof sum);
      std::atomic_ref(*count).fetch_add(1, std::memory_order_relaxed);
    }
  }
}

}  // namespace

Result<std::unique_ptr<MemoryGroup>> MemoryGroup::make(std::int64_t bytes) {
  std::unique_ptr<MemoryGroup> made(new MemoryGroup);
  const bool v1 = ::access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) == 0;
  made->parent_ = v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
  if (!v1) (void)write_value(made->parent_ + "/cgroup.subtree_control", "+memory");
  const std::string directory = made->parent_ + "/swapbench-" + std::to_string(::getpid());
  if (::mkdir(directory.c_str(), 0755) != 0) return errno_error(directory);
  made->directory_ = directory;
  if (Status set = write_value(directory + (v1 ? "/memory.limit_in_bytes" : "/memory.max"), std::to_string(bytes));
      !set)
    return set.error();
  return made;
}

MemoryGroup::~MemoryGroup() {
  if (directory_.empty()) return;
  std::ifstream in(directory_ + "/cgroup.procs");
  for (std::string pid; in >> pid;) (void)write_value(parent_ + "/cgroup.procs", pid);
  ::rmdir(directory_.c_str());
}

Status MemoryGroup::take(pid_t pid) const { return write_value(directory_ + "/cgroup.procs", std::to_string(pid)); }

std::uint64_t MemoryGroup::killed() const {
  const std::string v1 = directory_ + "/memory.oom_control";
  std::ifstream in(::access(v1.c_str(), F_OK) == 0 ? v1 : directory_ + "/memory.events");
  std::uint64_t value = 0;
  for (std::string key; in >> key >> value;)
    if (key == "oom_kill") return value;
  return 0;
}

Status SwapSpace::make_zram(std::int64_t bytes) {
  if (::access(zram_settings, F_OK) != 0) return Error(ENODEV, "zram");
  (void)write_value(std::string(zram_settings) + "reset", "1");
  zram_ = true;
  path_ = zram;
  return write_value(std::string(zram_settings) + "disksize", std::to_string(bytes));
}

Status SwapSpace::make_file(std::int64_t bytes, const std::string& dir) {
  path_ = dir + "/swap";
  const Fd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return errno_error(path_);
  // A file with holes is none for swap.
  const std::vector<char> zeros(std::size_t{1} << 20);
  for (std::int64_t done = 0; done < bytes; done += static_cast<std::int64_t>(zeros.size()))
    if (::write(file.get(), zeros.data(), zeros.size()) != static_cast<ssize_t>(zeros.size()))
      return errno_error(path_);
  return ::fsync(file.get()) == 0 ? Status(Done{}) : errno_error(path_);
}

Result<std::unique_ptr<SwapSpace>> SwapSpace::make(const std::string& kind, std::int64_t bytes,
                                                   const std::string& dir) {
  std::unique_ptr<SwapSpace> made(new SwapSpace);
  Status done = kind == "zram" ? made->make_zram(bytes) : made->make_file(bytes, dir);
  if (done) done = write_head(made->path_, bytes);
  if (!done) return done.error();
  if (::swapon(made->path_.c_str(), 0) != 0) return errno_error("swapon " + made->path_);
  made->on_ = true;
  return made;
}

SwapSpace::~SwapSpace() {
  if (on_) (void)::swapoff(path_.c_str());
  if (zram_)
    (void)write_value(std::string(zram_settings) + "reset", "1");
  else if (!path_.empty())
    ::unlink(path_.c_str());
}

std::uint64_t vmstat(const std::string& name) {
  std::ifstream in("/proc/vmstat");
  std::uint64_t value = 0;
  for (std::string key; in >> key >> value;)
    if (key == name) return value;
  return 0;
}

Result<std::unique_ptr<MemoryHogs>> MemoryHogs::start(int count, std::int64_t bytes, const MemoryGroup& group,
                                                      const std::vector<int>& cpus, MemoryLoads loads) {
  std::unique_ptr<MemoryHogs> made(new MemoryHogs);
  made->count_ = static_cast<std::size_t>(count);
  const std::size_t size = (made->count_ + 1) * sizeof(std::uint64_t);
  void* shared = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return errno_error("mmap");
  made->counts_ = static_cast<std::uint64_t*>(shared);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
  const Fd gate(ends[0]);
  Fd closed(ends[1]);
  for (int i = 0; i < count; ++i) {
    Spawn spawn;
    spawn.cpus = cpus;
    auto child = Child::fork(spawn, [&, i] {
      closed.reset();
      return use_memory(static_cast<std::size_t>(bytes), made->counts_ + i, made->counts_ + count, loads, gate.get());
    });
    if (!child) return child.error();
    if (Status taken = group.take(child->pid()); !taken) return taken.error();
    made->children_.push_back(std::move(*child));
  }
  return made;
}

MemoryHogs::~MemoryHogs() {
  children_.clear();
  if (counts_ != nullptr) ::munmap(counts_, (count_ + 1) * sizeof(std::uint64_t));
}

std::vector<std::uint64_t> MemoryHogs::touched() const { return {counts_, counts_ + count_}; }

}  // namespace swapd::bench
