#include "control/confidence_file.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "engine/engine.h"
#include "state/persistent_state.h"
#include "state/state_file.h"

namespace swapd::daemon {
namespace {

constexpr std::chrono::seconds kept_every{10};

}  // namespace

ConfidenceFile::ConfidenceFile(sd_event* loop, Engine& engine, std::string state_dir, std::string boot_id)
    : engine_(engine),
      state_dir_(std::move(state_dir)),
      boot_id_(std::move(boot_id)),
      timer_(loop, [this] { write(); }) {
  restore_confidences();
  if (const Status set = timer_.repeat(kept_every); !set)
    spdlog::error("{}; confidences are saved at the end only", set.error().text());
}

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
