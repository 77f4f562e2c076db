#include "loadgen/probe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "loadgen/completion_reader.h"
#include "loadgen/run_load.h"

namespace pagoda::loadgen {
namespace {

constexpr double kTimeoutSeconds = 60;

}  // namespace

Result<std::string> first_model(const Target& target) {
  using Json = nlohmann::json;
  ASSIGN_OR_RETURN(const WholeReply reply,
                   fetch(target, get_request(target, "/v1/models"), kTimeoutSeconds));
  const Json body = Json::parse(reply.body, nullptr, false);
  const auto id = Json::json_pointer("/data/0/id");
  if (reply.status == 200 && body.is_object() && body.contains(id) && body[id].is_string()) {
    return body[id].get<std::string>();
  }
  return Error{
      ErrorCode::kIo,
      fmt::format("/v1/models names no model (HTTP {}: {:.200}); give one with `served_model`",
                  reply.status, reply.body)};
}

bool takes_ids(const Target& target, const std::string& model, const IdRange& ids) {
  constexpr std::uint32_t kTokens = 3;
  const CompletionForm form = {.stream = false,
                               .ignore_eos = false,
                               .prompts = PromptForm::kIds,
                               .ids = ids,
                               .model = model};
  const PlannedRequest planned = {.prompt = {{.symbols = random_symbols(0, 0, kTokens)}},
                                  .output_tokens = 1};
  const Result<WholeReply> reply =
      fetch(target, completion_request(target, form, planned), kTimeoutSeconds);
  if (!reply.ok() || reply.value().status != 200) return false;
  CompletionReader answer(false);
  answer.put(reply.value().body);
  answer.end();
  return answer.prompt_tokens() == kTokens;
}

}  // namespace pagoda::loadgen
