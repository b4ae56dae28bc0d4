// A web server of one page after the other, on the loopback: each page asks for the next one when it has been drawn, so
// that the requests tell how fast a browser loads and draws them ([SWAP04 §5.3]: a Javascript-controlled sequence).
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace swapd::bench {

class PageServer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  PageServer() = default;
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;
  [[nodiscard]] Status start();
  [[nodiscard]] std::string first() const;  // the address of the first page
  // When each page was asked for.
  [[nodiscard]] std::vector<Time> requests() const;

 private:
  void serve();
  void answer(int connection);

  Fd listener_;
  int port_ = 0;
  std::vector<Time> requests_;
  mutable std::mutex mutex_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// The page's text; `number` says which one it is and how it looks. Pure.
[[nodiscard]] std::string page(int number);

}  // namespace swapd::bench
