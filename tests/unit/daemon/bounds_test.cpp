// Requests that could be without end have bounds.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "control/views.h"
#include "engine/note_queue.h"
#include "engine/worker.h"
#include "state/persistent_state.h"
#include "sys/netlink/sock_diag.h"
#include "sys/sched/groups.h"

namespace swapd::daemon {
namespace {

constexpr pid_t nobody = 5'000'000;  // above the largest pid_max

std::size_t nodes(const std::vector<bus::WaitNode>& waits) {
  std::size_t count = 0;
  for (const bus::WaitNode& wait : waits)
    for (const bus::ProviderNode& provider : wait.providers) count += 1 + nodes(provider.waiting_for);
  return count;
}

TEST(Bounds, WhyOfThreadsThatAllWaitForOneAnother) {
  const Resource pipe{ResourceKind::pipe, {7}};
  Snapshot snapshot;
  for (pid_t tid = nobody; tid < nobody + 30; ++tid) {
    const ThreadId id{tid, 1};
    snapshot.threads[id] = {
        .id = id, .tgid = tid, .state = model::RunState::blocked, .watched = true, .awaited = {pipe}};
    snapshot.providers[pipe].push_back({.thread = id, .confidence = 20});
  }
  const sys::Procfs procfs;
  sys::SockDiag diag;
  observe::Resolver resolver(procfs, diag);
  Views views(std::move(snapshot), procfs, resolver);
  const bus::ThreadView one = views.thread(views.snapshot().threads.at({nobody, 1}), 32);
  EXPECT_GE(nodes(one.waiting_for), 29U);
  EXPECT_LE(nodes(one.waiting_for), 2000U);
}

class BoundsOfTheWorker : public testing::Test {
 protected:
  // All that it answers to what it was asked before; so many are waited for.
  std::vector<Answer> finish(std::size_t count) {
    worker_.start();
    std::vector<Answer> out;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto take = [&] { std::ranges::move(worker_.take(), std::back_inserter(out)); };
    while (out.size() < count && std::chrono::steady_clock::now() < end) take();
    worker_.stop();
    take();
    return out;
  }

  const sys::Procfs procfs_;
  const sys::LinuxScheduler scheduler_;
  const sys::LinuxGroups groups_;
  const SteadyClock clock_;
  sys::SockDiag diag_;
  observe::Resolver resolver_{procfs_, diag_};
  Worker worker_{{procfs_, scheduler_, groups_, clock_}, {}, resolver_, [] {}};
};

TEST_F(BoundsOfTheWorker, QuestionsAreDroppedPastAThousand) {
  for (int i = 0; i < 5000; ++i) worker_.ask(RosterQuestion{});
  worker_.ask(ScanQuestion{});  // of another kind: nothing gives way to it
  EXPECT_EQ(finish(1024).size(), 1024U);
}

TEST_F(BoundsOfTheWorker, OnlyTheLastOfAThreadsWaitsIsAskedAbout) {
  const auto ask = [&](pid_t tid, std::uint64_t generation) {
    worker_.ask(observe::WaitQuestion{.thread = {tid, 1}, .site = {.tid = tid, .tgid = tid}, .generation = generation});
  };
  for (std::uint64_t generation = 1; generation <= 400; ++generation) ask(nobody, generation);
  ask(nobody + 1, 7);
  const auto given = finish(2);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(std::get<observe::WaitAnswer>(given[0]).question.generation, 400U);
  EXPECT_EQ(std::get<observe::WaitAnswer>(given[1]).question.thread.tid, nobody + 1);
}

// How long a worker's work is, is what it is owed rest for; the questions are about processes that are not there.
class RestOfTheWorker : public BoundsOfTheWorker {
 protected:
  void SetUp() override { worker_.start(); }
  void answers(Question question) {
    worker_.ask(std::move(question));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (worker_.take().empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  static RosterQuestion long_work() {
    RosterQuestion question;
    for (pid_t pid = nobody; pid < nobody + 60'000; ++pid) question.members.push_back(pid);
    return question;
  }
  static Time in(Duration time) { return std::chrono::steady_clock::now() + time; }
};

TEST_F(RestOfTheWorker, IsNotEndedByShortWorkInBetween) {
  answers(RosterQuestion{});
  EXPECT_TRUE(worker_.rested(in(std::chrono::seconds(1))));
  const Duration before = worker_.cpu_time();
  answers(long_work());
  const Duration half = 9 * (worker_.cpu_time() - before);
  answers(RosterQuestion{});
  EXPECT_FALSE(worker_.rested(in(half)));
  EXPECT_TRUE(worker_.rested(in(std::chrono::hours(1))));
}

TEST_F(RestOfTheWorker, FromScansIsDueWhateverElseThereIs) {
  EXPECT_TRUE(worker_.rested_from_scans(in({})));
  answers(long_work());
  EXPECT_TRUE(worker_.rested_from_scans(in({}))) << "it was no scan";
  ScanQuestion scan{.waiter = *procfs_.thread_id(::getpid()),
                    .resources = {{ResourceKind::pipe, {1, 1}}},
                    .members = long_work().members,
                    .asked = in({}),
                    .again = true};
  const Duration before = worker_.cpu_time();
  answers(scan);
  const Duration half = 4 * (worker_.cpu_time() - before);
  EXPECT_FALSE(worker_.rested_from_scans(in(half)));
  EXPECT_TRUE(worker_.rested_from_scans(in(std::chrono::hours(1))));
  worker_.stop();
  worker_.ask(scan);
  EXPECT_FALSE(worker_.rested_from_scans(in(std::chrono::hours(1)))) << "one is open";
}

TEST(Bounds, NotesThatNobodyTakesAreLostPastEightThousand) {
  const Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  NoteQueue notes(wake.get());
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) kept += notes.push({}) ? 1 : 0;
  EXPECT_EQ(kept, 8192);
  std::uint64_t rung = 0;
  EXPECT_EQ(::read(wake.get(), &rung, sizeof rung), static_cast<ssize_t>(sizeof rung));
  EXPECT_EQ(rung, 1U) << "once for all of them";
  EXPECT_EQ(notes.take().size(), 8192U);
  EXPECT_TRUE(notes.push({})) << "there is room again";
}

class BoundsOfFiles : public testing::Test {
 protected:
  BoundsOfFiles() : dir_(testing::TempDir() + "swapd-bounds-XXXXXX") { ::mkdtemp(dir_.data()); }
  ~BoundsOfFiles() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(BoundsOfFiles, ConfidencesWithoutEndAreDamaged) {
  std::vector<model::SavedConfidence> learnt(20'001,
                                             {.provider = {10, 77}, .resource = {ResourceKind::pipe, {1}}, .lead = 1});
  ASSERT_TRUE(write_lessons(dir_, "boot", learnt));
  const auto read = read_lessons(dir_, "boot");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), EBADMSG);
}

TEST_F(BoundsOfFiles, ALinkInTheLocksPlaceIsNotFollowed) {
  const std::string elsewhere = dir_ + "/elsewhere";
  std::ofstream(elsewhere) << "precious";
  ASSERT_EQ(::symlink(elsewhere.c_str(), (dir_ + "/lock").c_str()), 0);
  const auto lock = lock_state(dir_, std::chrono::milliseconds(10));
  ASSERT_FALSE(lock.ok());
  EXPECT_EQ(lock.error().code(), ELOOP);
}

}  // namespace
}  // namespace swapd::daemon
