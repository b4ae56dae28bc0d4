// What the model and the decider cost, in time and in memory ([SWAP04 §5.1] gives 64 bytes a resource and 32 a
// requester or a provider). Built with 10 000 threads and 100 000 resources, of which each thread provides twenty.
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <array>
#include <memory>
#include <random>
#include <unordered_map>

#include "decide/donation/donation_decider.h"
#include "decide/donation/provider_choice.h"
#include "decide/panel.h"
#include "model/model.h"

namespace swapd {
namespace {

constexpr int threads = 10'000;
constexpr int resources = 100'000;
constexpr int provided_by_each = 20;

ThreadId thread(int number) { return {1 + number, 7}; }
Resource resource(int number) { return socket_endpoint(static_cast<std::uint64_t>(40'000 + number)); }
SchedAttr fifo(int priority) {
  return {.policy = SchedPolicy::fifo, .rt_priority = static_cast<std::uint8_t>(priority)};
}

// What malloc has handed out, its own overhead included (mallinfo(3)).
std::size_t allocated_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

struct World {
  model::Model model{{}};
  decide::ProviderChoice decider{{}};

  World() {
    for (int i = 0; i < threads; ++i)
      model.apply(Enrolled{{}, thread(i), 1 + i, 1000, i % 10 == 0 ? fifo(50) : SchedAttr{}});
    for (int i = 0; i < threads; ++i) {
      // ConflictMonitor share resources: two providers each.
      for (int j = 0; j < provided_by_each; ++j) model.apply(Accessed{{}, thread(i), at(i, j)});
    }
  }
  static Resource at(int thread_number, int j) {
    return resource((thread_number * (resources / threads) + j) % resources);
  }
};

World& world() {
  static World made;
  return made;
}

void access_known(benchmark::State& state) {
  World& w = world();
  int i = 0;
  for (auto _ : state) {
    i = (i + 7919) % threads;
    w.model.apply(Accessed{{}, thread(i), World::at(i, i % provided_by_each)});
  }
}
BENCHMARK(access_known);

void access_and_release(benchmark::State& state) {
  World& w = world();
  int i = 0;
  for (auto _ : state) {
    i = (i + 7919) % threads;
    const Resource fresh = resource(resources + i);
    w.model.apply(Accessed{{}, thread(i), fresh});
    w.model.apply(Released{{}, thread(i), fresh});
  }
}
BENCHMARK(access_and_release);

// One round of a client and its server: block, decide, wake with credit.
void block_decide_wake(benchmark::State& state) {
  World& w = world();
  const auto awaited = static_cast<int>(state.range(0));
  int i = 0;
  for (auto _ : state) {
    i = (i + 7910) % threads;  // a FIFO thread
    Blocked blocked{{}, thread(i), 0, {}};
    for (int j = 0; j < awaited; ++j) blocked.awaited.push_back(World::at(i, j));
    w.model.apply(std::move(blocked));
    benchmark::DoNotOptimize(w.decider.decide(w.model, std::array{thread(i)}));
    w.model.apply(Woken{{}, thread(i), thread((i + 1) % threads), World::at(i, 10), false});
  }
}
BENCHMARK(block_decide_wake)->Arg(1)->Arg(20);

// What an observer sends for threads that ask and answer all the time: a client blocks, its server, which was told of a
// resource of its own besides, wakes it. `decided` of a hundred waits are important enough to be decided on.
void event_stream(benchmark::State& state) {
  World& w = world();
  const auto decided = static_cast<int>(state.range(0));
  int i = 0, round = 0;
  std::int64_t events = 0;
  for (auto _ : state) {
    i = (i + 7919) % threads;
    const ThreadId client = thread(i), server = thread((i + 1) % threads);
    const Resource awaited = World::at(i, 10 + i % 10);  // which both provide
    w.model.apply(Blocked{{}, client, 0, {awaited}});
    if (++round % 100 < decided) benchmark::DoNotOptimize(w.decider.decide(w.model, std::array{client}));
    w.model.apply(Accessed{{}, server, World::at((i + 1) % threads, round % provided_by_each)});
    w.model.apply(Woken{{}, client, server, awaited, false});
    events += 3;
  }
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(event_stream)->Arg(0)->Arg(10)->Arg(100);

// A decision for one requester at the head of a chain.
void decide_cascade(benchmark::State& state) {
  model::Model model({});
  decide::ProviderChoice decider({});
  const auto depth = static_cast<int>(state.range(0));
  model.apply(Enrolled{{}, thread(0), 1, 1000, fifo(50)});
  for (int i = 0; i < depth; ++i) {
    model.apply(Enrolled{{}, thread(i + 1), i + 2, 1000, {}});
    model.apply(Accessed{{}, thread(i + 1), resource(i)});
    model.apply(Blocked{{}, thread(i), 0, {resource(i)}});
  }
  for (auto _ : state) benchmark::DoNotOptimize(decider.decide(model, std::array{thread(0)}));
}
BENCHMARK(decide_cascade)->Arg(1)->Arg(8)->Arg(64);

// A server that waits in epoll for many sockets, each with a provider of its own.
void decide_epoll(benchmark::State& state) {
  model::Model model({});
  decide::ProviderChoice decider({});
  const auto members = static_cast<int>(state.range(0));
  Blocked blocked{{}, thread(0), 0, {}};
  model.apply(Enrolled{{}, thread(0), 1, 1000, fifo(50)});
  for (int i = 0; i < members; ++i) {
    model.apply(Enrolled{{}, thread(i + 1), i + 2, 1000, {}});
    model.apply(Accessed{{}, thread(i + 1), resource(i)});
    blocked.awaited.push_back(resource(i));
  }
  model.apply(std::move(blocked));
  for (auto _ : state) benchmark::DoNotOptimize(decider.decide(model, std::array{thread(0)}));
}
BENCHMARK(decide_epoll)->Arg(10)->Arg(100)->Arg(1000);

// A thousand requesters at once, each with a choice of two.
void decide_thousand(benchmark::State& state) {
  World& w = world();
  std::vector<ThreadId> requesters;
  for (int i = 0; i < threads; i += 10) {
    requesters.push_back(thread(i));
    w.model.apply(Blocked{{}, thread(i), 0, {World::at(i, 15)}});
  }
  for (auto _ : state) benchmark::DoNotOptimize(w.decider.decide(w.model, requesters));
  for (const ThreadId id : requesters) w.model.apply(Woken{{}, id, {}, {}, true});
}
BENCHMARK(decide_thousand)->Unit(benchmark::kMicrosecond);

// A chat: a client process and a server process with a reader and a writer for each connection. A user's writer sends a
// message and waits, on a futex, until its reader has got that message back; the server's reader hands it to the
// writers of the whole room, on a futex each. Who holds the other end of a socket is answered as the worker answers it:
// every thread of the other process. So each of the threads may wait for each, and the clients, half of them, are
// important.
class Chat {
 public:
  Chat(int rooms, int users) : users_(users), connections_(rooms * users) {
    auto donation = std::make_unique<decide::DonationDecider>(decide::DonationConfig{});
    std::vector<std::unique_ptr<decide::Decider>> deciders;
    deciders.push_back(std::move(donation));
    panel_ = std::make_unique<decide::Panel>(model_, decide::BudgetConfig{}, std::move(deciders));
    for (int i = 0; i < 4 * connections_; ++i)
      feed(Enrolled{now_, thread(i), is_client(i) ? 1 : 2, 1000,
                    SchedAttr{.nice = std::int8_t(is_client(i) ? -20 : 0)}});
    for (int i = 0; i < 4 * connections_; ++i) {
      if (i % 4 == client_writer)
        runnable_.push_back(i);
      else
        feed(Blocked{now_, thread(i), 0, {awaited(i)}});
    }
    turn();
  }

  // Threads run, in random order, until they have told of this many events; then it is decided.
  void batch(std::size_t events) {
    for (told_ = 0; told_ < events;) {
      const auto at = std::uniform_int_distribution<std::size_t>(0, runnable_.size() - 1)(random_);
      const int next = std::exchange(runnable_[at], runnable_.back());
      runnable_.pop_back();
      run(next);
    }
    turn();
  }
  [[nodiscard]] std::size_t told() const { return told_; }

 private:
  enum Role { client_reader, client_writer, server_reader, server_writer };  // thread = 4 * connection + role

  [[nodiscard]] static bool is_client(int thread) { return thread % 4 <= client_writer; }
  [[nodiscard]] static Resource awaited(int i) {
    if (i % 4 == client_reader || i % 4 == server_reader) return resource(i);
    return futex_of({i % 4 == client_writer ? 1 : 2, 7}, static_cast<std::uint64_t>(i));
  }
  void feed(const Event& event) {
    if (panel_->admits(event)) panel_->feed(event);
    ++told_;
    now_ += std::chrono::microseconds(10);
  }
  void hand_over(int from, int to, int message) {
    const bool sleeps = inbox_[to].empty();
    inbox_[to].push_back(message);
    if (!sleeps) return;
    feed(Woken{now_, thread(to), thread(from), awaited(to), false});
    runnable_.push_back(to);
  }
  void run(int i) {
    const int connection = i / 4;
    if (i % 4 == client_writer) hand_over(i, 4 * connection + server_reader, connection);
    for (const int message : inbox_[i]) pass_on(i, message);
    inbox_[i].clear();
    feed(Blocked{now_, thread(i), 0, {awaited(i)}});
  }
  void pass_on(int i, int message) {
    const int connection = i / 4;
    if (i % 4 == server_reader) {
      const int first = connection / users_ * users_;
      for (int user = first; user < first + users_; ++user) hand_over(i, 4 * user + server_writer, message);
    } else if (i % 4 == server_writer) {
      hand_over(i, 4 * connection + client_reader, message);
    } else if (i % 4 == client_reader && message == connection) {
      hand_over(i, 4 * connection + client_writer, message);
    }
  }
  // Answers the worker's questions of the turn before, as it has some time for that.
  void answer() {
    for (const Resource& resource : std::exchange(asked_, {})) {
      const auto number = static_cast<int>(resource.ids[0]) - 40'000;
      if (resource.kind != ResourceKind::socket) continue;
      std::vector<ThreadId> holders;
      for (int i = 0; i < 4 * connections_; ++i)
        if (is_client(i) != is_client(number)) holders.push_back(thread(i));
      feed(Holders{now_, resource, Evidence::holder, std::move(holders)});
    }
  }
  void turn() {
    answer();
    const bool tick = now_ >= next_tick_;
    if (tick) next_tick_ = now_ + std::chrono::milliseconds(10);
    decide::Turn one{.now = now_, .first = true, .tick = tick, .may_ask = tick};
    for (int round = 0; round < 16; ++round) {
      const auto done = panel_->decide(one);
      for (const decide::Question& question : panel_->plan(0).questions)
        asked_.insert(asked_.end(), question.resources.begin(), question.resources.end());
      one.first = one.tick = false;
      if (done.complete) return;
    }
  }

  int users_, connections_;
  model::Model model_{{}};
  std::unique_ptr<decide::Panel> panel_;
  std::vector<int> runnable_;
  std::unordered_map<int, std::vector<int>> inbox_;
  std::vector<Resource> asked_;
  std::mt19937 random_{1};
  std::size_t told_ = 0;
  Time now_{std::chrono::seconds(1)}, next_tick_{};
};

// Rooms and users in each: four threads a user. A turn for each 32 events.
void chat(benchmark::State& state) {
  Chat chat(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  std::int64_t events = 0;
  for (int i = 0; i < 16; ++i) chat.batch(32);  // the providers become known
  for (auto _ : state) {
    chat.batch(32);
    events += static_cast<std::int64_t>(chat.told());
  }
  state.counters["threads"] = static_cast<double>(4 * state.range(0) * state.range(1));
  state.counters["events"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}
BENCHMARK(chat)->Args({1, 5})->Args({1, 13})->Args({1, 25})->Args({2, 25})->Args({4, 25})->Unit(
    benchmark::kMicrosecond);

// Not a matter of time: the counters are what this one is for.
void memory(benchmark::State& state) {
  for (auto _ : state) {
    auto model = std::make_unique<model::Model>(model::Settings{});
    std::size_t before = allocated_bytes();
    const auto since = [&](std::size_t count) {
      const std::size_t now = allocated_bytes();
      const double each = static_cast<double>(now - before) / static_cast<double>(count);
      before = now;
      return each;
    };
    for (int i = 0; i < threads; ++i) model->apply(Enrolled{{}, thread(i), 1 + i, 1000, {}});
    state.counters["thread_B"] = since(threads);
    // The first provider of a resource makes the resource, its place in the hash table included; the second does not.
    for (int i = 0; i < resources; ++i) model->apply(Accessed{{}, thread(i % threads), resource(i)});
    const double both = since(resources);
    for (int i = 0; i < resources; ++i) model->apply(Accessed{{}, thread((i + 1) % threads), resource(i)});
    const double provider = since(resources);
    state.counters["provider_B"] = provider;
    state.counters["resource_B"] = both - provider;
    for (int i = 0; i < threads; ++i) {
      Blocked blocked{{}, thread(i), 0, {}};
      for (int j = 0; j < 10; ++j) blocked.awaited.push_back(resource((i * 10 + j) % resources));
      model->apply(std::move(blocked));
    }
    state.counters["requester_B"] = since(10UL * threads);
  }
}
BENCHMARK(memory)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace swapd

BENCHMARK_MAIN();
