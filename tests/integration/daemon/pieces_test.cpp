// A kernel that refuses one of swapd's programs: the piece is missing by itself, `status` names it, and donations go
// on.
#include <sys/syscall.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "session.h"

namespace swapd::test {
namespace {

struct Case {
  const char* name;
  std::string refused;  // OBJECT.PROGRAM,…
  std::string what;     // as status says it …
  std::string why;      // … and the kernel
  std::string instead;
  std::string config = {};
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.refused; }

class RefusedPiece : public ::testing::TestWithParam<Case> {
 protected:
  void begin(const std::string& observer) {
    session.emplace(std::vector<std::string>{"--observe", observer, "--refuse", GetParam().refused}, GetParam().config);
    if (!session->failure().empty()) GTEST_SKIP() << session->failure();
  }
  // Of a shell: its children, which nobody has enrolled, are a server, two hogs and a client at FIFO 50.
  [[nodiscard]] std::string client_and_server() const {
    const std::string pair = session->pair(), socket = session->path("sock");
    return "others=; for role in 'server " + socket + " " + session->path("flag") + "' 'spin 40' 'spin 40'; do " +
           pair + " $role & others=\"$others $!\"; [ -e " + session->path("server") + " ] || echo $! >" +
           session->path("server") + "; done; chrt -f 50 " + pair + " client " + socket + "; kill $others; wait";
  }
  [[nodiscard]] pid_t server() const {
    std::ifstream in(session->path("server"));
    pid_t pid = -1;
    in >> pid;
    return in ? pid : -1;
  }
  void expect_donation() {
    const pid_t shell = session->start({}, {"/bin/sh", "-c", client_and_server()});
    EXPECT_TRUE(eventually([&] { return server() > 0 && kernel_attr(server()).policy == "fifo"; }))
        << session->ctl({"why"}).out << session->ctl({"ps"}).out;
    session->raise("flag");
    EXPECT_NE(session->wait(shell), -1);
    EXPECT_TRUE(eventually([&] { return session->json({"status"})["managed_processes"] == 0; }))
        << session->ctl({"ps"}).out;
  }
  [[nodiscard]] nlohmann::json missing() const {
    const auto status = session->json({"status"});
    for (const auto& piece : status["missing"])
      if (piece["what"].get<std::string>().find(GetParam().what) != std::string::npos) return piece;
    return {};
  }
  std::optional<Session> session;
};

TEST_P(RefusedPiece, IsMissingByItself) {
  begin("bpf");
  if (!session || !session->failure().empty()) return;
  expect_donation();
  EXPECT_EQ(session->json({"status"})["observer"], "bpf");
  ASSERT_TRUE(eventually([&] { return !missing().is_null(); })) << session->json({"status"})["missing"];
  const auto piece = missing();
  // Another program of the piece is refused, of which such a kernel has no need.
  if (!GetParam().why.empty() && piece["why"].get<std::string>().starts_with("the kernel has no"))
    GTEST_SKIP() << piece["why"];
  EXPECT_NE(piece["why"].get<std::string>().find(GetParam().why), std::string::npos) << piece;
  EXPECT_NE(piece["instead"].get<std::string>().find(GetParam().instead), std::string::npos) << piece;
  const std::string shown = session->ctl({"status"}).out;
  EXPECT_NE(shown.find("missing"), std::string::npos) << shown;
  EXPECT_NE(shown.find(piece["why"].get<std::string>()), std::string::npos) << shown;
}

const char* const rules = "[match.x]\ncomm = \"swapd-t-none\"\ncgroup = \"/swapd-t-none\"\n";

INSTANTIATE_TEST_SUITE_P(
    Of, RefusedPiece,
    ::testing::Values(
        Case{"Fork", "tracer.on_fork", "births and ends", "prog 'on_fork': BPF program load failed", "connector"},
        Case{"Exec", "tracer.on_exec", "births and ends", "prog 'on_exec'", "connector"},
        Case{"Exit", "tracer.on_exit", "births and ends", "unreachable insn", "connector"},
        Case{"Cast", "tracer.bpf_rdonly_cast", "(bpf_rdonly_cast)", "", "helpers"},
        Case{"Softirq", "tracer.bpf_rdonly_cast,tracer.on_softirq", "(on_softirq)", "prog 'on_softirq'", "by it"},
        Case{"Learn", "learn.learn", "(bpf_rdonly_cast)", "prog 'learn'", "helpers"},
        Case{"Traffic", "netio.on_send", "(netio)", "prog 'on_send'", "what they ask for",
             "[class.slow.io.network]\nboth = \"1MiB\"\n"},
        Case{"LastCalls", "lastio.on_end", "(lastio)", "prog 'on_end'", "what it asked for",
             "[class.slow.io.disk]\nboth = \"100MiB\"\n"},
        Case{"Starts", "execs.on_program", "(execs.on_program)", "prog 'on_program'", "connector", rules},
        Case{"Renames", "execs.on_rename", "(execs.on_rename)", "prog 'on_rename'", "connector", rules},
        Case{"Moves", "execs.on_move", "(execs.on_move)", "prog 'on_move'", "is missed", rules}),
    [](const auto& test) { return std::string(test.param.name); });

// Without switches and wakes nothing is seen: the observer as a whole is another then.
class RefusedCore : public RefusedPiece {};

TEST_P(RefusedCore, IsObservedWithSeccomp) {
  begin("auto");
  if (!session || !session->failure().empty()) return;
  const auto status = session->json({"status"});
  EXPECT_EQ(status["observer"], "seccomp");
  EXPECT_NE(status["observer_reason"].get<std::string>().find(GetParam().why), std::string::npos) << status;
  expect_donation();
}

INSTANTIATE_TEST_SUITE_P(Of, RefusedCore,
                         ::testing::Values(Case{"Switch", "tracer.on_switch", "", "prog 'on_switch'", ""},
                                           Case{"Waking", "tracer.on_waking", "", "prog 'on_waking'", ""}),
                         [](const auto& test) { return std::string(test.param.name); });

// What is told of a program that is renamed comes from the process connector then.
TEST(RefusedRename, IsSeenByTheConnector) {
  Session session({"--observe", "bpf", "--refuse", "execs.on_rename"}, "[match.renamed]\ncomm = \"swapd-t-new\"\n");
  if (!session.failure().empty()) GTEST_SKIP() << session.failure();
  const pid_t pid = session.start_plain({"/bin/sh", "-c",
                                         "until [ -e " + session.path("flag") +
                                             " ]; do sleep 0.01; done; printf "
                                             "swapd-t-new >/proc/$$/comm; sleep 30"});
  session.raise("flag");
  EXPECT_TRUE(eventually([&] { return session.json({"status"})["managed_by_policy_total"] == 1; }))
      << session.json({"status"});
  session.kill(pid, SIGKILL);
}

}  // namespace
}  // namespace swapd::test
