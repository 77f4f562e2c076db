#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "server/api/endpoints.h"
#include "server/api_error.h"
#include "server/fields.h"
#include "server/metrics/metrics.h"
#include "server/page/page.h"

namespace pagoda::server {
namespace {

using Handler = Routed (*)(const HttpRequest& request, const ServerState& state);

struct Endpoint {
  std::string_view method;
  std::string_view path;
  Handler handler;
  bool always;  // answers in every phase; others need a model that takes requests
};

bool is_json_type(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  if (type.size() < kJson.size()) return false;
  const bool named = std::equal(kJson.begin(), kJson.end(), type.begin(), [](char a, char b) {
    return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
  });
  const std::string_view rest = type.substr(kJson.size());
  return named && (rest.empty() || rest.front() == ';' || rest.front() == ' ');
}

Json read_body(const HttpRequest& request, const ServedModel& model) {
  if (request.body.empty()) throw ApiError(400, "the body is empty, expected a JSON object");
  Json body = parse_json(request.body);
  check_model_name(body, model);
  return body;
}

Routed health(const HttpRequest& /*request*/, const ServerState& state) {
  const bool serves = state.phase() != Phase::kLoading;
  if (!serves) throw ApiError(503, "the model is loading", {}, "loading");
  return json_reply({{"status", "ok"}});
}

void require_ready(const ServerState& state) {
  switch (state.phase()) {
    case Phase::kLoading:
      throw ApiError(503, "the model is loading", {}, "loading");
    case Phase::kReady:
      return;
    case Phase::kDraining:
    case Phase::kStopping:
      throw ApiError(503, "the server is stopping", {}, "draining");
  }
}

Routed ready(const HttpRequest& /*request*/, const ServerState& state) {
  require_ready(state);
  return json_reply({{"status", "ready"}});
}

Routed version(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply({{"version", state.version()}});
}

Routed models(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(list_models(state.model()));
}

Routed server_info(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_server(state.model(), state.version()));
}

Routed chat_completions(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  return std::make_unique<Completion>(model, read_chat_request(read_body(request, model), model));
}

Routed completions(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  return std::make_unique<Completion>(model, read_text_request(read_body(request, model), model));
}

// What a completion of the same body would find in the cache; nothing is computed.
Routed explain_cache(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  const Json body = read_body(request, model);
  const bool is_chat = Fields(body).find("messages") != nullptr;
  CompletionRequest asked =
      is_chat ? read_chat_request(body, model) : read_text_request(body, model);
  asked.engine.explain = asked.engine.explain_only = true;
  asked.engine.sampling.n = 1;
  asked.answers.stream = false;
  return std::make_unique<Completion>(model, std::move(asked));
}

template <Json (*Answer)(const Json& body, const ServedModel& model)>
Routed answer_json(const HttpRequest& request, const ServerState& state) {
  return json_reply(Answer(read_body(request, state.model()), state.model()));
}

Routed retained(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(list_retained(state.model()));
}

Routed curve(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_curve(state.model()));
}

Routed cache_tree(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(show_tree(state.model()));
}

Routed reset_cache(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(reset_prefix_cache(state.model()));
}

Routed metrics(const HttpRequest& request, const ServerState& state) {
  if (state.phase() == Phase::kLoading) throw ApiError(503, "the model is loading", {}, "loading");
  return metrics_reply(state, request.accept);
}

Routed cache_map(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_map(state.model(), state.map_board()));
}

Routed page(const HttpRequest& request, const ServerState& /*state*/) {
  return page_reply(request.path);
}

constexpr auto kEndpoints = std::to_array<Endpoint>({
    {"GET", "/health", health, true},
    {"GET", "/ready", ready, true},
    {"GET", "/version", version, true},
    {"GET", "/v1/models", models, false},
    {"GET", "/server_info", server_info, false},
    {"POST", "/v1/chat/completions", chat_completions, false},
    {"POST", "/v1/completions", completions, false},
    {"POST", "/v1/chat/completions/render", answer_json<render_chat>, false},
    {"POST", "/tokenize", answer_json<tokenize>, false},
    {"POST", "/detokenize", answer_json<detokenize>, false},
    {"GET", "/cache/retained", retained, false},
    {"GET", "/cache/curve", curve, false},
    {"POST", "/cache/explain", explain_cache, false},
    {"GET", "/cache/tree", cache_tree, false},
    {"POST", "/reset_prefix_cache", reset_cache, false},
    {"GET", "/ping", health, true},
    {"GET", "/metrics", metrics, true},
    {"GET", "/cache/map", cache_map, false},
    {"GET", "/", page, true},
    {"GET", "/page.css", page, true},
    {"GET", "/page.js", page, true},
});
static_assert(kEndpoints.size() <= ServerMeters::kEndpointsMax);

// HEAD is GET without the body, which the connection leaves out.
bool takes_method(const Endpoint& endpoint, std::string_view method) {
  return endpoint.method == method || (endpoint.method == "GET" && method == "HEAD");
}

const Endpoint& find_endpoint(const HttpRequest& request) {
  const std::size_t found = endpoint_of(request.path);
  if (found == kEndpoints.size()) {
    throw ApiError(404, fmt::format("{}: there is no such path", request.path), {}, "not_found");
  }
  return kEndpoints[found];
}

HttpReply method_not_allowed(const HttpRequest& request, const Endpoint& endpoint) {
  HttpReply reply = error_reply(ApiError(
      405, fmt::format("{}: takes {}, not {}", endpoint.path, endpoint.method, request.method), {},
      "method_not_allowed"));
  reply.headers.emplace_back("Allow", endpoint.method);
  return reply;
}

Routed route_or_throw(const HttpRequest& request, const ServerState& state) {
  const Endpoint& endpoint = find_endpoint(request);
  if (!takes_method(endpoint, request.method)) return method_not_allowed(request, endpoint);
  if (!endpoint.always) require_ready(state);
  if (!request.body.empty() && !is_json_type(request.content_type)) {
    throw ApiError(
        415,
        fmt::format("Content-Type: is \"{}\", expected application/json", request.content_type), {},
        "unsupported_media_type");
  }
  return endpoint.handler(request, state);
}

}  // namespace

std::size_t endpoint_count() { return kEndpoints.size(); }

std::size_t endpoint_of(std::string_view path) {
  const auto found = std::find_if(kEndpoints.begin(), kEndpoints.end(),
                                  [&](const Endpoint& endpoint) { return endpoint.path == path; });
  return static_cast<std::size_t>(found - kEndpoints.begin());
}

std::string_view endpoint_path(std::size_t endpoint) {
  return endpoint < kEndpoints.size() ? kEndpoints[endpoint].path : "none";
}

std::string_view endpoint_method(std::size_t endpoint) {
  return endpoint < kEndpoints.size() ? kEndpoints[endpoint].method : "";
}

Routed route(const HttpRequest& request, const ServerState& state) {
  try {
    return route_or_throw(request, state);
  } catch (const ApiError& error) {
    return error_reply(error);
  }
}

}  // namespace pagoda::server
