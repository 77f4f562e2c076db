#include "server/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include "base/assert.h"
#include "base/random.h"
#include "server/request_target.h"

namespace pagoda::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

// The parser gets this many bytes at a time. A chunk's size line with its extensions must fit, and
// so must the trailers: longer ones are refused, however their bytes arrive.
constexpr std::size_t kWindowBytes = 4 << 10;
constexpr std::size_t kRequestIdBytesMax = 128;

ApiError bad_http(std::string_view what) {
  return {400, fmt::format("this is not HTTP: {}", what), {}, "bad_http"};
}

ApiError header_too_large(const ConnectionOptions& limits) {
  return {431,
          fmt::format("the header has more than {} bytes", limits.header_bytes_max),
          {},
          "header_too_large"};
}

ApiError parse_failure(const error_code& error, const ConnectionOptions& limits) {
  if (error == http::error::body_limit) {
    return {413,
            fmt::format("the body has more than {} bytes", limits.body_bytes_max),
            {},
            "body_too_large"};
  }
  if (error == http::error::header_limit) return header_too_large(limits);
  return bad_http(error.message());
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// These fields decide where a request ends, its host or its caller: a request that repeats one is
// ambiguous and refused. Content-Length may repeat with equal values (RFC 9112, 6.3), which the
// parser checks.
constexpr std::array kOnce = {http::field::host, http::field::transfer_encoding,
                              http::field::authorization, http::field::content_type,
                              http::field::origin};

// Anthropic's clients send the key here, without a scheme.
constexpr const char* kApiKeyHeader = "X-Api-Key";

// Browsers say by it from where a request comes: "same-origin", "cross-site", "none" (the user).
constexpr const char* kFetchSiteHeader = "Sec-Fetch-Site";

// Returns the Authorization header, or one made of X-Api-Key where there is none.
std::string authorization_of(const http::request_header<>& header) {
  const bool has_key = header.count(kApiKeyHeader) > 0;
  if (!has_key || header.count(http::field::authorization) > 0) {
    return std::string(header[http::field::authorization]);
  }
  return fmt::format("Bearer {}", view(header[kApiKeyHeader]));
}

// Returns the origin of the page that sends the request. A browser that says that another site's
// page posts, and not whose, hides the origin, as "null" does.
std::string origin_of(const http::request_header<>& header) {
  const std::string_view origin = view(header[http::field::origin]);
  const std::string_view site = view(header[kFetchSiteHeader]);
  const bool only_reads = header.method() == http::verb::get || header.method() == http::verb::head;
  if (!origin.empty() || only_reads || site.empty() || site == "same-origin" || site == "none") {
    return std::string(origin);
  }
  return "null";
}

std::optional<ApiError> ambiguity(const http::request_header<>& header) {
  if (header.count(kApiKeyHeader) > 1) return bad_http("X-Api-Key comes twice");
  for (const http::field name : kOnce) {
    if (header.count(name) > 1) {
      return bad_http(fmt::format("{} comes twice", view(http::to_string(name))));
    }
  }
  if (header.version() != 10 && header.version() != 11) return bad_http("bad version");
  if (header.version() == 11 && header.count(http::field::host) == 0) {
    return bad_http("Host is missing");
  }
  if (!host_of(view(header[http::field::host]))) return bad_http("Host names no host");
  if (header.count(http::field::transfer_encoding) == 0) return std::nullopt;
  const boost::beast::string_view encoding = header[http::field::transfer_encoding];
  if (header.version() == 10 || header.count(http::field::content_length) > 0 ||
      !boost::beast::iequals(encoding, "chunked")) {
    return bad_http(
        fmt::format("Transfer-Encoding is \"{}\" where only \"chunked\" by itself, "
                    "without Content-Length, in HTTP/1.1, is taken",
                    view(encoding)));
  }
  return std::nullopt;
}

// Proxies say so in one of these.
bool is_forwarded(const http::request_header<>& header) {
  constexpr std::array kNames = {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip",
                                 "Via"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* name) { return header.count(name) > 0; });
}

