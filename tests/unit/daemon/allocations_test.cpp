// A steady load takes nothing from the heap on the engine thread once it has warmed up (docs/design.md, Threads). This
// program has an `operator new` of its own that counts, so it has no other tests. SWAPD_ALLOCATIONS=1 prints the stacks
// of what is taken, for addr2line.
#include <execinfo.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <set>
#include <vector>

#include "unit/daemon/decision_loop_world.h"

namespace {

thread_local bool counting = false;  // of this thread alone: another one opens samplers
thread_local std::size_t taken = 0;

void note() {
  if (!counting) return;
  ++taken;
  static const bool prints = std::getenv("SWAPD_ALLOCATIONS") != nullptr;
  if (!prints) return;
  counting = false;
  std::array<void*, 16> stack{};
  const int depth = backtrace(stack.data(), static_cast<int>(stack.size()));
  std::fputs("heap:\n", stderr);
  backtrace_symbols_fd(stack.data(), depth, 2);
  counting = true;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  note();
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  note();
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }

namespace swapd::daemon {
namespace {

using namespace std::chrono_literals;
using test::fifo;
using test::nice;
using test::r1;
using test::r2;

// No thread of this machine has such an id (proc(5), pid_max).
constexpr ThreadId client{5'000'001, 1}, urgent_client{5'000'002, 1};
constexpr ThreadId server{5'000'011, 1}, second_server{5'000'012, 1}, third_server{5'000'013, 1};

// Events are made by the observer, which is not part of this.
class Allocations : public DecisionLoopWorld, public testing::Test {
 protected:
  static constexpr int warm_up = 200, rounds = 2000;

  Allocations() {
    enroll(client, fifo(50));
    enroll(urgent_client, fifo(70));
    for (const ThreadId id : {server, second_server, third_server}) enroll(id, nice(0));
  }

  static Event blocks(ThreadId id, const Resource& awaited) { return Blocked{{}, id, 0, {awaited}}; }
  static Event wakes(ThreadId id, ThreadId by, const Resource& through) { return Woken{{}, id, by, through, false}; }
  static Event provides(ThreadId id, const Resource& what) { return Accessed{{}, id, what, Evidence::accessed}; }

