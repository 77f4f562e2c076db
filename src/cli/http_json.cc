#include "cli/http_json.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <stdexcept>

namespace pagoda::cli {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Json = nlohmann::ordered_json;

// What the server says went wrong, without the JSON around it.
std::string message_of(const std::string& body) {
  const Json parsed = Json::parse(body, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("error")) return body;
  return parsed["error"].value("message", body);
}

Json exchange(const Url& url, const std::string& api_key,
              http::request<http::string_body>& request) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  asio::ip::tcp::socket socket(context);
  asio::connect(socket, resolver.resolve(url.host, url.port));
  request.set(http::field::host, url.host);
  if (!api_key.empty()) request.set(http::field::authorization, "Bearer " + api_key);
  request.prepare_payload();
  http::write(socket, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(socket, buffer, response);
  if (response.result() != http::status::ok) {
    throw std::runtime_error(fmt::format("{} {} gave {}: {}", std::string(request.method_string()),
                                         std::string(request.target()), response.result_int(),
                                         message_of(response.body())));
  }
  return Json::parse(response.body());
}

}  // namespace

Json get_json(const Url& url, const std::string& api_key, const std::string& path) {
  http::request<http::string_body> request{http::verb::get, url.path + path, 11};
  return exchange(url, api_key, request);
}

Json post_json(const Url& url, const std::string& api_key, const std::string& path,
               const std::string& body) {
  http::request<http::string_body> request{http::verb::post, url.path + path, 11, body};
  request.set(http::field::content_type, "application/json");
  return exchange(url, api_key, request);
}

}  // namespace pagoda::cli
