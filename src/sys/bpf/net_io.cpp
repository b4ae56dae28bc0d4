#include "sys/bpf/net_io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <utility>

#include "sys/bpf/programs/netio_layout.h"
#include "sys/bpf/bpf_errors.h"
#include "sys/bpf/kernel_probe.h"
#include "sys/bpf/bpf_pieces.h"
//
#include "netio.skel.h"  // uses the layout

namespace swapd::sys {

struct NetIo::Impl {
  struct Deleter {
    void operator()(netio* loaded) const { netio__destroy(loaded); }
  };
  std::unique_ptr<netio, Deleter> programs;
  int map = -1;
};

NetIo::NetIo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NetIo::~NetIo() = default;

Result<std::unique_ptr<NetIo>> NetIo::open() {
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const FirstWarning warning;
  auto impl = std::make_unique<Impl>();
  impl->programs.reset(netio__open());
  netio* programs = impl->programs.get();
  if (programs == nullptr) return FirstWarning::error(errno, "opening the BPF programs that count traffic");
  const auto learnt = learn_kernel();
  if (!learnt) return learnt.error();
  tell_namespace(*programs->rodata, *learnt);
  prepare_load(programs->obj, {});
  const int loaded = netio__load(programs);
  if (loaded != 0) return FirstWarning::error(-loaded, "loading the BPF programs that count traffic");
  if (const int failed = netio__attach(programs); failed != 0)
    return FirstWarning::error(-failed, "attaching the BPF programs that count traffic");
  impl->map = bpf_map__fd(programs->maps.threads);
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
