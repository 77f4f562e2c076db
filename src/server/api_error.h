// An ApiError is what a client is told when its request cannot be answered, in the shape of the API
// that the client speaks.
//
// Inside src/server an ApiError is thrown where a field is read and caught where requests enter
// (server/router.h): reading a request is a plain sequence of reads, and no error passes unseen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/byte_budget.h"
#include "server/http_reply.h"
#include "server/json.h"
#include "text/abbreviated.h"

namespace pagoda::server {

// These limits bound how much of a request its error replies repeat.
inline constexpr std::size_t kMessageBytesMax = 1024;
inline constexpr std::size_t kParamBytesMax = 256;

struct ApiError : std::exception {
  ApiError(int http_status, std::string_view said, std::string_view field = {},
           std::string word = {})
      : status(http_status),
        message(text::abbreviated(said, kMessageBytesMax)),
        param(text::abbreviated(field, kParamBytesMax)),
        code(std::move(word)) {}

  const char* what() const noexcept override { return message.c_str(); }

  int status;           // the HTTP status code
  std::string message;  // for people; at most kMessageBytesMax
  // The field's path, at most kParamBytesMax bytes; empty when no field is at fault.
  std::string param;
  std::string code;  // for programs; empty when the status is enough
};

// Converts an error of the engine or of a chat template. Messages there begin with the field.
ApiError api_error(const Error& error);

// The error of a request that did not get `needed` bytes of a memory budget: 503 while other
// requests hold the rest; 400 (413 for a body) when `needed` is more than the whole budget, for
// then no retry helps.
ApiError out_of_request_memory(const ByteBudget& budget, std::uint64_t needed);
ApiError out_of_body_memory(const ByteBudget& budget, std::uint64_t needed);

// Throws the error of a schema, pattern or grammar that the request's field `path` has.
[[noreturn]] void refuse_grammar(const std::string& path, const Error& error);

// The error of a request that comes, or is still being read, when the server stops.
ApiError server_stops();

// The API whose errors a client expects.
enum class ApiStyle : std::uint8_t { kOpenAi, kAnthropic, kOllama };

// Paths of no other API are OpenAI's.
ApiStyle style_of(std::string_view path);

Json error_json(const ApiError& error, ApiStyle style = ApiStyle::kOpenAi);
HttpReply error_reply(const ApiError& error, ApiStyle style = ApiStyle::kOpenAi);

}  // namespace pagoda::server
