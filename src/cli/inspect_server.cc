#include "cli/inspect_server.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

#include "base/byte_size.h"
#include "cli/url.h"

namespace pagoda::cli {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Json = nlohmann::ordered_json;

// Throws what Asio, Beast and the JSON parser throw.
Json get(const Url& url, const std::string& api_key, const std::string& path) {
  asio::io_context context;
  asio::ip::tcp::resolver resolver(context);
  asio::ip::tcp::socket socket(context);
  asio::connect(socket, resolver.resolve(url.host, url.port));
  http::request<http::empty_body> request{http::verb::get, url.path + path, 11};
  request.set(http::field::host, url.host);
  if (!api_key.empty()) request.set(http::field::authorization, "Bearer " + api_key);
  http::write(socket, request);
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  http::read(socket, buffer, response);
  if (response.result() != http::status::ok) {
    throw std::runtime_error(
        fmt::format("GET {} gave {}: {}", path, response.result_int(), response.body()));
  }
  return Json::parse(response.body());
}

std::string count_of(const Json& object, const char* name) {
  return format_grouped(object.at(name).get<std::uint64_t>());
}

std::string server_text(const std::string& url, const Json& info, const Json& retained) {
  const Json& now = info.at("now");
  std::string text = fmt::format("{}: {}\n\n", url, info.at("model").get_ref<const std::string&>());
  text += fmt::format("blocks     {} in all, {} free, {} idle\n", count_of(now, "blocks_all"),
                      count_of(now, "blocks_free"), count_of(now, "blocks_idle"));
  text +=
      fmt::format("retained   {} blocks of at most {}; of at most {} a tenant\n",
                  count_of(retained, "blocks_retained"), count_of(retained, "blocks_retained_max"),
                  count_of(retained, "blocks_per_tenant_max"));
  const Json& grants = retained.at("grants");
  if (grants.empty()) return text;
  text +=
      fmt::format("\n  {:<8}{:>10}{:>10}{:>14}\n", "tenant", "blocks", "priority", "seconds left");
  for (const Json& grant : grants) {
    text += fmt::format("  {:<8}{:>10}{:>10}{:>14.1f}\n",
                        grant.at("tenant").get_ref<const std::string&>(), count_of(grant, "blocks"),
                        grant.at("priority").get<std::uint64_t>(),
                        grant.at("seconds_left").get<double>());
  }
  return text;
}

}  // namespace

Status inspect_server(const std::string& url, const std::string& api_key, bool json) {
  ASSIGN_OR_RETURN(const Url parsed, parse_url(url, "URL"));
  try {
    const Json info = get(parsed, api_key, "/server_info");
    const Json retained = get(parsed, api_key, "/cache/retained");
    const Json both = {{"server_info", info}, {"retained", retained}};
    fmt::print("{}", json ? both.dump(2) + "\n" : server_text(url, info, retained));
  } catch (const boost::system::system_error& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url, trouble.code().message())};
  } catch (const std::exception& trouble) {
    return Error{ErrorCode::kIo, fmt::format("{}: {}", url, trouble.what())};
  }
  return ok_status();
}

}  // namespace pagoda::cli
