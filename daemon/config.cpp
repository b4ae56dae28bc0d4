#include "config.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/fd.h"
#include "enroll/filter_rules.h"
#include "policy/defaults.h"

namespace swapd::daemon {

namespace {

constexpr std::size_t max_text = 8 << 20;

model::KindSettings kind_settings(const policy::ModelRules& rules) {
  return {.base_confidence = rules.confidence,
          .quantum = rules.quantum,
          .max_providers = rules.providers,
          .feedback = rules.feedback == policy::Feedback::paper ? model::Feedback::paper : model::Feedback::wait,
          .counts = rules.counts};
}

model::KindTable kind_table(const policy::Policy& policy, const std::string& class_name) {
  model::KindTable table{};
  for (std::size_t i = 0; i < resource_kinds; ++i)
    table.at(i) = kind_settings(policy::model_of(policy, class_name, static_cast<ResourceKind>(i)));
  return table;
}

decide::DonationRules donation_rules(const policy::DonationPolicy& d) {
  return {.lending = {.rt_ceiling = d.ceiling, .realtime_allowed = d.realtime, .strict = d.strict},
          .cross_user = d.cross_user,
          .linger = d.linger,
          .conversation = d.conversation,
          .weight_above = d.weight_above};
}

actuate::Rules actuator_rules(const policy::DonationPolicy& d) {
  return {.realtime = d.realtime, .group_action = d.group_action};
}

constexpr double interactive_share = 0.5;  // of all CPUs, for all threads that a person waits for

decide::ClassLevels levels_of(const policy::ClassRules& rules) {
  return {.nice = rules.levels.on ? rules.levels.nice : 0, .display = rules.levels.display};
}

decide::CoschedulingConfig::Mode coscheduling_mode(policy::Coschedule chosen) {
  using Mode = decide::CoschedulingConfig::Mode;
  if (chosen == policy::Coschedule::off) return Mode::off;
  return chosen == policy::Coschedule::on ? Mode::on : Mode::automatic;
}

decide::BudgetConfig::Ceiling ceiling_of(const policy::DonationPolicy& d) {
  return {.share = d.ceiling_share, .window = d.ceiling_window};
}

// EISDIR, EACCES …: the context is the whole line.
Result<std::string> read_file(const std::string& name) {
  const auto failed = [&](int error) {
    return Error(error, name + ": cannot be read: " + std::generic_category().message(error));
  };
  const Fd fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed(errno);
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0) return failed(errno);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(n));
    if (text.size() > max_text) return failed(EFBIG);
  }
}

}  // namespace

Result<std::vector<std::string>> policy_files(const std::string& file, const PolicyPlaces& places) {
  namespace fs = std::filesystem;
  if (!file.empty()) return std::vector{file};
  std::map<std::string, std::string> by_name;
  for (const std::string& folder : places.folders) {
    std::error_code failed;
    fs::directory_iterator entry(folder, failed);
    for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
      const fs::path& path = entry->path();
      if (path.extension() == ".toml" && !path.filename().string().starts_with('.'))
        by_name[path.filename().string()] = path.string();
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
      return Error(failed.value(), folder + ": cannot be read: " + failed.message());
  }
  std::vector<std::string> files;
  for (const auto& [name, path] : by_name) files.push_back(path);
  if (::access(places.file.c_str(), F_OK) == 0) files.push_back(places.file);
  return files;
}

Result<LoadedPolicy> load_policy(const std::string& file, const PolicyPlaces& places) {
  const auto files = policy_files(file, places);
  if (!files) return files.error();
  constexpr const char* built_in = "built-in";
  policy::Policy policy;
  policy::Origins origins;
  origins.add(policy::defaults_text, built_in);
  for (const std::string& name : *files) {
    const auto text = read_file(name);
    if (!text) return text.error();
    auto parsed = policy::parse(*text, name, policy);
    if (!parsed) return std::move(parsed).error();
    policy = std::move(parsed).value();
    origins.add(*text, name);
  }
  LoadedPolicy loaded{std::move(policy), origins.settings()};
  for (policy::Setting& setting : loaded.settings)
    if (setting.where.starts_with(std::string(built_in) + ":")) setting.where = built_in;
  return loaded;
}

Engine::Options engine_options(const policy::Policy& policy, const Options& options) {
  Engine::Options out;
  const std::string first = "default";
  out.model.kinds = kind_table(policy, first);
  const policy::DonationPolicy common = policy::donation_of(policy, first);
  out.donation.rules = donation_rules(common);
  out.decisions.budgets.ceiling = ceiling_of(common);
  out.actuate.rules = actuator_rules(common);
  if (const auto own = policy.classes.find(first); own != policy.classes.end())
    out.coscheduling.mode = coscheduling_mode(own->second.coschedule);
  out.coscheduling.realtime = common.realtime;
  if (const auto own = policy.classes.find(first); own != policy.classes.end())
    out.levels.common = levels_of(own->second);
  out.coscheduling.cpus = static_cast<int>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  out.levels.share = interactive_share * out.coscheduling.cpus;
  out.memory = {.on = policy.memory.on, .stays = policy.memory.stays, .quantum = policy.memory.quantum};
  out.memory.stay.push_back(out.levels.common.display);
  out.memory_manager.needed = policy.observe.never;
  out.memory_manager.away.stale = std::max<Duration>(policy.observe.guard_stale, std::chrono::seconds(3));
  out.memory_manager.away.dry_run = options.dry_run;
  out.memory_manager.on = policy.memory.on;
  for (const auto& [name, rules] : policy.classes) {
    if (name == first) continue;
    out.coscheduling.classes.push_back(coscheduling_mode(rules.coschedule));
    out.levels.classes.push_back(levels_of(rules));
    out.memory.stay.push_back(rules.levels.display);
    out.classes.push_back(name);
    out.model.classes.push_back(kind_table(policy, name));
    const policy::DonationPolicy own = policy::donation_of(policy, name);
    out.donation.rules.classes.push_back(donation_rules(own));
    out.decisions.budgets.classes.push_back(ceiling_of(own));
    out.actuate.rules.classes.push_back(actuator_rules(own));
  }
  const policy::QuotaPolicy& q = policy.quota;
  out.donation.quota = q.lent_share < 1.0;
  out.decisions.wrong_provider = options.wrong_provider;
  out.model.records_a_user = q.records;
  out.quota.processes = q.processes;
  out.quota.threads = q.threads;
  out.budget.share = policy.observe.budget;
  out.observe.watch.poll_period = policy.observe.poll_period;
  out.observe.watch.perf = policy.observe.watch != policy::WatchMethod::poll;
  for (const sys::TrapRule& rule : observe_rules(policy)) out.observe.trapped.push_back(rule.nr);
  out.actuate.state_dir = options.state_dir;
  out.actuate.dry_run = options.dry_run;
  out.decisions.budgets.user_window = q.lent_window;
  const auto cpus = static_cast<double>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (out.donation.quota)
    out.decisions.budgets.user_time = std::chrono::duration_cast<Duration>(q.lent_window * q.lent_share * cpus);
  return out;
}

}  // namespace swapd::daemon