  void happens(Event& event) {
    std::visit([&](auto& one) { one.time = now; }, event);
    counting = true;
    host->take(event);
    counting = false;
  }
  void turn(Duration later = 10us, bool with_tick = false) {
    observer.resolved.clear();
    scheduler.given.clear();
    questions.asked.clear();
    counting = true;
    if (with_tick)
      tick(later);
    else
      run(later);
    (void)host->next();
    (void)host->idle();
    counting = false;
  }
  template <typename Round>
  std::size_t taken_by(Round round) {
    for (int i = 0; i < warm_up; ++i) round(i);
    taken = 0;
    for (int i = 0; i < rounds; ++i) round(i);
    return taken;
  }
};

TEST_F(Allocations, OfAConversationWithAServer) {
  Event known = provides(server, r1), asks = blocks(client, r1), answers = wakes(client, server, r1);
  happens(known);
  std::size_t boosted = 0;
  EXPECT_EQ(taken_by([&](int i) {
              happens(asks);
              turn();
              boosted += attr(server).realtime() ? 1 : 0;
              observer.cpu[server] += 20us;
              happens(answers);
              turn(50us, i % 16 == 0);
            }),
            0U);
  EXPECT_EQ(boosted, std::size_t{warm_up} + rounds);
}

TEST_F(Allocations, OfAChainThatLingers) {
  Event front = provides(server, r1), back = provides(second_server, r2);
  Event server_asks = blocks(server, r2), asks = blocks(client, r1), answers = wakes(server, second_server, r2),
        ends = wakes(client, server, r1);
  happens(front);
  happens(back);
  EXPECT_EQ(taken_by([&](int i) {
              happens(server_asks);
              happens(asks);
              turn();
              observer.cpu[second_server] += 1ms;
              happens(answers);
              turn(1ms);
              observer.cpu[server] += 1ms;
              happens(ends);
              turn(1ms, i % 4 == 0);
              if (i % 8 == 0) turn(60ms, true);  // what lingers ends
            }),
            0U);
}

// A boost that lasts 4 ms is sampled by perf. To open that is a system call and more; here it fails, and the error's
// text is taken from the heap.
constexpr std::size_t max_of_a_sampler = 3;

TEST_F(Allocations, OfAChoiceAmongServersWithItsQuanta) {
  Event first = provides(server, r1), second = provides(second_server, r1), third = provides(third_server, r1),
        asks = blocks(client, r1);
  for (Event* one : {&first, &second, &third}) happens(*one);
  Event answers = wakes(client, third_server, r1);
  std::set<ThreadId> tried;
  EXPECT_LE(taken_by([&](int i) {
              happens(asks);
              turn();
              for (int quantum = 0; quantum < 3; ++quantum) {
                for (const ThreadId id : {server, second_server, third_server})
                  if (attr(id).realtime()) {
                    observer.cpu[id] += 20ms;
                    tried.insert(id);
                  }
                turn(20ms);
              }
              happens(answers);
              turn(50us, i % 2 == 0);
            }),
            rounds * max_of_a_sampler);
  EXPECT_GT(tried.size(), 1U) << "their quanta are used up";
}

TEST_F(Allocations, OfTwoRequestersAndTheCeiling) {
  Event known = provides(server, r1), low = blocks(client, r1), high = blocks(urgent_client, r1);
  Event high_ends = wakes(urgent_client, server, r1), low_ends = wakes(client, server, r1);
  happens(known);
  EXPECT_LE(taken_by([&](int /*i*/) {
              happens(low);
              turn();
              happens(high);
              turn();
              observer.cpu[server] += 60ms;
              turn(60ms, true);
              turn(40ms, true);
              happens(high_ends);
              turn();
              happens(low_ends);
              turn();
            }),
            rounds * max_of_a_sampler);
}

// A dozen threads, each of which may end the wait of each: a search in a knot. They run in turn.
TEST_F(Allocations, OfThreadsThatWaitForEachOther) {
  constexpr int all = 12;
  const auto member = [](int number) { return ThreadId{5'000'021 + number % all, 1}; };
  const auto awaited = [](int number) { return test::resource(200 + number % all); };
  std::vector<Event> block, wake, answer;
  Event asks = blocks(client, r1);
  for (int i = 0; i < all; ++i) {
    enroll(member(i), nice(0));
    block.push_back(blocks(member(i), awaited(i)));
    wake.push_back(wakes(member(i), member(i + 1), awaited(i)));
    answer.push_back(wakes(client, member(i), r1));
  }
  for (int i = 0; i < all; ++i) {
    Event known = provides(member(i), r1);
    happens(known);
    for (int other = 1; other < all; ++other) {
      known = provides(member(i + other), awaited(i));
      happens(known);
    }
  }
  for (Event& one : block) happens(one);
  std::size_t boosted = 0;
  const auto round = [&](int i) {
    const int runs = i % all;
    happens(wake[runs]);
    happens(asks);
    turn();
    boosted += attr(member(runs)).realtime() ? 1 : 0;
    observer.cpu[member(runs)] += 20us;
    happens(answer[runs]);
    happens(block[runs]);
    turn(50us, i % 16 == 0);
  };
  // The longest path is another one until the confidences have settled.
  (void)taken_by(round);
  EXPECT_EQ(taken_by(round), 0U);
  EXPECT_EQ(boosted, std::size_t{2} * (warm_up + rounds));
}

// As with futexes and connections that come and go.
TEST_F(Allocations, OfResourcesThatComeAndGo) {
  EXPECT_EQ(taken_by([&](int i) {
              const Resource fresh = test::resource(100 + i % 64);
              Event known = provides(server, fresh), asks = blocks(client, fresh), ends = wakes(client, server, fresh);
              Event gone = Released{{}, server, fresh};
              happens(known);
              happens(asks);
              turn();
              observer.cpu[server] += 50us;
              happens(ends);
              turn(50us, i % 4 == 0);
              happens(gone);
              turn();
            }),
            0U);
}

TEST_F(Allocations, OfPausesInWhichWatchesEnd) {
  Event known = provides(server, r1), asks = blocks(client, r1), ends = wakes(client, server, r1);
  happens(known);
  EXPECT_EQ(taken_by([&](int /*i*/) {
              happens(asks);
              turn();
              observer.cpu[server] += 50us;
              happens(ends);
              turn(50us);
              for (int pause = 0; pause < 12; ++pause) turn(100ms, true);
              ASSERT_FALSE(observer.watched.contains(server));
            }),
            0U);
}

}  // namespace
}  // namespace swapd::daemon