// The values of Expect in an HTTP/1.1 request; HTTP/1.0 has none.
struct Expectations {
  bool continues = false;  // "100-continue": the client waits before it sends the body
  bool others = false;     // any other expectation
};

Expectations expectations_of(const http::request_header<>& header) {
  Expectations found;
  if (header.version() < 11) return found;
  const auto [begin, end] = header.equal_range(http::field::expect);
  for (auto line = begin; line != end; ++line) {
    std::string_view list = view(line->value());
    while (!list.empty()) {
      const std::size_t comma = std::min(list.find(','), list.size());
      std::string_view member = list.substr(0, comma);
      list.remove_prefix(std::min(comma + 1, list.size()));
      member.remove_prefix(std::min(member.find_first_not_of(" \t"), member.size()));
      member = member.substr(0, member.find_last_not_of(" \t") + 1);
      if (member.empty()) continue;
      const bool is_continue =
          boost::beast::iequals({member.data(), member.size()}, "100-continue");
      (is_continue ? found.continues : found.others) = true;
    }
  }
  return found;
}

// Returns the client's id where it is safe in a header and in a log, else an empty string.
std::string request_id_of(std::string_view given) {
  const bool good =
      !given.empty() && given.size() <= kRequestIdBytesMax &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return good ? std::string(given) : fresh_request_id();
}

}  // namespace

std::string fresh_request_id() { return fmt::format("{:016x}", fresh_seed()); }

struct RequestReader::Parser : http::request_parser<http::string_body> {
  // Beast from Boost 1.92 on asks this of trailers, and would drop fields about the body's length;
  // before, it refuses them itself. It overrides nothing there.
  void on_trailer_field_impl(http::field name, boost::beast::string_view /*name_string*/,
                             boost::beast::string_view /*value*/, error_code& error) {
    const bool frames =
        name == http::field::content_length || name == http::field::transfer_encoding;
    if (frames) error = http::error::bad_field;
  }
};

RequestReader::RequestReader(const ConnectionOptions& limits)
    : limits_(limits), parser_(std::make_unique<Parser>()) {
  parser_->header_limit(limits.header_bytes_max);
  parser_->body_limit(limits.body_bytes_max);
}

RequestReader::~RequestReader() = default;

std::size_t RequestReader::put(std::string_view bytes) {
  std::size_t taken = 0;
  if (state_ == State::kHeader) {
    taken = skip_empty_lines(bytes);
    const std::string_view header = bytes.substr(taken);
    const std::size_t length = find_header_end(header);
    if (length == 0) return taken;
    taken += length;
    error_code error;
    parser_->put(boost::asio::buffer(header.data(), length), error);
    // A length that is too large is reported once all fields have been read.
    const bool too_large = error == http::error::body_limit;
    if (error && error != http::error::need_more && !too_large) {
      fail(parse_failure(error, limits_));
    } else if (!too_large && !parser_->is_header_done()) {
      fail(bad_http("a header without a request"));
    } else {
      read_head();
      if (too_large && state_ != State::kFailed) fail(parse_failure(error, limits_));
    }
  }
  if (state_ == State::kBody) taken += put_body(bytes.substr(taken));
  return taken;
}

// Some clients send an empty line after a body (RFC 9112, 2.2).
std::size_t RequestReader::skip_empty_lines(std::string_view bytes) {
  std::size_t skipped = 0;
  while (!begun_ && state_ == State::kHeader && bytes.substr(skipped).starts_with("\r\n")) {
    skipped += 2;
    skipped_ += 2;
    if (skipped_ > limits_.header_bytes_max) fail(header_too_large(limits_));
  }
  return skipped;
}

