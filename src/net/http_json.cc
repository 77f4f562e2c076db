#include "net/http_json.h"

#include <fmt/format.h>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "net/server_stream.h"

namespace pagoda::net {
namespace {

namespace http = boost::beast::http;
using Json = nlohmann::ordered_json;

// Returns the message of a server's error without the JSON around it, or the body where it has
// none.
std::string message_of(const std::string& body) {
  const Json parsed = Json::parse(body, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("error")) return body;
  return parsed["error"].value("message", body);
}

Json send_request(const Url& url, const ServerAccess& access,
                  http::request<http::string_body>& request) {
  ServerStream stream(url, access);
  request.set(http::field::host, url.host);
  if (!access.api_key.empty()) {
    request.set(http::field::authorization, "Bearer " + access.api_key);
  }
  request.prepare_payload();
  http::write(stream, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(stream, buffer, response);
  if (response.result() != http::status::ok) {
    throw std::runtime_error(fmt::format("{} {} gave {}: {}", std::string(request.method_string()),
                                         std::string(request.target()), response.result_int(),
                                         message_of(response.body())));
  }
  return Json::parse(response.body());
}

}  // namespace

Json get_json(const Url& url, const ServerAccess& access, const std::string& path) {
  http::request<http::string_body> request{http::verb::get, url.path + path, 11};
  return send_request(url, access, request);
}

Json post_json(const Url& url, const ServerAccess& access, const std::string& path,
               const std::string& body) {
  http::request<http::string_body> request{http::verb::post, url.path + path, 11, body};
  request.set(http::field::content_type, "application/json");
  return send_request(url, access, request);
}

}  // namespace pagoda::net
