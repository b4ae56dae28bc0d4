// What comes and goes: short children, exec, threads, callers that are killed, crashes of swapd itself. Nothing may
// stay behind.
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "session.h"
#include "sys/process/privilege.h"

namespace swapd::test {
namespace {

class Lifecycle : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    session.emplace(std::vector<std::string>{"--observe", GetParam()});
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  // So many processes stand in the file of members.
  bool written_down(std::size_t processes) {
    return eventually([&] {
      std::ifstream file(session->path("state/members"));
      const auto left = nlohmann::json::parse(file, nullptr, false);
      return left.is_object() && left["members"].size() == processes;
    });
  }
  bool empty() {
    return eventually([&] {
      const auto s = session->json({"status"});
      return s["managed_threads"] == 0 && s["managed_processes"] == 0 && s["listeners"] == 0 &&
             s["donations_active"] == 0 && s["resources"] == 0 && s["requesters"] == 0 && s["providers"] == 0;
    });
  }
  std::optional<Session> session;
};

TEST_P(Lifecycle, a_thousand_short_children) {
  const pid_t storm = session->start({}, {session->pair(), "forks", "1000"});
  EXPECT_EQ(session->wait(storm), 0);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

// To let it grow, a thread that opens a file stands still for as long as RCU takes.
TEST_P(Lifecycle, the_table_of_open_files_has_its_size_from_the_start) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  const std::string size = status_field(session->daemon_pid(), "FDSize");
  EXPECT_GE(std::stoul(size), std::min<rlim_t>(files.rlim_max, 16384)) << size;
}

// What is locked is not given back by free() alone.
TEST_P(Lifecycle, memory_goes_back_when_nobody_is_left) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's memory is not locked, and kept after free()";
#endif
  const pid_t swapd = session->daemon_pid();
  const auto resident_kb = [&] { return std::stoul(status_field(swapd, "VmRSS")); };
  session->start({}, {"/bin/true"});  // whatever the first one costs
  ASSERT_TRUE(empty());
  const std::size_t before = resident_kb();
  const pid_t crowd = session->start(
      {"--nice", "-5"}, {"/usr/bin/setsid", "/bin/sh", "-c", "for i in $(seq 600); do sleep 100 & done; wait"});
  ASSERT_TRUE(
      eventually([&] { return session->json({"status"})["managed_processes"] == 601; }, std::chrono::seconds(30)));
  const std::size_t then = resident_kb();
  ::kill(-crowd, SIGKILL);
  ASSERT_TRUE(empty());
  const std::size_t most = before + std::min(before / 10, (then - before) / 2);
  EXPECT_TRUE(eventually([&] { return resident_kb() <= most; }))
      << before << " kB at the start, " << then << " with the crowd, " << resident_kb() << " after it";
}

TEST_P(Lifecycle, keeps_the_capabilities_it_needs_and_no_others) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer has a thread of its own, from before main()";
#endif
  const auto set_of = [](const std::string& task, const char* which) {
    return std::stoull(status_field(task, which), nullptr, 16);
  };
  const auto within = [&](pid_t pid) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      for (const char* which : {"CapEff", "CapPrm", "CapBnd"})
        EXPECT_EQ(set_of(task.path(), which), sys::needed_capabilities() & set_of("/proc/self", which))
            << task << ' ' << which;
      for (const char* which : {"CapInh", "CapAmb"})
        EXPECT_EQ(set_of(task.path(), which) & ~sys::needed_capabilities(), 0U) << task << ' ' << which;
    }
  };
  const pid_t swapd = session->daemon_pid();
  within(swapd);
  within(session->pid());
  ASSERT_TRUE(eventually([&] { return only_child(swapd) > 0; }));
  const std::string guard = "/proc/" + std::to_string(only_child(swapd));
  EXPECT_TRUE(
      eventually([&] { return set_of(guard, "CapEff") == set_of("/proc/" + std::to_string(swapd), "CapEff"); }));
  within(only_child(swapd));
  ASSERT_EQ(session->ctl({"restart"}).status, 0);
  EXPECT_TRUE(eventually([&] { return session->ctl({"status"}).status == 0; }));
  within(session->daemon_pid());
}

