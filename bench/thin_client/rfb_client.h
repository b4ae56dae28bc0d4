// The client's side of the RFB protocol 3.8 (RFC 6143), as far as a viewer needs it that draws nothing. Pure: bytes in,
// bytes out.
//
// It asks for the whole screen, and after each update for the next one, so that the server encodes every change as it
// does for a person who looks. The encoding is ZRLE: what VNC viewers choose on a slow line, and the length of a
// rectangle is known without decoding it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace swapd::bench {

class RfbClient {
 public:
  // Takes what the server has sent, in pieces of any size; the answer is what is to be sent to it.
  [[nodiscard]] std::string take(std::string_view bytes);
  [[nodiscard]] int updates() const { return updates_; }
  // The server has said what this client does not speak; it takes nothing any more.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  enum class Part { version, kinds, kind, result, init, message, update, rectangle, length, colours, text };
  void expect(Part part, std::size_t size);
  [[nodiscard]] std::string skip(std::size_t size);
  [[nodiscard]] std::string after_skip();
  [[nodiscard]] std::string handle(std::string_view part);
  [[nodiscard]] std::string handle_message(char type);
  [[nodiscard]] std::string request(bool incremental) const;
  std::string fail();

  Part part_ = Part::version;
  std::size_t wanted_ = 12;  // bytes of the part that comes next
  std::string got_;          // of it
  std::size_t skip_ = 0;     // bytes that come before it and mean nothing here
  int rectangles_ = 0;       // left of this update
  bool in_update_ = false, failed_ = false;
  std::uint32_t width_ = 0, height_ = 0;
  int updates_ = 0;
};

}  // namespace swapd::bench
