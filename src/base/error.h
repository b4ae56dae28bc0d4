// An error is an errno value plus a chain of context, outermost first.
//
// Shape: code is a positive errno (EINVAL …); context reads "doing A: doing B". The text form is
// "doing A: doing B: Invalid argument". ESRCH and ENOENT mean "the target is gone", which callers
// treat as a normal answer, not as a failure worth a log line.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace swapd {

class Error {
 public:
  Error(int code, std::string context) : code_(code), context_(std::move(context)) {}

  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& context() const { return context_; }
  // True when the thread, process, descriptor or file this was about no longer exists.
  [[nodiscard]] bool gone() const { return code_ == ESRCH || code_ == ENOENT; }
  // "context: strerror(code)"; only the context where code is 0.
  [[nodiscard]] std::string text() const;
  // The same error with one more outer context.
  [[nodiscard]] Error in(std::string_view outer) &&;

 private:
  int code_;
  std::string context_;
};

// The current errno with a context.
[[nodiscard]] Error errno_error(std::string context);

}  // namespace swapd
