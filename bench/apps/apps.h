// The programs that `swapbench apps` measures: servers that nobody here wrote, and their load generators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "options.h"

namespace swapd::bench {

class App {
 public:
  App() = default;
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  virtual ~App() = default;
  // Once, before the first start. `dir` is the app's own; everybody may pass through it.
  [[nodiscard]] virtual Status prepare(const std::string& dir) = 0;
  [[nodiscard]] virtual std::vector<std::string> server() const = 0;
  [[nodiscard]] virtual int stop_signal() const;
  [[nodiscard]] virtual bool answers() const = 0;
  // `guess`: how many requests a second there may be, for a generator that cannot count seconds.
  [[nodiscard]] virtual std::vector<std::string> load(double seconds, double guess) const = 0;
  // The same for a load that is stopped some time, and of which progress() is asked. log: a file of its own, not there
  // yet.
  [[nodiscard]] virtual std::vector<std::string> live_load(double seconds, double guess, const std::string& /*log*/) {
    return load(seconds, guess);
  }
  // How many requests or transactions there have been by now: asks the server, or the log.
  struct Progress {
    double at_s = 0;  // of a clock that goes on
    double requests = 0;
  };
  [[nodiscard]] virtual Result<Progress> progress() = 0;
  // Requests or transactions a second.
  [[nodiscard]] virtual Result<double> throughput(const std::string& output) const = 0;
};

[[nodiscard]] const std::vector<std::string_view>& app_names();
// Those that do a piece of work and end; they are measured run by run.
[[nodiscard]] const std::vector<std::string_view>& batch_names();
[[nodiscard]] bool is_batch(std::string_view name);
[[nodiscard]] std::unique_ptr<App> make_app(std::string_view name);
// Whether swapd comes and goes under one load (apps_turns.cpp), or each run starts the server anew.
[[nodiscard]] bool in_turns(const Options& options);
// Whether the load generator is the important one (--important client).
[[nodiscard]] bool client_is_important(const Options& options);
// One line that names the Debian package of a program that is not there; none: all are.
[[nodiscard]] std::optional<std::string> missing_program(const std::vector<std::string>& apps);

// By family, for make_app.
[[nodiscard]] std::unique_ptr<App> make_redis();
[[nodiscard]] std::unique_ptr<App> make_nginx(bool short_lived);
[[nodiscard]] std::unique_ptr<App> make_postgres(std::string_view name);
[[nodiscard]] std::unique_ptr<App> make_batch(std::string_view name);

// The path of a program; empty: not there.
[[nodiscard]] std::string path_of(const std::string& program);
// The archive in Debian's package of the kernel's source; empty: not there.
[[nodiscard]] std::string kernel_source();
// The number that stands behind `label` in a program's output.
[[nodiscard]] Result<double> number_behind(const std::string& output, const std::string& label);

}  // namespace swapd::bench
