#include "sys/seccomp/seccomp.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

// Newer than the headers that some distributions ship; the kernel is asked before any is used.
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)  // 5.19
#endif

namespace swapd::sys {
namespace {

struct ContextDeleter {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, ContextDeleter>;

long seccomp_call(unsigned operation, unsigned long flags, const void* args) {
  return ::syscall(SYS_seccomp, operation, flags, args);
}

// seccomp(2): with a null program a known flag gets as far as EFAULT, an unknown one ends at EINVAL.
bool kernel_has(unsigned long flag) {
  return seccomp_call(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | flag, nullptr) != 0 &&
         errno == EFAULT;
}

// libseccomp reports a negative errno.
Error seccomp_error(int rc, const char* what) { return {rc < 0 ? -rc : EINVAL, what}; }

Status add_rule(const Context& context, const TrapRule& rule) {
  const std::uint32_t action =
      rule.refuse_with == 0 ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(static_cast<std::uint16_t>(rule.refuse_with));
  if (!rule.condition) {
    if (const int rc = seccomp_rule_add(context.get(), action, rule.nr, 0); rc != 0)
      return seccomp_error(rc, "adding a rule to the seccomp filter");
    return Done{};
  }
  // Rules of one call are alternatives, so several values are several rules.
  for (const std::uint64_t value : rule.condition->values) {
    const scmp_arg_cmp compare{rule.condition->arg, SCMP_CMP_MASKED_EQ, rule.condition->mask, value};
    if (const int rc = seccomp_rule_add_array(context.get(), action, rule.nr, 1, &compare); rc != 0)
      return seccomp_error(rc, "adding a conditional rule to the seccomp filter");
  }
  return Done{};
}

// libseccomp 2.5 can hand its program over only through a descriptor.
Result<std::vector<sock_filter>> export_program(const Context& context) {
  const Fd file(::memfd_create("swapd-filter", MFD_CLOEXEC));
  if (!file) return errno_error("creating a memory file for the seccomp filter");
  if (const int rc = seccomp_export_bpf(context.get(), file.get()); rc != 0)
    return seccomp_error(rc, "exporting the seccomp filter");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_error("reading the exported seccomp filter");
  const auto size = static_cast<std::size_t>(info.st_size);
  std::vector<sock_filter> program(size / sizeof(sock_filter));
  if (program.empty() || size % sizeof(sock_filter) != 0) return Error(EBADMSG, "reading the exported seccomp filter");
  if (::pread(file.get(), program.data(), size, 0) != info.st_size)
    return errno_error("reading the exported seccomp filter");
  return program;
}

}  // namespace

std::string call_name(std::int32_t nr) {
  const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, nr),
                                                         &std::free);
  return name ? name.get() : "";
}

Result<std::vector<sock_filter>> build_filter(std::span<const TrapRule> rules) {
  const Context context(seccomp_init(SCMP_ACT_ALLOW));
  if (!context) return Error(ENOMEM, "creating the seccomp filter");
  // A call of another architecture is none of ours: i386, and x32, which the program tells apart by the call's number.
  if (const int rc = seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW); rc != 0)
    return seccomp_error(rc, "allowing other architectures in the seccomp filter");
  // A binary tree over the calls instead of a chain: some fifty calls are looked up at each trapped one. (The allowed
  // ones do not run the program at all: the kernel keeps a bitmap of those that no argument decides.)
  if (const int rc = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2); rc != 0 && rc != -EOPNOTSUPP)
    return seccomp_error(rc, "optimising the seccomp filter");
  for (const TrapRule& rule : rules)
    if (Status added = add_rule(context, rule); !added) return std::move(added).error();
  return export_program(context);
}

unsigned long filter_flags() {
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  for (const unsigned long flag : {static_cast<unsigned long>(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV),
                                   static_cast<unsigned long>(SECCOMP_FILTER_FLAG_SPEC_ALLOW)})
    if (kernel_has(flag)) flags |= flag;
  return flags;
}

Result<Fd> install_filter(std::span<const sock_filter> program, const InstallOptions& options) {
  const unsigned long flags = filter_flags();
  const sock_fprog code{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
  long listener = seccomp_call(SECCOMP_SET_MODE_FILTER, flags, &code);
  if (listener < 0 && errno == EACCES && options.allow_no_new_privs) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("setting no_new_privs");
    listener = seccomp_call(SECCOMP_SET_MODE_FILTER, flags, &code);
  }
  if (listener >= 0) return Fd(static_cast<int>(listener));  // the kernel made it close-on-exec
  switch (errno) {
    case EBUSY:
      return Error(EBUSY, "installing the seccomp filter: the program already has a listener");
    case EACCES:
      return Error(EACCES, "installing the seccomp filter: needs CAP_SYS_ADMIN or no_new_privs");
    default:
      return errno_error("installing the seccomp filter");
  }
}

bool is_listener(int fd) {
  constexpr std::string_view expected = "anon_inode:seccomp notify";
  std::array<char, 64> target;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), target.data(), target.size());
  return n > 0 && std::string_view(target.data(), static_cast<std::size_t>(n)) == expected;
}

}  // namespace swapd::sys
