#include "cli/top/top_state.h"

#include <ncurses.h>  // names of keys; nothing else of it

#include <algorithm>

#include "cli/failure.h"

namespace swapd::cli {
namespace {

using Wish = TopState::Wish;

constexpr int escape = 27, backspace = 127;
constexpr std::size_t max_typed = 60;

constexpr const char* help = R"(swapctl top: who waits, for whom, and who is helped

  up down page-up page-down home end   select a row
  w, enter      why does the selected thread wait?        space, Z   stand still, go on
  t, F5         tree: below a waiter those it waits for   H          a row a process, or a thread
  T P N C M     order by time of waiting, own priority, process id, class, name;   I  turned round
  < > F6        the order before, the next                i          what classes with limits move, and back
  / F3 n        search for a name or an id, again         \ F4       only rows with this in name or class
  [ F8   ] F7   the selected process is nicer, less nice  h ? F1     this
  q F10 ^C      end

FOR is how long the thread has been in its state, OWN its own priority, NOW the one that it runs with,
LENT BY the threads whose priority it has. A thread that waits while whoever could end that is able to run
is virtual-runnable.)";
constexpr const char* short_help = "h help  t tree  i I/O  w why  / search  \\ filter  < > order  ] [ nice  q end";

bool ends_line(int key) { return key == '\n' || key == '\r' || key == KEY_ENTER; }

}  // namespace

void TopState::show(const TopSample& sample) {
  rows_ = top_rows(sample, view);
  const auto found = std::ranges::find(rows_, selected_tid_, [](const TopRow& row) { return row.thread.tid; });
  select(selected_tid_ != 0 && found != rows_.end() ? static_cast<int>(found - rows_.begin()) : selected_);
}

void TopState::select(int row) {
  selected_ = std::clamp(row, 0, std::max(static_cast<int>(rows_.size()) - 1, 0));
  const TopThread* thread = selected();
  selected_tid_ = thread == nullptr ? 0 : thread->tid;
}

const TopThread* TopState::selected() const {
  const auto at = static_cast<std::size_t>(selected_);
  return at < rows_.size() ? &rows_[at].thread : nullptr;
}

void TopState::say(std::string text, bool alert) {
  said_ = std::move(text);
  alert_ = alert;
}

std::string TopState::text() const { return help_ ? help : text_; }

std::string TopState::footer() const {
  if (prompt_ == Prompt::search) return "search: " + printable(typed_) + "_";
  if (prompt_ == Prompt::filter) return "filter: " + printable(typed_) + "_";
  std::string line = said_.empty() ? short_help : said_;
  if (!view.filter.empty()) line = "(only \"" + printable(view.filter) + "\")  " + line;
  return paused_ ? "(stands still; space goes on)  " + line : line;
}

Wish TopState::pressed(int key, int page) {
  if (key == KEY_RESIZE) return Wish::none;
  if (help_ || !text_.empty()) {
    help_ = false;
    text_.clear();
    return key == 'q' ? Wish::end : Wish::none;
  }
  if (prompt_ != Prompt::none) {
    type(key);
    return Wish::none;
  }
  say("", false);
  move(key, page);
  change_view(key);
  return command(key);
}

void TopState::move(int key, int page) {
  switch (key) {
    case KEY_UP:
    case 'k':
      return select(selected_ - 1);
    case KEY_DOWN:
    case 'j':
      return select(selected_ + 1);
    case KEY_PPAGE:
      return select(selected_ - page);
    case KEY_NPAGE:
      return select(selected_ + page);
    case KEY_HOME:
      return select(0);
    case KEY_END:
      return select(static_cast<int>(rows_.size()) - 1);
    default:
      return;
  }
}

void TopState::change_view(int key) {
  const auto order = [&](TopOrder chosen) {
    view.reversed = false;
    view.order = chosen;
  };
  const auto step = [&](std::size_t by) {
    order(static_cast<TopOrder>((static_cast<std::size_t>(view.order) + by) % top_order_words.size()));
  };
  switch (key) {
    case 't':
    case KEY_F(5):
      view.tree = !view.tree;
      return;
    case 'H':
      view.processes = !view.processes;
      return;
    case 'i':
      view.io = !view.io;
      return;
    case 'I':
      view.reversed = !view.reversed;
      return;
    case 'T':
      return order(TopOrder::wait);
    case 'P':
      return order(TopOrder::priority);
    case 'N':
      return order(TopOrder::pid);
    case 'C':
      return order(TopOrder::class_name);
    case 'M':
      return order(TopOrder::name);
    case '>':
    case KEY_F(6):
      return step(1);
    case '<':
      return step(top_order_words.size() - 1);
    default:
      return;
  }
}

Wish TopState::command(int key) {
  switch (key) {
    case 'q':
    case KEY_F(10):
      return Wish::end;
    case 'w':
    case '\n':
    case '\r':
    case KEY_ENTER:
      return Wish::explain;
    case ']':
    case KEY_F(7):
      return Wish::less_nice;
    case '[':
    case KEY_F(8):
      return Wish::more_nice;
    case 'h':
    case '?':
    case KEY_F(1):
      help_ = true;
      return Wish::none;
    case ' ':
    case 'Z':
      paused_ = !paused_;
      return paused_ ? Wish::none : Wish::look;
    case '/':
    case KEY_F(3):
      prompt_ = Prompt::search;
      typed_.clear();
      return Wish::none;
    case '\\':
    case KEY_F(4):
      prompt_ = Prompt::filter;
      typed_ = view.filter;
      return Wish::none;
    case 'n':
      search(selected_ + 1);
      return Wish::none;
    default:
      return Wish::none;
  }
}

// A search or a filter holds from each letter on.
void TopState::type(int key) {
  if (ends_line(key) || key == escape) {
    if (prompt_ == Prompt::filter && key == escape) view.filter.clear();
    prompt_ = Prompt::none;
    return;
  }
  if (key == KEY_BACKSPACE || key == backspace || key == '\b') {
    if (!typed_.empty()) typed_.pop_back();
  } else if (key >= ' ' && key < 256 && typed_.size() < max_typed) {
    typed_ += static_cast<char>(key);
  }
  if (prompt_ == Prompt::filter) {
    view.filter = typed_;
  } else {
    searched_ = typed_;
    search(selected_);
  }
}

void TopState::search(int from) {
  if (searched_.empty()) return;
  if (const int found = top_search(rows_, searched_, from); found >= 0)
    select(found);
  else
    say("nothing is called " + printable(searched_), true);
}

}  // namespace swapd::cli
