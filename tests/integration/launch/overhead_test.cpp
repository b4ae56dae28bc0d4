// A receiver must cost little more than the bare loop of RECV and SEND that nobody can do without (the bound is 1.3).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "observe/seccomp/receiver.h"
#include "supervised.h"

namespace swapd::observe {
namespace {

constexpr int calls_a_batch = 2000;
constexpr int batches = 15;

// The time of one trapped call, in ns, as the caller sees it: the mean of the best batch, because whatever else runs on
// the machine only adds.
class Caller {
 public:
  Caller() : out_(*new (::mmap(nullptr, sizeof(Out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Out) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() { ::munmap(&out_, sizeof(Out)); }
  int run() {
    for (double& batch : out_.batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < calls_a_batch; ++i) ::syscall(SYS_getppid);
      batch =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls_a_batch;
    }
    return 0;
  }
  [[nodiscard]] double best() const { return std::ranges::min(out_.batch); }

 private:
  struct Out {
    std::array<double, batches> batch{};
  };
  Out& out_;
};

const std::vector<sys::TrapRule> getppid_only{{.nr = SYS_getppid, .condition = {}}};

double bare() {
  Caller caller;
  test::Supervised child(getppid_only, [&] { return caller.run(); });
  (void)sys::set_sync_wake_up(child.listener());
  std::thread supervisor([&] {  // of the receiver's class
    ::setpriority(PRIO_PROCESS, 0, -20);
    for (;;) {
      const auto notification = sys::receive(child.listener());
      if (notification)
        (void)sys::answer_continue(child.listener(), notification->id);
      else if (sys::hung_up(child.listener()))
        return;
    }
  });
  child.go();
  child.wait();
  supervisor.join();
  return caller.best();
}

double with_receiver() {
  Caller caller;
  test::Supervised child(getppid_only, [&] { return caller.run(); });
  ListenerSlot slot{};
  Receiver receiver(child.take_listener(), &slot, {});
  if (!receiver.start()) return 0;
  std::jthread reader([&](const std::stop_token& stop) {  // as the engine does: in batches
    std::array<RawCall, 64> calls;
    while (!stop.stop_requested()) {
      while (receiver.drain(calls.data(), calls.size()) > 0) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  child.go();
  child.wait();
  return caller.best();
}

TEST(Overhead, OfAReceiverOverABareLoop) {
  if (!sys::receive_ends_with_targets()) GTEST_SKIP() << "the bare loop has no end before Linux 6.11";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's own cost is measured here";
#endif
  double without = bare();
  double with = with_receiver();
  for (int repeat = 0; repeat < 5; ++repeat) {
    without = std::min(without, bare());
    with = std::min(with, with_receiver());
  }
  std::cout << "bare " << without << " ns, receiver " << with << " ns a call, ratio " << with / without << std::endl;
  EXPECT_LE(with / without, 1.3);
}

}  // namespace
}  // namespace swapd::observe
