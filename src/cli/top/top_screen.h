// The terminal of `swapctl top`: draws rows, takes keys. ncurses stays behind it.
#pragma once

#include <string>
#include <vector>

#include "cli/top/top.h"

namespace swapd::cli {

class TopScreen {
 public:
  // Colours unless NO_COLOR is set (no-color.org) or the terminal has none.
  TopScreen();
  ~TopScreen();  // the terminal is as it was
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;

  struct Page {
    std::vector<std::string> summary;
    std::string heading;
    const std::vector<TopRow>* rows = nullptr;
    int selected = 0;
    std::string footer;
    bool alert = false;  // the footer tells of something that went wrong
  };
  // At least the selected row is seen.
  void draw(const Page& page);
  // Text instead of the table: help, or why a thread waits.
  void draw_text(const std::string& text, const std::string& footer);
  // The next key, as ncurses names it; none within that time: -1.
  [[nodiscard]] int key(int within_ms);
  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] int rows_on_page() const;

 private:
  int top_ = 0;  // the first row shown
  bool colours_ = false;
};

}  // namespace swapd::cli
