// swapd on a message bus of the test's own, talked to by busctl, gdbus and python3-dbus, none of which is ours; as root
// and as another user.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

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
  <policy user="root">
    <allow own="org.freedesktop.PolicyKit1"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
  </policy>
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
  <policy user="nobody">
    <allow own="org.freedesktop.PolicyKit1"/>
  </policy>
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
    return standard_call("/org/swapd1", "org.swapd1.Manager", std::move(arguments), as);
  }
  [[nodiscard]] Output standard_call(const std::string& path, const std::string& interface,
                                     std::vector<std::string> arguments, uid_t as = 0) const {
    std::vector<std::string> argv;
    if (as != 0) argv = {"/usr/bin/setpriv", "--reuid", std::to_string(as), "--clear-groups"};
    argv.insert(argv.end(), {"/usr/bin/busctl", "--address=" + address_, "call", "org.swapd1", path, interface});
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

// A desktop tool's way: it subscribes, asks for what there is, and is told of what changes.
TEST_F(MessageBus, PythonSeesObjectsComeAndGo) {
  const pid_t pid = session_->start({}, {"/bin/sleep", "100"});
  ASSERT_TRUE(eventually([&] { return session_->json({"status"})["managed_processes"] == 1; }));
  const std::string path = "/org/swapd1/process/" + std::to_string(pid);
  const Output tree = run({"/usr/bin/busctl", "--address=" + address_, "--list", "tree", "org.swapd1"});
  EXPECT_NE(tree.out.find(path), std::string::npos) << tree.out << tree.err;
  EXPECT_NE(tree.out.find("/org/swapd1/class/default"), std::string::npos) << tree.out;
  const Output python = run({"/usr/bin/python3", "-c",
                             R"(
import dbus, os, signal, sys
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib
address, pid = sys.argv[1], int(sys.argv[2])
path = f'/org/swapd1/process/{pid}'
bus = dbus.bus.BusConnection(address, mainloop=DBusGMainLoop())
loop, told = GLib.MainLoop(), []
def tell(*arguments, member, path):
    told.append((member, path, arguments))
    names = [name for name, _, _ in told]
    if 'Released' in names and 'InterfacesRemoved' in names: loop.quit()
bus.add_signal_receiver(tell, bus_name='org.swapd1', member_keyword='member', path_keyword='path')
o = bus.get_object('org.swapd1', '/org/swapd1')
m = dbus.Interface(o, 'org.swapd1.Manager')
m.Subscribe()
objects = dbus.Interface(o, 'org.freedesktop.DBus.ObjectManager').GetManagedObjects()
print(objects[path]['org.swapd1.Process']['Comm'], objects[path]['org.swapd1.Process']['Class'])
pidfd = os.pidfd_open(pid)
dbus.Interface(bus.get_object('org.swapd1', path), 'org.swapd1.Process').Release()
m.EnrollPidfd(dbus.types.UnixFd(pidfd), False, '', True)
signal.pidfd_send_signal(pidfd, signal.SIGKILL)
GLib.timeout_add_seconds(20, loop.quit)
loop.run()
print([str(member) for member, _, _ in told if member in ('Enrolled', 'Released')])
print([str(a[0]) for member, _, a in told if member == 'InterfacesRemoved'] == [path])
)",
                             address_, std::to_string(pid)});
  EXPECT_EQ(python.out.substr(0, python.out.find('\n')), "sleep default") << python.err;
  EXPECT_NE(python.out.find("['Released', 'Enrolled', 'Released']\nTrue\n"), std::string::npos)
      << python.out << python.err;
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
  EXPECT_NE(standard_call("/org/swapd1", "org.freedesktop.DBus.ObjectManager", {"GetManagedObjects"}, nobody).status,
            0);
  for (const char* list : {"/org/swapd1/process", "/org/swapd1/class", "/org/swapd1/resource"}) {
    const Output children = standard_call(list, "org.freedesktop.DBus.Introspectable", {"Introspect"}, nobody);
    EXPECT_NE(children.err.find("Access denied"), std::string::npos) << list << children.out << children.err;
  }
  const std::string path = "/org/swapd1/process/" + std::to_string(roots);
  const Output release = standard_call(path, "org.swapd1.Process", {"Release"}, nobody);
  EXPECT_NE(release.err.find("Access denied"), std::string::npos) << release.err;
  const std::string unmanaged = "/org/swapd1/process/" + std::to_string(::getpid());
  EXPECT_EQ(standard_call(unmanaged, "org.swapd1.Process", {"Nonsense"}, nobody).err,
            standard_call(path, "org.swapd1.Process", {"Nonsense"}, nobody).err)
      << "who is managed is not told";
  const Output property =
      standard_call(path, "org.freedesktop.DBus.Properties", {"GetAll", "s", "org.swapd1.Process"}, nobody);
  EXPECT_NE(property.err.find("Access denied"), std::string::npos) << property.out << property.err;
  const Output enrolled = call({"Enroll", "ubsb", std::to_string(own), "false", "", "true"}, nobody);
  EXPECT_EQ(enrolled.status, 0) << enrolled.err;
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"Enroll", "ubsb", std::to_string(roots), "false", "", "true"},
        {"Release", "u", std::to_string(roots)},
        {"Set", "usii", std::to_string(own), "other", "-1", "0"}})
    EXPECT_NE(call(order, nobody).status, 0) << order[0];
  EXPECT_EQ(session_->json({"status"})["managed_processes"], 2);
}

