#include "loadgen/target.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace pagoda::loadgen {
namespace {

std::string header(const Target& target, const char* method, const std::string& path) {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: pagoda-bench\r\n",
                                 method, target.url.path, path, target.url.host, target.url.port);
  if (!target.api_key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", target.api_key);
  return text;
}

}  // namespace

Result<Target> parse_target(const std::string& text, const std::string& argument) {
  ASSIGN_OR_RETURN(net::Url url, net::parse_url(text, argument));
  return Target{.url = std::move(url)};
}

std::string get_request(const Target& target, const std::string& path) {
  return header(target, "GET", path) + "\r\n";
}

std::string post_request(const Target& target, const std::string& path, const std::string& body) {
  return fmt::format("{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                     header(target, "POST", path), body.size(), body);
}

std::string completion_request(const Target& target, const CompletionForm& form,
                               const PlannedRequest& planned) {
  std::string body = fmt::format(R"({{"model":{},{},"max_tokens":{},"temperature":{})",
                                 nlohmann::json(form.model).dump(),
                                 prompt_member(planned.prompt, form.prompts, form.ids),
                                 planned.output_tokens, form.temperature);
  if (form.sends_sessions && !planned.session.empty()) {
    body += fmt::format(R"(,"prompt_cache_key":{})", nlohmann::json(planned.session).dump());
  }
  if (form.ignore_eos) body += R"(,"ignore_eos":true)";
  if (form.stream) body += R"(,"stream":true,"stream_options":{"include_usage":true})";
  return post_request(target, form.chat ? "/v1/chat/completions" : "/v1/completions", body + "}");
}

}  // namespace pagoda::loadgen
