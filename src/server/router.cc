#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/ascii.h"
#include "server/access/host.h"
#include "server/access/origin.h"
#include "server/access/rights.h"
#include "server/api/anthropic/messages_reply.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/caller_fields.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoints.h"
#include "server/api/ollama/ollama_reply.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/responses/responses_reply.h"
#include "server/api/responses/responses_request.h"
#include "server/api_error.h"
#include "server/cache_branch.h"
#include "server/cache_routes.h"
#include "server/cache_tree.h"
#include "server/compact_routes.h"
#include "server/completion_route.h"
#include "server/content_type.h"
#include "server/fields.h"
#include "server/metrics/metrics.h"
#include "server/other_paths.h"
#include "server/page/page.h"
#include "server/request_target.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kShownHostBytesMax = 260;  // host names have up to 253 bytes
constexpr std::string_view kModelPath = "/v1/models/";
constexpr std::string_view kTenantPath = "/cache/tenant/";

using Handler = Routed (*)(const HttpRequest& request, const ServerState& state);

struct Endpoint {
  std::string_view method;
  std::string_view path;
  Handler handler;
  bool always;  // answers in every phase; other endpoints need a model that takes requests
  Access level = Access::kKey;
};

// Returns the path after the endpoint's own part; names may hold slashes, plain or as %2F.
std::string name_in_path(const HttpRequest& request, std::string_view path) {
  std::optional<std::string> name =
      percent_decoded(std::string_view(request.path).substr(path.size()));
  if (!name) throw ApiError(400, "the path has a % without two hexadecimal digits behind it");
  return std::move(*name);
}

void require_device(const ServerState& state) {
  if (!state.model().engine.snapshot().is_lost) return;
  throw ApiError(503, "the device is lost: restart the server", {}, "device_lost");
}

void require_model(const ServerState& state) {
  if (!state.has_model()) throw ApiError(503, "the model is loading", {}, "loading");
}

Routed health(const HttpRequest& /*request*/, const ServerState& state) {
  require_model(state);
  require_device(state);
  return json_reply({{"status", "ok"}});
}

void require_ready(const ServerState& state) {
  switch (state.phase()) {
    case Phase::kLoading:
      return require_model(state);
    case Phase::kReady:
      return;
    case Phase::kDraining:
    case Phase::kStopping:
      throw server_stops();
  }
}

Routed ready(const HttpRequest& /*request*/, const ServerState& state) {
  require_ready(state);
  require_device(state);
  return json_reply({{"status", "ready"}});
}

Routed version(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply({{"version", state.version()}});
}

// Anthropic's clients ask on OpenAI's paths, and say who they are.
Routed models(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  const bool is_anthropic = !request.anthropic_version.empty();
  return json_reply(is_anthropic ? list_models_for_anthropic(model) : list_models(model));
}

Routed one_model(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  const std::string id = name_in_path(request, kModelPath);
  const bool is_anthropic = !request.anthropic_version.empty();
  return json_reply(is_anthropic ? describe_model_for_anthropic(model, id)
                                 : describe_model(model, id));
}

Routed server_info(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_server(state.model(), state.version()));
}

Routed model_info(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_model_info(state.model()));
}

Routed loads(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_loads(state.model(), state.version()));
}

// A server that is ready never sleeps.
Routed is_sleeping(const HttpRequest& /*request*/, const ServerState& /*state*/) {
  return json_reply({{"is_sleeping", false}});
}

// Reading functions return when the memory of reading is given back: complete() counts what stays.
CompletionRequest read_chat(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  return read_chat_request(read_body(request, model, memory), model,
                           reading_terms(request, state, memory));
}

CompletionRequest read_text(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  return read_text_request(read_body(request, model, memory), model,
                           reading_terms(request, state, memory));
}

Routed chat_completions(const HttpRequest& request, const ServerState& state) {
  return complete(read_chat(request, state), request, state);
}

Routed completions(const HttpRequest& request, const ServerState& state) {
  return complete(read_text(request, state), request, state);
}

Routed embeddings(const HttpRequest& request, const ServerState& state) {
  const auto read = [&] {
    const ServedModel& model = state.model();
    ReadingMemory memory = reading_memory(request, state);
    return read_embedding_request(read_body(request, model, memory), model,
                                  reading_terms(request, state, memory));
  };
  return complete(read(), request, state);
}

// Another API's request, whose translator makes a chat of it, and whose reply `writer` writes.
template <TranslatedChat (*Translate)(Json body, ReadingMemory* memory)>
Routed complete_translated(const HttpRequest& request, const ServerState& state,
                           std::shared_ptr<ReplyWriter> writer) {
  const auto read = [&] {
    const ServedModel& model = state.model();
    ReadingMemory memory = reading_memory(request, state);
    return read_translated(Translate(read_body(request, model, memory), &memory), model,
                           reading_terms(request, state, memory));
  };
  CompletionRequest asked = read();
  asked.writer = std::move(writer);
  return complete(std::move(asked), request, state);
}

