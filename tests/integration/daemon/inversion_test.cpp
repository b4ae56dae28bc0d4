// A real inversion on one CPU: a FIFO client waits for a nice-0 server among hogs. What the daemon does, and what it
// says of it.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "session.h"

namespace swapd::test {
namespace {

class Inversion : public ::testing::TestWithParam<std::string> {
 protected:
  // `pair client` blocks at FIFO 50 for `pair server`, which computes until the flag is raised, among two hogs.
  void begin(const std::string& config = "", std::vector<std::string> importance = {"--fifo", "50"}) {
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
    for (int i = 0; i < 2; ++i) session->start_plain({session->pair(), "spin", "40"});
    client = session->start(std::move(importance), {session->pair(), "client", session->path("sock")});
    ASSERT_TRUE(eventually([&] { return blocked_in(client, SYS_read); })) << "the client never waited";
  }
  ::testing::AssertionResult boosted(const std::string& policy = "fifo", int priority = 49) {
    const bool seen = eventually([&] {
      const KernelAttr attr = kernel_attr(server);
      return attr.policy == policy && attr.rt_priority == priority;
    });
    if (seen) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "server " << server << " is " << kernel_attr(server).policy << "\n"
                                         << session->ctl({"why"}).out << session->ctl({"ps"}).out
                                         << session->ctl({"graph"}).out;
  }
  // Until the server accepts, the client waits for whoever listens; then it is favoured anew.
  ::testing::AssertionResult waits_for_the_connection() {
    std::string connection;
    const bool seen = eventually([&] {
      const auto sockets = sockets_of(server);
      connection = sockets.size() < 2 ? "" : sockets[1];  // the first listens
      const auto why = thread_in(session->json({"why", std::to_string(client)}), client);
      return !why["waiting_for"].empty() && why["waiting_for"][0]["resource"] == connection;
    });
    if (!seen) return ::testing::AssertionFailure() << "the client never waited for " << connection;
    return boosted();
  }
  nlohmann::json thread_in(const nlohmann::json& list, pid_t tid) {
    for (const auto& thread : list["threads"])
      if (thread["tid"] == tid) return thread;
    return {};
  }

  std::optional<Session> session;
  pid_t server = -1;
  pid_t client = -1;
};

TEST_P(Inversion, the_server_runs_at_the_clients_priority_less_one_until_it_delivers) {
  begin();
  ASSERT_TRUE(boosted()) << kernel_attr(server).policy;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["donations_active"] == 0; }));
  EXPECT_GE(session->json({"status"})["donations_total"], 1);
}

TEST_P(Inversion, ps_why_graph_and_status_tell_what_the_workload_knows) {
  begin();
  ASSERT_TRUE(waits_for_the_connection());
  nlohmann::json ps;
  // A long wait for a provider of which nothing is known yet has pauses in its help.
  ASSERT_TRUE(eventually([&] {
    ps = session->json({"ps"});
    return thread_in(ps, server)["effective"]["policy"] == "fifo";
  })) << ps;
  const auto waiting = thread_in(ps, client);
  EXPECT_EQ(waiting["state"], "virtual-runnable");
  EXPECT_EQ(waiting["base"]["policy"], "fifo");
  EXPECT_EQ(waiting["base"]["rt_priority"], 50);
  EXPECT_EQ(waiting["class"], "default");
  const auto serving = thread_in(ps, server);
  EXPECT_TRUE(serving["state"] == "running" || serving["state"] == "queued") << serving;
  EXPECT_EQ(serving["base"]["policy"], "other");
  EXPECT_EQ(serving["effective"]["policy"], "fifo");
  EXPECT_EQ(serving["effective"]["rt_priority"], 49);
  EXPECT_EQ(serving["donated_by"], nlohmann::json::array({client}));

  nlohmann::json why;
  EXPECT_TRUE(eventually([&] {
    why = thread_in(session->json({"why", std::to_string(client)}), client);
    return why["donation"]["effective"] == true;
  }));
  ASSERT_EQ(why["waiting_for"].size(), 1U) << why;
  EXPECT_EQ(why["waiting_for"][0]["kind"], "socket");
  EXPECT_EQ(why["waiting_for"][0]["call"], "read");
  const auto& providers = why["waiting_for"][0]["providers"];
  ASSERT_GE(providers.size(), 1U);
  EXPECT_EQ(providers[0]["tid"], server);
  EXPECT_EQ(providers[0]["favoured"], true);

  const auto graph = session->json({"graph", "--format", "json"});
  const std::string resource = why["waiting_for"][0]["resource"];
  int requests = 0;
  int provides = 0;
  for (const auto& edge : graph["edges"]) {
    requests += edge["type"] == "requests" && edge["to"] == resource ? 1 : 0;
    provides += edge["type"] == "provides" && edge["to"] == resource ? 1 : 0;
  }
  EXPECT_EQ(requests, 1) << graph;
  EXPECT_GE(provides, 1) << graph;

  nlohmann::json status;
  EXPECT_TRUE(eventually([&] {  // a launcher's helper may be on its way out
    status = session->json({"status"});
    return status["managed_threads"] == 2;
  })) << status;
  EXPECT_EQ(status["managed_processes"], 2);
  EXPECT_EQ(status["donations_active"], 1);
}

