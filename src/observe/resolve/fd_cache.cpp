#include "observe/resolve/fd_cache.h"

#include <algorithm>

namespace swapd::observe {

namespace {

bool same(const sys::FdIdentity& a, const sys::FdIdentity& b) {
  return a.dev == b.dev && a.ino == b.ino && a.rdev == b.rdev && a.mode == b.mode;
}

}  // namespace

const FdCache::Table* FdCache::read(pid_t pid) {
  auto fds = procfs_.fds(pid);
  if (!fds) {
    tables_.erase(pid);
    return nullptr;
  }
  if (fds->size() > max_fds) fds->resize(max_fds);
  const Time now = clock_.now();
  Table& table = tables_.get(pid, now);
  table.time = now;
  table.entries.clear();
  for (const int fd : *fds) {
    if (const auto identity = procfs_.fd_identity(pid, fd)) table.entries.push_back({fd, *identity});
  }
  return &table;
}

std::vector<FdCache::Entry> FdCache::find(pid_t pid, Duration max_age, const Match& match) {
  const Time now = clock_.now();
  const Table* known = tables_.find(pid);
  bool current = known == nullptr || now - known->time >= max_age;
  const Table* table = current ? read(pid) : known;
  while (table != nullptr) {
    std::vector<Entry> out;
    bool stale = false;
    for (const Entry& entry : table->entries) {
      if (!match(entry.identity)) continue;
      const auto identity = procfs_.fd_identity(pid, entry.fd);
      if (identity && same(*identity, entry.identity)) {
        out.push_back(entry);
      } else {
        stale = true;
      }
    }
    if (!stale || current) return out;
    current = true;
    table = read(pid);
  }
  return {};
}

}  // namespace swapd::observe
