#include "simulate/tally.h"

#include <algorithm>
#include <cmath>

namespace swapd::simulate {
namespace {

double as_share(Duration part, Duration whole) {
  return whole > Duration::zero() ? static_cast<double>(part.count()) / static_cast<double>(whole.count()) : 0;
}

}  // namespace

Tally::Tally(const std::vector<std::uint32_t>& members) {
  for (const std::uint32_t count : members)
    lines_.push_back({.members = count, .time = std::vector<Duration>(count + 1)});
}

void Tally::restart(Duration begin, Duration end) {
  begin_ = begin;
  end_ = end;
  for (Line& line : lines_) {
    std::ranges::fill(line.time, Duration::zero());
    line.full = {};
    line.since = begin;
  }
}

void Tally::finish(Duration now) {
  for (Line& line : lines_) account(line, now);
}

void Tally::add_full(Line& line, Duration now) const {
  const Duration length = std::max((end_ - begin_) / static_cast<Duration::rep>(batches), Duration(1));
  for (Duration at = line.since; at < now;) {
    const auto batch = std::min(static_cast<std::size_t>((at - begin_) / length), batches - 1);
    const Duration batch_end = batch + 1 == batches ? now : begin_ + length * static_cast<Duration::rep>(batch + 1);
    const Duration until = std::min(now, batch_end);
    line.full[batch] += until - at;
    at = until;
  }
}

std::vector<double> Tally::states(std::size_t job) const {
  std::vector<double> shares;
  for (const Duration time : lines_[job].time) shares.push_back(as_share(time, end_ - begin_));
  return shares;
}

Share Tally::share(const Batches& full) const {
  const double length = static_cast<double>((end_ - begin_).count()) / batches;
  Share share;
  for (const Duration time : full) share.mean += static_cast<double>(time.count()) / length / batches;
  double squares = 0;
  for (const Duration time : full) squares += std::pow(static_cast<double>(time.count()) / length - share.mean, 2);
  share.error = std::sqrt(squares / (batches * (batches - 1)));
  return share;
}

Share Tally::coscheduled(std::size_t job) const { return share(lines_[job].full); }

Share Tally::coscheduled() const {
  Batches all{};
  for (const Line& line : lines_)
    for (std::size_t b = 0; b < batches && line.members > 1; ++b) all[b] += line.full[b];
  return share(all);
}

double Tally::at_least(std::size_t job, double part) const {
  const Line& line = lines_[job];
  const auto from = static_cast<std::size_t>(std::ceil(part * line.members));
  Duration time{};
  for (std::size_t k = from; k < line.time.size(); ++k) time += line.time[k];
  return as_share(time, end_ - begin_);
}

}  // namespace swapd::simulate
