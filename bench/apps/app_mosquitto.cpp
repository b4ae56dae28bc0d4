// mosquitto, an MQTT broker, and a publisher that waits for the broker's answer to each message (QoS 1) before it sends
// the next one.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>

#include "apps/apps.h"
#include "base/fd.h"
#include "harness/process.h"

namespace swapd::bench {
namespace {

constexpr double messages_guessed = 5'000;  // a second

class Mosquitto final : public App {
 public:
  Status prepare(const std::string& dir) override {
    config_ = dir + "/mosquitto.conf";
    socket_ = dir + "/mqtt";
    std::ofstream config(config_);
    config << "listener 0 " << socket_ << "\nallow_anonymous true\npersistence false\nlog_type none\n"
           << "sys_interval 1\n";                   // seconds between two counts, see progress()
    if (::geteuid() == 0) config << "user root\n";  // else it could not remove its socket
    return config.flush() ? Status(Done{}) : Status(errno_error(config_));
  }
  std::vector<std::string> server() const override { return {path_of("mosquitto"), "-c", config_}; }
  bool answers() const override {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  // mosquitto_pub says nothing of its rate, so the shell takes the time of a known number of messages.
  std::vector<std::string> load(double seconds, double guess) const override {
    const std::string count = std::to_string(messages(seconds, guess));
    std::string command = "exec 2>&1; TIMEFORMAT='in %R s'; echo sent " + count + "; time";
    for (const std::string& word : publisher(count)) command += " " + word;
    return {"/bin/bash", "-c", command};
  }
  std::vector<std::string> live_load(double seconds, double guess, const std::string& /*log*/) override {
    return publisher(std::to_string(messages(seconds, guess)));
  }
  // The broker tells all subscribers once a second what it has received. The first answer to a new one is an old count.
  Result<Progress> progress() override {
    int status = 0;
    Spawn spawn;
    spawn.argv = {
        path_of("mosquitto_sub"), "--unix", socket_, "-t", "$SYS/broker/publish/messages/received", "-C", "2"};
    spawn.attr = SchedAttr{.nice = -20};  // as the harness: the time of the count is its arrival
    const auto output = run_for_output(std::move(spawn), status, std::chrono::seconds(20));
    if (!output) return output.error();
    if (status != 0) return Error(EPROTO, "mosquitto_sub ended with " + wait_text(status));
    std::istringstream lines(*output);
    double old = 0, count = 0;
    if (!(lines >> old >> count)) return Error(EPROTO, "no count from the broker");
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return Progress{.at_s = now, .requests = count};
  }
  Result<double> throughput(const std::string& output) const override {
    const auto sent = number_behind(output, "sent "), took = number_behind(output, "in ");
    if (!sent) return sent.error();
    if (!took) return took.error();
    return *sent / *took;
  }

 private:
  static std::int64_t messages(double seconds, double guess) {
    return static_cast<std::int64_t>(std::max(100.0, std::round(seconds * (guess > 0 ? guess : messages_guessed))));
  }
  [[nodiscard]] std::vector<std::string> publisher(const std::string& count) const {
    return {path_of("mosquitto_pub"), "--unix", socket_, "-t", "bench", "-q", "1", "-m", "hello", "--repeat", count,
            "--repeat-delay",         "0"};
  }
  std::string config_, socket_;
};

}  // namespace

std::unique_ptr<App> make_mosquitto() { return std::make_unique<Mosquitto>(); }

}  // namespace swapd::bench
