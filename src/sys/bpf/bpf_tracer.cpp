#include "sys/bpf/bpf_tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/types.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "base/ignore_gone.h"
#include "sys/bpf/bpf_errors.h"
#include "sys/bpf/bpf_load.h"
#include "sys/bpf/bpf_ring.h"
#include "sys/bpf/programs/layout.h"
#include "sys/procfs/procfs.h"
#include "sys/procfs/ticks.h"
#include "tracer.skel.h"

namespace swapd::sys {
namespace {

constexpr int max_reads =
    10000;  // of a slot that is being written: a writer needs some 50 ns, more if its CPU is taken

bool procfs_is_our_namespaces() {
  std::array<char, 16> self{};
  const ssize_t size = ::readlink("/proc/self", self.data(), self.size() - 1);
  return size > 0 && std::string(self.data()) == std::to_string(::getpid());
}

// Gone, or past the point at which the kernel's program would have let it go.
bool is_ending(pid_t tid) {
  const auto stat = Procfs().stat(tid);
  return !stat || !stat->alive();
}

Time time_of(tracer_u64 ns) { return Time(Duration(static_cast<std::int64_t>(ns))); }
Duration duration_of(tracer_u64 ns) { return Duration(static_cast<std::int64_t>(ns)); }

Waker waker_of(tracer_s32 tid, tracer_s32 tgid, tracer_s32 call, const tracer_u64* args, unsigned flags) {
  return {.tid = tid,
          .tgid = tgid,
          .call = call,
          .args = {args[0], args[1]},
          .compat = (flags & tracer_compat) != 0,
          .kernel_thread = (flags & tracer_kernel) != 0,
          .interrupt = (flags & tracer_interrupt) != 0,
          .own_softirq = (flags & tracer_own_softirq) != 0};
}

BpfRecord record_of(const tracer_record& raw) {
  BpfRecord record{.time = time_of(raw.time), .tid = raw.tid};
  record.without_slot = (raw.flags & tracer_without_slot) != 0;
  switch (raw.kind) {
    case tracer_record_blocked:
      record.what = BpfRecord::What::blocked;
      record.call = raw.call;
      std::copy_n(raw.args, record.args.size(), record.args.begin());
      record.compat = (raw.flags & tracer_compat) != 0;
      record.sleep = raw.sleep;
      record.doubtful = (raw.flags & tracer_doubtful) != 0;
      record.inverted = (raw.flags & tracer_inverted) != 0;
      record.cpu = duration_of(raw.value);
      break;
    case tracer_record_woken:
      record.what = BpfRecord::What::woken;
      record.waker = waker_of(raw.other, raw.other_tgid, raw.call, raw.args, raw.flags);
      record.blocked_at = time_of(raw.value);
      record.late = (raw.flags & tracer_late) != 0;
      record.silent = (raw.flags & tracer_silent) != 0;
      record.wakes = static_cast<std::uint32_t>(raw.args[2]);
      break;
    case tracer_record_fork:
      record.what = BpfRecord::What::fork;
      record.tgid = raw.other_tgid;
      record.parent = raw.other;
      record.parent_tgid = raw.parent_tgid;
      record.start_time = raw.value / (1'000'000'000 / ticks_per_second);
      break;
    case tracer_record_exec:
      record.what = BpfRecord::What::exec;
      record.tgid = raw.other_tgid;
      record.former_tid = raw.other;
      break;
    case tracer_record_left:
      record.what = BpfRecord::What::left;
      record.waiter = raw.other;
      break;
    default:
      record.what = BpfRecord::What::exit;
      record.tgid = raw.other_tgid;
      record.cpu = duration_of(raw.value);
      break;
  }
  return record;
}

constexpr std::uint32_t no_tid = UINT32_MAX;  // being cleared
constexpr std::int32_t no_call = -2;          // in which no thread waits

void forget_what_was_seen(tracer_slot& slot) {
  for (auto* word : {&slot.awaited_by, &slot.on_cpu, &slot.silent, &slot.phase, &slot.wake_order})
    std::atomic_ref(*word).store(0);
  for (auto* time : {&slot.blocked_at, &slot.woken_at, &slot.cpu_ns, &slot.on_since}) std::atomic_ref(*time).store(0);
  for (auto* id : {&slot.waker, &slot.waker_tgid}) std::atomic_ref(*id).store(0);
  for (auto* call : {&slot.call, &slot.waker_call}) std::atomic_ref(*call).store(-1);
}

void clear(tracer_slot& slot) {
  for (auto* word : {&slot.control, &slot.expected, &slot.wakes, &slot.newborn, &slot.parent, &slot.waits})
    std::atomic_ref(*word).store(0);
  forget_what_was_seen(slot);
}

Status attach(bpf_program* program, bpf_link*& link) {
  const FirstWarning warning;
  link = bpf_program__attach(program);
  return link == nullptr ? Status(FirstWarning::error(errno, "following the scheduler")) : Status(Done{});
}

Status clear_each_cpu(int map, std::size_t value_size) {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return Error(-cpus, "counting the CPUs");
  const std::uint32_t key = 0;
  const std::vector<char> zeros(static_cast<std::size_t>(cpus) * ((value_size + 7) / 8 * 8));
  if (bpf_map_update_elem(map, &key, zeros.data(), BPF_ANY) != 0) return errno_error("clearing what CPUs run");
  return Done{};
}

void detach(bpf_link*& link) { bpf_link__destroy(std::exchange(link, nullptr)); }

}  // namespace

struct BpfTracer::Impl {
  LoadedTracer loaded;
  BpfRing ring;
  tracer_slot* slots = nullptr;
  std::uint32_t slot_count = 0;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (slots != nullptr) ::munmap(slots, slot_count * sizeof(tracer_slot));
  }
  [[nodiscard]] tracer_slot* place(pid_t tid, std::uint32_t i) const {
    return &slots[(static_cast<std::uint32_t>(tid) + i) & (slot_count - 1)];
  }
  [[nodiscard]] tracer_slot* find(pid_t tid) const {
    for (std::uint32_t i = 0; i < tracer_probes; ++i)
      if (std::atomic_ref(place(tid, i)->tid).load(std::memory_order_acquire) == static_cast<std::uint32_t>(tid))
        return place(tid, i);
    return nullptr;
  }
  [[nodiscard]] std::atomic_ref<__u64> word(pid_t tid) const {
    return std::atomic_ref(loaded.programs->bss->managed[tid / 64]);
  }
  static std::uint64_t bit(pid_t tid) { return std::uint64_t{1} << (tid % 64); }
};

BpfTracer::BpfTracer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BpfTracer::~BpfTracer() = default;

Result<std::unique_ptr<BpfTracer>> BpfTracer::open(const BpfOptions& wanted) {
  if (!procfs_is_our_namespaces())
    return Error(ENOTSUP, "opening the BPF tracer: /proc is another pid namespace's; mount swapd's own there");
  BpfOptions options = wanted;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  options.slots = std::bit_ceil(std::max(options.slots, std::uint32_t{tracer_probes}));
  options.ring_bytes = std::bit_ceil(std::max(options.ring_bytes, page));
  auto loaded = load_tracer(options);
  if (!loaded) return std::move(loaded).error().in("opening the BPF tracer");
  auto impl = std::make_unique<Impl>();
  impl->loaded = std::move(loaded).value();
  const auto& maps = impl->loaded.programs->maps;
  void* slots = ::mmap(nullptr, options.slots * sizeof(tracer_slot), PROT_READ | PROT_WRITE, MAP_SHARED,
                       bpf_map__fd(maps.slots), 0);
  if (slots == MAP_FAILED) return errno_error("opening the BPF tracer: mapping the slots");
  impl->slots = static_cast<tracer_slot*>(slots);
  impl->slot_count = options.slots;
  auto ring = BpfRing::map(bpf_map__fd(maps.ring), options.ring_bytes);
  if (!ring) return std::move(ring).error().in("opening the BPF tracer");
  impl->ring = std::move(ring).value();
  std::unique_ptr<BpfTracer> tracer(new BpfTracer(std::move(impl)));
  // In any case once: whether it can be is known from here on.
  for (const bool on : {true, wanted.follow})
    if (Status following = tracer->follow(on); !following)
      return std::move(following).error().in("opening the BPF tracer");
  return tracer;
}

bool BpfTracer::follows() const { return impl_->loaded.programs->links.on_waking != nullptr; }

Status BpfTracer::follow(bool on) {
  tracer* programs = impl_->loaded.programs.get();
  if (on == follows()) return Done{};
  const std::atomic_ref followed(programs->bss->followed);
  if (!on) {
    followed.store(0);  // children begin with nothing known of them
    detach(programs->links.on_waking);
    detach(programs->links.on_softirq);
    detach(programs->links.on_switch);
    return Done{};
  }
  for (std::uint32_t i = 0; i < impl_->slot_count; ++i)
    if (std::atomic_ref(impl_->slots[i].tid).load() != 0) forget_what_was_seen(impl_->slots[i]);
  // The thread that runs on a CPU is known from the CPU's next switch on.
  if (Status cleared = clear_each_cpu(bpf_map__fd(programs->maps.cpus), bpf_map__value_size(programs->maps.cpus));
      !cleared)
    return cleared;
  Status attached = attach(programs->progs.on_switch, programs->links.on_switch);
  if (attached && bpf_program__autoload(programs->progs.on_softirq)) {
    const Status noted = attach(programs->progs.on_softirq, programs->links.on_softirq);
    if (!noted && noted.error().code() == EEXIST) attached = noted.error();
    if (!noted && noted.error().code() != EEXIST) do_without_softirqs(impl_->loaded, noted.error());
  }
  if (attached) attached = attach(programs->progs.on_waking, programs->links.on_waking);
  if (!attached) {
    detach(programs->links.on_softirq);
    detach(programs->links.on_switch);
    return attached;
  }
  followed.store(1);
  return Done{};
}

bool BpfTracer::manages(pid_t tid) const {
  return tid > 0 && tid < tracer_max_tids && (impl_->word(tid).load() & Impl::bit(tid)) != 0;
}

// The slot first: the bit is what the programs look at. Then the look at the thread: one that was ending already would
// never be let go.
Status BpfTracer::manage(pid_t tid) {
  if (tid <= 0 || tid >= tracer_max_tids) return Error(ESRCH, "managing a thread");
  if (manages(tid)) return Done{};
  tracer_slot* slot = nullptr;
  for (std::uint32_t i = 0; i < tracer_probes && slot == nullptr; ++i) {
    std::uint32_t free = 0;
    tracer_slot* place = impl_->place(tid, i);
    if (std::atomic_ref(place->tid).compare_exchange_strong(free, static_cast<std::uint32_t>(tid))) slot = place;
  }
  if (slot == nullptr) return Error(ENOSPC, "managing a thread: no slot is free");
  clear(*slot);  // what a program wrote that was still at it when the last thread was let go
  impl_->word(tid).fetch_or(Impl::bit(tid));
  if (is_ending(tid)) {
    ignore_gone(unmanage(tid));
    return Error(ESRCH, "managing a thread");
  }
  return Done{};
}

Status BpfTracer::unmanage(pid_t tid) {
  if (!manages(tid)) return Error(ESRCH, "letting a thread go");
  impl_->word(tid).fetch_and(~Impl::bit(tid));
  tracer_slot* slot = impl_->find(tid);
  if (slot == nullptr) return Done{};
  // The kernel may free it at the same time, and give it to a child: only who takes the tid out clears it.
  auto held = static_cast<std::uint32_t>(tid);
  if (!std::atomic_ref(slot->tid).compare_exchange_strong(held, no_tid)) return Done{};
  clear(*slot);
  std::atomic_ref(slot->tid).store(0);
  return Done{};
}

Status BpfTracer::watch(pid_t tid, bool on, bool urgent) {
  tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr;
  if (slot == nullptr) return Error(ESRCH, "watching a thread");
  const std::atomic_ref control(slot->control);
  unsigned kept = tracer_awaitable, bits = 0;
  if (on) {
    kept |= tracer_timed | tracer_patient | tracer_rested | tracer_any_often;
    bits = tracer_watched;
  }
  if (on && urgent) bits |= tracer_urgent;
  unsigned before = control.load();
  while (!control.compare_exchange_weak(before, (before & kept) | bits)) {
  }
  return Done{};
}

Status BpfTracer::expect(pid_t tid, pid_t provider, std::int32_t call, std::uint64_t arg) {
  tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr;
  if (slot == nullptr) return Error(ESRCH, "naming whom a thread waits for");
  // Without a name while the rest changes: a block in between finds no expectation.
  std::atomic_ref(slot->expected).store(0);
  tracer_slot* whom = provider != 0 && manages(provider) ? impl_->find(provider) : nullptr;
  if (whom != nullptr) std::atomic_ref(whom->control).fetch_or(tracer_awaitable);
  if (provider == 0) std::atomic_ref(slot->newborn).store(0);
  std::atomic_ref(slot->expected_call).store(call);
  std::atomic_ref(slot->expected_arg).store(arg);
  std::atomic_ref(slot->expected).store(static_cast<std::uint32_t>(provider));
  return Done{};
}

void BpfTracer::report_wake(pid_t tid) {
  if (tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr)
    std::atomic_ref(slot->silent).store(0);  // a full barrier: a waker has marked the slot, or sees this
}

Status BpfTracer::be_patient(pid_t tid, Patience patience) {
  tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr;
  if (slot == nullptr) return Error(ESRCH, "telling of fewer waits");
  constexpr unsigned both = tracer_patient | tracer_rested;
  const unsigned bits = patience == Patience::none      ? 0
                        : patience == Patience::resting ? both
                                                        : unsigned{tracer_patient};
  const std::atomic_ref control(slot->control);
  unsigned before = control.load();
  while (!control.compare_exchange_weak(before, (before & ~both) | bits)) {
  }
  return Done{};
}

Status BpfTracer::set_often(pid_t tid, std::span<const WaitKind> kinds) {
  tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr;
  if (slot == nullptr) return Error(ESRCH, "telling of fewer waits");
  static_assert(max_often == tracer_often_kinds);
  const std::atomic_ref control(slot->control);
  if (kinds.size() > max_often) {
    control.fetch_or(tracer_any_often);
    return Done{};
  }
  control.fetch_and(~static_cast<unsigned>(tracer_any_often));
  for (std::size_t i = 0; i < max_often; ++i) {
    const std::atomic_ref call(slot->often_call[i]);
    const bool used = i < kinds.size();
    if (used && call.load() == kinds[i].call && slot->often_arg[i] == kinds[i].arg.value_or(tracer_any_arg)) continue;
    call.store(no_call);  // while the argument changes
    if (!used) continue;
    std::atomic_ref(slot->often_arg[i]).store(kinds[i].arg.value_or(tracer_any_arg));
    call.store(kinds[i].call);
  }
  return Done{};
}

std::optional<SlotGlance> BpfTracer::glance(pid_t tid) const {
  const tracer_slot* shared = manages(tid) ? impl_->find(tid) : nullptr;
  if (shared == nullptr) return std::nullopt;
  const auto* slot = static_cast<const volatile tracer_slot*>(shared);
  SlotGlance out{.waits = slot->waits, .prio = slot->prio, .waker = slot->waker, .wakes = slot->wakes};
  const std::uint32_t phase = slot->phase;
  out.silent = phase == tracer_blocked && slot->silent != 0;
  const bool wants_cpu = phase == tracer_woken || phase == tracer_running;
  out.starved = wants_cpu && slot->on_cpu == 0 && (slot->control & tracer_watched) != 0;
  return out;
}

std::vector<RunningThread> BpfTracer::running() const {
  const bpf_map* cpus = impl_->loaded.programs->maps.cpus;
  const int count = libbpf_num_possible_cpus();
  if (count <= 0) return {};
  const std::size_t size = (bpf_map__value_size(cpus) + 7) / 8 * 8;
  std::vector<std::byte> values(static_cast<std::size_t>(count) * size);
  const std::uint32_t key = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(cpus), &key, values.data()) != 0) return {};
  std::vector<RunningThread> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    tracer_cpu now{};
    std::memcpy(&now, values.data() + (i + 1) * size - sizeof now, sizeof now);
    out.push_back({.tid = now.tid, .prio = now.prio});
  }
  return out;
}

