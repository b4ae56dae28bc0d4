#include "lessons.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine.h"
#include "state_file.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;
using replay::Fields;
using replay::Mistake;

constexpr int version = 1;
constexpr std::size_t most_lessons = 20'000;
constexpr std::uint64_t period_us = 10'000'000;

std::string file_in(const std::string& state_dir) { return state_dir + "/confidences"; }

}  // namespace

Status write_lessons(const std::string& state_dir, const std::string& boot_id,
                     const std::vector<model::Learnt>& lessons) {
  json list = json::array();
  for (const model::Learnt& one : lessons)
    list.push_back({{"tid", one.provider.tid},
                    {"start_time", one.provider.start_time},
                    {"kind", name(one.resource.kind)},
                    {"ids", one.resource.ids},
                    {"lead", one.lead}});
  return write_state(file_in(state_dir), {{"version", version}, {"boot_id", boot_id}, {"learnt", std::move(list)}});
}

Result<std::vector<model::Learnt>> read_lessons(const std::string& state_dir, const std::string& boot_id) {
  std::vector<model::Learnt> out;
  const Status read = read_state(file_in(state_dir), version, boot_id, [&](Fields& file, Mistake& mistake) {
    const auto lessons = file.list("learnt", [&](const json& one) -> std::optional<model::Learnt> {
      Fields lesson(one, mistake);
      const auto kind = kind_named(lesson.text("kind"));
      if (!kind) return std::nullopt;  // of a later version
      model::Learnt learnt{.provider = {lesson.number<pid_t>("tid"), lesson.number<std::uint64_t>("start_time")},
                           .resource = {*kind, {}},
                           .lead = lesson.number<int>("lead")};
      const auto ids = lesson.numbers<std::uint64_t>("ids");
      if (ids.size() == learnt.resource.ids.size())
        std::copy(ids.begin(), ids.end(), learnt.resource.ids.begin());
      else
        mistake.note("'ids' is not a list of " + std::to_string(learnt.resource.ids.size()));
      return learnt;
    });
    if (lessons.size() > most_lessons) mistake.note("too long");
    for (const auto& lesson : lessons)
      if (lesson) out.push_back(*lesson);
  });
  if (!read) return read.error();
  return out;
}

LessonsFile::LessonsFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id)
    : loop_(loop), engine_(engine), state_dir_(std::move(state_dir)), boot_id_(std::move(boot_id)) {
  recall();
  write_later();
}

LessonsFile::~LessonsFile() { sd_event_source_disable_unref(timer_); }

void LessonsFile::recall() {
  auto lessons = read_lessons(state_dir_, boot_id_);
  if (!lessons) {
    set_aside(file_in(state_dir_));
    spdlog::warn("{}; set aside as confidences.damaged, and learnt anew", lessons.error().context());
    return;
  }
  written_ = std::move(lessons).value();
  if (!written_.empty()) engine_.call([&](Engine& e) { e.recall(written_); });
}

void LessonsFile::write_later() {
  timer_ = sd_event_source_disable_unref(timer_);
  const auto due = [](sd_event_source*, std::uint64_t, void* self) {
    auto* file = static_cast<LessonsFile*>(self);
    file->write();
    file->write_later();
    return 0;
  };
  sd_event_add_time_relative(loop_, &timer_, CLOCK_MONOTONIC, period_us, period_us / 10, due, this);
}

void LessonsFile::write() {
  std::vector<model::Learnt> lessons;
  if (!engine_.call([&](Engine& e) { lessons = e.learnt(most_lessons); }) || lessons == written_) return;
  const Status written = write_lessons(state_dir_, boot_id_, lessons);
  if (!written && !std::exchange(failed_, true))
    spdlog::warn("{}; the next swapd will learn anew", written.error().text());
  if (!written) return;
  failed_ = false;
  written_ = std::move(lessons);
}

}  // namespace swapd::daemon
