// swapd on a message bus of the test's own, talked to by busctl, gdbus and python3-dbus, none of which is ours; as root
// and as another user.
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "session.h"

namespace swapd::test {
namespace {

// What the system bus allows with systemd/org.swapd1.conf: root has the name, and everybody may ask.
constexpr const char* config = R"(<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=DIR/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <include>SOURCE/systemd/org.swapd1.conf</include>
</busconfig>
)";

class MessageBus : public ::testing::Test {
 protected:
  static bool installed(const std::string& program) {
    return run({"/bin/sh", "-c", "command -v " + program}).status == 0;
  }
  void SetUp() override {
    for (const char* needed : {"dbus-daemon", "busctl"})
      if (!installed(needed)) GTEST_SKIP() << needed << " is not installed";
    dir_ = testing::TempDir() + "swapd-bus-XXXXXX";
    ASSERT_NE(::mkdtemp(dir_.data()), nullptr);
    ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);
    std::string text = config;
    text.replace(text.find("DIR"), 3, dir_).replace(text.find("SOURCE"), 6, SWAPD_SOURCE_DIR);
    std::ofstream(dir_ + "/bus.conf") << text;
    address_ = "unix:path=" + dir_ + "/bus";
    ::setenv("DBUS_SESSION_BUS_ADDRESS", address_.c_str(), 1);
    const std::string option = "--config-file=" + dir_ + "/bus.conf";
    daemon_ = ::fork();
    if (daemon_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execlp("dbus-daemon", "dbus-daemon", "--nofork", "--nopidfile", option.c_str(), nullptr);
      ::_exit(127);
    }
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(dir_ + "/bus"); }));
    session_.emplace(std::vector<std::string>{"--bus", "session"});
    if (!session_->failure().empty()) GTEST_SKIP() << session_->failure();
  }
  void TearDown() override {
    session_.reset();
    end_bus();
    if (!dir_.empty()) std::filesystem::remove_all(dir_);
  }
  void end_bus() {
    if (daemon_ <= 0) return;
    ::kill(daemon_, SIGKILL);
    ::waitpid(std::exchange(daemon_, -1), nullptr, 0);
  }
  // busctl's arguments after the object; as another user.
  [[nodiscard]] Output call(std::vector<std::string> arguments, uid_t as = 0) const {
    std::vector<std::string> argv;
    if (as != 0) argv = {"/usr/bin/setpriv", "--reuid", std::to_string(as), "--clear-groups"};
    argv.insert(argv.end(), {"/usr/bin/busctl", "--address=" + address_, "call", "org.swapd1", "/org/swapd1",
                             "org.swapd1.Manager"});
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return run(argv);
  }

  static constexpr uid_t nobody = 65534;
  std::string dir_, address_;
  std::optional<Session> session_;
  pid_t daemon_ = -1;
};

TEST_F(MessageBus, AnswersBusctlGdbusAndPython) {
  const pid_t pid = session_->start({}, {"/bin/sleep", "100"});
  ASSERT_TRUE(eventually([&] { return session_->json({"status"})["managed_processes"] == 1; }));
  const Output status = call({"Status"});
  EXPECT_EQ(status.status, 0) << status.err;
  EXPECT_NE(status.out.find(R"(\"managed_processes\":1)"), std::string::npos) << status.out;
  EXPECT_EQ(call({"Set", "usii", std::to_string(pid), "other", "3", "0"}).status, 0);
  EXPECT_EQ(kernel_attr(pid).nice, 3);
  if (installed("gdbus")) {
    const Output gdbus = run({"/usr/bin/gdbus", "call", "--address", address_, "--dest", "org.swapd1", "--object-path",
                              "/org/swapd1", "--method", "org.swapd1.Manager.Why", std::to_string(pid)});
    EXPECT_EQ(gdbus.status, 0) << gdbus.err;
    EXPECT_NE(gdbus.out.find("\"comm\":\"sleep\""), std::string::npos) << gdbus.out;
  } else {
    ADD_FAILURE() << "gdbus is not installed (libglib2.0-bin)";
  }
  const Output python = run({"/usr/bin/python3", "-c",
                             "import dbus, json\n"
                             "o = dbus.bus.BusConnection('" +
                                 address_ +
                                 "').get_object('org.swapd1', '/org/swapd1')\n"
                                 "m = dbus.Interface(o, 'org.swapd1.Manager')\n"
                                 "p = dbus.Interface(o, 'org.freedesktop.DBus.Properties')\n"
                                 "print(json.loads(m.Status())['version'] == p.Get('org.swapd1.Manager', 'Version'))\n"
                                 "m.Release(dbus.UInt32(" +
                                 std::to_string(pid) + "))\n"});
  EXPECT_EQ(python.out, "True\n") << python.err;
  EXPECT_EQ(session_->json({"status"})["managed_processes"], 0);
}

TEST_F(MessageBus, OthersMayAskForTheirOwn) {
  const pid_t roots = session_->start({}, {"/bin/sleep", "100"});
  const pid_t own = session_->start_plain(
      {"/usr/bin/setpriv", "--reuid", std::to_string(nobody), "--clear-groups", "/bin/sleep", "100"});
  const auto is_nobodys = [&] { return status_field(own, "Uid").find(std::to_string(nobody)) != std::string::npos; };
  ASSERT_TRUE(eventually([&] { return is_nobodys() && session_->json({"status"})["managed_processes"] == 1; }));
  EXPECT_EQ(call({"Status"}, nobody).status, 0);
  for (const std::vector<std::string>& order : {std::vector<std::string>{"Processes"},
                                                {"Why", "u", std::to_string(own)},
                                                {"Graph"},
                                                {"Policy"},
                                                {"FollowEvents", "b", "true"},
                                                {"Record", "b", "true"},
                                                {"Restart"},
                                                {"Pause"}}) {
    const Output refused = call(order, nobody);
    EXPECT_NE(refused.status, 0) << order[0];
    EXPECT_NE(refused.err.find("Access denied"), std::string::npos) << order[0] << refused.err;
  }
  const Output enrolled = call({"Enroll", "ubsb", std::to_string(own), "false", "", "true"}, nobody);
  EXPECT_EQ(enrolled.status, 0) << enrolled.err;
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"Enroll", "ubsb", std::to_string(roots), "false", "", "true"},
        {"Release", "u", std::to_string(roots)},
        {"Set", "usii", std::to_string(own), "other", "-1", "0"}})
    EXPECT_NE(call(order, nobody).status, 0) << order[0];
  EXPECT_EQ(session_->json({"status"})["managed_processes"], 2);
}

TEST_F(MessageBus, OfTwoOneHasTheName) {
  const Output second = run({SWAPD_BINARY, "--foreground", "--bus", "session", "--socket", dir_ + "/second/s",
                             "--state-dir", dir_ + "/second"});
  EXPECT_EQ(second.status, 1);
  EXPECT_NE(second.err.find("another program has the name org.swapd1"), std::string::npos) << second.err;
}

// The private socket is what is left.
TEST_F(MessageBus, ItsEndIsNotOurs) {
  end_bus();
  EXPECT_EQ(call({"Status"}).status, 1);
  EXPECT_EQ(session_->ctl({"status"}).status, 0);
}

}  // namespace
}  // namespace swapd::test
