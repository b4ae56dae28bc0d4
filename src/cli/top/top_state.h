// State of `swapctl top`, and what its keys change in that. Pure: keys in, and what remains to be done out.
#pragma once

#include <string>
#include <vector>

#include "cli/top/top.h"

namespace swapd::cli {

class TopState {
 public:
  // Takes a new look at swapd: the selection stays with its thread, wherever that is now.
  void show(const TopSample& sample);
  [[nodiscard]] const std::vector<TopRow>& rows() const { return rows_; }
  [[nodiscard]] int selected_row() const { return selected_; }
  [[nodiscard]] const TopThread* selected() const;  // null: there are no rows

  // Requests of a key that the caller carries out.
  enum class Wish : std::uint8_t { none, end, look, explain, more_nice, less_nice };
  // key: as getch(3ncurses) gives it; page: rows on the screen.
  Wish pressed(int key, int page);

  void say(std::string text, bool alert);  // until the next key
  void show_text(std::string text) { text_ = std::move(text); }
  // Help, or what show_text() was told; empty: the table.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string footer() const;
  [[nodiscard]] bool alert() const { return alert_; }
  [[nodiscard]] bool paused() const { return paused_; }

  TopView view;

 private:
  enum class Prompt : std::uint8_t { none, search, filter };
  void select(int row);
  void move(int key, int page);
  Wish command(int key);
  void change_view(int key);
  void type(int key);
  void search(int from);

  std::vector<TopRow> rows_;
  int selected_ = 0;
  long long selected_tid_ = 0;
  Prompt prompt_ = Prompt::none;
  std::string typed_, searched_, said_, text_;
  bool alert_ = false, paused_ = false, help_ = false;
};

}  // namespace swapd::cli