TEST_P(Lifecycle, threads_and_exec) {
  const pid_t threads = session->start({}, {session->pair(), "threads", "200"});
  EXPECT_EQ(session->wait(threads), 0);
  const pid_t exec = session->start({}, {"/bin/sh", "-c", "exec /bin/sh -c 'exec true'"});
  EXPECT_EQ(session->wait(exec), 0);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, an_exec_by_another_thread_is_followed) {
  const pid_t program = session->start({}, {session->pair(), "thread-exec", session->path("go"), session->pair(),
                                            "hold-threads", "3", session->path("flag")});
  const auto all_managed = [&](std::size_t at_least) {
    return eventually([&] {
      const std::size_t there = thread_count(program);
      return there >= at_least && session->json({"status"})["managed_threads"] == there;
    });
  };
  EXPECT_TRUE(all_managed(2)) << session->json({"status"});
  session->raise("go");
  EXPECT_TRUE(all_managed(4)) << session->json({"status"});
  session->raise("flag");
  EXPECT_EQ(session->wait(program), 0);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

// The thread has another number by the time that anybody can look at it.
TEST_P(Lifecycle, an_exec_by_a_thread_just_made_is_followed) {
  session->raise("go");
  constexpr int count = 20;
  std::vector<pid_t> programs;
  programs.reserve(count);
  for (int i = 0; i < count; ++i)
    programs.push_back(session->start({}, {session->pair(), "thread-exec", session->path("go"), session->pair(),
                                           "hold-threads", "1", session->path("flag")}));
  EXPECT_TRUE(eventually([&] {
    std::size_t there = 0;
    for (const pid_t program : programs) there += thread_count(program);
    return there >= 2 * programs.size() && session->json({"status"})["managed_threads"] == there;
  })) << session->json({"status"});
  session->raise("flag");
  for (const pid_t program : programs) EXPECT_EQ(session->wait(program), 0);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, every_thread_is_managed_from_its_start) {
  const pid_t program = session->start({}, {session->pair(), "hold-threads", "20", session->path("flag")});
  const auto all_managed = [&] {  // a sanitizer has a thread of its own in it
    const std::size_t there = thread_count(program);
    return there >= 21 && session->json({"status"})["managed_threads"] == there;
  };
  EXPECT_TRUE(eventually(all_managed, std::chrono::milliseconds(900)))  // sooner than a scan would find them
      << session->json({"status"});
  session->raise("flag");
  EXPECT_EQ(session->wait(program), 0);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, the_program_is_what_the_caller_started) {
  const Output status = session->ctl({"run", "--", "/bin/sh", "-c", "echo $$; exit 42"});
  EXPECT_EQ(status.status, 42);
  const pid_t killed = session->start({}, {"/bin/sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(session->wait(killed), 128 + SIGTERM);
  const pid_t same = session->start({}, {"/bin/sh", "-c", "test $$ = $PPID || echo $$ > " + session->path("pid")});
  EXPECT_EQ(session->wait(same), 0);
  std::ifstream in(session->path("pid"));
  pid_t seen = 0;
  in >> seen;
  EXPECT_EQ(seen, same);
}

TEST_P(Lifecycle, a_run_inside_a_managed_tree_uses_its_listener) {
  const Output inner =
      session->ctl({"run", "--", SWAPCTL_BINARY, "--socket", session->path("s"), "run", "--", "/bin/echo", "deep"});
  EXPECT_EQ(inner.status, 0) << inner.err;
  EXPECT_EQ(inner.out, "deep\n");
  EXPECT_TRUE(empty());
}

TEST_P(Lifecycle, a_hundred_rounds_of_kills_in_mid_donation) {
  const pid_t hog = session->start_plain({session->pair(), "spin", "60"});
  for (int round = 0; round < 100; ++round) {
    session->lower("flag");
    const std::string sock = session->path("sock" + std::to_string(round));
    const pid_t server = session->start({}, {session->pair(), "server", sock, session->path("flag")});
    const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", sock});
    ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << "round " << round;
    session->kill(round % 2 == 0 ? client : server, SIGKILL);
    if (round % 2 == 0) {
      EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; })) << "round " << round;
      session->kill(server, SIGKILL);
    } else {
      session->kill(client, SIGKILL);
    }
  }
  session->kill(hog, SIGKILL);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, after_a_crash_the_next_one_restores_and_takes_over) {
  const pid_t server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; }));
  ASSERT_TRUE(written_down(2));
  for (int round = 0; round < 3; ++round) {
    const pid_t daemon = session->daemon_pid();
    ASSERT_GT(daemon, 1);
    // A boost that has not helped for a while may rest just now.
    ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << round;
    ::kill(daemon, SIGKILL);
    ASSERT_TRUE(eventually([&] { return session->ctl({"status"}).status != 0; }));
    EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; })) << "its guard has it given back";
    session->start_again();
    ASSERT_EQ(session->failure(), "");
    const auto status = session->json({"status"});
    EXPECT_EQ(status["managed_processes"], 2) << round;
    EXPECT_EQ(status["listeners"], GetParam() == "seccomp" ? 2 : 0) << round;
    // The client still waits, so its server is favoured anew; what it had of its own is not forgotten.
    EXPECT_TRUE(eventually([&] { return session->json({"status"})["donations_active"] == 1; })) << round;
    EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; })) << round;
    // The guards before have ended, or had nothing to guard.
    EXPECT_TRUE(eventually([&] {
      return std::ranges::count_if(std::filesystem::directory_iterator(session->path("state")), [](const auto& entry) {
               return entry.path().filename().string().starts_with("guard.");
             }) == (GetParam() == "seccomp" ? 1 : 0);
    }));
  }
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  session->kill(server, SIGKILL);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, what_was_learnt_is_recalled) {
  const pid_t server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  const auto wait_of_client = [&] {
    const auto why = session->json({"why", std::to_string(client)});
    for (const auto& thread : why["threads"])
      if (thread["tid"] == client && !thread["waiting_for"].empty()) return thread["waiting_for"][0];
    return nlohmann::json();
  };
  const auto confidence = [&]() -> int {
    const auto wait = wait_of_client();
    return wait.contains("providers") && !wait["providers"].empty() ? wait["providers"][0]["confidence"].get<int>()
                                                                    : -1;
  };
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; }));
  ASSERT_TRUE(written_down(2));
  // Until the server accepts, the client waits for whoever listens.
  std::string resource;
  ASSERT_TRUE(eventually([&] {
    const auto sockets = sockets_of(server);
    resource = sockets.size() < 2 ? "" : sockets[1];
    return !resource.empty() && wait_of_client().value("resource", "") == resource && confidence() == 20;
  })) << resource
      << "\n"
      << session->ctl({"why"}).out << session->ctl({"ps"}).out;
  ::kill(session->daemon_pid(), SIGKILL);
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  std::ifstream stat("/proc/" + std::to_string(server) + "/stat");
  std::string start_time;
  for (int field = 1; field <= 22; ++field) stat >> start_time;
  std::ofstream(session->path("state/confidences"))
      << nlohmann::json{{"version", 1},
                        {"boot_id", boot_id},
                        {"learnt",
                         {{{"tid", server},
                           {"start_time", std::stoull(start_time)},
                           {"kind", "socket"},
                           {"ids", {std::stoull(resource.substr(7)), 0, 0, 0}},
                           {"lead", 5}}}}};
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_TRUE(eventually([&] { return confidence() == 25; })) << session->ctl({"why", std::to_string(client)}).out;
  session->stop(SIGTERM);
  std::ifstream left(session->path("state/confidences"));
  const auto kept = nlohmann::json::parse(left, nullptr, false);
  ASSERT_EQ(kept["learnt"].size(), 1U) << kept;
  EXPECT_EQ(kept["learnt"][0]["lead"], 5);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  session->kill(server, SIGKILL);
}