Result<ThreadSlot> BpfTracer::slot(pid_t tid) const {
  const tracer_slot* shared = manages(tid) ? impl_->find(tid) : nullptr;
  if (shared == nullptr) return Error(ESRCH, "reading a thread's slot");
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(shared);
  std::array<std::uint64_t, sizeof(tracer_slot) / sizeof(std::uint64_t)> copy{};
  static_assert(sizeof copy == sizeof(tracer_slot));
  tracer_slot raw{};
  for (int tries = 0;; ++tries) {
    const auto sequences = [&] {
      const auto* slot = static_cast<const volatile tracer_slot*>(shared);
      return std::pair(slot->block_seq, slot->wake_seq);
    };
    const auto before = sequences();
    std::atomic_thread_fence(std::memory_order_acquire);
    for (std::size_t i = 0; i < copy.size(); ++i) copy.at(i) = words[i];
    std::atomic_thread_fence(std::memory_order_acquire);
    if ((before.first & 1) == 0 && (before.second & 1) == 0 && before == sequences()) break;
    if (tries == max_reads) return Error(EAGAIN, "reading a thread's slot");
  }
  std::memcpy(&raw, copy.data(), sizeof raw);
  if (raw.tid != static_cast<std::uint32_t>(tid)) return Error(ESRCH, "reading a thread's slot");
  ThreadSlot out{.phase = static_cast<ThreadSlot::Phase>(raw.phase),
                 .call = raw.call,
                 .compat = (raw.block_flags & tracer_compat) != 0,
                 .sleep = raw.sleep,
                 .doubtful = (raw.block_flags & tracer_doubtful) != 0,
                 .blocked_at = time_of(raw.blocked_at),
                 .cpu = duration_of(raw.cpu_ns),
                 .waker = waker_of(raw.waker, raw.waker_tgid, raw.waker_call, raw.waker_args, raw.wake_flags),
                 .woken_at = time_of(raw.woken_at),
                 .order = raw.wake_order,
                 .watched = (raw.control & tracer_watched) != 0,
                 .silent = raw.silent != 0,
                 .awaited_by = static_cast<pid_t>(raw.awaited_by)};
  std::copy_n(raw.args, out.args.size(), out.args.begin());
  return out;
}