TEST_P(Inversion, killed_clients_and_servers_leave_nothing_boosted) {
  begin();
  ASSERT_TRUE(boosted());
  session->kill(client, SIGKILL);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  const pid_t again = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  session->raise("flag");  // the server's answer to the first one goes nowhere
  EXPECT_EQ(session->wait(again), 0);
  session->kill(server, SIGKILL);
  EXPECT_TRUE(eventually([&] {
    const auto s = session->json({"status"});
    return s["managed_threads"] == 0 && s["listeners"] == 0 && s["donations_active"] == 0;
  })) << session->json({"status"});
}

TEST_P(Inversion, ctrl_c_gives_everything_back_and_harms_nobody) {
  begin();
  ASSERT_TRUE(boosted());
  EXPECT_EQ(session->stop(SIGINT), 0);
  EXPECT_EQ(kernel_attr(server).policy, "other");
  EXPECT_EQ(kernel_attr(server).nice, 0);
  EXPECT_EQ(kernel_attr(client).policy, "fifo");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);  // both go on without a supervisor
}

TEST_P(Inversion, set_changes_what_is_lent_and_what_is_given_back) {
  begin();
  ASSERT_TRUE(boosted());
  EXPECT_EQ(session->ctl({"set", std::to_string(client), "--fifo", "30"}).status, 0);
  EXPECT_TRUE(boosted("fifo", 29));
  EXPECT_EQ(session->ctl({"set", std::to_string(server), "--nice", "7"}).status, 0);
  EXPECT_TRUE(boosted("fifo", 29)) << "the donation stays in force";
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other" && kernel_attr(server).nice == 7; }));
}

TEST_P(Inversion, a_foreign_change_of_the_waiting_client_is_followed) {
  begin();
  ASSERT_TRUE(boosted());
  ASSERT_EQ(run({"/usr/bin/chrt", "-f", "-p", "20", std::to_string(client)}).status, 0);
  EXPECT_TRUE(boosted("fifo", 19));
}

TEST_P(Inversion, a_release_ends_the_donation_and_the_program_runs_on) {
  begin();
  ASSERT_TRUE(boosted());
  EXPECT_EQ(session->ctl({"release", std::to_string(server)}).status, 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).policy == "other"; }));
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, while_it_is_paused_nothing_is_lent) {
  begin();
  ASSERT_TRUE(boosted());
  ASSERT_EQ(session->ctl({"pause"}).status, 0);
  EXPECT_EQ(kernel_attr(server).policy, "other") << "at once";
  EXPECT_EQ(session->json({"status"})["paused"], true);
  EXPECT_FALSE(thread_in(session->json({"why", std::to_string(client)}), client)["waiting_for"].empty())
      << "it goes on looking";
  ASSERT_EQ(session->ctl({"resume"}).status, 0);
  EXPECT_TRUE(boosted());
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, dry_run_touches_nothing) {
  session.emplace(std::vector<std::string>{"--observe", GetParam(), "--dry-run"});
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  EXPECT_TRUE(eventually([&] { return session->json({"status"})["donations_active"] == 1; }));
  EXPECT_EQ(kernel_attr(server).policy, "other");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, a_strict_policy_lends_fifo_1_to_a_nice_waiter) {
  begin("[donation]\nstrict = true\n", {"--nice", "-10"});
  EXPECT_TRUE(boosted("fifo", 1)) << kernel_attr(server).policy;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

// Else a busy loop's slice would stand between a provider's answer and the requester's next question.
TEST_P(Inversion, a_strict_requester_has_fifo_2_itself_while_it_donates) {
  begin("[donation]\nstrict = true\n", {"--nice", "-10"});
  ASSERT_TRUE(boosted("fifo", 1)) << kernel_attr(server).policy;
  EXPECT_TRUE(eventually([&] { return kernel_attr(client).policy == "fifo" && kernel_attr(client).rt_priority == 2; }))
      << kernel_attr(client).policy;
  ASSERT_EQ(session->ctl({"release", std::to_string(client)}).status, 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(client).policy == "other"; }));
  EXPECT_EQ(kernel_attr(client).nice, -10);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, a_waiter_of_a_strict_class_lends_fifo_1) {
  begin("[class.urgent]\nstrict = true\n", {"--class", "urgent", "--nice", "-10"});
  EXPECT_TRUE(boosted("fifo", 1)) << kernel_attr(server).policy;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, a_provider_of_a_class_without_real_time_is_lent_a_nice_value) {
  begin("[class.default]\nrealtime = false\n[class.urgent]\nrealtime = true\n", {"--class", "urgent", "--fifo", "50"});
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == -20; })) << kernel_attr(server).nice;
  EXPECT_EQ(kernel_attr(server).policy, "other");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == 0; }));
}

