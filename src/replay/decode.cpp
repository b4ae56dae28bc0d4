#include "replay/decode.h"

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
  return found;
}

decide::DonationRules rules(Fields& f, Mistake& mistake) {
  decide::DonationRules found = class_rules(f);
  if (f.has("classes"))
    found.classes = f.list("classes", [&](const Json& json) {
      Fields one(json, mistake);
      return class_rules(one);
    });
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
  if (!f.has("favoured_resource")) return found;
  found.favoured_resource = f.resource("favoured_resource");
  found.favoured_path = f.threads("favoured_path");
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

decide::Donation donation(const Json& json, Mistake& mistake) {
  Fields f(json, mistake);
  decide::Donation found;
  found.requester = f.thread("requester");
  found.attr = f.attr("attr");
  found.resource = f.resource("resource");
  found.path = f.threads("path");
  if (found.path.empty()) f.values().wrong("path", "a list with a thread in it");
  found.choice = f.flag("choice");
  found.quantum = f.duration("quantum_ns");
  found.refusal = f.word("refusal", refusal_words);
  return found;
}

std::optional<Event> event(std::string_view type, Fields& f) {
  if (type == "enrolled") {
    Enrolled e{f.time("t"),
               f.thread("thread"),
               f.number<pid_t>("tgid"),
               f.number<std::uint32_t>("uid"),
               f.attr("base"),
               f.number_or<ClassId>("class", 0)};
    if (!e.thread.valid()) f.values().wrong("thread", "a thread id");
    return e;
  }
  if (type == "accessed")
    return Accessed{f.time("t"), f.thread("thread"), f.resource("resource"), f.word("evidence", evidence_words)};
  if (type == "released") return Released{f.time("t"), f.thread("thread"), f.resource("resource")};
  if (type == "blocked")
    return Blocked{f.time("t"), f.thread("thread"), f.number<std::int32_t>("call"), f.resources("awaited")};
  if (type == "woken") {
    Woken e{.time = f.time("t"), .thread = f.thread("thread")};
    if (f.has("by")) e.by = f.thread("by");
    if (f.has("through")) e.through = f.resource("through");
    e.unrelated = f.flag("unrelated");
    return e;
  }
  if (type == "holders")
    return Holders{f.time("t"), f.resource("resource"), f.word("evidence", evidence_words), f.threads("threads")};
  if (type == "quantum-used") return QuantumUsed{f.time("t"), f.thread("requester")};
  if (type == "execed") return Execed{f.time("t"), f.thread("thread")};
  if (type == "exited") return Exited{f.time("t"), f.thread("thread")};
  return std::nullopt;
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
  // Of several mistakes the first is named; a wrong order counts before wrong fields.
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
    settings_ = rules_ = state_ = false;
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
  if (type == "end") {
    ended_ = true;
    return one(
        End{f.number<std::uint64_t>("events"), f.number<std::uint64_t>("decisions"), f.number<std::uint64_t>("lost")});
  }
  if (type == "snapshot") {
    if (!settings_ || !rules_) return error("a snapshot before settings and rules");
    open_.emplace();
    open_->time = f.time("t");
    left_ = {f.number<std::size_t>("threads"), f.number<std::size_t>("resources"), f.number<std::size_t>("kept")};
    return whole();
  }
  const bool decided = type == "decided";
  std::optional<Event> known = event(type, f);
  if (!known && !decided && type != "forgotten") return error("unknown type '" + shown(type) + "'");
  if (!state_) return error("'" + shown(type) + "' before a snapshot");
  if (known) return one(std::move(*known));
  if (!decided) return one(Forgotten{f.thread("requester")});
  Decided found{f.time("t"), f.threads("requesters"), {}};
  if (!f.has("same")) {
    before_ = f.list("donations", [&](const Json& json) { return donation(json, mistake); });
  } else if (!f.flag("same") || !before_) {
    return error("'same' without a decision before it");
  }
  found.donations = *before_;
  return one(std::move(found));
}

Result<std::optional<Record>> Decoder::part(std::string_view type, Fields& f) {
  if (type == "thread" && left_.threads > 0) {
    --left_.threads;
    open_->model.threads.push_back(image_thread(f));
  } else if (type == "resource" && left_.threads == 0 && left_.resources > 0) {
    --left_.resources;
    open_->model.resources.push_back(image_resource(f));
  } else if (type == "kept" && left_.threads == 0 && left_.resources == 0) {
    --left_.kept;
    open_->kept.push_back(
        {f.thread("requester"), f.thread("direct"), f.thread("leaf"), f.number<std::uint64_t>("graph")});
  } else {
    return error("'" + shown(type) + "' inside a snapshot");
  }
  return whole();
}

// The snapshot, where all of its lines are there.
std::optional<Record> Decoder::whole() {
  if (left_.threads != 0 || left_.resources != 0 || left_.kept != 0) return std::nullopt;
  state_ = true;
  before_.reset();
  Record snapshot = std::move(*open_);
  open_.reset();
  return snapshot;
}

}  // namespace swapd::replay