Routed create_message(const HttpRequest& request, const ServerState& state) {
  return complete_translated<anthropic::chat_of_messages>(request, state,
                                                          anthropic::make_messages_writer());
}

// A response repeats much of its request.
Routed create_response(const HttpRequest& request, const ServerState& state) {
  responses::ResponseEcho echo;
  const auto read = [&] {
    const ServedModel& model = state.model();
    ReadingMemory memory = reading_memory(request, state);
    Json body = read_body(request, model, memory);
    echo = responses::echo_of_responses(body);
    return read_translated(responses::chat_of_responses(std::move(body), &memory), model,
                           reading_terms(request, state, memory));
  };
  CompletionRequest asked = read();
  asked.memory_bytes += echo.members.size();
  asked.writer = responses::make_responses_writer(std::move(echo));
  return complete(std::move(asked), request, state);
}

// Answers requests without a prompt, which load or unload the model, at once: such bodies are
// small.
std::optional<Json> ollama_load(const HttpRequest& request, const ServerState& state,
                                bool is_chat) {
  constexpr std::size_t kLoadBytesMax = 4 << 10;
  if (request.body.empty() || request.body.size() > kLoadBytesMax) return std::nullopt;
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  const auto asked = ollama::load_request(read_body(request, model, memory), is_chat);
  if (asked == ollama::LoadRequest::kNone) return std::nullopt;
  return ollama::loaded_reply(model, is_chat, asked == ollama::LoadRequest::kUnload);
}

Routed ollama_chat(const HttpRequest& request, const ServerState& state) {
  if (auto loaded = ollama_load(request, state, true)) return json_reply(*std::move(loaded));
  return complete_translated<ollama::chat_of_chat>(request, state,
                                                   ollama::make_ollama_writer(true));
}

Routed ollama_generate(const HttpRequest& request, const ServerState& state) {
  if (auto loaded = ollama_load(request, state, false)) return json_reply(*std::move(loaded));
  return complete_translated<ollama::chat_of_generate>(request, state,
                                                       ollama::make_ollama_writer(false));
}

Routed ollama_tags(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(ollama::list_tags(state.model()));
}

Routed ollama_version(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply({{"version", ollama::kVersion}, {"pagoda", state.version()}});
}

Json ollama_show(Json body, const ServedModel& model, const ReadingTerms& /*terms*/) {
  const Fields fields(body);
  if (!fields.text("name")) fields.required_text("model");
  return ollama::show_model(model);
}

Json count_message_tokens(Json body, const ServedModel& model, const ReadingTerms& terms) {
  return {{"input_tokens",
           count_translated(anthropic::chat_of_counted_messages(std::move(body), &terms.memory),
                            model, terms)}};
}

template <Json (*Answer)(Json body, const ServedModel& model, const ReadingTerms& terms)>
Routed answer_json(const HttpRequest& request, const ServerState& state) {
  const ServedModel& model = state.model();
  ReadingMemory memory = reading_memory(request, state);
  return json_reply(
      Answer(read_body(request, model, memory), model, reading_terms(request, state, memory)));
}

Routed retained(const HttpRequest& /*request*/, const ServerState& state) {
  return list_retained(state.model(), state.cache_looks());
}

Routed curve(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(describe_curve(state.model()));
}

Routed cache_tree(const HttpRequest& /*request*/, const ServerState& state) {
  return show_tree(state.model(), state.cache_tree_reader(), state.option_name());
}

// vLLM's parameter would empty tiers as well. Stores remove a tenant's pages, or those of all
// models and servers that share them, and nothing in between.
void refuse_reset_of_tiers(const HttpRequest& request) {
  constexpr const char* kParameter = "reset_external";
  constexpr std::array<std::string_view, 6> kFalse = {"false", "0", "no", "off", "f", "n"};
  const std::optional<std::string> asked = query_value(request.query, kParameter);
  if (!asked) return;
  std::string word = *asked;
  for (char& c : word) c = is_ascii_letter(c) ? static_cast<char>(c | 0x20) : c;
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return;
  throw ApiError(400,
                 "reset_external: is not supported: a reset empties memory alone, what tiers hold "
                 "stays; DELETE /cache/tenant/NAME removes a tenant from tiers",
                 kParameter, "unsupported_parameter");
}

