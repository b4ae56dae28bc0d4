#include "engine/competitor_watch.h"

#include <algorithm>
#include <set>
#include <utility>

namespace swapd::daemon {

namespace {
constexpr auto period = std::chrono::milliseconds(500);
constexpr auto period_if_unsure = std::chrono::milliseconds(110);
constexpr auto max_pause = std::chrono::seconds(5);
}  // namespace

void CompetitorWatch::tick(Time now) {
  if (now - answered_ > max_pause) actuator_.forget_what_passes();
  if (now < next_ || !(worker_.rested(now) || now > next_ + max_pause)) return;
  std::set<pid_t> boosted;
  for (const actuate::Actuator::Active& active : actuator_.active()) boosted.insert(active.boost.thread.tid);
  if (boosted.empty()) return;
  next_ = now + period;
  worker_.ask(CompetitorsQuestion{std::move(boosted)});
}

void CompetitorWatch::take(actuate::Competitors answer, Time now) {
  if (answer.unsure) next_ = std::min(next_, now + period_if_unsure);
  actuator_.set_competitors(std::move(answer));
  answered_ = now;
}

}  // namespace swapd::daemon
