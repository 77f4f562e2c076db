// What a client is told when its request cannot be answered, in OpenAI's shape.
//
// Inside src/server an ApiError is thrown where a field is read and caught where requests enter
// (server/router.h): reading a request is a plain sequence of reads, and no error passes unseen.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http_reply.h"
#include "server/json.h"

namespace pagoda::server {

struct ApiError : std::exception {
  ApiError(int http_status, std::string text, std::string field = {}, std::string word = {})
      : status(http_status),
        message(std::move(text)),
        param(std::move(field)),
        code(std::move(word)) {}

  const char* what() const noexcept override { return message.c_str(); }

  int status;           // of HTTP
  std::string message;  // for people
  std::string param;    // the field's path; empty when it is about no field
  std::string code;     // for programs; empty when the status says it all
};

// An error of the engine or of a template about the request. Messages there begin with the field.
ApiError api_error(const Error& error);

Json error_json(const ApiError& error);
HttpReply error_reply(const ApiError& error);

}  // namespace pagoda::server
