#include "sys/netlink/delay_accounting.h"

#include <linux/taskstats.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

namespace swapd::sys {
namespace {

// libnl numbers failures in its own way.
int errno_of(int nl_error) {
  switch (-nl_error) {
    case NLE_PERM:
    case NLE_NOACCESS:
      return EPERM;
    case NLE_OBJ_NOTFOUND:
      return ESRCH;
    case NLE_OPNOTSUPP:
      return ENOTSUP;
    default:
      return EIO;
  }
}

int take(nl_msg* message, void* to) {
  nlattr* aggregate = nlmsg_find_attr(nlmsg_hdr(message), GENL_HDRLEN, TASKSTATS_TYPE_AGGR_PID);
  nlattr* stats = aggregate == nullptr
                      ? nullptr
                      : nla_find(static_cast<nlattr*>(nla_data(aggregate)), nla_len(aggregate), TASKSTATS_TYPE_STATS);
  constexpr int needed = offsetof(taskstats, blkio_delay_total) + sizeof(taskstats::blkio_delay_total);
  if (stats == nullptr || nla_len(stats) < needed) return NL_SKIP;
  std::uint64_t ns = 0;  // the structure may stand at any address
  std::memcpy(&ns, static_cast<const char*>(nla_data(stats)) + offsetof(taskstats, blkio_delay_total), sizeof ns);
  *static_cast<std::optional<Duration>*>(to) = Duration(static_cast<Duration::rep>(ns));
  return NL_OK;
}

}  // namespace

void TaskDelays::Free::operator()(nl_sock* socket) const { nl_socket_free(socket); }

Result<TaskDelays> TaskDelays::open() {
  int on = 0;
  if (!(std::ifstream("/proc/sys/kernel/task_delayacct") >> on) || on == 0)
    return Error(ENOTSUP, "delay accounting is off (sysctl kernel.task_delayacct)");
  std::unique_ptr<nl_sock, Free> socket(nl_socket_alloc());
  if (!socket) return Error(ENOMEM, "taskstats");
  if (const int failed = genl_connect(socket.get()); failed < 0) return Error(errno_of(failed), "taskstats");
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  (void)::setsockopt(nl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const int family = genl_ctrl_resolve(socket.get(), TASKSTATS_GENL_NAME);
  if (family < 0) return Error(ENOTSUP, "the kernel has no taskstats");
  TaskDelays out(std::move(socket), family);
  if (const auto works = out.block_io(::gettid()); !works) return works.error();
  return out;
}

Result<Duration> TaskDelays::block_io(pid_t tid) {
  const std::unique_ptr<nl_msg, decltype(&nlmsg_free)> message(nlmsg_alloc(), nlmsg_free);
  if (!message ||
      genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_, 0, 0, TASKSTATS_CMD_GET, TASKSTATS_GENL_VERSION) ==
          nullptr ||
      nla_put_u32(message.get(), TASKSTATS_CMD_ATTR_PID, static_cast<std::uint32_t>(tid)) < 0)
    return Error(ENOMEM, "taskstats");
  std::optional<Duration> waited;
  nl_socket_modify_cb(socket_.get(), NL_CB_VALID, NL_CB_CUSTOM, take, &waited);
  int done = nl_send_auto(socket_.get(), message.get());
  if (done >= 0) done = nl_recvmsgs_default(socket_.get());
  if (done >= 0) done = nl_wait_for_ack(socket_.get());
  if (done < 0) return Error(errno_of(done), "taskstats");
  if (!waited) return Error(EPROTO, "taskstats");
  return *waited;
}

}  // namespace swapd::sys
