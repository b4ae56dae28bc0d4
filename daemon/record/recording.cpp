#include "record/recording.h"

#include <utility>

namespace swapd::daemon {

namespace {
constexpr std::size_t full_chunk = 64 << 10;
}

Recording::Recording(RecordRing& ring, std::function<void()> snapshot, const Clock& clock)
    : ring_(ring), snapshot_(std::move(snapshot)), clock_(clock) {}

Status Recording::begin(Sink sink, replay::Header about) {
  if (sink_) return Error(EBUSY, "a recording is under way; there can be one at a time");
  sink_ = std::move(sink);
  about_ = std::move(about);
  encoder_.reset();
  begun_ = false;
  counts_ = {};
  ring_.reserve();
  snapshot_();
  return Done{};
}

void Recording::write(RecordRing::Item& item) {
  if (auto* opening = std::get_if<std::unique_ptr<RecordRing::Opening>>(&item)) {
    const RecordRing::Opening& o = **opening;
    if (!encoder_) {
      encoder_.emplace(o.snapshot.time);
      about_.start_ns = static_cast<std::uint64_t>(o.snapshot.time.time_since_epoch().count());
      encoder_->add(chunk_, about_);
    }
    if (o.lost > 0) encoder_->add(chunk_, replay::Gap{o.lost});
    chunk_counts_.lost += o.lost;
    encoder_->add(chunk_, o.settings);
    encoder_->add(chunk_, o.donation);
    encoder_->add(chunk_, o.budgets);
    encoder_->add(chunk_, o.coscheduling);
    encoder_->add(chunk_, o.levels);
    if (o.memory.on) encoder_->add(chunk_, o.memory);
    encoder_->add(chunk_, o.snapshot);
    opening->reset();
    return;
  }
  ++chunk_records_;
  if (const auto* event = std::get_if<Event>(&item)) {
    ++chunk_counts_.events;
    encoder_->add(chunk_, *event);
  } else if (const auto* granted = std::get_if<std::unique_ptr<replay::Granted>>(&item)) {
    ++chunk_counts_.decisions;
    encoder_->add(chunk_, **granted);
  } else if (const auto* input = std::get_if<decide::Input>(&item)) {
    encoder_->add(chunk_, *input);
  } else if (const auto* turn = std::get_if<decide::Turn>(&item)) {
    encoder_->add(chunk_, *turn);
  } else if (const auto* left = std::get_if<replay::Left>(&item)) {
    encoder_->add(chunk_, *left);
  }
}

bool Recording::flush() {
  if (chunk_.empty()) return true;
  const bool taken = sink_(chunk_);
  chunk_.clear();
  const replay::End counts = std::exchange(chunk_counts_, {});
  if (!taken) {
    if (!begun_) encoder_.reset();  // the header is to be written again
    return false;
  }
  begun_ = true;
  chunk_records_ = 0;
  counts_.events += counts.events;
  counts_.decisions += counts.decisions;
  counts_.lost += counts.lost;
  return true;
}

void Recording::drain() {
  auto& items = ring_.take();
  for (std::size_t i = 0; i < items.size(); ++i) {
    write(items[i]);
    if (chunk_.size() < full_chunk && i + 1 < items.size()) continue;
    const std::uint64_t told = chunk_counts_.lost;  // by a gap line in this chunk
    if (flush()) continue;
    std::uint64_t lost = std::exchange(chunk_records_, 0) + told;
    for (std::size_t rest = i + 1; rest < items.size(); ++rest) {
      const auto* opening = std::get_if<std::unique_ptr<RecordRing::Opening>>(&items[rest]);
      lost += opening != nullptr ? (*opening)->lost : 1;
    }
    ring_.lose(lost, clock_.now());
    return;
  }
}

void Recording::forward() {
  if (!sink_) return;
  drain();
  const Time now = clock_.now();
  if (!ring_.wants_snapshot(now)) return;
  if (sink_({}))
    snapshot_();
  else
    ring_.lose(0, now);  // not yet
}

void Recording::end() {
  if (!sink_) return;
  ring_.close();
  drain();
  if (!encoder_) {
    encoder_.emplace();
    encoder_->add(chunk_, about_);
  }
  if (const std::uint64_t lost = ring_.lost(); lost > 0) {
    encoder_->add(chunk_, replay::Gap{lost});
    chunk_counts_.lost += lost;
  }
  encoder_->add(chunk_, replay::End{counts_.events, counts_.decisions, counts_.lost + chunk_counts_.lost});
  (void)flush();
  ring_.release();
  sink_ = {};
}

}  // namespace swapd::daemon
