#include "lessons.h"

#include <spdlog/spdlog.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine.h"
#include "state_file.h"

namespace swapd::daemon {
namespace {

using nlohmann::json;

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
  const Status read = read_state(file_in(state_dir), version, boot_id, [&](const json& file) -> Status {
    for (const json& one : file.at("learnt")) {
      if (out.size() == most_lessons) return Error(EBADMSG, "too long");
      const auto kind = kind_named(one.at("kind").get<std::string>());
      if (!kind) continue;  // of a later version
      out.push_back({.provider = {one.at("tid").get<pid_t>(), one.at("start_time").get<std::uint64_t>()},
                     .resource = {*kind, one.at("ids").get<std::array<std::uint64_t, 4>>()},
                     .lead = one.at("lead").get<int>()});
    }
    return Done{};
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
