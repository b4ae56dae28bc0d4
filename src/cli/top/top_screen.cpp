#include "cli/top/top_screen.h"

#include <ncurses.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>

#include "base/thread_state.h"

namespace swapd::cli {
namespace {

enum Pair : short { heading_pair = 1, waits_pair, lent_pair, queued_pair, alert_pair };
constexpr int lines_above = 4;  // of the table: two of the summary, an empty one, the heading

}  // namespace

TopScreen::TopScreen() {
  std::setlocale(LC_ALL, "");
  initscr();
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  set_escdelay(25);
  const char* no_colour = std::getenv("NO_COLOR");
  colours_ = (no_colour == nullptr || *no_colour == '\0') && has_colors();
  if (!colours_) return;
  start_color();
  use_default_colors();
  init_pair(heading_pair, COLOR_BLACK, COLOR_GREEN);
  init_pair(waits_pair, COLOR_YELLOW, -1);
  init_pair(lent_pair, COLOR_GREEN, -1);
  init_pair(queued_pair, COLOR_MAGENTA, -1);
  init_pair(alert_pair, COLOR_RED, -1);
}

TopScreen::~TopScreen() { endwin(); }

std::size_t TopScreen::width() const { return static_cast<std::size_t>(std::max(COLS, 1)); }
int TopScreen::rows_on_page() const { return std::max(LINES - lines_above - 1, 1); }

int TopScreen::key(int within_ms) {
  timeout(within_ms);
  const int got = getch();
  return got == ERR ? -1 : got;
}

void TopScreen::draw(const Page& page) {
  erase();
  const std::size_t wide = width();
  const auto put = [&](int y, const std::string& text, attr_t how) {
    attrset(how);
    mvaddstr(y, 0, cut(text, wide).c_str());
    attrset(A_NORMAL);
  };
  const auto colour = [&](Pair pair) {
    return colours_ ? static_cast<attr_t>(COLOR_PAIR(static_cast<int>(pair))) : A_NORMAL;
  };
  for (std::size_t i = 0; i < page.summary.size() && i + 2 < lines_above; ++i)
    put(static_cast<int>(i), page.summary[i], A_NORMAL);
  std::string heading = page.heading;
  if (heading.size() < wide) heading.resize(wide, ' ');
  put(lines_above - 1, heading, colours_ ? colour(heading_pair) : A_REVERSE);

  const int fit = rows_on_page();
  const int count = static_cast<int>(page.rows->size());
  top_ = std::clamp(top_, std::max(page.selected - fit + 1, 0), std::max(page.selected, 0));
  top_ = std::min(top_, std::max(count - fit, 0));
  for (int i = 0; i < fit && top_ + i < count; ++i) {
    const TopRow& row = (*page.rows)[static_cast<std::size_t>(top_ + i)];
    attr_t how = A_NORMAL;
    if (!row.thread.lent_by.empty() || row.thread.job != 0)
      how = colour(lent_pair) | A_BOLD;
    else if (row.thread.state == word(ThreadState::virtual_runnable))
      how = colour(waits_pair);
    else if (row.thread.state == word(ThreadState::queued))
      how = colour(queued_pair);
    std::string text = top_line(row, wide);
    if (top_ + i == page.selected) {
      how = A_REVERSE;
      if (text.size() < wide) text.resize(wide, ' ');
    }
    put(lines_above + i, text, how);
  }
  put(LINES - 1, page.footer, page.alert ? colour(alert_pair) | A_BOLD : A_DIM);
  refresh();
}

void TopScreen::draw_text(const std::string& text, const std::string& footer) {
  erase();
  int y = 0;
  for (std::size_t at = 0; at < text.size() && y < LINES - 1; ++y) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    mvaddstr(y, 0, cut(std::string_view(text).substr(at, end - at), width()).c_str());
    at = end + 1;
  }
  attrset(A_DIM);
  mvaddstr(LINES - 1, 0, cut(footer, width()).c_str());
  attrset(A_NORMAL);
  refresh();
}

}  // namespace swapd::cli
