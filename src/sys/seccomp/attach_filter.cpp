#include "sys/seccomp/attach_filter.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "sys/process/pidfd.h"
#include "sys/procfs/procfs.h"

namespace swapd::sys {
namespace {

std::string named(pid_t pid) { return "process " + std::to_string(pid); }

// i386 and x32 programs are ELFCLASS32. A program that cannot be looked at is told by its registers.
bool other_architecture(pid_t pid) {
  const Fd file(::open(("/proc/" + std::to_string(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char start[EI_NIDENT] = {};
  return file && ::read(file.get(), start, sizeof start) == sizeof start && std::memcmp(start, ELFMAG, SELFMAG) == 0 &&
         start[EI_CLASS] != ELFCLASS64;
}

}  // namespace

Result<AttachedFilter> AttachedFilter::install(pid_t pid, std::span<const sock_filter> program,
                                               const AttachOptions& options) {
  if (other_architecture(pid)) return Error(ENOEXEC, named(pid) + " is no x86-64 program");
  auto stopped = StoppedProcess::stop(pid, options.within);
  if (!stopped) return std::move(stopped).error();
  const auto mode = Procfs().status_numbers(pid, "Seccomp");
  if (!mode) return mode.error();
  if (mode->front() == SECCOMP_MODE_STRICT) return Error(EPERM, named(pid) + " is in seccomp's strict mode");
  if (mode->front() == SECCOMP_MODE_FILTER)
    if (Status suspended = (*stopped)->suspend_filters(); !suspended)
      return std::move(suspended).error().in(named(pid) + " has seccomp filters of its own");
  const auto pidfd = open_pidfd(pid);
  if (!pidfd) return pidfd.error();
  // Once the filter is in, nothing may keep us from its listener.
  if (const auto tried = take_fd(pidfd->get(), 0); !tried && tried.error().code() != EBADF) return tried.error();
  AttachedFilter attached(std::move(stopped).value());
  Status done = attached.map(program);
  if (done) done = attached.install(options);
  if (!done) return std::move(done).error().in(named(pid));
  auto listener = take_fd(pidfd->get(), attached.number_);
  if (!listener) return std::move(listener).error();
  attached.listener_ = std::move(listener).value();
  return attached;
}

AttachedFilter::~AttachedFilter() {
  if (process_) (void)resume();
}

Result<long> AttachedFilter::call(long nr, const std::array<std::uint64_t, 6>& args, const char* what) {
  auto result = process_->call(nr, args);
  if (result && *result < 0) return Error(static_cast<int>(-*result), what);
  return result;
}

// The program, and what points at it: struct sock_fprog.
Status AttachedFilter::map(std::span<const sock_filter> program) {
  const sock_fprog at_the_start{static_cast<unsigned short>(program.size()), nullptr};
  std::vector<std::byte> bytes(sizeof at_the_start + program.size_bytes());
  size_ = bytes.size();
  const auto mapped =
      call(SYS_mmap, {0, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, static_cast<std::uint64_t>(-1), 0},
           "no memory for the filter");
  if (!mapped) return mapped.error();
  memory_ = static_cast<std::uint64_t>(*mapped);
  std::memcpy(bytes.data(), &at_the_start, sizeof at_the_start);
  const std::uint64_t code = memory_ + sizeof at_the_start;
  std::memcpy(bytes.data() + offsetof(sock_fprog, filter), &code, sizeof code);
  std::memcpy(bytes.data() + sizeof at_the_start, program.data(), program.size_bytes());
  return process_->write(memory_, bytes);
}

Status AttachedFilter::install(const AttachOptions& options) {
  const std::array<std::uint64_t, 6> args{
      SECCOMP_SET_MODE_FILTER, options.flags | SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, memory_};
  auto number = process_->call(SYS_seccomp, args);
  if (number && *number == -EACCES && options.allow_no_new_privs) {
    const auto set = call(SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0}, "setting no_new_privs");
    if (!set) return set.error();
    number = process_->call(SYS_seccomp, args);
  }
  if (!number) return number.error();
  switch (*number) {
    case -EBUSY:
      return Error(EBUSY, "it has a seccomp listener already");
    case -EACCES:
      return Error(EACCES,
                   "it has no privilege to install a filter without no_new_privs, which would keep it and its "
                   "children from ever using setuid programs; --allow-no-new-privs accepts that");
    case -ESRCH:
      return Error(ENOTSUP, "its threads have different seccomp filters");
    default:
      if (*number < 0) return Error(static_cast<int>(-*number), "installing the seccomp filter");
  }
  number_ = static_cast<int>(*number);
  return Done{};
}

Fd AttachedFilter::resume() {
  if (number_ >= 0) (void)process_->call(SYS_close, {static_cast<std::uint64_t>(number_)});
  if (memory_ != 0) (void)process_->call(SYS_munmap, {memory_, size_});
  number_ = -1;
  memory_ = 0;
  process_.reset();
  return std::move(listener_);
}

}  // namespace swapd::sys
