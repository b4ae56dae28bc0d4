#include "observe/resolve/compat_calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <utility>

namespace swapd::observe {

namespace {

constexpr std::int32_t unknown_base = 1'000'000;  // beyond any table

// Left out: what takes pointers to structures of another layout (msghdr, timespec is read by nobody here), socketcall
// and ipc, whose real call is in memory. Sorted.
constexpr std::array<std::pair<std::int32_t, std::int32_t>, 50> compat_numbers{{
    {1, SYS_exit},
    {3, SYS_read},
    {4, SYS_write},
    {7, SYS_wait4},
    {29, SYS_pause},
    {37, SYS_kill},
    {114, SYS_wait4},
    {142, SYS_select},
    {143, SYS_flock},
    {145, SYS_readv},
    {146, SYS_writev},
    {162, SYS_nanosleep},
    {168, SYS_poll},
    {179, SYS_rt_sigsuspend},
    {180, SYS_pread64},
    {181, SYS_pwrite64},
    {187, SYS_sendfile},
    {238, SYS_tkill},
    {239, SYS_sendfile},
    {240, SYS_futex},
    {252, SYS_exit_group},
    {256, SYS_epoll_wait},
    {267, SYS_clock_nanosleep},
    {270, SYS_tgkill},
    {279, SYS_mq_timedsend},
    {280, SYS_mq_timedreceive},
    {284, SYS_waitid},
    {308, SYS_pselect6},
    {309, SYS_ppoll},
    {313, SYS_splice},
    {319, SYS_epoll_pwait},
    {362, SYS_connect},
    {364, SYS_accept4},
    {369, SYS_sendto},
    {370, SYS_sendmsg},
    {371, SYS_recvfrom},
    {372, SYS_recvmsg},
    {400, SYS_msgsnd},
    {401, SYS_msgrcv},
    {407, SYS_clock_nanosleep},
    {413, SYS_pselect6},
    {414, SYS_ppoll},
    {418, SYS_mq_timedsend},
    {419, SYS_mq_timedreceive},
    {420, SYS_semtimedop},
    {422, SYS_futex},
    {424, SYS_pidfd_send_signal},
    {426, SYS_io_uring_enter},
    {441, SYS_epoll_pwait2},
    {449, SYS_futex_waitv},
}};
static_assert(std::ranges::is_sorted(compat_numbers, {}, &std::pair<std::int32_t, std::int32_t>::first));

}  // namespace

std::int32_t native_call(std::int32_t compat) {
  const auto found =
      std::ranges::lower_bound(compat_numbers, compat, {}, &std::pair<std::int32_t, std::int32_t>::first);
  return found != compat_numbers.end() && found->first == compat ? found->second : unknown_base + compat;
}

}  // namespace swapd::observe