// What polkit is on the test's bus: grants what stands in the file, a line an action; "challenge ACTION" wants a
// password for it, and "silent" no answer at all.
class Authority {
 public:
  Authority(const std::string& address, std::string granted, uid_t uid = 0)
      : granted_(std::move(granted)), pid_(::fork()) {
    if (pid_ != 0) return;
    if (uid != 0 && ::setresuid(uid, uid, uid) != 0) ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sd_bus* bus = nullptr;
    if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address.c_str()) < 0 || sd_bus_set_bus_client(bus, 1) < 0 ||
        sd_bus_start(bus) < 0 ||
        sd_bus_add_object_vtable(bus, nullptr, "/org/freedesktop/PolicyKit1/Authority",
                                 "org.freedesktop.PolicyKit1.Authority", vtable, this) < 0 ||
        sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0) < 0)
      ::_exit(1);
    for (;;)
      if (const int r = sd_bus_process(bus, nullptr); r < 0 || (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0)) ::_exit(1);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  static int check(sd_bus_message* call, void* data, sd_bus_error*) {
    const char* action = nullptr;
    if (sd_bus_message_skip(call, "(sa{sv})") < 0 || sd_bus_message_read(call, "s", &action) < 0) return -EINVAL;
    std::ifstream file(static_cast<Authority*>(data)->granted_);
    bool granted = false;
    bool challenge = false;
    bool silent = false;
    for (std::string line; std::getline(file, line);) {
      granted = granted || line == action;
      silent = silent || line == "silent";
      challenge = challenge || line == std::string("challenge ") + action;
    }
    if (silent) return 1;
    return sd_bus_reply_method_return(call, "(bba{ss})", granted ? 1 : 0, challenge ? 1 : 0, 0);
  }
  static constexpr sd_bus_vtable vtable[] = {
      SD_BUS_VTABLE_START(0),
      SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check, SD_BUS_VTABLE_UNPRIVILEGED),
      SD_BUS_VTABLE_END,
  };
  std::string granted_;
  pid_t pid_;
};

TEST_F(MessageBus, PolkitMayGrantWhatIsRoots) {
  const std::string granted = dir_ + "/granted";
  const auto grant = [&](const std::string& lines) { std::ofstream(granted) << lines; };
  grant("");
  const Authority authority(address_, granted);
  ASSERT_TRUE(eventually([&] {
    return run({"/usr/bin/busctl", "--address=" + address_, "status", "org.freedesktop.PolicyKit1"}).status == 0;
  }));
  const pid_t roots = session_->start({}, {"/bin/sleep", "100"});
  const pid_t own = session_->start_plain(
      {"/usr/bin/setpriv", "--reuid", std::to_string(nobody), "--clear-groups", "/bin/sleep", "100"});
  ASSERT_TRUE(eventually([&] { return status_field(own, "Uid").find(std::to_string(nobody)) != std::string::npos; }));
  const std::vector<std::string> take = {"Enroll", "ubsb", std::to_string(own), "false", "", "true"};
  EXPECT_NE(call(take, nobody).status, 0) << "where there is a polkit, also one's own programs are its affair";
  EXPECT_NE(call({"Processes"}, nobody).status, 0);

  grant("org.swapd1.manage-own\norg.swapd1.view\n");
  EXPECT_EQ(call(take, nobody).status, 0);
  EXPECT_EQ(call({"Processes"}, nobody).status, 0);
  const Output objects =
      standard_call("/org/swapd1", "org.freedesktop.DBus.ObjectManager", {"GetManagedObjects"}, nobody);
  EXPECT_EQ(objects.status, 0) << objects.err;
  EXPECT_EQ(call({"Set", "usii", std::to_string(own), "other", "5", "0"}, nobody).status, 0);
  EXPECT_NE(call({"Set", "usii", std::to_string(own), "other", "4", "0"}, nobody).status, 0) << "that raises it";
  EXPECT_NE(call({"Set", "usii", std::to_string(roots), "other", "5", "0"}, nobody).status, 0);
  EXPECT_NE(call({"Pause"}, nobody).status, 0);

  // One call may need two of them.
  grant("org.swapd1.manage-others\norg.swapd1.raise-priority\nchallenge org.swapd1.administer\n");
  EXPECT_EQ(call({"Set", "usii", std::to_string(roots), "fifo", "0", "3"}, nobody).status, 0);
  EXPECT_EQ(kernel_attr(roots).rt_priority, 3);
  const Output challenged = call({"Pause"}, nobody);
  EXPECT_NE(challenged.status, 0);
  EXPECT_NE(challenged.err.find("polkit would ask for a password (org.swapd1.administer)"), std::string::npos)
      << challenged.err;
  EXPECT_EQ(session_->json({"status"})["paused"], false);
  const std::vector<std::string> limit = {"CreateClass", "sa(sss)", "slow", "1", "disk", "both", "1MiB"};
  EXPECT_NE(call(limit, nobody).status, 0);
  grant("org.swapd1.set-limits\n");
  EXPECT_EQ(call(limit, nobody).status, 0);
  EXPECT_NE(call({"Pause"}, nobody).status, 0) << "that is another right";
  grant("org.swapd1.administer\n");
  EXPECT_EQ(call({"Pause"}, nobody).status, 0);
  EXPECT_EQ(session_->json({"status"})["paused"], true);
}