TEST_P(Inversion, a_nice_waiter_lends_its_nice) {
  begin("", {"--nice", "-10"});
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == -10; })) << kernel_attr(server).nice;
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_TRUE(eventually([&] { return kernel_attr(server).nice == 0; }));
}

// The kernel would let them wait for 950 ms, and take 50 ms at once then.
TEST_P(Inversion, ordinary_tasks_get_their_share_in_small_pieces) {
  session.emplace(std::vector<std::string>{"--observe", GetParam()}, "[donation]\nceiling = 60\n");
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(boosted());
  const Output gaps = run({"/usr/bin/taskset", "-c", "0", session->pair(), "gaps", "5"});
  ASSERT_EQ(gaps.status, 0) << gaps.err;
  EXPECT_GE(std::stoi(gaps.out), 20) << "nothing was lent";
  EXPECT_LE(std::stoi(gaps.out), 400);
  EXPECT_TRUE(boosted());
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, who_follows_is_told_what_is_found_and_which_limit_is_reached) {
  session.emplace(std::vector<std::string>{"--observe", GetParam()}, "[donation]\nceiling_share = 0.2\n");
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  server = session->start({}, {session->pair(), "server", session->path("sock"), session->path("flag")});
  const std::string told = session->path("told");
  session->start_plain(
      {"/bin/sh", "-c",
       std::string("exec ") + SWAPCTL_BINARY + " --socket " + session->path("s") + " events --json >" + told});
  // It follows once it is told of anything.
  const auto line = [&](const std::string& type) -> nlohmann::json {
    std::ifstream file(told);
    for (std::string text; std::getline(file, text);)
      if (auto event = nlohmann::json::parse(text, nullptr, false);
          !event.is_discarded() && event.value("type", "") == type)
        return event;
    return {};
  };
  ASSERT_TRUE(eventually([&] {
    session->wait(session->start({}, {"/bin/true"}));
    return !line("exited").is_null();
  }));
  client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  for (const char* type : {"inversion-found", "donation-begun"}) {
    ASSERT_TRUE(eventually([&] { return !line(type).is_null(); })) << type;
    const nlohmann::json event = line(type);
    EXPECT_EQ(event["tid"], server) << event;
    EXPECT_EQ(event["requester"], client) << event;
    EXPECT_EQ(event["requester_pid"], client) << event;
    EXPECT_EQ(event["resource"].get<std::string>().substr(0, 7), "socket:") << event;
  }
  ASSERT_TRUE(eventually([&] { return !line("limit-reached").is_null(); }));
  EXPECT_EQ(line("limit-reached")["limit"], "ceiling");
  EXPECT_EQ(line("limit-reached")["tid"], server);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(Inversion, a_chain_of_relays_is_lent_the_priority_as_a_whole) {
  session.emplace(std::vector<std::string>{"--observe", GetParam()});
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  server = session->start({}, {session->pair(), "server", session->path("s0"), session->path("flag")});
  std::vector<pid_t> relays;
  for (int i = 1; i <= 3; ++i)
    relays.push_back(session->start({}, {session->pair(), "relay", session->path("s" + std::to_string(i)),
                                         session->path("s" + std::to_string(i - 1))}));
  session->start_plain({session->pair(), "spin", "40"});
  client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("s3")});
  EXPECT_TRUE(boosted());
  for (const pid_t relay : relays)
    EXPECT_TRUE(eventually([&] { return kernel_attr(relay).rt_priority == 49; }))
        << "so that it runs at once when it wakes";
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  for (const pid_t relay : relays) EXPECT_TRUE(eventually([&] { return kernel_attr(relay).policy == "other"; }));
}

