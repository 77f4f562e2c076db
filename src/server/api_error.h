// An ApiError is what a client is told when its request cannot be answered, in OpenAI's shape.
//
// Inside src/server an ApiError is thrown where a field is read and caught where requests enter
// (server/router.h): reading a request is a plain sequence of reads, and no error passes unseen.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"
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

// Returns 503: the memory for all requests together is used up, and this request needs more.
ApiError out_of_request_memory();

Json error_json(const ApiError& error);
HttpReply error_reply(const ApiError& error);

}  // namespace pagoda::server