Routed reset_cache(const HttpRequest& request, const ServerState& state) {
  refuse_reset_of_tiers(request);
  return json_reply(reset_prefix_cache(state.model(), request.caller));
}

Routed tenants(const HttpRequest& /*request*/, const ServerState& state) {
  return json_reply(list_tenants(state.keys().get(), state.has_model()
                                                         ? state.model().engine.tenants()
                                                         : std::vector<engine::TenantStats>()));
}

Routed tenant_in_tiers(const HttpRequest& request, const ServerState& state) {
  return remove_tenant(state.model(), name_in_path(request, kTenantPath), state.log());
}

Routed metrics(const HttpRequest& request, const ServerState& state) {
  require_model(state);
  return metrics_reply(state, request.accept);
}

ReadableText readable_text(const HttpRequest& request, const ServerState& state) {
  return readable_text(request.caller, state.access().show_prompts_to_admins);
}

Routed cache_map(const HttpRequest& request, const ServerState& state) {
  return json_reply(
      describe_map(state.model(), state.cache_map_reader(), readable_text(request, state)));
}

Routed cache_branch(const HttpRequest& request, const ServerState& state) {
  return show_branch(state.model(), state.cache_looks(), query_value(request.query, "node"),
                     readable_text(request, state));
}

Routed page(const HttpRequest& request, const ServerState& /*state*/) {
  return page_reply(request.path);
}

// An endpoint whose row does not name an access level needs a key. A path that ends with a slash,
// other than "/", stands for all paths that begin with it.
constexpr auto kEndpoints = std::to_array<Endpoint>({
    {"GET", "/health", health, true, Access::kAnyone},
    {"GET", "/ready", ready, true, Access::kAnyone},
    {"GET", "/version", version, true, Access::kAnyone},
    {"GET", "/v1/models", models, false, Access::kKey},
    {"GET", kModelPath, one_model, false, Access::kKey},
    {"GET", "/server_info", server_info, false, Access::kAdmin},
    {"GET", "/get_server_info", server_info, false, Access::kAdmin},
    {"GET", "/model_info", model_info, false, Access::kKey},
    {"GET", "/get_model_info", model_info, false, Access::kKey},
    {"GET", "/v1/loads", loads, false, Access::kKey},
    {"GET", "/is_sleeping", is_sleeping, false, Access::kKey},
    {"GET", "/tenants", tenants, true, Access::kAdmin},
    {"POST", "/v1/chat/completions", chat_completions, false, Access::kKey},
    {"POST", "/v1/completions", completions, false, Access::kKey},
    {"POST", "/v1/embeddings", embeddings, false, Access::kKey},
    {"POST", "/v1/responses", create_response, false, Access::kKey},
    {"POST", "/v1/chat/compact", compact_chat, false, Access::kKey},
    {"POST", "/v1/responses/compact", compact_response, false, Access::kKey},
    {"POST", "/v1/messages", create_message, false, Access::kKey},
    {"POST", "/v1/messages/count_tokens", answer_json<count_message_tokens>, false, Access::kKey},
    {"POST", "/api/chat", ollama_chat, false, Access::kKey},
    {"POST", "/api/generate", ollama_generate, false, Access::kKey},
    {"GET", "/api/tags", ollama_tags, false, Access::kKey},
    {"POST", "/api/show", answer_json<ollama_show>, false, Access::kKey},
    {"GET", "/api/version", ollama_version, true, Access::kAnyone},
    {"POST", "/v1/chat/completions/render", answer_json<render_chat>, false, Access::kKey},
    {"POST", "/v1/completions/render", answer_json<render_text>, false, Access::kKey},
    {"POST", "/tokenize", answer_json<tokenize>, false, Access::kKey},
    {"POST", "/detokenize", answer_json<detokenize>, false, Access::kKey},
    {"GET", "/cache/retained", retained, false, Access::kAdmin},
    {"GET", "/cache/curve", curve, false, Access::kAdmin},
    {"POST", "/cache/explain", explain_cache, false, Access::kKey},
    {"POST", "/v1/kv/estimate", estimate_turn, false, Access::kKey},
    {"POST", "/cache/prefetch", prefetch, false, Access::kKey},
    {"POST", "/cache/demote", demote, false, Access::kKey},
    {"POST", "/cache/session/close", close_session, false, Access::kKey},
    {"GET", "/cache/tree", cache_tree, false, Access::kAdmin},
    {"DELETE", kTenantPath, tenant_in_tiers, false, Access::kAdmin},
    {"POST", "/reset_prefix_cache", reset_cache, false, Access::kKey},
    {"POST", "/flush_cache", reset_cache, false, Access::kKey},
    {"GET", "/ping", health, true, Access::kAnyone},
    {"GET", "/metrics", metrics, true, Access::kMetrics},
    {"GET", "/cache/map", cache_map, false, Access::kAdmin},
    {"GET", "/cache/branch", cache_branch, false, Access::kAdmin},
    {"GET", "/", page, true, Access::kAnyone},
    {"GET", kPageFolder, page, true, Access::kAnyone},
});
static_assert(kEndpoints.size() <= ServerMeters::kEndpointsMax);

