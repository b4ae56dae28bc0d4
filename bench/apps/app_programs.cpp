// redis and nginx, and where programs are found.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/apps.h"
#include "base/fd.h"

namespace swapd::bench {

namespace {

struct Need {
  std::string_view app, program, package;
};
constexpr Need needs[] = {{"redis", "redis-server", "redis-server"},
                          {"redis", "redis-benchmark", "redis-tools"},
                          {"nginx", "nginx", "nginx-light"},
                          {"nginx", "wrk", "wrk"},
                          {"pgbench-select", "initdb", "postgresql"},
                          {"pgbench-select", "postgres", "postgresql"},
                          {"pgbench-select", "pgbench", "postgresql"},
                          {"pgbench-tpcb", "initdb", "postgresql"},
                          {"pgbench-tpcb", "postgres", "postgresql"},
                          {"pgbench-tpcb", "pgbench", "postgresql"},
                          {"pgbench-connect", "initdb", "postgresql"},
                          {"pgbench-connect", "postgres", "postgresql"},
                          {"pgbench-connect", "pgbench", "postgresql"},
                          {"nginx-short", "nginx", "nginx-light"},
                          {"nginx-short", "ab", "apache2-utils"},
                          {"ffmpeg", "ffmpeg", "ffmpeg"},
                          {"build", "make", "make"},
                          {"build", "gcc", "gcc"},
                          {"build", "bc", "bc"},
                          {"build", "bison", "bison"},
                          {"build", "flex", "flex"}};

// Debian keeps PostgreSQL's own programs out of PATH; what has their names there is a script that starts them.
std::string newest_postgres(const std::string& program) {
  std::string newest;
  int version = -1;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    const auto path = entry.path() / "bin" / program;
    const int here = std::atoi(entry.path().filename().c_str());
    if (here > version && ::access(path.c_str(), X_OK) == 0) {
      version = here;
      newest = path;
    }
  }
  return newest;
}

template <typename Address>
Fd connected(const Address& address) {
  Fd fd(::socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return fd;
}

// The number behind `label`, and so many others, in what the server says before it closes the connection.
template <typename Address>
Result<App::Progress> ask_progress(const Address& address, std::string_view question, const std::string& label,
                                   int others = 0) {
  const Fd fd = connected(address);
  if (!fd) return errno_error("connecting to the server");
  const timeval at_most{.tv_sec = 5, .tv_usec = 0};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &at_most, sizeof at_most) != 0)
    return errno_error("a limit of time for the server's answer");
  if (::send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(question.size()))
    return errno_error("asking the server");
  std::string answer;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t got = ::recv(fd.get(), part.data(), part.size(), 0);
    if (got < 0) return errno_error("the server's answer");
    if (got == 0) break;
    answer.append(part.data(), static_cast<std::size_t>(got));
  }
  const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const auto at = answer.find(label);
  if (at == std::string::npos) return Error(EPROTO, "no " + label + " in the server's answer");
  std::istringstream rest(answer.substr(at + label.size()));
  double number = 0;
  for (int i = 0; i <= others; ++i) rest >> number;
  if (!rest) return Error(EPROTO, "no number behind " + label);
  return App::Progress{.at_s = now, .requests = number};
}

