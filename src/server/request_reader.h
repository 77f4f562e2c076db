// Parses bytes into one HTTP request by RFC 9112. A request that two parsers could read in two ways
// is refused, so that nothing can be smuggled past a proxy in front. The reader knows no socket.
//
//   kHeader -> kBody -> kDone
//        `--------`----> kFailed
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/http_reply.h"
#include "server/server_options.h"

namespace pagoda::server {

// Returns 16 hexadecimal digits, the X-Request-Id of a request that came without one.
std::string fresh_request_id();

class RequestReader {
 public:
  enum class State : std::uint8_t { kHeader, kBody, kDone, kFailed };

  // The limits must outlive the reader.
  explicit RequestReader(const ConnectionOptions& limits);
  ~RequestReader();

  // Consumes the bytes of this request from the front of `bytes` and returns how many. The caller
  // passes the rest again, with more bytes behind it, until the reader is done or has failed.
  std::size_t put(std::string_view bytes);
  // Ends the input: no more bytes will come, or the request took too long. A reader that is not
  // done has failed.
  void end();
  void give_up();

  State state() const { return state_; }
  // True once a byte of the request has come, besides empty lines before it.
  bool has_begun() const { return begun_; }
  // Valid in kFailed.
  const ApiError& error() const { return *error_; }

  // Valid from kBody on.
  unsigned version() const;  // 11: HTTP/1.1
  bool keep_alive() const;
  bool expects_continue() const;
  // Returns how many bytes of the body have come.
  std::size_t body_bytes_come() const;
  // Returns the memory that the body takes. A body with a Content-Length has a buffer of that
  // length, of which only the bytes that have come are touched; a chunked body has a buffer that
  // doubles, and touches no more than its capacity while it does.
  std::size_t body_bytes() const;
  // Returns the request without its body. In kFailed it holds what was parsed, at least the id.
  const HttpRequest& head() const { return request_; }
  // Valid in kDone.
  HttpRequest take();

 private:
  struct Parser;

  std::size_t skip_empty_lines(std::string_view bytes);
  std::size_t find_header_end(std::string_view bytes);
  void read_head();
  std::size_t put_body(std::string_view bytes);
  void fail(ApiError error);

  const ConnectionOptions& limits_;
  std::unique_ptr<Parser> parser_;
  State state_ = State::kHeader;
  bool begun_ = false;
  std::size_t skipped_ = 0;  // bytes of empty lines before the request
  std::size_t scanned_ = 0;  // bytes of the header that were searched for its end
  HttpRequest request_;
  std::optional<ApiError> error_;
};

}  // namespace pagoda::server
