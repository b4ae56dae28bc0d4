#include "bus/metrics.h"

#include <array>
#include <cstdio>

#include "bus/json.h"

namespace swapd::bus {
namespace {

class Text {
 public:
  void family(const char* name, const char* type, const char* help) {
    out_ += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void value(const std::string& name, double value) {
    std::array<char, 40> digits{};
    std::snprintf(digits.data(), digits.size(), "%.15g", value);
    out_ += name + " " + digits.data() + "\n";
  }
  void gauge(const char* name, const char* help, double what) {
    family(name, "gauge", help);
    value(name, what);
  }
  void counter(const char* name, const char* help, double what) {
    family(name, "counter", help);
    value(name, what);
  }
  [[nodiscard]] std::string text() && { return std::move(out_); }

 private:
  std::string out_;
};

// A label's value: backslashes, quotes and line feeds are escaped.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

// A sample for each device of each class that has moved anything.
void add_classes(Text& out, const std::vector<ClassView>& classes) {
  const auto labels = [](const ClassView& c, const ClassView::Device& d, const char* more) {
    return "{class=\"" + label(c.name) + "\",device=\"" + label(d.device) + "\"" + more + "}";
  };
  const auto each = [&](const char* name, const char* help, const auto& add) {
    out.family(name, "counter", help);
    for (const ClassView& c : classes)
      for (const ClassView::Device& d : c.devices) add(c, d, std::string(name));
  };
  each("swapd_class_moved_bytes_total", "Bytes that members of a class with limits have moved.",
       [&](const ClassView& c, const ClassView::Device& d, const std::string& name) {
         out.value(name + labels(c, d, ",way=\"read\""), static_cast<double>(d.read_bytes));
         out.value(name + labels(c, d, ",way=\"write\""), static_cast<double>(d.written_bytes));
         out.value(name + labels(c, d, ",way=\"mapped\""), static_cast<double>(d.mapped_bytes));
       });
  each("swapd_class_delayed_seconds_total", "Time for which their calls have been held.",
       [&](const ClassView& c, const ClassView::Device& d, const std::string& name) {
         out.value(name + labels(c, d, ""), d.delayed_s);
       });
}

// Without labels: jobs come and go.
void add_jobs(Text& out, const std::vector<JobView>& jobs) {
  double used = 0, entitled = 0, granted = 0, refused_busy = 0, refused_debt = 0, coscheduled = 0;
  for (const JobView& job : jobs) {
    if (job.slots > 0) ++coscheduled;
    granted += static_cast<double>(job.slots);
    refused_busy += static_cast<double>(job.refused_busy);
    refused_debt += static_cast<double>(job.refused_debt);
    used += job.used_s;
    entitled += job.entitled_s;
  }
  out.gauge("swapd_coscheduling_jobs", "Parallel jobs that run in slots.", coscheduled);
  out.gauge("swapd_coscheduling_slots", "Slots that the present jobs have had.", granted);
  out.gauge("swapd_coscheduling_slots_refused", "Slots of the present jobs that others had to be waited for.",
            refused_busy);
  out.gauge("swapd_coscheduling_calls_in_debt",
            "Messages that called the present jobs while too little was owed to them.", refused_debt);
  out.gauge("swapd_coscheduling_fairness_ratio", "CPU time that the present jobs have had, over their fair share.",
            entitled > 0 ? used / entitled : 1);
}

}  // namespace

std::string metrics_text(const StatusView& s, const std::vector<ClassView>& classes) {
  Text out;
  const auto n = [](std::uint64_t number) { return static_cast<double>(number); };
  out.family("swapd_info", "gauge", "What swapd is, and how it observes; always 1.");
  out.value("swapd_info{version=\"" + label(s.version) + "\",observer=\"" + label(s.observer) + "\"}", 1);
  out.gauge("swapd_paused", "Whether lending is paused.", s.paused ? 1 : 0);
  out.gauge("swapd_managed_threads", "Managed threads.", n(s.managed_threads));
  out.gauge("swapd_managed_processes", "Managed processes.", n(s.managed_processes));
  out.gauge("swapd_listeners", "Seccomp listeners that are served.", n(s.listeners));
  out.gauge("swapd_donations_active", "Donations in force.", n(s.donations_active));
  out.counter("swapd_donations_total", "Donations begun.", n(s.donations_total));
  out.counter("swapd_notifications_total", "Trapped system calls answered.", n(s.notifications_total));
  out.counter("swapd_events_lost_total", "Events that were lost because something could not keep up.",
              n(s.events_lost));
  out.gauge("swapd_watched_threads", "Threads whose blocking is watched.", n(s.watched_threads));
  out.gauge("swapd_unheard_threads", "Of them, those that swapd's budget does not pay for at the moment.",
            n(s.unheard_threads));
  out.counter("swapd_watch_wakeups_total", "Records of the watch that woke swapd.", n(s.watch_wakeups_total));
  out.family("swapd_cpu_seconds_total", "counter", "CPU time that swapd's threads have used.");
  out.value("swapd_cpu_seconds_total{thread=\"engine\"}", s.cpu.engine_s);
  out.value("swapd_cpu_seconds_total{thread=\"receivers\"}", s.cpu.receivers_s);
  out.value("swapd_cpu_seconds_total{thread=\"worker\"}", s.cpu.worker_s);
  out.value("swapd_cpu_seconds_total{thread=\"jobs\"}", s.cpu.jobs_s);
  out.value("swapd_cpu_seconds_total{thread=\"memory\"}", s.cpu.memory_s);
  out.value("swapd_cpu_seconds_total{thread=\"control\"}", s.cpu.control_s);
  out.counter("swapd_guard_cpu_seconds_total", "CPU time that the guard has used.", s.cpu.guard_s);
  out.gauge("swapd_budget", "Share of one CPU that swapd's threads may use now.", s.budget.share_now);
  out.gauge("swapd_budget_used", "Share of one CPU that swapd's threads have used lately.", s.budget.used);
  out.gauge("swapd_turn_wait_seconds", "How long what swapd does waits until it is paid for.", s.budget.wait_ms / 1000);
  out.gauge("swapd_patience_seconds", "How long a frequent wait may last before it is looked at.",
            s.budget.patience_ms / 1000);
  out.gauge("swapd_model_resources", "Resources that the model remembers.", n(s.resources));
  out.gauge("swapd_model_requesters", "Requests that the model holds.", n(s.requesters));
  out.gauge("swapd_model_providers", "Providers that the model remembers.", n(s.providers));
  out.counter("swapd_over_quota_total", "Threads and processes not managed because of their user's quota.",
              n(s.over_quota));
  out.counter("swapd_log_lines_dropped_total", "Log lines that were dropped.", n(s.log_drops));
  out.gauge("swapd_delayed_calls", "Calls that are held by the limits of their class.", n(s.delayed_calls));
  out.counter("swapd_delayed_calls_total", "Calls that have been held by the limits of their class.",
              n(s.delayed_calls_total));
  add_jobs(out, s.jobs);
  add_classes(out, classes);
  out.gauge("swapd_match_rules", "Rules of the policy that manage programs.", n(s.match_rules));
  out.counter("swapd_programs_started_total", "Programs seen to start, for the rules.", n(s.programs));
  out.counter("swapd_programs_matched_total", "Programs that a rule fitted.", n(s.matched));
  out.counter("swapd_programs_managed_by_policy_total", "Programs that rules have taken in.", n(s.managed_by_policy));
  out.gauge("swapd_rivals", "Other programs found that set priorities.", n(s.rivals.size()));
  out.gauge("swapd_warnings", "Missing privileges and kernel features, as swapctl status names them.",
            n(s.warnings.size() + s.missing.size()));
  return std::move(out).text();
}

}  // namespace swapd::bus
