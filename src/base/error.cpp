#include "base/error.h"

#include <system_error>

namespace swapd {

std::string Error::text() const {
  if (code_ == 0) return context_;
  const std::string reason = std::generic_category().message(code_);
  return context_.empty() ? reason : context_ + ": " + reason;
}

Error Error::in(std::string_view outer) && {
  context_ = context_.empty() ? std::string(outer) : std::string(outer) + ": " + context_;
  return std::move(*this);
}

Error errno_error(std::string context) { return {errno, std::move(context)}; }

}  // namespace swapd
