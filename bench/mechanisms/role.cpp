#include "mechanisms/role.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "harness/workload.h"

namespace swapd::bench {

Peer Role::peer() {
  Peer peer;
  peer.fds = options_.fds;
  peer.word = options_.word;
  peer.shared = &*memory_;
  peer.child_own_session = options_.split;
  peer.child_by_hand = options_.child_by_hand;
  if (!options_.child_attr.empty()) peer.child_attr = attr_of(options_.child_attr);
  return peer;
}

Status Role::wait_for_go() const {
  if (const auto said = say("ready"); !said) return said;
  char nothing = 0;
  if (::read(options_.gate_fd, &nothing, 1) != 0) return errno_error("waiting at the gate");
  return Done{};
}

Status Role::iterate(const std::function<Status()>& one, int warm_ups) {
  using Clock = std::chrono::steady_clock;
  const auto count = std::min<std::uint32_t>(static_cast<std::uint32_t>(options_.iterations), max_samples);
  auto before = Clock::now();
  for (int i = 0; i < warm_ups; ++i) {
    if (const auto served = one(); !served) return served;
    const auto start = std::exchange(before, Clock::now());
    const std::chrono::duration<double, std::milli> took = before - start;
    memory_->first_ms = std::max(memory_->first_ms, took.count());
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    memory_->waiting = i + 1;
    if (const auto waited = one(); !waited) return waited;
    const auto now = Clock::now();
    note_sample(i, std::chrono::duration<double, std::milli>(now - before).count());
    before = now;
  }
  return finish(count);
}

void Role::note_sample(std::uint32_t i, double ms) {
  if (i < max_samples) memory_->sample_ms[i] = ms;
}

Status Role::finish(std::uint32_t samples) {
  memory_->samples = samples;
  if (const auto said = say("done"); !said) return said;
  (void)hear();
  return Done{};
}

int run_role(int argc, char** argv) {
  const RoleOptions options = parse_role(argc, argv);
  auto memory = SharedMemory::map(options.shared_fd);
  if (!memory) {
    std::fprintf(stderr, "swapbench: %s\n", memory.error().text().c_str());
    return 1;
  }
  const Workload* workload = find_workload(options.workload);
  if (workload == nullptr || workload->role == nullptr) return 2;
  // The shared memory and the channel end with this process; a child that it makes needs neither.
  Role role(options, std::move(*memory));
  if (role.is("client")) role.shared().client_pid = ::getpid();
  if (role.is("server")) role.shared().server_pid = ::getpid();
  const Status done = workload->role(role);
  if (done) return 0;
  (void)role.say("failed: " + done.error().text());
  return 1;
}

}  // namespace swapd::bench
