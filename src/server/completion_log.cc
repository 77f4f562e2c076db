#include "server/completion_log.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace pagoda::server {

bool is_completion_path(std::string_view path) {
  constexpr auto kPaths = std::to_array<std::string_view>(
      {"/v1/completions", "/v1/chat/completions", "/v1/chat/compact", "/v1/messages",
       "/v1/responses", "/v1/responses/compact", "/api/chat", "/api/generate"});
  return std::find(kPaths.begin(), kPaths.end(), path) != kPaths.end();
}

void log_completion(const HttpRequest& request, const Completion& completion,
                    const ServerState& state) {
  if (completion.finished() && !completion.error()) state.meters().count_usage(completion.usage());
  if (!state.log().is_on()) return;
  LogEntry entry = completion.log_entry(state.log().wants_prompts());
  entry.path = request.path;
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