TEST_P(Lifecycle, a_killed_guard_has_a_successor_that_does_its_work) {
  const pid_t server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  const pid_t client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(eventually([&] { return kernel_attr(server).policy == "fifo"; }));
  const pid_t daemon = session->daemon_pid();
  ASSERT_GT(daemon, 1);
  for (int round = 0; round < 3; ++round) {
    pid_t guard = -1;  // proc(5): a list of children that change meanwhile need not be whole
    ASSERT_TRUE(eventually([&] { return (guard = only_child(daemon)) > 1; })) << round;
    ::kill(guard, SIGKILL);
    ASSERT_TRUE(eventually([&] { return only_child(daemon) > 1 && only_child(daemon) != guard; })) << round;
  }
  // It holds something, and status is answered by the thread that hands it all.
  ASSERT_TRUE(eventually([&] {
    return GetParam() != "seccomp" ||
           std::filesystem::exists(session->path("state/guard." + std::to_string(only_child(daemon))));
  }));
  EXPECT_EQ(session->json({"status"})["listeners"], GetParam() == "seccomp" ? 2 : 0);
  ::kill(daemon, SIGKILL);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  session->kill(server, SIGKILL);
  EXPECT_TRUE(empty()) << session->json({"status"});
}

TEST_P(Lifecycle, what_was_released_stays_released_and_what_is_new_comes_along) {
  const pid_t shell = session->start(
      {}, {"/bin/sh", "-c",
           "trap 'kill $one $two; exit' TERM; " + session->pair() + " server " + session->path("a") + " " +
               session->path("flag") + " & one=$!; while [ ! -e " + session->path("go") + " ]; do sleep 0.01; done; " +
               session->pair() + " server " + session->path("b") + " " + session->path("flag") + " & two=$!; wait"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("a")); }));
  const auto servers = [&] {
    std::vector<pid_t> found;
    const auto ps = session->json({"ps"});
    for (const auto& thread : ps["threads"])
      if (thread["comm"] == "pair") found.push_back(thread["pid"]);
    return found;
  };
  ASSERT_TRUE(eventually([&] { return servers().size() == 1; })) << session->json({"ps"});
  const pid_t released = servers()[0];
  ASSERT_EQ(session->ctl({"release", std::to_string(released)}).status, 0);
  const auto known = [&] {
    std::ifstream file(session->path("state/members"));
    return nlohmann::json::parse(file, nullptr, false).dump();
  };
  // Written down a tenth of a second late at most; with bpf it is a member no more.
  ASSERT_TRUE(eventually([&] {
    const std::string text = known();
    return text.find("\"managed\":false") != std::string::npos ||
           (text.find("\"pid\":" + std::to_string(shell)) != std::string::npos &&
            text.find("\"pid\":" + std::to_string(released)) == std::string::npos);
  })) << known();
  ::kill(session->daemon_pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return session->ctl({"status"}).status != 0; }));
  session->raise("go");  // nobody sees it being born
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(session->path("b")); }));
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_TRUE(eventually([&] { return servers().size() == 1; })) << session->json({"ps"});
  session->kill(shell, SIGTERM);
  EXPECT_NE(session->wait(shell), -1);
}