class Redis final : public App {
 public:
  Status prepare(const std::string& dir) override {
    socket_ = dir + "/redis";
    dir_ = dir;
    return Done{};
  }
  std::vector<std::string> server() const override {
    return {path_of("redis-server"), "--port", "0",           "--unixsocket", socket_, "--save", "",
            "--appendonly",          "no",     "--daemonize", "no",           "--dir", dir_};
  }
  bool answers() const override { return bool(connected(address())); }
  Result<Progress> progress() override {
    return ask_progress(address(), "INFO stats\r\nQUIT\r\n", "total_commands_processed:");
  }
  std::vector<std::string> load(double seconds, double guess) const override {
    const double requests = std::max(1000.0, std::round(seconds * (guess > 0 ? guess : 50'000)));
    return {path_of("redis-benchmark"),
            "-s",
            socket_,
            "-t",
            "get",
            "-c",
            "50",
            "-n",
            std::to_string(static_cast<std::int64_t>(requests)),
            "--csv"};
  }
  Result<double> throughput(const std::string& output) const override { return number_behind(output, "\"GET\",\""); }

 private:
  [[nodiscard]] sockaddr_un address() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  std::string socket_, dir_;
};

// short_lived: a connection for each request.
class Nginx final : public App {
 public:
  explicit Nginx(bool short_lived) : short_lived_(short_lived) {}
  Status prepare(const std::string& dir) override {
    config_ = dir + "/nginx.conf";
    std::filesystem::create_directory(dir + "/www");
    std::ofstream(dir + "/www/index.html") << std::string(612, 'x');
    const auto port = free_port();
    if (!port) return port.error();
    port_ = *port;
    std::ofstream config(config_);
    config << "daemon off;\nworker_processes 1;\npid " << dir << "/nginx.pid;\nerror_log stderr;\n";
    if (::geteuid() == 0) config << "user nobody nogroup;\n";
    config << "events { worker_connections 512; }\nhttp {\n  access_log off;\n";
    for (const char* kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
      config << "  " << kind << "_temp_path " << dir << "/" << kind << ";\n";
    }
    config << "  server { listen 127.0.0.1:" << port_ << "; root " << dir
           << "/www; location = /status { stub_status; } }\n}\n";
    return config.flush() ? Status(Done{}) : Status(errno_error(config_));
  }
  std::vector<std::string> server() const override { return {path_of("nginx"), "-c", config_, "-e", "stderr"}; }
  bool answers() const override { return bool(connected(address(port_))); }
  // Third of three numbers (ngx_http_stub_status_module): connections accepted, handled, and requests.
  Result<Progress> progress() override {
    return ask_progress(address(port_), "GET /status HTTP/1.0\r\n\r\n", "requests\n", 2);
  }
  std::vector<std::string> load(double seconds, double guess) const override {
    const std::string url = "http://127.0.0.1:" + std::to_string(port_) + "/index.html";
    const std::string whole_s = std::to_string(std::max(1L, std::lround(seconds)));
    if (!short_lived_) return {path_of("wrk"), "-t2", "-c32", "-d" + whole_s + "s", url};
    // It ends with whichever limit it reaches first.
    const double requests = std::max(1000.0, std::round(seconds * (guess > 0 ? guess : 50'000)));
    return {
        path_of("ab"), "-q", "-c", "8", "-t", whole_s, "-n", std::to_string(static_cast<std::int64_t>(requests)), url};
  }
  Result<double> throughput(const std::string& output) const override {
    if (output.find("Non-2xx") != std::string::npos) return Error(EPROTO, "nginx answers with errors");
    return number_behind(output, short_lived_ ? "Requests per second:" : "Requests/sec:");
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static Result<int> free_port() {
    const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any = address(0);
    socklen_t size = sizeof any;
    if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), size) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&any), &size) != 0)
      return errno_error("looking for a free port");
    return ntohs(any.sin_port);
  }
  bool short_lived_;
  std::string config_;
  int port_ = 0;
};

}  // namespace

int App::stop_signal() const { return SIGTERM; }

std::string path_of(const std::string& program) {
  if (std::string postgres = newest_postgres(program); !postgres.empty()) return postgres;
  const char* path = std::getenv("PATH");
  std::istringstream places(std::string(path != nullptr ? path : "/usr/bin") + ":/usr/sbin");
  for (std::string place; std::getline(places, place, ':');) {
    place.append("/").append(program);
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return {};
}

std::optional<std::string> missing_program(const std::vector<std::string>& apps) {
  for (const Need& need : needs) {
    const std::string program(need.program);
    if (std::ranges::find(apps, need.app) != apps.end() && path_of(program).empty())
      return program + " is not there: it is in the Debian package " + std::string(need.package);
  }
  if (std::ranges::find(apps, "build") != apps.end() && kernel_source().empty())
    return "no /usr/src/linux-source-*.tar.xz is there: it is in the Debian package linux-source-6.1";
  return {};
}

Result<double> number_behind(const std::string& output, const std::string& label) {
  const auto at = output.find(label);
  if (at == std::string::npos) return Error(EPROTO, "no " + label + " in the load generator's output");
  std::istringstream rest(output.substr(at + label.size()));
  double number = 0;
  if (!(rest >> number) || number <= 0) return Error(EPROTO, "no number behind " + label);
  return number;
}

std::unique_ptr<App> make_redis() { return std::make_unique<Redis>(); }
std::unique_ptr<App> make_nginx(bool short_lived) { return std::make_unique<Nginx>(short_lived); }

const std::vector<std::string_view>& app_names() {
  static const std::vector<std::string_view> names = {"redis", "pgbench-select",  "pgbench-tpcb",
                                                      "nginx", "pgbench-connect", "nginx-short"};
  return names;
}

std::unique_ptr<App> make_app(std::string_view name) {
  if (name == "redis") return make_redis();
  if (name == "nginx" || name == "nginx-short") return make_nginx(name == "nginx-short");
  return is_batch(name) ? make_batch(name) : make_postgres(name);
}

}  // namespace swapd::bench
