#include "sys/bpf/io_uring_requests.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "sys/bpf/programs/io_uring_layout.h"
#include "sys/bpf/skeleton.h"
#include "sys/procfs/procfs_path.h"
//
#include "rings.skel.h"  // uses the layout

namespace swapd::sys {

struct RingRequests::Impl {
  Skeleton<rings> programs;
};

RingRequests::RingRequests(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RingRequests::~RingRequests() = default;

Result<std::unique_ptr<RingRequests>> RingRequests::open() {
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  auto programs =
      load_skeleton<rings>("the BPF program that reads rings", [](rings& /*opened*/) { return Status(Done{}); });
  if (!programs) return std::move(programs).error();
  auto impl = std::make_unique<Impl>();
  impl->programs = std::move(programs).value();
  return std::unique_ptr<RingRequests>(new RingRequests(std::move(impl)));
}

Status RingRequests::lists_any_thread() {
  Status can = Done{};
  std::thread([&] {
    const auto listed = list(::gettid(), -1, false);
    if (!listed && listed.error().code() == ENOTSUP) can = listed.error();
  }).join();
  return can;
}

Result<std::vector<RingRequest>> RingRequests::list(pid_t tid, int ring, bool registered) {
  rings& programs = *impl_->programs;
  auto* shared = programs.bss;
  programs.data->ring_fd = ring;
  shared->ring_registered = registered ? 1 : 0;
  shared->is_ring = 0;
  shared->tasks = 0;
  shared->count = 0;
  const std::string what = "reading the io_uring requests of thread " + std::to_string(tid);
  bpf_iter_link_info one{};
  one.task.tid = static_cast<__u32>(tid);
  bpf_iter_attach_opts options{};  // no LIBBPF_OPTS, which is C
  options.sz = sizeof options;
  options.link_info = &one;
  options.link_info_len = sizeof one;
  const FirstWarning warning;
  const std::unique_ptr<bpf_link, decltype([](bpf_link* ended) { bpf_link__destroy(ended); })> link(
      bpf_program__attach_iter(programs.progs.list_requests, &options));
  if (!link) return FirstWarning::error(errno, what);
  const Fd run(bpf_iter_create(bpf_link__fd(link.get())));
  if (!run) return errno_error(what);
  std::array<char, 8> nothing{};
  while (::read(run.get(), nothing.data(), nothing.size()) > 0) {
  }
  if (shared->tasks > 1) return Error(ENOTSUP, what + ": the kernel cannot iterate over one task alone");
  if (shared->tasks == 0 && ::access(ProcPath("/proc", tid, "").c_str(), F_OK) == 0)
    return Error(ENOTSUP, what + ": the kernel iterates over a process's first thread alone");
  if (shared->is_ring == 0) return Error(EBADF, what);
  std::vector<RingRequest> out;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(shared->count, rings_most); ++i) {
    const rings_request& found = shared->requests[i];
    out.push_back({found.opcode, found.fd, found.device, found.inode, found.events});
  }
  return out;
}

}  // namespace swapd::sys