TEST_P(Lifecycle, a_damaged_list_of_members_is_set_aside) {
  ::kill(session->daemon_pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return session->ctl({"status"}).status != 0; }));
  std::ofstream(session->path("state/members")) << "{\"version\":1,";
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  EXPECT_TRUE(std::filesystem::exists(session->path("state/members.damaged")));
  EXPECT_EQ(session->json({"status"})["managed_processes"], 0);
}

// The pid in the list is another process's by now: it has another start time.
TEST_P(Lifecycle, a_member_whose_pid_is_a_strangers_is_none) {
  const pid_t member = session->start({}, {"/bin/sleep", "100"});
  const pid_t another = session->start({}, {"/bin/sleep", "100"});
  ASSERT_TRUE(written_down(2));
  ::kill(session->daemon_pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return session->ctl({"status"}).status != 0; }));
  nlohmann::json left;
  std::ifstream(session->path("state/members")) >> left;
  for (nlohmann::json& one : left["members"])
    if (one["pid"] == member) one["start_time"] = one["start_time"].get<std::uint64_t>() - 1;
  std::ofstream(session->path("state/members")) << left;
  session->start_again();
  ASSERT_EQ(session->failure(), "");
  const auto threads = session->json({"ps"})["threads"];
  ASSERT_EQ(threads.size(), 1U) << threads;
  EXPECT_EQ(threads[0]["pid"], another);
}

TEST_P(Lifecycle, embedded_ends_with_the_program) {
  const Output out = run({SWAPCTL_BINARY, "run", "--embedded", "--", "/bin/sh", "-c", "echo inside; exit 3"});
  EXPECT_EQ(out.status, 3) << out.err;
  EXPECT_EQ(out.out, "inside\n");
}

// The same in a pid namespace of swapd's and the programs' own: this program again, as its first process.
TEST(PidNamespace, ComesAndGoesAsElsewhere) {
  const Output inside = run_in_pid_namespace(
      "*short_children/bpf:*threads_and_exec/bpf:*another_thread*/bpf:*every_thread*/bpf", std::chrono::seconds(60));
  if (inside.err.find("unshare failed") != std::string::npos) GTEST_SKIP() << inside.err;
  EXPECT_EQ(inside.status, 0) << inside.out << inside.err;
  EXPECT_NE(inside.out.find("[  PASSED  ] 4 tests"), std::string::npos) << inside.out;
}

INSTANTIATE_TEST_SUITE_P(observers, Lifecycle, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
