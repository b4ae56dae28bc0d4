#include "decide/donation/alternatives.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace swapd::decide {

void Alternatives::thin(std::vector<Demand>& demands) {
  if (demands.size() <= thin_from_) return;
  order_.clear();
  for (std::uint32_t at = 0; at < demands.size(); ++at)
    if (std::holds_alternative<RunAs>(demands[at])) order_.push_back(at);
  const auto group = [&](std::uint32_t at) {
    const RunAs& run = std::get<RunAs>(demands[at]);
    return std::tuple(run.thread, run.payer.user, run.payer.requester_class, run.withheld);
  };
  std::ranges::sort(order_, {}, [&](std::uint32_t at) { return std::tuple_cat(group(at), std::tuple(at)); });
  // The places that are left out come first then.
  auto left_out = order_.begin();
  std::size_t of_group = 0;
  for (auto at = order_.begin(); at != order_.end(); ++at) {
    of_group = at != order_.begin() && group(*at) == group(*(at - 1)) ? of_group + 1 : 1;
    if (of_group > (std::get<RunAs>(demands[*at]).withheld ? max_withheld : max_of_a_payer)) *left_out++ = *at;
  }
  order_.erase(left_out, order_.end());
  std::ranges::sort(order_);
  auto next = order_.cbegin();
  std::size_t kept = 0;
  for (std::size_t at = 0; at < demands.size(); ++at) {
    if (next != order_.cend() && *next == at) {
      ++next;
    } else if (kept++ != at) {
      demands[kept - 1] = std::move(demands[at]);
    }
  }
  demands.erase(demands.begin() + static_cast<std::ptrdiff_t>(kept), demands.end());
  thin_from_ = std::max(usual_demands, demands.size() + demands.size() / 2);
}

}  // namespace swapd::decide
