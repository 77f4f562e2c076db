#include "cli/load/probe.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/load/answer_reader.h"
#include "cli/load/traffic.h"

namespace pagoda::load {
namespace {

constexpr double kPatienceSeconds = 60;

}  // namespace

Result<std::string> first_model(const Target& target) {
  using Json = nlohmann::json;
  ASSIGN_OR_RETURN(const WholeReply reply,
                   exchange(target, get_request(target, "/v1/models"), kPatienceSeconds));
  const Json body = Json::parse(reply.body, nullptr, false);
  const auto id = Json::json_pointer("/data/0/id");
  if (reply.status == 200 && body.is_object() && body.contains(id) && body[id].is_string()) {
    return body[id].get<std::string>();
  }
  return Error{ErrorCode::kIo,
               fmt::format("/v1/models names no model (HTTP {}: {:.200}); give one with --model",
                           reply.status, reply.body)};
}

bool takes_ids(const Target& target, const std::string& model, const IdRange& ids) {
  constexpr std::uint32_t kTokens = 3;
  const CompletionForm form = {.stream = false,
                               .ignore_eos = false,
                               .prompts = PromptForm::kIds,
                               .ids = ids,
                               .model = model};
  const Ask ask = {.prompt = {{.symbols = random_symbols(0, 0, kTokens)}}, .output_tokens = 1};
  const Result<WholeReply> reply =
      exchange(target, completion_request(target, form, ask), kPatienceSeconds);
  if (!reply.ok() || reply.value().status != 200) return false;
  AnswerReader answer(false);
  answer.put(reply.value().body);
  answer.end();
  return answer.prompt_tokens() == kTokens;
}

}  // namespace pagoda::load
