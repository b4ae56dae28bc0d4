#include "thin_client/rfb_client.h"

#include <algorithm>

namespace swapd::bench {
namespace {

constexpr std::uint32_t zrle = 16;
constexpr char no_authentication = 1;

std::uint32_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void append(std::string& to, std::uint32_t value, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

std::string RfbClient::take(std::string_view bytes) {
  std::string answer;
  while (!bytes.empty() && !failed_) {
    const std::size_t size = std::min(bytes.size(), skip_ > 0 ? skip_ : wanted_ - got_.size());
    const std::string_view piece = bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (skip_ > 0) {
      skip_ -= size;
      if (skip_ == 0) answer += after_skip();
      continue;
    }
    got_ += piece;
    if (got_.size() < wanted_) continue;
    const std::string part = std::move(got_);
    got_.clear();
    answer += handle(part);
  }
  return answer;
}

void RfbClient::expect(Part part, std::size_t size) {
  part_ = part;
  wanted_ = size;
}

std::string RfbClient::skip(std::size_t size) {
  skip_ = size;
  return size == 0 ? after_skip() : std::string();
}

// The next rectangle, or the next message; after an update's last rectangle the next update is asked for.
std::string RfbClient::after_skip() {
  if (in_update_ && rectangles_ > 0) {
    expect(Part::rectangle, 12);
    return {};
  }
  expect(Part::message, 1);
  if (!in_update_) return {};
  in_update_ = false;
  ++updates_;
  return request(true);
}

std::string RfbClient::request(bool incremental) const {
  std::string bytes = {3, static_cast<char>(incremental), 0, 0, 0, 0};
  append(bytes, width_, 2);
  append(bytes, height_, 2);
  return bytes;
}

std::string RfbClient::fail() {
  failed_ = true;
  return {};
}

std::string RfbClient::handle_message(char type) {
  switch (type) {
    case 0:
      expect(Part::update, 3);
      return {};
    case 1:
      expect(Part::colours, 5);
      return {};
    case 2:
      return {};  // the bell
    case 3:
      expect(Part::text, 7);
      return {};
    default:
      return fail();
  }
}

// RFC 6143, sections 7.1 to 7.6.
std::string RfbClient::handle(std::string_view part) {
  switch (part_) {
    case Part::version:
      expect(Part::kinds, 1);
      return "RFB 003.008\n";
    case Part::kinds:
      if (part[0] == 0) return fail();
      expect(Part::kind, static_cast<unsigned char>(part[0]));
      return {};
    case Part::kind:
      if (part.find(no_authentication) == std::string_view::npos) return fail();
      expect(Part::result, 4);
      return {no_authentication};
    case Part::result:
      if (number(part, 0, 4) != 0) return fail();
      expect(Part::init, 24);
      return {1};  // shared
    case Part::init: {
      width_ = number(part, 0, 2);
      height_ = number(part, 2, 2);
      std::string answer = {2, 0, 0, 1};
      append(answer, zrle, 4);
      answer += request(false);
      return answer + skip(number(part, 20, 4));  // the desktop's name
    }
    case Part::message:
      return handle_message(part[0]);
    case Part::update:
      rectangles_ = static_cast<int>(number(part, 1, 2));
      in_update_ = true;
      return after_skip();
    case Part::rectangle:
      if (number(part, 8, 4) != zrle) return fail();
      expect(Part::length, 4);
      return {};
    case Part::length:
      --rectangles_;
      return skip(number(part, 0, 4));
    case Part::colours:
      return skip(6 * std::size_t{number(part, 3, 2)});
    case Part::text:
      return skip(number(part, 3, 4));
  }
  return fail();
}

}  // namespace swapd::bench
