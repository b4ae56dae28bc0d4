#include "thin_client/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "apps/apps.h"
#include "sys/procfs/procfs.h"

namespace swapd::bench {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock;

constexpr std::chrono::seconds server_starts{30}, server_ends{5};

struct ThinNeed {
  std::string_view player, program, package;  // player: empty: all need it
};
constexpr ThinNeed thin_needs[] = {{"", "Xvnc", "tigervnc-standalone-server"},
                                   {"", "mplayer", "mplayer"},
                                   {"", "ffmpeg", "ffmpeg"},
                                   {"vnc-browser", "chromium", "chromium"}};

// A browser's own processes, parents before their children.
void add_below(pid_t pid, std::vector<pid_t>& below) {
  for (const pid_t child : sys::Procfs().children(pid).value_or({})) {
    below.push_back(child);
    add_below(child, below);
  }
}

}  // namespace

std::optional<std::string> missing_thin_client_program(const std::vector<std::string>& players) {
  for (const ThinNeed& need : thin_needs) {
    const std::string program(need.program);
    if ((need.player.empty() || std::ranges::find(players, need.player) != players.end()) && path_of(program).empty())
      return program + " is not there: it is in the Debian package " + std::string(need.package);
  }
  return {};
}

Status make_test_film(const std::string& path, double seconds) {
  int status = 0;
  const auto made = run_for_output(
      {path_of("ffmpeg"), "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=352x240:rate=25", "-t",
       std::to_string(seconds), "-c:v", "mpeg1video", "-b:v", "1500k", "-maxrate", "1500k", "-bufsize", "300k", path},
      status, std::chrono::seconds(120));
  if (!made) return made.error();
  return status == 0 ? Status(Done{}) : Status(Error(EIO, "ffmpeg: " + wait_text(status)));
}

Result<Session> Session::open(const std::string& place, const std::vector<int>& cpus, std::optional<SchedAttr> attr) {
  Session session(place, cpus);
  std::error_code error;
  if (!std::filesystem::create_directory(place, error)) return Error(error.value(), place);
  int ends_of[2];
  if (::pipe2(ends_of, O_CLOEXEC) != 0) return errno_error("pipe");
  const Fd read_end(ends_of[0]);
  Fd write_end(ends_of[1]);
  Spawn spawn;
  // No port: rfbport below 0 is none, and X clients come by the unix socket alone.
  spawn.argv = {path_of("Xvnc"),
                "-displayfd",
                std::to_string(write_end.get()),
                "-nolisten",
                "tcp",
                "-rfbport",
                "-1",
                "-localhost",
                "-rfbunixpath",
                session.viewer_socket(),
                "-SecurityTypes",
                "None",
                "-geometry",
                "800x600",
                "-depth",
                "24"};
  spawn.inherit = {write_end.get()};
  spawn.cpus = cpus;
  spawn.attr = attr;
  spawn.output = spawn.errors = place + "/server.log";
  spawn.death_signal = SIGTERM;  // it has a socket and a lock to take away
  auto server = Child::start(spawn);
  if (!server) return server.error();
  session.server_ = std::move(*server);
  write_end.reset();
  if (Status usable = session.await_display(read_end.get()); !usable) return usable.error();
  return session;
}

// Xvnc writes its display's number and a line feed when it can be used (-displayfd, Xserver(1)).
Status Session::await_display(int pipe) {
  std::string text;
  const auto until = SteadyTime::now() + server_starts;
  while (!text.ends_with('\n')) {
    if (interrupted()) return Error(EINTR, "starting an X server");
    if (SteadyTime::now() > until) return Error(ETIMEDOUT, "starting an X server");
    pollfd wanted{pipe, POLLIN, 0};
    if (::poll(&wanted, 1, 50) <= 0) continue;
    std::array<char, 16> part{};
    const ssize_t size = ::read(pipe, part.data(), part.size());
    if (size <= 0) return Error(EPROTO, "an X server has ended without a display");
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  display_ = std::atoi(text.c_str());
  return Done{};
}

Status Session::start_program(const std::vector<std::string>& words, std::optional<SchedAttr> attr,
                              const std::string& output) {
  Spawn spawn;
  spawn.argv = {"/usr/bin/env", "DISPLAY=:" + std::to_string(display_), "HOME=" + place_, "XDG_CONFIG_HOME=" + place_,
                "XDG_CACHE_HOME=" + place_};
  spawn.argv.insert(spawn.argv.end(), words.begin(), words.end());
  spawn.cpus = cpus_;
  spawn.attr = attr;
  spawn.output = output;
  spawn.errors = place_ + "/program.log";
  auto program = Child::start(spawn);
  if (!program) return program.error();
  program_ = std::move(*program);
  return Done{};
}

Status Session::play(const std::string& film, std::optional<SchedAttr> attr, const std::string& output) {
  return start_program({path_of("mplayer"), "-vo", "x11", "-nosound", "-nolirc", "-noconsolecontrols", "-nojoystick",
                        "-noautosub", "-loop", "0", film},
                       attr, output);
}

Status Session::browse(const std::string& address, std::optional<SchedAttr> attr) {
  std::vector<std::string> words = {path_of("chromium"), "--user-data-dir=" + place_ + "/profile", "--no-first-run",
                                    "--disable-gpu", "--disable-sync", "--disable-component-update",
                                    "--disable-background-networking", "--password-store=basic", "--ozone-platform=x11",
                                    // Nothing but the loopback is asked for anything.
                                    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--window-position=0,0",
                                    "--window-size=800,600"};
  if (::geteuid() == 0) words.emplace_back("--no-sandbox");  // chromium refuses to run as root with one
  words.push_back(address);
  return start_program(words, attr, "/dev/null");
}

std::optional<std::string> Session::ended() {
  for (const auto& [child, name] : {std::pair(&server_, "X server"), std::pair(&program_, "player")}) {
    if (!child->running()) continue;
    if (const auto status = child->wait(milliseconds(0)))
      return "the " + std::string(name) + " of display " + std::to_string(display_) + " (" + wait_text(*status) + ")";
  }
  return {};
}

void Session::finish() {
  if (program_.running()) {
    std::vector<pid_t> below;
    add_below(program_.pid(), below);
    program_.kill();
    for (const pid_t pid : below) {  // with its parent's end each is the harness's child (become_harness())
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  server_.signal(SIGTERM);
}

Session::~Session() {
  finish();
  const auto until = SteadyTime::now() + server_ends;
  while (server_.running() && SteadyTime::now() < until) (void)server_.wait(milliseconds(100));
  if (!server_.running() || display_ < 0) return;
  server_.kill();
  std::error_code error;
  const std::string number = std::to_string(display_);
  std::filesystem::remove("/tmp/.X11-unix/X" + number, error);
  std::filesystem::remove("/tmp/.X" + number + "-lock", error);
}

void end_sessions(std::vector<Session>& sessions) {
  for (Session& session : sessions) session.finish();
  sessions.clear();
}

}  // namespace swapd::bench