// Asks for a pause many times at once, as another user, without waiting for an answer before the next: however slow the
// machine, all are asked before polkit's time is over.
class Askers {
 public:
  static constexpr int count = 20;
  Askers(const std::string& address, uid_t uid) {
    if (::pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) return;
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sd_bus* bus = nullptr;
    if (::setresuid(uid, uid, uid) != 0 || sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, address.c_str()) < 0 ||
        sd_bus_set_bus_client(bus, 1) < 0 || sd_bus_start(bus) < 0)
      ::_exit(1);
    for (int i = 0; i < count; ++i)
      if (sd_bus_call_method_async(bus, nullptr, "org.swapd1", "/org/swapd1", "org.swapd1.Manager", "Pause", answer,
                                   this, "") < 0)
        ::_exit(1);
    for (;;)
      if (const int r = sd_bus_process(bus, nullptr); r < 0 || (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0)) ::_exit(1);
  }
  Askers(const Askers&) = delete;
  Askers& operator=(const Askers&) = delete;
  ~Askers() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const int end : pipe_) ::close(end);
  }
  // One letter an answer so far: 'm' too many questions, 'r' refused otherwise, 'g' granted.
  const std::string& answers() {
    char letter = 0;
    while (::read(pipe_[0], &letter, 1) == 1) answers_ += letter;
    return answers_;
  }

 private:
  static int answer(sd_bus_message* reply, void* data, sd_bus_error*) {
    const sd_bus_error* error = sd_bus_message_get_error(reply);
    const bool many = error != nullptr && error->message != nullptr &&
                      std::string_view(error->message).find("too many questions before polkit") != std::string::npos;
    const char letter = error == nullptr ? 'g' : many ? 'm' : 'r';
    return ::write(static_cast<Askers*>(data)->pipe_[1], &letter, 1) == 1 ? 0 : -EIO;
  }
  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
  std::string answers_;
};

// Five seconds, and it is a refusal; whoever else asks is served meanwhile.
TEST_F(MessageBus, APolkitThatDoesNotAnswerHoldsUpNobodyElse) {
  const std::string granted = dir_ + "/granted";
  std::ofstream(granted) << "silent\n";
  const Authority authority(address_, granted);
  ASSERT_TRUE(eventually([&] {
    return run({"/usr/bin/busctl", "--address=" + address_, "status", "org.freedesktop.PolicyKit1"}).status == 0;
  }));
  Askers askers(address_, nobody);
  // Four are too many for one user, and are told so; root is served, and sixteen still wait.
  EXPECT_TRUE(eventually([&] { return askers.answers().size() >= Askers::count - 16; }));
  EXPECT_EQ(session_->ctl({"status"}).status, 0);
  EXPECT_EQ(call({"Status"}).status, 0);
  EXPECT_EQ(askers.answers(), "mmmm");
  EXPECT_TRUE(eventually([&] { return askers.answers().size() == Askers::count; }));
  EXPECT_EQ(askers.answers(), "mmmm" + std::string(16, 'r'));
  EXPECT_EQ(session_->json({"status"})["paused"], false);
}

// On a bus whose policy keeps polkit's name for nobody.
TEST_F(MessageBus, WhoAnswersAsPolkitAndIsNotRootIsNotBelieved) {
  const std::string granted = dir_ + "/granted";
  std::ofstream(granted) << "org.swapd1.administer\n";
  std::filesystem::permissions(dir_, std::filesystem::perms::others_exec, std::filesystem::perm_options::add);
  const Authority authority(address_, granted, nobody);
  ASSERT_TRUE(eventually([&] {
    return run({"/usr/bin/busctl", "--address=" + address_, "status", "org.freedesktop.PolicyKit1"}).status == 0;
  }));
  EXPECT_NE(call({"Pause"}, nobody).status, 0);
  EXPECT_EQ(session_->json({"status"})["paused"], false);
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
