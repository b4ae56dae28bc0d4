// Work on threads of its own, kept in a list until it is done.
#pragma once

#include <iterator>
#include <list>
#include <memory>

namespace swapd::daemon {

// Takes those out whose `done` is set: where the list has a mutex, they are ended (and joined) outside of it.
template <typename T>
std::list<std::unique_ptr<T>> take_done(std::list<std::unique_ptr<T>>& list) {
  std::list<std::unique_ptr<T>> out;
  for (auto it = list.begin(); it != list.end();) {
    const auto next = std::next(it);
    if ((*it)->done) out.splice(out.end(), list, it);
    it = next;
  }
  return out;
}

}  // namespace swapd::daemon
