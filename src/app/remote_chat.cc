// A chat with any server that speaks the OpenAI API, over HTTP or HTTPS.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/chat_model.h"
#include "base/clock.h"
#include "net/http_json.h"
#include "net/server_stream.h"
#include "net/sse_parser.h"
#include "net/url.h"

namespace pagoda::app {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Json = nlohmann::ordered_json;

class RemoteChat final : public ChatModel {
 public:
  RemoteChat(net::Url url, std::string model, net::ServerAccess access)
      : url_(std::move(url)), model_(std::move(model)), access_(std::move(access)) {}

  std::string name() const override {
    return fmt::format("{}{}://{}:{}", model_.empty() ? "" : model_ + " at ", url_.scheme(),
                       url_.host, url_.port);
  }

  // Servers with vLLM's fields tell it.
  Result<std::uint64_t> context_tokens() override {
    if (context_tokens_ > 0) return context_tokens_;
    try {
      const Json models = net::get_json(url_, access_, url_.path + "/v1/models");
      for (const Json& model : models.value("data", Json::array())) {
        const bool is_asked = model_.empty() || model.value("id", "") == model_;
        if (is_asked) context_tokens_ = model.value("max_model_len", std::uint64_t{0});
        if (context_tokens_ > 0) return context_tokens_;
      }
    } catch (const std::exception& trouble) {
      return Error{ErrorCode::kIo, fmt::format("{}: {}", name(), trouble.what())};
    }
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: does not tell how long its context is (max_model_len of "
                             "/v1/models)",
                             name())};
  }

  Result<ChatReply> complete(const text::ChatJson& messages, const ChatSampling& sampling,
                             const std::function<void(std::string_view)>& on_text,
                             const std::function<bool()>& stopped) override {
    try {
      return stream_completion(messages, sampling, on_text, stopped);
    } catch (const boost::system::system_error& trouble) {  // what() would tell its source file
      return Error{ErrorCode::kIo, fmt::format("{}: {}", name(), trouble.code().message())};
    } catch (const std::exception& trouble) {
      return Error{ErrorCode::kIo, fmt::format("{}: {}", name(), trouble.what())};
    }
  }

 private:
  http::request<http::string_body> request_for(const text::ChatJson& messages,
                                               const ChatSampling& sampling) const {
    Json body = {{"messages", messages},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}},
                 {"max_tokens", sampling.tokens_max}};
    for (const auto& [name, value] : sampling.fields.list()) body[name] = value;
    if (!model_.empty()) body["model"] = model_;
    if (sampling.seed) body["seed"] = *sampling.seed;
    http::request<http::string_body> request{http::verb::post, url_.path + "/v1/chat/completions",
                                             11};
    request.set(http::field::host, url_.host);
    request.set(http::field::content_type, "application/json");
    request.set(http::field::accept, "text/event-stream");
    if (!access_.api_key.empty()) {
      request.set(http::field::authorization, "Bearer " + access_.api_key);
    }
    request.body() = body.dump();
    request.prepare_payload();
    return request;
  }

  // Throws what Asio, Beast and the JSON parser throw; complete() makes it a value.
  Result<ChatReply> stream_completion(const text::ChatJson& messages, const ChatSampling& sampling,
                                      const std::function<void(std::string_view)>& on_text,
                                      const std::function<bool()>& stopped) const {
    net::ServerStream stream(url_, access_);
    const std::int64_t sent_ns = clock_.now_ns();
    http::write(stream, request_for(messages, sampling));

    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    http::read_header(stream, buffer, parser);
    if (parser.get().result() != http::status::ok) {
      http::read(stream, buffer, parser);
      return refusal(parser.get());
    }
    ChatReply answer;
    net::SseParser events;
    while (!parser.is_done()) {
      if (stopped()) {  // closing the connection cancels the request
        answer.finish_reason = "cancelled";
        break;
      }
      http::read_some(stream, buffer, parser);
      for (const std::string& event : events.push(parser.get().body())) {
        take_event(event, sent_ns, answer, on_text);
      }
      parser.get().body().clear();
    }
    answer.total_s = seconds_between(sent_ns, clock_.now_ns());
    return answer;
  }

  // The words of OpenAI and of us, of vLLM, and of llama.cpp.
  static bool is_too_long(std::string_view refusal) {
    constexpr std::array<std::string_view, 3> kWords = {
        "context_length_exceeded", "maximum context length", "exceed_context_size"};
    return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view words) {
      return refusal.find(words) != std::string_view::npos;
    });
  }

  static Error refusal(const http::response<http::string_body>& response) {
    const Json body = Json::parse(response.body(), nullptr, false);
    const bool shaped = body.is_object() && body.contains("error") && body["error"].is_object() &&
                        body["error"].contains("message");
    return {is_too_long(response.body()) ? ErrorCode::kOutOfRange : ErrorCode::kInvalidArgument,
            fmt::format("the server says {}: {}", response.result_int(),
                        shaped ? body["error"]["message"].get<std::string>() : response.body())};
  }

  void take_event(const std::string& event, std::int64_t sent_ns, ChatReply& answer,
                  const std::function<void(std::string_view)>& on_text) const {
    if (event == "[DONE]") return;
    const Json chunk = Json::parse(event);
    for (const Json& choice : chunk.value("choices", Json::array())) {
      const Json delta = choice.value("delta", Json::object());
      if (delta.contains("content") && delta["content"].is_string()) {
        const auto piece = delta["content"].get<std::string>();
        if (!piece.empty() && answer.first_token_s == 0) {
          answer.first_token_s = seconds_between(sent_ns, clock_.now_ns());
        }
        answer.text += piece;
        if (!piece.empty()) on_text(piece);
      }
      if (choice.contains("finish_reason") && choice["finish_reason"].is_string()) {
        answer.finish_reason = choice["finish_reason"];
      }
    }
    if (!chunk.contains("usage") || !chunk["usage"].is_object()) return;
    const Json& usage = chunk["usage"];
    answer.prompt_tokens = usage.value("prompt_tokens", std::uint64_t{0});
    answer.output_tokens = usage.value("completion_tokens", std::uint64_t{0});
    const Json details = usage.value("prompt_tokens_details", Json::object());
    if (details.is_object())
      answer.cached_tokens = details.value("cached_tokens", std::uint64_t{0});
  }

  net::Url url_;
  std::string model_;
  net::ServerAccess access_;
  std::uint64_t context_tokens_ = 0;  // 0: not asked for yet
  SteadyClock clock_;
};

}  // namespace

Result<std::unique_ptr<ChatModel>> open_remote_chat(const std::string& url,
                                                    const std::string& model,
                                                    const net::ServerAccess& access) {
  ASSIGN_OR_RETURN(net::Url parsed, net::parse_url(url, "`url`"));
  return std::unique_ptr<ChatModel>(new RemoteChat(std::move(parsed), model, access));
}

}  // namespace pagoda::app
