#include "server/api_error.h"

#include <fmt/format.h>

namespace pagoda::server {
namespace {

std::string_view type_of(int status) {
  if (status == 429) return "rate_limit_error";
  if (status == 403) return "permission_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

// Anthropic's names; the SDKs raise an exception of their own for each.
std::string_view anthropic_type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Returns the field that a message begins with: "top_p is 2, expected …" and "prompt[3]: token id
// …" name top_p and prompt[3].
std::string leading_field(std::string_view message) {
  constexpr std::string_view kFieldLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]";
  const std::size_t end = message.find_first_not_of(kFieldLetters);
  if (end == std::string_view::npos) return {};
  const bool names_field =
      message.substr(end).starts_with(": ") || message.substr(end).starts_with(" is ");
  return names_field ? std::string(message.substr(0, end)) : std::string();
}

struct MemoryUse {
  std::string_view need;  // the beginning of a sentence
  int too_large_status;
  std::string code;
};

ApiError out_of_memory(const ByteBudget& budget, std::uint64_t needed, const MemoryUse& use) {
  if (needed > budget.bytes_max()) {
    return {use.too_large_status,
            fmt::format("{} {} bytes of memory, and all requests together may take {} ({})",
                        use.need, needed, budget.bytes_max(), budget.option()),
            {},
            "request_too_large"};
  }
  return {503,
          fmt::format("{} {} bytes of memory, and requests hold {} of {} ({})", use.need, needed,
                      budget.bytes_held(), budget.bytes_max(), budget.option()),
          {},
          use.code};
}

}  // namespace

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

ApiError out_of_request_memory(const ByteBudget& budget, std::uint64_t needed) {
  return out_of_memory(budget, needed, {"this request needs", 400, "out_of_request_memory"});
}

ApiError out_of_body_memory(const ByteBudget& budget, std::uint64_t needed) {
  return out_of_memory(budget, needed, {"this body needs", 413, "out_of_body_memory"});
}

void refuse_grammar(const std::string& path, const Error& error) {
  throw ApiError(400, fmt::format("{}: {}", path, error.message), path, "invalid_grammar");
}

ApiError server_stops() { return {503, "the server is stopping", {}, "draining"}; }

ApiStyle style_of(std::string_view path) {
  if (path == "/v1/messages" || path.starts_with("/v1/messages/")) return ApiStyle::kAnthropic;
  return path.starts_with("/api/") ? ApiStyle::kOllama : ApiStyle::kOpenAi;
}

Json error_json(const ApiError& error, ApiStyle style) {
  if (style == ApiStyle::kOllama) return {{"error", error.message}};
  const bool is_anthropic = style == ApiStyle::kAnthropic;
  Json members = {{"message", error.message},
                  {"type", is_anthropic ? anthropic_type_of(error.status) : type_of(error.status)},
                  {"param", text_or_null(error.param)},
                  {"code", text_or_null(error.code)}};
  Json whole = Json::object();
  if (is_anthropic) whole["type"] = "error";
  whole["error"] = std::move(members);
  return whole;
}

HttpReply error_reply(const ApiError& error, ApiStyle style) {
  HttpReply reply = json_reply(error_json(error, style), error.status);
  reply.error = error.code.empty() ? error.param : error.code;
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace pagoda::server
