#include "replay/playback.h"

#include <array>
#include <cstdio>

#include "replay/line.h"
#include "replay/words.h"

namespace swapd::replay {
namespace {

// From whole numbers, so that it is the same on every machine.
std::string seconds(Time time) {
  const std::int64_t ns = time.time_since_epoch().count();
  const std::int64_t size = ns < 0 ? -ns : ns;
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%s%lld.%09lld", ns < 0 ? "-" : "", static_cast<long long>(size / 1000000000),
                static_cast<long long>(size % 1000000000));
  return out.data();
}

std::string milliseconds(Duration time) {
  const long long us = time.count() / 1000;
  std::array<char, 40> out{};
  std::snprintf(out.data(), out.size(), "%lld.%03lld", us / 1000, us % 1000);
  return out.data();
}

std::string lent(const SchedAttr& attr) {
  std::string policy(name(attr.policy));
  if (attr.realtime()) return policy + ' ' + std::to_string(attr.rt_priority);
  if (attr.policy == SchedPolicy::idle) return policy;
  return (attr.policy == SchedPolicy::batch ? "batch nice " : "nice ") + std::to_string(attr.nice);
}

std::string text(const decide::Donation& donation) {
  std::string out = std::to_string(donation.requester.tid) + " lends " + lent(donation.attr) + " to";
  for (const ThreadId thread : donation.path) out += ' ' + std::to_string(thread.tid);
  out += " for " + swapd::text(donation.resource);
  if (donation.choice) out += ", one of several, for " + milliseconds(donation.quantum) + " ms";
  if (donation.refusal != decide::Refusal::none) out += ", refused: " + std::string(word(donation.refusal));
  return out;
}

std::string text(const Granted& granted) {
  std::string out;
  for (const decide::Grant& grant : granted.grants) {
    const decide::RunAs& run = grant.run;
    out += (out.empty() ? "" : "; ") + std::to_string(run.thread.tid) + " runs as " + lent(run.attr);
    if (run.cause.on_behalf_of.valid()) out += " for " + std::to_string(run.cause.on_behalf_of.tid);
    if (run.withheld) out += ", withheld";
    if (run.doubted) out += ", doubted";
    if (grant.ceiling_until) out += ", at the ceiling until " + seconds(*grant.ceiling_until);
    if (grant.quota_until) out += ", at the quota until " + seconds(*grant.quota_until);
  }
  for (const auto& [name, bytes] : granted.limits)
    out += (out.empty() ? "class " : "; class ") + name + " may move " + std::to_string(bytes) + " bytes a second";
  for (const pid_t tgid : granted.away)
    out += (out.empty() ? "process " : "; process ") + std::to_string(tgid) + " is away";
  return out.empty() ? "no thread is boosted" : out;
}

void put(Line& line, const decide::Donation& donation) {
  line.add("requester", donation.requester.tid);
  line.add_list("path", donation.path, [&](ThreadId thread) { line.put(thread.tid); });
  line.add("resource", swapd::text(donation.resource)).add("policy", name(donation.attr.policy));
  line.add("nice", static_cast<int>(donation.attr.nice))
      .add("rt_priority", static_cast<int>(donation.attr.rt_priority));
  line.add("choice", donation.choice);
  line.raw(",\"quantum_ms\":" + milliseconds(donation.quantum));
  line.add("refusal", word(donation.refusal));
}

}  // namespace

Playback::Playback(std::string name, bool json, std::function<void(const std::string&)> print)
    : name_(std::move(name)),
      json_(json),
      print_(std::move(print)),
      decoder_(name_),
      replayer_([this](const Replayer::Change& change) { show(change); }) {}

Status Playback::read(std::string_view line, bool line_feed) {
  auto record = decoder_.read(line);
  if (!record && !line_feed && decoder_.line() > 1) {
    cut_off_ = true;
    return Done{};
  }
  if (!record) return std::move(record).error();
  if (!*record) return Done{};
  const auto gaps = replayer_.totals().gaps;
  replayer_.apply(**record, decoder_.line());
  if (replayer_.totals().gaps == gaps) return Done{};
  const auto& gap = std::get<Gap>(**record);
  if (json_) {
    std::string out;
    Line(out, "gap").add("lost", gap.lost);
    out.pop_back();
    print_(out);
  } else {
    print_("gap: " + std::to_string(gap.lost) + " records lost");
  }
  return Done{};
}

void Playback::show(const Replayer::Change& change) {
  if (!json_) {
    std::string time = seconds(change.time);
    time.insert(0, time.size() < 16 ? 16 - time.size() : 0, ' ');
    print_(time + "  " +
           (change.donation != nullptr ? text(*change.donation) : std::to_string(change.requester.tid) + " ends"));
    return;
  }
  std::string out;
  {
    Line line(out, change.donation != nullptr ? "decision" : "ended");
    line.raw(",\"time_s\":" + seconds(change.time));
    if (change.donation != nullptr)
      put(line, *change.donation);
    else
      line.add("requester", change.requester.tid);
  }
  out.pop_back();
  print_(out);
}

void Playback::show_difference() {
  const Replayer::Difference& d = *replayer_.difference();
  if (!json_) {
    print_(name_ + ":" + std::to_string(d.line) + ": at " + seconds(d.time) + " the live run decided otherwise");
    print_("  live:     " + text(d.live));
    print_("  replayed: " + text(d.replayed));
    return;
  }
  std::string out;
  {
    Line line(out, "difference");
    line.add("line", d.line);
    line.raw(",\"time_s\":" + seconds(d.time));
    line.add("live", text(d.live)).add("replayed", text(d.replayed));
  }
  out.pop_back();
  print_(out);
}

Result<bool> Playback::finish() {
  const Replayer::Totals& t = replayer_.totals();
  if (decoder_.line() == 0) return Error(EINVAL, name_ + ":1: not a recording of swapd");
  if (t.snapshots == 0 && !t.ended)
    return Error(EINVAL, name_ + ":" + std::to_string(decoder_.line()) + ": ends before its first snapshot");
  if (replayer_.difference()) show_difference();
  const std::string_view end = cut_off_ ? "cut-off" : t.ended ? "whole" : "no-end";
  if (json_) {
    std::string out;
    {
      Line line(out, "summary");
      line.add("events", t.events).add("decisions", t.decisions).add("donations", t.donations);
      line.add("gaps", t.gaps).add("lost", t.lost).add("differing", t.differing).add("end", end);
      line.raw(",\"duration_s\":" + seconds(t.last));
    }
    out.pop_back();
    print_(out);
    return t.differing == 0;
  }
  std::string out =
      std::to_string(t.events) + " events, " + std::to_string(t.decisions) + " decisions in " + seconds(t.last) + " s";
  if (t.gaps > 0) out += "; " + std::to_string(t.lost) + " records lost in " + std::to_string(t.gaps) + " gaps";
  out += t.differing == 0 ? "; all as in the live run"
                          : "; " + std::to_string(t.differing) + " decisions are not those of the live run";
  if (cut_off_)
    out += "; the last line is cut off and was left out";
  else if (!t.ended)
    out += "; the recorder did not end it";
  print_(out);
  return t.differing == 0;
}

}  // namespace swapd::replay