// The client waits for the listening socket first, and for the connection's other end once that has been accepted.
TEST_P(Inversion, whom_a_wait_is_for_is_looked_up_again_while_it_lasts) {
  session.emplace(std::vector<std::string>{"--observe", GetParam()});
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  const pid_t listener = session->start({}, {session->pair(), "late", session->path("sock"), session->path("flag")});
  session->start_plain({session->pair(), "spin", "40"});
  client = session->start({"--fifo", "50"}, {session->pair(), "client", session->path("sock")});
  ASSERT_TRUE(eventually([&] { return blocked_in(client, SYS_read); }));
  ASSERT_TRUE(eventually([&] {
    const std::string state = thread_in(session->json({"ps"}), client).value("state", "");
    return state == "blocked" || state == "virtual-runnable";  // while the listener runs
  }));
  const auto awaited = [&] {
    const auto waits = thread_in(session->json({"why", std::to_string(client)}), client)["waiting_for"];
    return waits.empty() ? std::string() : waits[0]["resource"].get<std::string>();
  };
  std::string listening;
  ASSERT_TRUE(eventually([&] { return !(listening = awaited()).empty(); }));
  session->raise("sock.go");
  ASSERT_TRUE(eventually([&] { return (server = only_child(listener)) > 0; }));
  EXPECT_TRUE(boosted());
  EXPECT_TRUE(eventually([&] { return awaited() != listening; }));
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
  EXPECT_EQ(session->wait(listener), 0);
}

// Started by root, and another user's since: whose it is now counts.
TEST_P(Inversion, another_users_thread_is_lent_nothing_unless_the_policy_says_so) {
  struct Case {
    const char* config;
    std::vector<std::string> servers;  // options
    bool allowed;
  };
  const std::vector<Case> cases = {
      {"", {}, false},
      {"[donation]\ncross_user = true\n", {}, true},
      {"[class.trusted]\ncross_user = true\nopen = false\n", {"--class", "trusted"}, true},
      {"[class.trusted]\ncross_user = true\nopen = false\n", {}, false},
  };
  for (const auto& [config, servers, allowed] : cases) {
    session.emplace(std::vector<std::string>{"--observe", GetParam()}, config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
    server = session->start(servers, {session->pair(), "server", session->path("sock"), session->path("flag")});
    ASSERT_TRUE(eventually([&] { return ::access(session->path("sock").c_str(), F_OK) == 0; }));
    ASSERT_EQ(::chmod(session->dir().c_str(), 0711), 0);
    ASSERT_EQ(::chmod(session->path("sock").c_str(), 0777), 0);
    std::filesystem::copy_file(session->pair(), session->path("pair"));  // the build may be where others cannot look
    client = session->start({"--fifo", "50"}, {"setpriv", "--reuid", "65534", "--clear-groups", "--",
                                               session->path("pair"), "client", session->path("sock")});
    // The launcher reads, too, before it is managed and becomes the client.
    ASSERT_TRUE(eventually([&] {
      return blocked_in(client, SYS_read) && session->ctl({"why", std::to_string(client)}).status == 0;
    }));
    if (allowed) {
      EXPECT_TRUE(boosted());
    } else {
      const auto reason = [&] {
        return thread_in(session->json({"why", std::to_string(client)}), client)["donation"].value("reason", "");
      };
      EXPECT_TRUE(eventually([&] { return reason() == "policy"; })) << session->ctl({"why"}).out;
      EXPECT_EQ(kernel_attr(server).policy, "other");
    }
    session->raise("flag");
    EXPECT_EQ(session->wait(client), 0);
  }
}

class SeccompOnly : public Inversion {};

TEST_P(SeccompOnly, the_papers_history_of_calls_does_the_same) {
  begin("[observe]\nhistory = \"calls\"\n");
  EXPECT_TRUE(boosted());
  EXPECT_GT(session->json({"status"})["notifications_total"], 0);
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

TEST_P(SeccompOnly, one_that_slept_in_its_notifications_is_seen_to_sleep_in_earnest) {
  session.emplace(std::vector<std::string>{"--observe", GetParam()}, "[observe]\nhistory = \"calls\"\n");
  if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  session->start({}, {"sleep", "40"});
  const std::string writes = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done >/dev/null; exec sleep 40";
  client = session->start({"--fifo", "50"}, {"sh", "-c", writes});
  EXPECT_TRUE(eventually([&] { return thread_in(session->json({"ps"}), client)["state"] == "blocked"; }))
      << session->ctl({"ps"}).out;
  EXPECT_GE(session->json({"status"})["notifications_total"], 300);
}

TEST_P(SeccompOnly, polling_without_perf_does_the_same) {
  begin("[observe]\nwatch = \"poll\"\n");
  EXPECT_TRUE(boosted());
  EXPECT_EQ(session->json({"status"})["watch_method"], "poll");
  session->raise("flag");
  EXPECT_EQ(session->wait(client), 0);
}

INSTANTIATE_TEST_SUITE_P(observers, Inversion, ::testing::Values("seccomp", "bpf"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(observers, SeccompOnly, ::testing::Values("seccomp"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace swapd::test