// Words of which each is written at once: who leaves its CPU writes that it has none and then what it has used, so who
// looks in between misses the stint that has just ended.
Result<Duration> BpfTracer::cpu_time(pid_t tid, Time now) const {
  const tracer_slot* shared = manages(tid) ? impl_->find(tid) : nullptr;
  if (shared == nullptr) return Error(ESRCH, "reading a thread's CPU time");
  const auto* slot = static_cast<const volatile tracer_slot*>(shared);
  std::uint64_t since = 0;
  std::uint64_t before = 0;
  do {
    since = (slot->control & tracer_timed) != 0 ? slot->on_since : 0;
    before = slot->cpu_ns;
  } while (since != 0 && since != slot->on_since);
  if (since != 0 && before != 0) return duration_of(before) + std::max(Duration::zero(), now - time_of(since));
  if (follows() && slot->on_cpu == 0 && before != 0) return duration_of(before);
  return std::max(duration_of(before), Procfs().cpu_time(tid).value_or(Duration::zero()));
}

Status BpfTracer::time_exactly(pid_t tid, bool on) {
  tracer_slot* slot = manages(tid) ? impl_->find(tid) : nullptr;
  if (slot == nullptr) return Error(ESRCH, "timing a thread");
  if (!on || (std::atomic_ref(slot->control).load() & tracer_timed) == 0) std::atomic_ref(slot->on_since).store(0);
  if (on)
    std::atomic_ref(slot->control).fetch_or(tracer_timed);
  else
    std::atomic_ref(slot->control).fetch_and(~static_cast<std::uint32_t>(tracer_timed));
  return Done{};
}