// Returns the header's length; 0 when its end has not come yet or the bytes are no header.
std::size_t RequestReader::find_header_end(std::string_view bytes) {
  if (state_ == State::kFailed || bytes.empty()) return 0;
  if (!begun_ && bytes == "\r") return 0;  // may be half of an empty line
  begun_ = true;
  for (; scanned_ < bytes.size(); ++scanned_) {
    if (scanned_ >= limits_.header_bytes_max) {
      fail(header_too_large(limits_));
      return 0;
    }
    const char c = bytes[scanned_];
    const char before = scanned_ > 0 ? bytes[scanned_ - 1] : '\0';
    const bool line_begins = scanned_ >= 2 && before == '\n';
    if (c == '\n' && before == '\r') {
      if (bytes.substr(0, scanned_ + 1).ends_with("\r\n\r\n")) return ++scanned_;
    } else if (c == '\n' || before == '\r') {
      fail(bad_http("a line does not end in CR LF"));
      return 0;
    } else if (line_begins && (c == ' ' || c == '\t')) {
      fail(bad_http("a header goes on in a second line"));
      return 0;
    } else if (c == '\0') {
      fail(bad_http("a zero byte"));
      return 0;
    }
  }
  return 0;
}

void RequestReader::read_head() {
  const auto& message = parser_->get();
  request_.id = request_id_of(view(message["X-Request-Id"]));
  if (std::optional<ApiError> refused = ambiguity(message)) return fail(std::move(*refused));
  std::optional<RequestTarget> target =
      read_target(view(message.method_string()), view(message.target()));
  if (!target) return fail(bad_http("the target is neither a path nor a URL"));
  request_.method = std::string(message.method_string());
  request_.path = std::move(target->path);
  request_.query = std::move(target->query);
  request_.content_type = std::string(message[http::field::content_type]);
  request_.accept = std::string(message[http::field::accept]);
  request_.authorization = authorization_of(message);
  request_.host = std::move(target->authority);  // an absolute URL takes precedence over Host
  if (!request_.host && message.count(http::field::host) > 0) {
    request_.host = std::string(message[http::field::host]);
  }
  request_.origin = origin_of(message);
  request_.session = std::string(message["X-Session-Id"]);
  request_.anthropic_version = std::string(message["Anthropic-Version"]);
  request_.cache_source = std::string(message["X-KV-Cache-Source-Host-Port"]);
  request_.is_forwarded = is_forwarded(message);
  if (expectations_of(message).others) {
    return fail({417, "Expect: only 100-continue is supported", {}, "expectation_failed"});
  }
  request_.announces_body = !parser_->is_done();
  state_ = request_.announces_body ? State::kBody : State::kDone;
}

std::size_t RequestReader::put_body(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && state_ == State::kBody) {
    error_code error;
    const std::string_view rest = bytes.substr(taken, kWindowBytes);
    const std::size_t used = parser_->put(boost::asio::buffer(rest.data(), rest.size()), error);
    taken += used;
    if (error && error != http::error::need_more) {
      fail(parse_failure(error, limits_));
    } else if (parser_->is_done()) {
      state_ = State::kDone;
    } else if (used == 0) {
      if (rest.size() == kWindowBytes) fail(bad_http("a chunk's line is too long"));
      break;
    }
  }
  return taken;
}

void RequestReader::end() {
  if (state_ == State::kDone || state_ == State::kFailed) return;
  fail({400, "the request ends before it is complete", {}, "incomplete_request"});
}

void RequestReader::give_up() {
  if (state_ == State::kDone || state_ == State::kFailed) return;
  fail({408, "the request did not arrive in time"});
}

void RequestReader::fail(ApiError error) {
  if (request_.id.empty()) request_.id = fresh_request_id();
  error_ = std::move(error);
  state_ = State::kFailed;
}

unsigned RequestReader::version() const { return parser_->get().version(); }
bool RequestReader::keep_alive() const { return parser_->keep_alive(); }
std::size_t RequestReader::body_bytes_come() const { return parser_->get().body().size(); }
std::size_t RequestReader::body_bytes() const {
  const std::string& body = parser_->get().body();
  return parser_->chunked() ? body.capacity() : body.size();
}
bool RequestReader::expects_continue() const { return expectations_of(parser_->get()).continues; }

HttpRequest RequestReader::take() {
  ASSERT(state_ == State::kDone, "the request is whole");
  request_.body = std::move(parser_->get().body());
  return std::move(request_);
}

}  // namespace pagoda::server
