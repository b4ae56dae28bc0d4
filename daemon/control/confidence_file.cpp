#include "control/confidence_file.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "engine/engine.h"
#include "state/persistent_state.h"
#include "state/state_file.h"

namespace swapd::daemon {
namespace {

constexpr std::uint64_t kept_every_us = 10'000'000;

}  // namespace

ConfidenceFile::ConfidenceFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id)
    : loop_(loop), engine_(engine), state_dir_(std::move(state_dir)), boot_id_(std::move(boot_id)) {
  restore_confidences();
  write_later();
}

ConfidenceFile::~ConfidenceFile() { sd_event_source_disable_unref(timer_); }

void ConfidenceFile::restore_confidences() {
  auto lessons = read_lessons(state_dir_, boot_id_);
  if (!lessons) {
    set_aside(lessons_file(state_dir_));
    spdlog::warn("{}; set aside as confidences.damaged, and learnt anew", lessons.error().context());
    return;
  }
  written_ = std::move(lessons).value();
  if (!written_.empty()) engine_.call([&](Engine& e) { e.restore_confidences(written_); });
}

void ConfidenceFile::write_later() {
  timer_ = sd_event_source_disable_unref(timer_);
  const auto due = [](sd_event_source*, std::uint64_t, void* self) {
    auto* file = static_cast<ConfidenceFile*>(self);
    file->write();
    file->write_later();
    return 0;
  };
  sd_event_add_time_relative(loop_, &timer_, CLOCK_MONOTONIC, kept_every_us, kept_every_us / 10, due, this);
}

void ConfidenceFile::write() {
  std::vector<model::SavedConfidence> lessons;
  if (!engine_.call([&](Engine& e) { lessons = e.learnt(max_lessons); }) || lessons == written_) return;
  const Status written = write_lessons(state_dir_, boot_id_, lessons);
  if (!written && !std::exchange(failed_, true))
    spdlog::warn("{}; the next swapd will learn anew", written.error().text());
  if (!written) return;
  failed_ = false;
  written_ = std::move(lessons);
}

}  // namespace swapd::daemon
