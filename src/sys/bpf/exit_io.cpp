#include "sys/bpf/exit_io.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <mutex>
#include <unordered_map>
#include <utility>

#include "sys/bpf/bpf_ring.h"
#include "sys/bpf/programs/lastio_layout.h"
#include "sys/bpf/skeleton.h"
#include "sys/process/pi_mutex.h"
//
#include "lastio.skel.h"  // uses the layout

namespace swapd::sys {

struct LastIo::Impl {
  Skeleton<lastio> programs;
  int map = -1;
  PiMutex mutex;  // what follows
  BpfRing ring;
  Serial last = 0;
  Owner last_owner = 0;
  std::unordered_map<Owner, std::vector<Ended>> ended;  // not taken yet
};

LastIo::LastIo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LastIo::~LastIo() = default;

Result<std::unique_ptr<LastIo>> LastIo::open() {
  auto programs = start_skeleton<lastio>("the BPF program that sees threads end");
  if (!programs) return std::move(programs).error();
  auto impl = std::make_unique<Impl>();
  impl->programs = std::move(programs).value();
  const auto& maps = impl->programs->maps;
  auto ring = BpfRing::map(bpf_map__fd(maps.ring), bpf_map__max_entries(maps.ring));
  if (!ring) return std::move(ring).error();
  impl->ring = std::move(ring).value();
  impl->map = bpf_map__fd(maps.threads);
  return std::unique_ptr<LastIo>(new LastIo(std::move(impl)));
}

LastIo::Owner LastIo::add() {
  const std::lock_guard lock(impl_->mutex);
  const Owner owner = ++impl_->last_owner;
  impl_->ended[owner];
  return owner;
}

void LastIo::drop(Owner owner) {
  const std::lock_guard lock(impl_->mutex);
  impl_->ended.erase(owner);
}

Result<LastIo::Serial> LastIo::ask(pid_t tid, Owner owner) {
  const auto key = static_cast<std::uint32_t>(tid);
  lastio_asked asked{.serial = 0, .owner = owner, .unused = 0};
  {
    const std::lock_guard lock(impl_->mutex);
    asked.serial = ++impl_->last;
  }
  if (const int failed = bpf_map_update_elem(impl_->map, &key, &asked, BPF_ANY); failed != 0)
    return Error(-failed, "asking for a thread's end");
  return asked.serial;
}

void LastIo::forget(pid_t tid, Serial serial) {
  const auto key = static_cast<std::uint32_t>(tid);
  lastio_asked now{};  // the id may be another thread's by now
  if (bpf_map_lookup_elem(impl_->map, &key, &now) == 0 && now.serial == serial)
    (void)bpf_map_delete_elem(impl_->map, &key);
}

std::vector<LastIo::Ended> LastIo::take(Owner owner) {
  const std::lock_guard lock(impl_->mutex);
  lastio_record record{};
  while (impl_->ring.next(&record, sizeof record)) {
    const auto of = impl_->ended.find(record.asked.owner);
    if (of == impl_->ended.end() || of->second.size() >= lastio_threads) continue;
    of->second.push_back({.tid = static_cast<pid_t>(record.tid),
                          .serial = record.asked.serial,
                          .in_all = {.read_chars = record.read_chars,
                                     .written_chars = record.written_chars,
                                     .calls = record.calls,
                                     .read_bytes = record.read_bytes,
                                     .written_bytes = record.written_bytes}});
  }
  const auto own = impl_->ended.find(owner);
  return own == impl_->ended.end() ? std::vector<Ended>{} : std::exchange(own->second, {});
}

}  // namespace swapd::sys
