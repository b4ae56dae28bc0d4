#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/failure.h"
#include "cli/render.h"
#include "cli/top/top_io.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_state.h"
#include "cli/verbs/verbs.h"
#include "cli/words.h"

namespace swapd::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct TopOptions {
  double delay_s = 1;
  std::uint64_t count = 0;  // 0: until it is ended; not at a terminal: 1
  std::string order = top_order_words.front();
  bool tree = false;
  bool processes = false;
  bool io = false;
};

class Top {
 public:
  Top(const Context& context, const TopOptions& options) : context_(context), options_(options) {
    const auto order = std::ranges::find(top_order_words, options.order);
    state_.view.order = static_cast<TopOrder>(order - top_order_words.begin());
    state_.view.tree = options.tree;
    state_.view.processes = options.processes;
    state_.view.io = options.io;
  }

  int text() {
    const std::uint64_t count = std::max<std::uint64_t>(options_.count, 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) std::this_thread::sleep_for(Seconds(options_.delay_s));
      if (const Status looked = look(); !looked) return report(*context_.err, looked.error());
      *context_.out << (context_.json ? json_page() : (i > 0 ? "\n" : "") + text_page()) << std::flush;
      if (!*context_.out) return report(*context_.err, failure("cannot write the answer: is the disk full?"));
    }
    return exit_done;
  }

  int screen() {
    if (const Status looked = look(); !looked) return report(*context_.err, looked.error());
    TopScreen screen;
    const auto delay = std::chrono::duration_cast<Clock::duration>(Seconds(options_.delay_s));
    Clock::time_point next = Clock::now() + delay;
    for (std::uint64_t looks = 1; !ended_;) {
      draw(screen);
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
      const int key = screen.key(static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 60'000)));
      if (key >= 0) done(state_.pressed(key, screen.rows_on_page()));
      if (Clock::now() < next) continue;
      if (options_.count != 0 && ++looks > options_.count) break;
      if (!state_.paused()) tell(look());
      next = Clock::now() + delay;
    }
    return exit_done;
  }

 private:
  // If swapd has gone, or starts again, the last picture stays.
  Status look() {
    if (!client_) {
      Result<Client> client = Client::connect(context_.socket);
      if (!client) return client.error();
      client_ = std::make_unique<Client>(std::move(client).value());
    }
    const Result<std::string> status = client_->status(), threads = client_->processes(), graph = client_->graph(),
                              classes = client_->classes();
    for (const Result<std::string>* answer : {&status, &threads, &graph, &classes})
      if (!*answer) {
        client_.reset();
        return answer->error();
      }
    try {
      TopSample sample = top_sample(*status, *threads, *graph);
      std::vector<TopDevice> devices = top_devices(*classes);
      before_ = std::move(sample_);
      devices_before_ = std::move(devices_);
      devices_ = std::move(devices);
      sample_ = std::move(sample);
      elapsed_s_ = Seconds(Clock::now() - sampled_).count();
      sampled_ = Clock::now();
    } catch (const Json::exception&) {
      return failure("cannot read the answers of swapd at " + context_.socket + ": is it another version?");
    }
    status_ = *status;
    threads_ = *threads;
    classes_ = *classes;
    return Done{};
  }
  void tell(const Status& done) {
    if (!done) state_.say(done.error().context(), true);
  }

  [[nodiscard]] std::vector<std::string> summary() const {
    return top_summary(*sample_, before_ ? &*before_ : nullptr, elapsed_s_);
  }
  [[nodiscard]] std::string json_page() const {
    const Json page = {{"status", Json::parse(status_)},
                       {"threads", Json::parse(threads_).at("threads")},
                       {"classes", Json::parse(classes_).at("classes")}};
    return page.dump() + "\n";
  }
  [[nodiscard]] std::string text_page() const {
    std::string out;
    for (const std::string& one : summary()) out += one + "\n";
    if (state_.view.io) return out + "\n" + io_text(0);
    out += "\n" + top_heading(state_.view, 0) + "\n";
    for (const TopRow& row : top_rows(*sample_, state_.view)) out += top_line(row, 0) + "\n";
    return out;
  }
  [[nodiscard]] std::string io_text(std::size_t width) const {
    return top_io_text(devices_, before_ ? &devices_before_ : nullptr, elapsed_s_, width);
  }
  void draw(TopScreen& screen) {
    if (const std::string text = state_.text(); !text.empty()) return screen.draw_text(text, "any key goes back");
    state_.show(*sample_);
    if (state_.view.io) return screen.draw_text("\n" + io_text(screen.width()), state_.footer());
    screen.draw({.summary = summary(),
                 .heading = top_heading(state_.view, screen.width()),
                 .rows = &state_.rows(),
                 .selected = state_.selected_row(),
                 .footer = state_.footer(),
                 .alert = state_.alert()});
  }

  void done(TopState::Wish wish) {
    const TopThread* thread = state_.selected();
    switch (wish) {
      case TopState::Wish::none:
        return;
      case TopState::Wish::end:
        ended_ = true;
        return;
      case TopState::Wish::look:
        return tell(look());
      case TopState::Wish::explain:
        if (thread != nullptr) explain(thread->tid);
        return;
      case TopState::Wish::more_nice:
        if (thread != nullptr) renice(*thread, +1);
        return;
      case TopState::Wish::less_nice:
        if (thread != nullptr) renice(*thread, -1);
        return;
    }
  }
  void explain(long long tid) {
    if (!client_) return;
    const Result<std::string> told = client_->why(static_cast<pid_t>(tid));
    if (!told) return state_.say(told.error().context(), true);
    try {
      state_.show_text(render_why(*told));
    } catch (const Json::exception&) {
      state_.say("cannot read the answer of swapd", true);
    }
  }
  void renice(const TopThread& thread, int by) {
    if (!client_) return;
    // The order is for the whole process; what is no ordinary thread stays what it is.
    if (!thread.own_nice)
      return state_.say(
          fmt::format("{} is no ordinary thread: `swapctl set {} --other` makes it one", thread.comm, thread.tid),
          true);
    const int nice = std::clamp(*thread.own_nice + by, -20, 19);
    tell(client_->set(static_cast<pid_t>(thread.pid), AskedPriority::only_nice(nice)));
    tell(look());
  }

  const Context& context_;
  const TopOptions& options_;
  std::unique_ptr<Client> client_;
  std::string status_, threads_, classes_;
  std::vector<TopDevice> devices_, devices_before_;
  std::optional<TopSample> sample_, before_;
  Clock::time_point sampled_{};
  double elapsed_s_ = 0;
  TopState state_;
  bool ended_ = false;
};

}  // namespace

Action declare_top(CLI::App& app, Context& context) {
  auto options = std::make_shared<TopOptions>();
  app.add_option("--delay", options->delay_s, "Seconds between two looks (1)")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->type_name("S");
  app.add_option("--count", options->count, "End after N looks")
      ->check(CLI::Range(std::uint64_t{1}, UINT64_MAX).description(""))
      ->type_name("N");
  app.add_option("--sort", options->order, "wait (the default), priority, pid, name or class")
      ->check(CLI::IsMember(std::vector<std::string>(top_order_words.begin(), top_order_words.end())).description(""))
      ->type_name("ORDER");
  app.add_flag("--tree", options->tree, "Below a waiter those that it waits for");
  app.add_flag("--io", options->io, "What classes with limits move: a row for each device");
  app.add_flag("--processes", options->processes, "A row a process");
  app.footer(
      R"(At a terminal it goes on until `q`; `h` tells of the keys. Elsewhere, and with --json, it prints one look, or
--count of them.

Examples:
  swapctl top --tree
  swapctl top | head
  swapctl top --json --count 60 >> waits.jsonl)");
  return [options, &context] {
    Top top(context, *options);
    return context.json || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0 ? top.text() : top.screen();
  };
}

}  // namespace swapd::cli
