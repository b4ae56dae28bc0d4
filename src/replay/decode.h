// The lines of a recording to records (docs/recording.md).
//
// Strict: a line that is not what the format says is an error with the file's name and the line's number, because a
// replay of half-understood records would be worth nothing. Fields that are not known are passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "replay/record.h"

namespace swapd::replay {

class Fields;
class Mistake;

class Decoder {
 public:
  // name: of the file, for errors: "NAME:LINE: what".
  explicit Decoder(std::string name) : name_(std::move(name)) {}

  // One line without its line feed. Empty: part of a snapshot whose other lines are to come.
  [[nodiscard]] Result<std::optional<Record>> read(std::string_view line);
  [[nodiscard]] std::uint64_t line() const { return line_; }  // of the line read last, from 1

 private:
  using Read = Result<std::optional<Record>>;
  [[nodiscard]] Read first(std::string_view type, Fields& f, const Mistake& mistake);
  [[nodiscard]] Read next(std::string_view type, Fields& f, Mistake& mistake);
  [[nodiscard]] Read part(std::string_view type, Fields& f);  // of a snapshot
  [[nodiscard]] std::optional<Record> whole();
  [[nodiscard]] Error error(const std::string& what) const;

  std::string name_;
  std::uint64_t line_ = 0;
  bool header_ = false;
  bool settings_ = false, rules_ = false, budgets_ = false;  // since the header or the last gap
  bool state_ = false;                                       // a snapshot since then
  bool ended_ = false;
  std::optional<Granted> before_;  // the last one since then
  std::optional<Snapshot> open_;   // its lines are coming
  struct {
    std::size_t threads = 0, resources = 0, deciders = 0;
  } left_;
};

}  // namespace swapd::replay
