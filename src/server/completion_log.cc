#include "server/completion_log.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pagoda::server {

namespace {

// Why the two halves of a request did not meet; empty where they did.
std::string_view words_for(TransferOutcome outcome) {
  switch (outcome) {
    case TransferOutcome::kNotHandedOver:
      return "a prompt was computed for another server, which cannot fetch it: the reply's "
             "kv_transfer_params say what is missing";
    case TransferOutcome::kComputed:
      return "a prompt that another server was said to have computed was not found, and was "
             "computed here: the servers may differ in model, numerics, KV format, secret or "
             "tenants, or share no store";
    case TransferOutcome::kForeign:
      return "a prompt that another kind of server was said to have computed was computed here";
    case TransferOutcome::kRefused:
      return "a request named a server that it may not name (kv_peer_allow): that server was not "
             "asked, and the prompt was computed here";
    default:
      return {};
  }
}

// The first of a kind is told to the operator, all are counted.
void count_transfer(const Completion& completion, const ServerState& state) {
  const std::optional<TransferOutcome> outcome = completion.transfer_outcome();
  if (!outcome || !state.meters().count_transfer(*outcome)) return;
  const std::string_view words = words_for(*outcome);
  if (words.empty()) return;
  state.log().write(
      Failure{.request_id = completion.id(), .where = "kv_transfer_params", .what = words});
}

}  // namespace

bool is_completion_path(std::string_view path) {
  constexpr auto kPaths = std::to_array<std::string_view>(
      {"/v1/completions", "/v1/chat/completions", "/v1/chat/compact", "/v1/messages",
       "/v1/responses", "/v1/responses/compact", "/api/chat", "/api/generate"});
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

void log_completion(const HttpRequest& request, const Completion& completion,
                    const ServerState& state) {
  if (completion.finished() && !completion.error()) state.meters().count_usage(completion.usage());
  count_transfer(completion, state);
  if (!state.log().is_on()) return;
  LogEntry entry = completion.log_entry(state.log().wants_prompts());
  entry.path = request.path;
  const bool generates_nothing = request.path == "/v1/embeddings" && !completion.error();
  if (generates_nothing) entry.finish.clear();
  state.log().write(entry);
}

// The log leaves the error's message out, because it may repeat text of the client.
void log_refusal(const HttpRequest& request, const HttpReply& reply, const ServerState& state) {
  if (!state.log().is_on() || reply.status < 400 || !is_completion_path(request.path)) return;
  LogEntry entry;
  entry.path = request.path;
  entry.status = reply.status;
  entry.finish = "refused";
  entry.error = reply.error;
  state.log().write(entry);
}

void log_client_gone(const HttpRequest& request, const ServerState& state) {
  if (!state.log().is_on() || !is_completion_path(request.path)) return;
  LogEntry entry;
  entry.path = request.path;
  entry.status = LogEntry::kClientGone;
  entry.finish = "cancelled";
  state.log().write(entry);
}

}  // namespace pagoda::server
