// One HTTP request and one whole reply, as plain values: the API knows no sockets.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/access/caller.h"
#include "server/json.h"

namespace pagoda::server {

struct HttpRequest {
  std::string method;      // "GET"
  std::string path;        // without the query
  std::string query = {};  // what follows the path's '?'
  std::string content_type = {};
  std::string accept = {};
  std::string body = {};
  bool announces_body = false;     // the header says that a body follows, perhaps an empty one
  std::string authorization = {};  // "Bearer KEY", also of X-Api-Key: KEY
  std::optional<std::string> host = {};  // the Host header, or the authority of an absolute URL
  std::string origin = {};               // the Origin header of a browser's request
  std::string id = {};                   // X-Request-Id, the client's or a fresh one
  std::string session = {};              // X-Session-Id
  std::string anthropic_version = {};    // which Anthropic's clients send
  std::string cache_source = {};         // X-KV-Cache-Source-Host-Port
  Caller caller = {};
  bool may_take_long = true;  // the request is parsed on a text worker
  bool is_forwarded = false;  // a proxy says that it asks for somebody else
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  HeaderList headers = {};
  std::string error = {};  // an error's code, or else the field at fault, for the log
};

inline HttpReply json_reply(const Json& value, int status = 200) {
  return {.status = status, .body = dump_json(value)};
}

}  // namespace pagoda::server
