#include "mechanism.h"

#include <array>
#include <cstring>

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

const std::vector<std::string_view>& mechanism_names() {
  static const std::vector<std::string_view> names = {"socket",      "pipe",    "msg",   "sem",       "signal",
                                                      "flock",       "fifo",    "tcp",   "udp",       "mq",
                                                      "record-lock", "eventfd", "epoll", "child-exit"};
  return names;
}

std::unique_ptr<Mechanism> make_mechanism(std::string_view name) {
  for (const auto family : {make_stream_mechanism, make_message_mechanism, make_sync_mechanism, make_lock_mechanism,
                            make_process_mechanism}) {
    if (auto made = family(name)) return made;
  }
  return nullptr;
}

}  // namespace swapd::bench
