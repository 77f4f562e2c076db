#include "server/api_error.h"

#include "text/utf8.h"

namespace pagoda::server {
namespace {

constexpr const char* kRetryAfterSeconds = "1";

std::string_view type_of(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 403) return "permission_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// "top_p is 2, expected …" and "prompt[3]: token id …" are about top_p and prompt[3].
std::string leading_field(std::string_view message) {
  constexpr std::string_view kFieldLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]";
  const std::size_t end = message.find_first_not_of(kFieldLetters);
  if (end == std::string_view::npos) return {};
  const bool names_field =
      message.substr(end).starts_with(": ") || message.substr(end).starts_with(" is ");
  return names_field ? std::string(message.substr(0, end)) : std::string();
}

}  // namespace

std::string shortened(std::string text, std::size_t bytes_max) {
  constexpr std::string_view kGap = " … ";
  if (text.size() <= bytes_max) return text;
  const std::size_t room = bytes_max - kGap.size();
  const auto all = std::string_view(text);
  std::string_view head = all.substr(0, room - room / 4);
  head.remove_suffix(text::utf8_incomplete_tail(head));
  std::string_view tail = all.substr(all.size() - room / 4);
  while (!tail.empty() && (static_cast<unsigned char>(tail.front()) & 0xC0) == 0x80) {
    tail.remove_prefix(1);
  }
  std::string both(head);
  both += kGap;
  both += tail;
  return both;
}

ApiError api_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::kExhausted:
      return {503, error.message};
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return {500, error.message};
    default:
      return {400, error.message, leading_field(error.message)};
  }
}

Json error_json(const ApiError& error) {
  return {{"error",
           {{"message", error.message},
            {"type", type_of(error.status)},
            {"param", text_or_null(error.param)},
            {"code", text_or_null(error.code)}}}};
}

HttpReply error_reply(const ApiError& error) {
  HttpReply reply = json_reply(error_json(error), error.status);
  if (error.status == 429 || error.status == 503) {
    reply.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  }
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace pagoda::server