int BpfTracer::fd() const { return bpf_map__fd(impl_->loaded.programs->maps.ring); }

std::size_t BpfTracer::read(BpfRecord* out, std::size_t most) {
  tracer_record raw{};
  std::size_t count = 0;
  while (count < most && impl_->ring.next(&raw, sizeof raw)) out[count++] = record_of(raw);
  return count;
}

std::uint64_t BpfTracer::lost() const { return std::atomic_ref(impl_->loaded.programs->bss->lost).load(); }

void BpfTracer::tell_time(Time now) {
  std::atomic_ref(impl_->loaded.programs->bss->recent)
      .store(static_cast<std::uint64_t>(now.time_since_epoch().count()));
}

void BpfTracer::nap(bool on) { std::atomic_ref(impl_->loaded.programs->bss->naps).store(on ? 1 : 0); }

std::uint64_t BpfTracer::without_slot() const {
  return std::atomic_ref(impl_->loaded.programs->bss->without_slot).load();
}
bool BpfTracer::names_softirq_senders() const { return impl_->loaded.names_softirq_senders; }
bool BpfTracer::tells_lives() const { return impl_->loaded.tells_lives; }
const std::vector<MissingPiece>& BpfTracer::missing() const { return impl_->loaded.missing; }

}  // namespace swapd::sys
