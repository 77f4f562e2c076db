// Bytes to one HTTP request, by the letter of RFC 9112: what two readers could understand in two
// ways is refused, so that nothing can be hidden from a proxy in front. Knows no socket.
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

// 16 hexadecimal digits: X-Request-Id of a request that came without.
std::string fresh_request_id();

class RequestReader {
 public:
  enum class State : std::uint8_t { kHeader, kBody, kDone, kFailed };

  // The limits must outlive it.
  explicit RequestReader(const ConnectionOptions& limits);
  ~RequestReader();

  // Takes what belongs to the request from the front of `bytes`; how many. What it leaves is given
  // again, with more behind it, until it is done or has failed.
  std::size_t put(std::string_view bytes);
  // No more will come, or it took too long: what is not done has failed.
  void end();
  void give_up();

  State state() const { return state_; }
  // Something of a request has come, not only empty lines before it.
  bool has_begun() const { return begun_; }
  // Of kFailed.
  const ApiError& error() const { return *error_; }

  // From kBody on.
  unsigned version() const;  // 11: HTTP/1.1
  bool keep_alive() const;
  bool expects_continue() const;
  // Of the body that have come.
  std::size_t body_bytes_come() const;
  // Of memory that the body takes. One whose length is told has a buffer of that length, of which
  // only what has come is touched; one in chunks has a buffer that doubles, and touches no more
  // than its capacity while it does.
  std::size_t body_bytes() const;
  // Without its body. Of kFailed what is known of it: its id at least.
  const HttpRequest& head() const { return request_; }
  // Of kDone.
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
  std::size_t skipped_ = 0;  // bytes of empty lines before it
  std::size_t scanned_ = 0;  // bytes of the header that were looked at
  HttpRequest request_;
  std::optional<ApiError> error_;
};

}  // namespace pagoda::server
