// What a client is told when its request cannot be answered, in OpenAI's shape.
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

// What replies repeat of a request is bounded.
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

  int status;           // of HTTP
  std::string message;  // for people; at most kMessageBytesMax
  std::string param;    // the field's path; empty when it is about no field; at most kParamBytesMax
  std::string code;     // for programs; empty when the status says it all
};

// An error of the engine or of a template about the request. Messages there begin with the field.
ApiError api_error(const Error& error);

// A request has not got the `needed` bytes in all of what requests may take together: 503 while
// others hold the rest, 400 (of a body 413) when no wait would help, for it is more than the whole
// budget.
ApiError out_of_request_memory(const ByteBudget& budget, std::uint64_t needed);
ApiError out_of_body_memory(const ByteBudget& budget, std::uint64_t needed);

Json error_json(const ApiError& error);
HttpReply error_reply(const ApiError& error);

}  // namespace pagoda::server
