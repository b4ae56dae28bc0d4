#include "replay/decode.h"

#include <algorithm>

#include "replay/decode_events.h"
#include "replay/fields.h"

namespace swapd::replay {
namespace {

Header header(Fields& f) {
  Header found;
  found.swapd = f.text("swapd");
  found.boot_id = f.text("boot");
  found.time = f.real("time");
  if (!(found.time >= 0 && found.time < 1e12)) f.values().wrong("time", "a time of the day");
  found.start_ns = f.number<std::uint64_t>("start_ns");
  return found;
}

void read_kind(const Json& json, Mistake& mistake, model::KindTable& kinds) {
  Fields one(json, mistake);
  const auto kind = kind_named(one.text("kind"));
  if (!kind) return one.values().wrong("kind", "a known kind");
  kinds.at(static_cast<std::size_t>(*kind)) = {.base_confidence = one.number<std::uint16_t>("confidence"),
                                               .quantum = one.duration("quantum_ns"),
                                               .max_providers = one.number<std::uint16_t>("providers"),
                                               .feedback = one.word("feedback", feedback_words),
                                               .counts = one.flag("counts")};
}

model::Settings settings(Fields& f, Mistake& mistake) {
  model::Settings found;
  if (f.has("records_a_user"))
    found.records_a_user = f.number<std::uint32_t>("records_a_user");  // not in the first ones
  (void)f.list("kinds", [&](const Json& json) {
    read_kind(json, mistake, found.kinds);
    return 0;
  });
  if (f.has("classes"))
    found.classes = f.list("classes", [&](const Json& json) {
      model::KindTable kinds{};
      if (!json.is_array()) f.values().wrong("classes", "a list of lists of kinds");
      for (const Json& one : json.is_array() ? json : Json::array()) read_kind(one, mistake, kinds);
      return kinds;
    });
  return found;
}

decide::DonationRules class_rules(Fields& f) {
  decide::DonationRules found;
  found.lending.rt_ceiling = f.number<std::uint8_t>("ceiling");
  if (found.lending.rt_ceiling < 1 || found.lending.rt_ceiling > 99) f.values().wrong("ceiling", "in 1…99");
  found.lending.realtime_allowed = f.flag("realtime");
  found.lending.strict = f.flag("strict");
  found.cross_user = f.flag("cross_user");
  found.linger = f.duration("linger_ns");
  found.conversation = f.duration("conversation_ns");
  found.weight_above = f.number_or<Weight>("weight_above", 0);
  return found;
}

decide::DonationConfig rules(Fields& f, Mistake& mistake) {
  decide::DonationConfig found;
  found.rules = class_rules(f);
  found.quota = f.flag("quota");
  if (f.has("classes"))
    found.rules.classes = f.list("classes", [&](const Json& json) {
      Fields one(json, mistake);
      return class_rules(one);
    });
  return found;
}

decide::BudgetConfig::Ceiling ceiling(Fields& f) {
  const auto ppm = f.number<std::int64_t>("share_ppm");
  if (ppm < 0 || ppm > 1'000'000) f.values().wrong("share_ppm", "in 0…1000000");
  return {static_cast<double>(ppm) / 1e6, f.duration("window_ns")};
}

decide::BudgetConfig budgets(Fields& f, Mistake& mistake) {
  decide::BudgetConfig found;
  found.ceiling = ceiling(f);
  found.user_time = f.duration("user_time_ns");
  found.user_window = f.duration("user_window_ns");
  if (f.has("classes"))
    found.classes = f.list("classes", [&](const Json& json) {
      Fields one(json, mistake);
      return ceiling(one);
    });
  return found;
}

decide::CoschedulingConfig coscheduling(Fields& f) {
  decide::CoschedulingConfig found;
  found.mode = f.word("mode", decide::coscheduling_mode_words);
  found.realtime = f.flag("realtime");
  found.cpus = f.number<int>("cpus");
  if (f.has("classes"))
    found.classes = f.list("classes", [&](const Json& json) {
      const auto known =
          json.is_string() ? decide::coscheduling_mode_words.find(json.get<std::string>()) : std::nullopt;
      if (!known) f.values().wrong("classes", "off, auto or on");
      return known.value_or(decide::CoschedulingConfig::Mode::off);
    });
  return found;
}

decide::LevelsConfig levels(Fields& f) {
  decide::LevelsConfig found;
  found.common = {.nice = f.number<int>("nice"), .display = f.flag_or("display", false)};
  found.share = std::bit_cast<double>(f.number<std::int64_t>("share_bits"));
  const auto numbers = [&](const char* field) {
    return f.list(field, [&](const Json& json) {
      if (!json.is_number_integer()) f.values().wrong(field, "whole numbers");
      return json.is_number_integer() ? json.get<int>() : 0;
    });
  };
  if (f.has("classes")) {
    for (const int nice : numbers("classes")) found.classes.push_back({.nice = nice});
    const auto displays = numbers("displays");
    if (displays.size() != found.classes.size()) f.values().wrong("displays", "as many as classes");
    for (std::size_t i = 0; i < std::min(displays.size(), found.classes.size()); ++i)
      found.classes[i].display = displays[i] != 0;
  }
  const auto good = [](const decide::ClassLevels& one) { return one.nice >= 0 && one.nice <= 5; };
  if (!good(found.common) || !std::ranges::all_of(found.classes, good)) f.values().wrong("nice", "0 to 5");
  return found;
}

decide::MemoryConfig memory(Fields& f) {
  decide::MemoryConfig found;
  found.on = f.flag("on");
  found.stays = f.duration("stays_ns");
  found.quantum = f.duration("quantum_ns");
  for (const int one :
       f.list("classes_stay", [&](const Json& json) { return f.values().number<int>(json, "classes_stay"); }))
    found.stay.push_back(one != 0);
  return found;
}

model::ImageThread image_thread(Fields& f) {
  model::ImageThread found;
  found.id = f.thread("thread");
  if (!found.id.valid()) f.values().wrong("thread", "a thread id");
  found.tgid = f.number<pid_t>("tgid");
  found.uid = f.number<std::uint32_t>("uid");
  found.base = f.attr("base");
  found.state = f.word("state", state_words);
  found.since = f.time("since");
  found.class_id = f.number_or<ClassId>("class", 0);
  found.weight = f.number_or<Weight>("weight", usual_weight);
  if (f.has("counts_as")) found.counts_as = f.attr("counts_as");
  if (found.state != model::RunState::blocked) return found;
  found.call = f.number<std::int32_t>("call");
  found.awaited = f.resources("awaited");
  if (f.has("debits"))
    found.debits = f.list("debits", [&](const Json& json) {
      const Json* one = f.values().tuple(json, "debits", 3);
      if (one == nullptr) return model::ImageDebit{};
      return model::ImageDebit{f.values().thread((*one)[0], "debits"), f.values().resource((*one)[1], "debits"),
                               f.values().number<std::uint32_t>((*one)[2], "debits")};
    });
  return found;
}

model::ImageResource image_resource(Fields& f) {
  model::ImageResource found{.key = f.resource("resource"),
                             .class_id = f.number_or<ClassId>("class", 0),
                             .waited = f.flag_or("waited", false)};
  found.providers = f.list("providers", [&](const Json& json) {
    const Json* one = f.values().tuple(json, "providers", 4);
    if (one == nullptr) return model::ImageProvider{};
    return model::ImageProvider{f.values().thread((*one)[0], "providers"),
                                f.values().number<std::uint16_t>((*one)[1], "providers"),
                                f.values().word((*one)[2], "providers", evidence_words),
                                f.values().number<std::uint32_t>((*one)[3], "providers")};
  });
  return found;
}

decide::Grant grant(const Json& json, Mistake& mistake) {
  Fields f(json, mistake);
  decide::Grant found;
  decide::RunAs& run = found.run;
  run.thread = f.thread("thread");
  run.attr = f.attr("attr");
  const std::string by = f.text("by");
  const auto known = std::ranges::find(decider_words, by);
  if (known == decider_words.end())
    f.values().wrong("by", "a known decider");
  else
    run.cause.by = *known;
  run.cause.on_behalf_of = f.thread("requester");
  run.cause.through = f.resource("resource");
  run.payer.user = f.number<std::uint32_t>("user");
  run.payer.requester_class = f.number<ClassId>("requester_class");
  run.payer.provider_class = f.number<ClassId>("provider_class");
  if (f.has("second_best")) run.second_best = f.attr("second_best");
  run.doubted = f.flag_or("doubted", false);
  run.withheld = f.flag_or("withheld", false);
  run.lowers = f.flag_or("lowers", false);
  run.lowers_group = f.flag_or("lowers_group", false);
  run.slice_only = f.flag_or("slice_only", false);
  run.stands = f.flag_or("stands", false);
  run.quiet = f.flag_or("quiet", false);
  if (f.has("ceiling_until")) found.ceiling_until = f.time("ceiling_until");
  if (f.has("quota_until")) found.quota_until = f.time("quota_until");
  return found;
}

Granted granted(Fields& f, Mistake& mistake) {
  Granted found{.time = f.time("t"), .grants = {}, .limits = {}, .away = {}};
  found.grants = f.list("grants", [&](const Json& json) { return grant(json, mistake); });
  if (f.has("away"))
    found.away = f.list("away", [&](const Json& json) { return f.values().number<pid_t>(json, "away"); });
  if (!f.has("limits")) return found;
  (void)f.list("limits", [&](const Json& json) {
    const Json* one = f.values().tuple(json, "limits", 2);
    if (one == nullptr || !(*one)[0].is_string())
      f.values().wrong("limits", "a list of names and numbers");
    else
      found.limits[(*one)[0].get<std::string>()] = f.values().number<std::int64_t>((*one)[1], "limits");
    return 0;
  });
  return found;
}

// A word from the file for the error's line: short, and nothing that would steer a terminal.
std::string shown(std::string_view word) {
  std::string out(word.substr(0, 40));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

}  // namespace

Error Decoder::error(const std::string& what) const {
  return {EINVAL, name_ + ":" + std::to_string(line_) + ": " + what};
}

Result<std::optional<Record>> Decoder::read(std::string_view line) {
  ++line_;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return error(header_ ? "not a JSON object" : "not a recording of swapd");
  Mistake mistake;
  Fields f(json, mistake);
  const std::string type = f.text("type");
  if (mistake) return error(header_ ? mistake.text() : "not a recording of swapd");
  Result<std::optional<Record>> read = !header_ ? first(type, f, mistake) : next(type, f, mistake);
  // The first of several mistakes is named; a wrong order counts before wrong fields.
  if (read && mistake) return error(shown(type) + ": " + mistake.text());
  return read;
}

Result<std::optional<Record>> Decoder::first(std::string_view type, Fields& f, const Mistake& mistake) {
  if (type != "header" || f.text("format") != format_name) return error("not a recording of swapd");
  const auto version = f.number<std::uint64_t>("version");
  if (!mistake && version != format_version)
    return error("a recording of version " + std::to_string(version) + "; this swapd reads version " +
                 std::to_string(format_version));
  header_ = true;
  return std::optional<Record>(header(f));
}

Result<std::optional<Record>> Decoder::next(std::string_view type, Fields& f, Mistake& mistake) {
  const auto one = [](auto record) { return std::optional<Record>(std::move(record)); };
  if (ended_) return error("a line after the end");
  if (type == "gap") {
    open_.reset();
    settings_ = rules_ = budgets_ = state_ = false;
    return one(Gap{f.number<std::uint64_t>("lost")});
  }
  if (open_) return part(type, f);
  if (type == "settings") {
    settings_ = true;
    return one(settings(f, mistake));
  }
  if (type == "rules") {
    rules_ = true;
    return one(rules(f, mistake));
  }
  if (type == "budgets") {
    budgets_ = true;
    return one(budgets(f, mistake));
  }
  if (type == "coscheduling") return one(coscheduling(f));
  if (type == "levels") return one(levels(f));
  if (type == "memory-rules") return one(memory(f));
  if (type == "end") {
    ended_ = true;
    return one(
        End{f.number<std::uint64_t>("events"), f.number<std::uint64_t>("decisions"), f.number<std::uint64_t>("lost")});
  }
  if (type == "snapshot") {
    if (!settings_ || !rules_ || !budgets_) return error("a snapshot before settings, rules and budgets");
    open_.emplace();
    open_->time = f.time("t");
    left_ = {f.number<std::size_t>("threads"), f.number<std::size_t>("resources"), f.number<std::size_t>("deciders")};
    return whole();
  }
  std::optional<Record> known;
  if (auto found = event(type, f))
    known = std::move(*found);
  else if (auto told = input(type, f))
    known = std::move(*told);
  else if (type == "left")
    known = Left{f.thread("thread")};
  else if (type == "turn")
    known = decide::Turn{.now = f.time("t"),
                         .first = f.flag_or("first", false),
                         .tick = f.flag_or("tick", false),
                         .may_ask = f.flag_or("may_ask", false),
                         .must_ask = f.flag_or("must_ask", false)};
  if (!known && type != "granted") return error("unknown type '" + shown(type) + "'");
  if (!state_) return error("'" + shown(type) + "' before a snapshot");
  if (known) return known;
  if (!f.has("same")) {
    before_ = granted(f, mistake);
  } else if (!f.flag("same") || !before_) {
    return error("'same' without a decision before it");
  }
  before_->time = f.time("t");
  return one(*before_);
}

Result<std::optional<Record>> Decoder::part(std::string_view type, Fields& f) {
  if (type == "thread" && left_.threads > 0) {
    --left_.threads;
    open_->model.threads.push_back(image_thread(f));
  } else if (type == "resource" && left_.threads == 0 && left_.resources > 0) {
    --left_.resources;
    open_->model.resources.push_back(image_resource(f));
  } else if (type == "decider" && left_.threads == 0 && left_.resources == 0 && left_.deciders > 0) {
    --left_.deciders;
    open_->deciders.push_back({f.text("name"), f.numbers<std::int64_t>("numbers"), {}});
  } else {
    return error("'" + shown(type) + "' inside a snapshot");
  }
  return whole();
}

// The snapshot, where all of its lines are there.
std::optional<Record> Decoder::whole() {
  if (left_.threads != 0 || left_.resources != 0 || left_.deciders != 0) return std::nullopt;
  state_ = true;
  before_.reset();
  Record snapshot = std::move(*open_);
  open_.reset();
  return snapshot;
}

}  // namespace swapd::replay
