#include "observe/bpf/short_lived_children.h"

#include <algorithm>

namespace swapd::observe {
namespace {

using sys::BpfRecord;
using What = BpfRecord::What;

bool of_child(const BpfRecord& record, pid_t child) { return record.tid == child && record.what != What::left; }

// From the fork on. records.size(): it does not end here, or others need it.
std::size_t end_of_life(std::span<const BpfRecord> records, const BpfRecord& fork) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const BpfRecord& record = records[i];
    if (record.what == What::fork && (record.parent == fork.tid || record.parent_tgid == fork.tid)) break;
    if (record.what == What::exit && record.tid == fork.tid) return i;
  }
  return records.size();
}

bool waits_at_the_end(std::span<const BpfRecord> records, pid_t tid) {
  bool waits = false;
  for (const BpfRecord& record : records)
    if (record.tid == tid && (record.what == What::blocked || record.what == What::woken))
      waits = record.what == What::blocked;
  return waits;
}

}  // namespace

std::bitset<max_records> short_lives(std::span<const BpfRecord> records, const std::function<bool(pid_t)>& known) {
  std::bitset<max_records> out;
  records = records.first(std::min(records.size(), max_records));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const BpfRecord& fork = records[i];
    if (fork.what != What::fork || fork.tid != fork.tgid || fork.without_slot) continue;  // threads are cheap
    const auto after = records.subspan(i + 1);
    const std::size_t end = end_of_life(after, fork);
    if (end == after.size() || known(fork.tid) || waits_at_the_end(after, fork.parent)) continue;
    out.set(i);
    for (std::size_t j = 0; j <= end; ++j)
      if (of_child(after[j], fork.tid)) out.set(i + 1 + j);
  }
  return out;
}

}  // namespace swapd::observe
