#include "sys/bpf/message_calls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <array>
#include <string_view>
#include <utility>

#include "sys/bpf/bpf_ring.h"
#include "sys/bpf/programs/calls_layout.h"
#include "sys/bpf/skeleton.h"
//
#include "calls.skel.h"  // uses the layout

namespace swapd::sys {

namespace {

constexpr std::array<std::string_view, 2> by_sockets{"on_receive", "on_message"};
constexpr std::array<std::string_view, 1> by_wakeups{"on_wakeup"};
constexpr std::array<BpfPiece, 2> pieces{by_sockets, by_wakeups};

}  // namespace

struct MessageCalls::Impl {
  Skeleton<calls> programs;
  int threads = -1;
  BpfRing ring;
  std::vector<BpfLink> links;
};

MessageCalls::MessageCalls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageCalls::~MessageCalls() = default;

Result<std::unique_ptr<MessageCalls>> MessageCalls::open() {
  if (Status allowed = check_bpf_privilege(); !allowed) return std::move(allowed).error();
  const auto learnt = learn_kernel();
  if (!learnt) return learnt.error();
  std::vector<Refusal> refusals;
  auto programs = load_in_pieces(pieces, refusals, [&](std::span<const Refusal> without) {
    const auto prepare = [&](calls& opened) -> Status {
      tell_namespace(*opened.rodata, *learnt);
      return Done{};
    };
    return load_skeleton<calls>("the BPF programs that tell of messages", prepare, without);
  });
  if (!programs) return std::move(programs).error();
  if (refusals.size() == pieces.size()) return refusals.front().error;
  auto impl = std::make_unique<Impl>();
  impl->programs = std::move(programs).value();
  impl->threads = bpf_map__fd(impl->programs->maps.threads);
  auto ring = BpfRing::map(bpf_map__fd(impl->programs->maps.ring), calls_ring);
  if (!ring) return std::move(ring).error();
  impl->ring = std::move(ring).value();
  return std::unique_ptr<MessageCalls>(new MessageCalls(std::move(impl)));
}

Status MessageCalls::attach() {
  if (!impl_->links.empty()) return Done{};
  const auto& all = impl_->programs->progs;
  for (bpf_program* program : {all.on_receive, all.on_message, all.on_wakeup}) {
    if (!bpf_program__autoload(program)) continue;  // the kernel refuses it
    const FirstWarning warning;
    BpfLink link(bpf_program__attach(program));
    if (!link) {
      Error failed = FirstWarning::error(errno, "attaching the programs that tell of messages");
      impl_->links.clear();
      return failed;
    }
    impl_->links.push_back(std::move(link));
  }
  return Done{};
}

void MessageCalls::detach() { impl_->links.clear(); }

int MessageCalls::fd() const { return bpf_map__fd(impl_->programs->maps.ring); }

MessageCalls::State MessageCalls::listen(pid_t tid) {
  const auto key = static_cast<std::uint32_t>(tid);
  calls_thread thread{};
  (void)bpf_map_lookup_elem(impl_->threads, &key, &thread);
  thread.listens = 1;
  (void)bpf_map_update_elem(impl_->threads, &key, &thread, BPF_ANY);
  return {.waits = thread.unread != 0, .messages = thread.messages};
}

std::vector<MessageCalls::Call> MessageCalls::read() {
  std::vector<Call> out;
  calls_record raw{};
  while (impl_->ring.next(&raw, sizeof raw))
    out.push_back({Time(Duration(static_cast<Duration::rep>(raw.time))), static_cast<pid_t>(raw.tid)});
  return out;
}

}  // namespace swapd::sys
