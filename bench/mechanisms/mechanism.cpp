#include "mechanisms/mechanism.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace swapd::bench {

Status Mechanism::request(const Computation&) { return Done{}; }

void Mechanism::stamp(char* answer) {
  ++sequence_;
  std::memcpy(answer, &sequence_, sizeof sequence_);
  std::memcpy(answer + answer_size - sizeof sequence_, &sequence_, sizeof sequence_);
}

Status Mechanism::check(const char* answer) {
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, answer, sizeof first);
  std::memcpy(&last, answer + answer_size - sizeof last, sizeof last);
  if (first != last) return Error(EBADMSG, "a torn answer");
  if (first <= sequence_) return Error(EBADMSG, "an old answer");
  sequence_ = first;
  return Done{};
}

namespace {

struct Entry {
  std::string_view name;
  bool needs_wakes = false;
};
constexpr Entry mechanisms[] = {{"socket"},        {"pipe"},
                                {"msg"},           {"sem"},
                                {"signal"},        {"flock"},
                                {"fifo"},          {"tcp"},
                                {"udp"},           {"mq"},
                                {"record-lock"},   {"eventfd"},
                                {"epoll"},         {"child-exit"},
                                {"mutex", true},   {"mutex-private", true},
                                {"condvar", true}, {"condvar-private", true},
                                {"pi-mutex", true}};

}  // namespace

const std::vector<std::string_view>& mechanism_names() {
  static const auto names = [] {
    std::vector<std::string_view> all;
    for (const Entry& entry : mechanisms) all.push_back(entry.name);
    return all;
  }();
  return names;
}

bool needs_wakes(std::string_view name) {
  return std::any_of(std::begin(mechanisms), std::end(mechanisms),
                     [&](const Entry& entry) { return entry.name == name && entry.needs_wakes; });
}

std::unique_ptr<Mechanism> make_mechanism(std::string_view name) {
  for (const auto family : {make_stream_mechanism, make_message_mechanism, make_sync_mechanism, make_lock_mechanism,
                            make_process_mechanism, make_futex_mechanism, make_thread_mechanism}) {
    if (auto made = family(name)) return made;
  }
  return nullptr;
}

}  // namespace swapd::bench