// HEAD is GET without the body, which the connection leaves out.
bool takes_method(const Endpoint& endpoint, std::string_view method) {
  return endpoint.method == method || (endpoint.method == "GET" && method == "HEAD");
}

// Returns the endpoint, once its caller may use it. Only callers with a key learn that a path does
// not exist.
const Endpoint& admit(const HttpRequest& request, const ServerState& state) {
  const std::size_t found = endpoint_of(request.path);
  const bool exists = found < kEndpoints.size();
  require(exists ? kEndpoints[found].level : Access::kKey, request.caller,
          state.access().metrics_need_admin);
  if (!exists) {
    throw ApiError(
        404, fmt::format("{}: there is no such path{}", request.path, path_hint(request.path)), {},
        "not_found");
  }
  return kEndpoints[found];
}

void check_host(const HttpRequest& request, const ServerState& state) {
  if (is_for_us(request, state.access(), state.keys() != nullptr)) return;
  const std::string host = request.host->substr(0, kShownHostBytesMax);
  const std::string name = host_of(host).value_or("");
  throw ApiError(403,
                 fmt::format("Host: \"{}\" is no name of this server; {} allows it", host,
                             state.option_name()("allowed_hosts", name.empty() ? "NAME" : name)),
                 {}, "host_not_allowed");
}

void check_origin(const HttpRequest& request, const ServerState& state) {
  if (may_ask(request, state.access().cors_origins)) return;
  throw ApiError(403,
                 fmt::format("pages of {} may not ask here; {} allows them", request.origin,
                             state.option_name()("cors_origin", request.origin)),
                 {}, "origin_not_allowed");
}

// A caller without a key must not be able to fill the memory for bodies.
ApiError takes_no_body(const std::string& path) {
  return ApiError(413, fmt::format("{}: takes no body", path), {}, "no_body_expected");
}

HttpReply method_not_allowed(const HttpRequest& request, const Endpoint& endpoint) {
  HttpReply reply = error_reply(
      ApiError(405,
               fmt::format("{}: takes {}, not {}", endpoint.path, endpoint.method, request.method),
               {}, "method_not_allowed"),
      style_of(request.path));
  reply.headers.emplace_back("Allow", endpoint.method);
  return reply;
}

Routed route_or_throw(const HttpRequest& request, const ServerState& state) {
  check_host(request, state);
  check_origin(request, state);
  // As refuse_early() says where the body comes after the header.
  if (is_preflight(request)) {
    if (request.announces_body) throw takes_no_body(request.path);
    return preflight_reply();
  }
  const Endpoint& endpoint = admit(request, state);
  if (!takes_method(endpoint, request.method)) return method_not_allowed(request, endpoint);
  if (request.announces_body && endpoint.method != "POST") throw takes_no_body(request.path);
  if (!endpoint.always) require_ready(state);
  check_content_type(request);
  return endpoint.handler(request, state);
}

}  // namespace

std::size_t endpoint_count() { return kEndpoints.size(); }

std::size_t endpoint_of(std::string_view path) {
  const auto is_asked = [&](const Endpoint& endpoint) {
    const bool names_many = endpoint.path.size() > 1 && endpoint.path.ends_with('/');
    return names_many ? path.starts_with(endpoint.path) : path == endpoint.path;
  };
  const auto found = std::find_if(kEndpoints.begin(), kEndpoints.end(), is_asked);
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
    return error_reply(error, style_of(request.path));
  }
}

std::optional<HttpReply> refuse_early(const HttpRequest& head, const ServerState& state) {
  try {
    check_host(head, state);
    check_origin(head, state);
    if (is_preflight(head)) throw takes_no_body(head.path);
    const Endpoint& endpoint = admit(head, state);
    if (!takes_method(endpoint, head.method)) return method_not_allowed(head, endpoint);
    if (endpoint.method != "POST") throw takes_no_body(head.path);
    return std::nullopt;
  } catch (const ApiError& error) {
    return error_reply(error, style_of(head.path));
  }
}

HeaderList reply_headers(const HttpRequest& request, const ServerState& state) {
  HeaderList headers = origin_headers(request, state.access().cors_origins);
  if (!request.id.empty()) headers.emplace_back("X-Request-Id", request.id);
  return headers;
}

}  // namespace pagoda::server
