#include "decide/shaping/gate_entries.h"

#include <algorithm>

namespace swapd::decide {

IoCounters GateEntry::charged() const {
  IoCounters out = counted;
  out.read_bytes += static_cast<std::uint64_t>(reads);
  out.written_bytes += static_cast<std::uint64_t>(writes);
  return out;
}

void GateEntries::note(pid_t tid, const IoCounters& counted, const void* gate) {
  GateEntry& entry = entered_[tid];
  ++entry.count;
  entry.counted = counted;
  entry.reads = entry.writes = 0;
  entry.gate = gate;
}

void GateEntries::note_costs(pid_t tid, const WantedCall& want) {
  GateEntry& entry = entered_[tid];
  for (std::size_t i = 0; i < want.count; ++i)
    if (!want.network(i)) (want.reads(i) ? entry.reads : entry.writes) += want.transfers.at(i).cost;
}

GateEntry GateEntries::find(pid_t tid) const {
  const auto found = entered_.find(tid);
  return found == entered_.end() ? GateEntry() : found->second;
}

void GateEntries::add_paid(pid_t tid, std::uint64_t read, std::uint64_t written) {
  Paid& paid = paid_[tid];
  paid.read += read;
  paid.written += written;
}

void GateEntries::take_paid(pid_t tid, IoCounters& moved, bool anew) {
  const auto found = paid_.find(tid);
  if (found == paid_.end()) return;
  if (anew) {
    paid_.erase(found);
    return;
  }
  const auto take = [](std::uint64_t& bytes, std::uint64_t& paid) {
    const std::uint64_t taken = std::min(bytes, paid);
    bytes -= taken;
    paid -= taken;
  };
  take(moved.read_bytes, found->second.read);
  take(moved.written_bytes, found->second.written);
}

void GateEntries::forget(pid_t tid, const void* gate) {
  const auto entered = entered_.find(tid);
  if (entered == entered_.end() || entered->second.gate != gate) return;
  entered_.erase(entered);
  paid_.erase(tid);
}

void GateEntries::forget_paid(pid_t tid) {
  if (!entered_.contains(tid)) paid_.erase(tid);
}

}  // namespace swapd::decide
