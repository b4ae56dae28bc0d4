// Programs that do a piece of work and end, with no server: a part of a Linux kernel's build, and an encoding. Each run
// does the same piece, and is timed whole.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "apps/apps.h"
#include "harness/process.h"

namespace swapd::bench {
namespace {

// Prints the microseconds that "$@" has taken, without what starting swapctl takes.
constexpr const char* timed = R"sh(
begin=${EPOCHREALTIME//[!0-9]/}
"$@" >/dev/null || exit
echo "took $((${EPOCHREALTIME//[!0-9]/} - begin))"
)sh";

std::vector<std::string> timed_command(std::string before, const std::vector<std::string>& words) {
  std::vector<std::string> command = {"/bin/bash", "-c", std::move(before) + timed, "timed"};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

class Batch : public App {
 public:
  // Its place is kept by a process that sleeps.
  std::vector<std::string> server() const override { return {"/bin/sleep", "infinity"}; }
  bool answers() const override { return true; }
  Result<Progress> progress() override { return Error(EINVAL, "a piece of work is measured whole"); }

 protected:
  // Seconds that the work took.
  static Result<double> taken_s(const std::string& output) {
    const auto us = number_behind(output, "took ");
    return us ? Result<double>(*us / 1e6) : us;
  }
};

// Throughput: frames a second.
class Ffmpeg final : public Batch {
 public:
  Status prepare(const std::string& /*dir*/) override { return Done{}; }
  std::vector<std::string> load(double seconds, double guess) const override {
    frames_ = std::max(50.0, std::round(seconds * guess));
    return timed_command(
        "", {path_of("ffmpeg"), "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30",
             "-frames:v", std::to_string(std::lround(frames_)), "-c:v", "libx264", "-f", "null", "-"});
  }
  Result<double> throughput(const std::string& output) const override {
    const auto took = taken_s(output);
    return took ? Result<double>(frames_ / *took) : took;
  }

 private:
  mutable double frames_ = 0;  // of the last load
};

// make -j3 of a directory of Debian's kernel source, in its smallest configuration: eighty short compilations.
// Throughput: builds a second; how long one takes is not chosen.
class KernelBuild final : public Batch {
 public:
  Status prepare(const std::string& dir) override {
    tree_ = dir + "/linux";
    const std::string unpack = "mkdir '" + tree_ + "' && tar -C '" + tree_ + "' --strip-components=1 -xf '" +
                               kernel_source() + "' && make -s -C '" + tree_ + "' tinyconfig prepare";
    int status = 0;
    const std::vector<std::string> shell = {"/bin/sh", "-c", "exec 2>&1; " + unpack};
    const auto output = run_for_output(shell, status, std::chrono::minutes(10));
    if (!output) return output.error();
    if (status == 0) return Done{};
    return Error(EPROTO, "the kernel's source: " + wait_text(status) + ": " + output->substr(0, output->find('\n')));
  }
  std::vector<std::string> load(double /*seconds*/, double /*guess*/) const override {
    return timed_command("find '" + tree_ + "/lib' -name '*.[oa]' -delete || exit",
                         {"/usr/bin/make", "-s", "-C", tree_, "-j3", "lib/"});
  }
  Result<double> throughput(const std::string& output) const override {
    const auto took = taken_s(output);
    return took ? Result<double>(1 / *took) : took;
  }

 private:
  std::string tree_;
};

}  // namespace

const std::vector<std::string_view>& batch_names() {
  static const std::vector<std::string_view> names = {"build", "ffmpeg"};
  return names;
}

bool is_batch(std::string_view name) { return std::ranges::find(batch_names(), name) != batch_names().end(); }

std::string kernel_source() {
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/src", none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("linux-source-") && name.ends_with(".tar.xz"))
      newest = std::max(newest, entry.path().string());
  }
  return newest;
}

std::unique_ptr<App> make_batch(std::string_view name) {
  if (name == "ffmpeg") return std::make_unique<Ffmpeg>();
  return std::make_unique<KernelBuild>();
}

}  // namespace swapd::bench
