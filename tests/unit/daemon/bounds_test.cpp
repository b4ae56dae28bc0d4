// What is asked of swapd, and could be without end, ends.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "left_state.h"
#include "note_queue.h"
#include "sys/groups.h"
#include "sys/sock_diag.h"
#include "views.h"
#include "worker.h"

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

TEST(Bounds, QuestionsForTheWorkerAreDroppedPastAThousand) {
  const sys::Procfs procfs;
  const sys::LinuxScheduler scheduler;
  const sys::LinuxGroups groups;
  sys::SockDiag diag;
  observe::Resolver resolver(procfs, diag);
  Worker worker(procfs, scheduler, groups, {}, resolver, [] {});
  for (int i = 0; i < 5000; ++i) worker.ask(RosterQuestion{});
  worker.ask(ScanQuestion{});  // of another kind: nothing gives way to it
  worker.start();
  std::size_t answers = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (answers < 1024 && std::chrono::steady_clock::now() < end) answers += worker.take().size();
  worker.stop();
  answers += worker.take().size();
  EXPECT_EQ(answers, 1024U);
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
  std::vector<model::Learnt> learnt(20'001, {.provider = {10, 77}, .resource = {ResourceKind::pipe, {1}}, .lead = 1});
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
