#include "policy/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace swapd::policy {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table are enough: a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  // A hostile policy may hold a key of a megabyte; no valid name is near it.
  constexpr std::size_t longest_worth_comparing = 64;
  if (word.size() > longest_worth_comparing) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known, std::string_view open,
                       std::string_view close) {
  if (const std::string_view meant = nearest(word, known); !meant.empty())
    return "; did you mean " + std::string(open) + std::string(meant) + std::string(close) + "?";
  std::string all = "; valid: ";
  for (const std::string_view& name : known) {
    if (&name != known.data()) all += ", ";
    all += name;
  }
  return all;
}

}  // namespace swapd::policy
