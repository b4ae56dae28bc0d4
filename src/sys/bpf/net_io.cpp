#include "sys/bpf/net_io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <utility>

#include "sys/bpf/programs/netio_layout.h"
#include "sys/bpf/skeleton.h"
//
#include "netio.skel.h"  // uses the layout

namespace swapd::sys {

struct NetIo::Impl {
  Skeleton<netio> programs;
  int map = -1;
};

NetIo::NetIo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NetIo::~NetIo() = default;

Result<std::unique_ptr<NetIo>> NetIo::open() {
  auto programs = start_skeleton<netio>("the BPF programs that count traffic");
  if (!programs) return std::move(programs).error();
  auto impl = std::make_unique<Impl>();
  impl->programs = std::move(programs).value();
  impl->map = bpf_map__fd(impl->programs->maps.threads);
  return std::unique_ptr<NetIo>(new NetIo(std::move(impl)));
}

Status NetIo::count(pid_t tid) {
  const auto key = static_cast<std::uint32_t>(tid);
  const netio_counters zero{};
  if (const int failed = bpf_map_update_elem(impl_->map, &key, &zero, BPF_ANY); failed != 0)
    return Error(-failed, "counting a thread's traffic");
  return Done{};
}

void NetIo::forget(pid_t tid) {
  const auto key = static_cast<std::uint32_t>(tid);
  (void)bpf_map_delete_elem(impl_->map, &key);
}

Result<NetIo::Counters> NetIo::read(pid_t tid) const {
  const auto key = static_cast<std::uint32_t>(tid);
  netio_counters counters{};
  if (const int failed = bpf_map_lookup_elem(impl_->map, &key, &counters); failed != 0)
    return Error(-failed, "a thread's traffic");
  return Counters{counters.received, counters.sent};
}

}  // namespace swapd::sys
