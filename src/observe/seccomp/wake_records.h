// Records of whom threads wake: a perf tracepoint for each, open while the thread is heard of (thread_watch.h).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/event.h"
#include "sys/perf/perf.h"

namespace swapd::observe {

class WakeRecords {
 public:
  [[nodiscard]] bool contains(ThreadId thread) const { return watches_.contains(thread); }
  // Nothing where it has been added.
  void add(ThreadId thread, bool heard) {
    if (!contains(thread)) watches_[thread] = heard ? open(thread) : nullptr;
  }
  // Nothing where it has not.
  void hear(ThreadId thread, bool on) {
    if (const auto found = watches_.find(thread); found != watches_.end()) found->second = on ? open(thread) : nullptr;
  }
  void remove(ThreadId thread) { watches_.erase(thread); }
  // visit(record), the oldest first.
  template <typename Visit>
  void read(ThreadId thread, Visit visit) const {
    if (const auto found = watches_.find(thread); found != watches_.end()) read_one(found->second.get(), visit);
  }
  // visit(thread, record)
  template <typename Visit>
  void read_all(Visit visit) const {
    for (const auto& [thread, watch] : watches_)
      read_one(watch.get(), [&, waker = thread](const sys::TraceRecord& record) { visit(waker, record); });
  }

 private:
  [[nodiscard]] static std::unique_ptr<sys::TraceWatch> open(ThreadId thread) {
    auto opened = sys::TraceWatch::open(sys::TraceWatch::Point::sched_waking, thread.tid);
    return opened ? std::move(opened).value() : nullptr;
  }
  template <typename Visit>
  static void read_one(sys::TraceWatch* watch, Visit visit) {
    std::array<sys::TraceRecord, 64> records;
    for (std::size_t n = records.size(); watch != nullptr && n == records.size();) {
      n = watch->read(records.data(), records.size());
      for (const sys::TraceRecord& record : std::span(records).first(n)) visit(record);
    }
  }

  std::unordered_map<ThreadId, std::unique_ptr<sys::TraceWatch>> watches_;  // null: not heard of, or not to be had
};

}  // namespace swapd::observe
