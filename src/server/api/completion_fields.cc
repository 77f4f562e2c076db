#include "server/api/completion_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "server/api/caller_fields.h"
#include "server/api/kv_policy_fields.h"
#include "server/api/retain.h"
#include "server/api_error.h"
#include "text/stop_strings.h"

namespace pagoda::server {
namespace {

constexpr std::int64_t kTokensMax = std::numeric_limits<std::int32_t>::max();

template <class Target, class Value>
void assign(Target& target, const std::optional<Value>& value) {
  if (value) target = static_cast<Target>(*value);
}

// Reads {"50256": -100}.
void read_logit_bias(const Fields& fields, engine::SamplingParams& sampling) {
  const Json* const biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  const std::string path = fields.path_of("logit_bias");
  std::vector<engine::LogitBias> entries;
  for (const auto& [key, value] : biases->items()) {
    std::uint32_t token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    // "007" is refused, so that a token has one name.
    const bool is_plain = key == "0" || !key.starts_with('0');
    if (error != std::errc() || end != key.data() + key.size() || !is_plain) {
      throw ApiError(400, fmt::format("{}: \"{}\" is not a token id", path, key), path);
    }
    if (value.is_null()) continue;
    const double bias = read_number(value, fmt::format("{}.{}", path, key), -100, 100);
    entries.push_back({TokenId(token), static_cast<float>(bias)});
  }
  sampling.logit_bias = std::move(entries);
}

// An option of the server is the limit unless the engine's own is.
std::uint32_t read_choices(const Fields& fields, std::uint32_t most,
                           const OptionName* option_name) {
  try {
    return static_cast<std::uint32_t>(fields.integer("n", 1, most).value_or(1));
  } catch (ApiError& error) {
    if (option_name != nullptr && most < engine::kSequencesPerRequestMax) {
      error.message += fmt::format(", by {}", (*option_name)("max_num_seqs", {}));
    }
    throw;
  }
}

void read_sampling(const Fields& fields, std::uint32_t sequences_max, const OptionName* option_name,
                   engine::SamplingParams& sampling) {
  constexpr double kNumberMax = std::numeric_limits<float>::max();
  assign(sampling.temperature, fields.number("temperature", 0, 100));
  // The lower limit is below the engine's, whose error says what is allowed.
  assign(sampling.top_p, fields.number("top_p", -kNumberMax, kNumberMax));
  assign(sampling.min_p, fields.number("min_p", 0, 1));
  assign(sampling.repetition_penalty, fields.number("repetition_penalty", -kNumberMax, kNumberMax));
  assign(sampling.presence_penalty, fields.number("presence_penalty", -2, 2));
  assign(sampling.frequency_penalty, fields.number("frequency_penalty", -2, 2));
  if (const auto top_k = fields.integer("top_k", -1, kTokensMax)) {
    sampling.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(*top_k, 0));  // -1 is all
  }
  if (fields.find("n") != nullptr) sampling.n = read_choices(fields, sequences_max, option_name);
  read_logit_bias(fields, sampling);
}

std::vector<std::string> read_stop(const Fields& fields) {
  const Json* const stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) return {stop->get<std::string>()};
  if (!stop->is_array()) refuse_type(fields.path_of("stop"), *stop, "a string or an array of them");
  if (stop->size() > text::StopStrings::kStringsMax) {
    throw ApiError(400,
                   fmt::format("stop: has {} strings, expected at most {}", stop->size(),
                               text::StopStrings::kStringsMax),
                   "stop");
  }
  std::vector<std::string> strings;
  for (const Json& element : *stop) {
    if (!element.is_string()) {
      refuse_type(element_path(fields.path_of("stop"), strings.size()), element, "a string");
    }
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

void read_stream(const Fields& fields, OutputOptions& output) {
  assign(output.stream, fields.boolean("stream"));
  const Json* const options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!output.stream) {
    throw ApiError(400, "stream_options: makes sense with \"stream\": true only", "stream_options");
  }
  const Fields stream(*options, fields.path_of("stream_options"));
  assign(output.include_usage, stream.boolean("include_usage"));
}

void read_output_options(const Fields& fields, OutputOptions& output) {
  const bool include_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  Result<text::StopStrings> stops =
      text::StopStrings::make(read_stop(fields), {.include_stop_str_in_output = include_stop});
  if (!stops.ok()) throw ApiError(400, "stop: " + stops.error().message, "stop");
  output.stops = std::move(stops).value();
  output.show_special_tokens = !fields.boolean("skip_special_tokens").value_or(true);
  assign(output.return_token_ids, fields.boolean("return_token_ids"));
  read_stream(fields, output);
  const auto scored = fields.integer("prompt_logprobs", 0, kLogprobsMax);
  if (!scored) return;
  if (output.stream) {
    throw ApiError(400, "prompt_logprobs: come with whole replies only, not with \"stream\": true",
                   "prompt_logprobs");
  }
  output.prompt_logprobs = static_cast<std::uint32_t>(*scored);
}

// The tokens that prompt and output may have together, and whose limit that is.
struct ContextLimit {
  std::uint64_t tokens;
  bool is_of_tenant;

  std::string_view name() const {
    return is_of_tenant ? "the limit of this tenant is" : "the context holds";
  }
};

[[noreturn]] void refuse_long_prompt(const std::string& path, const ContextLimit& limit,
                                     std::optional<std::uint64_t> tokens) {
  const std::string length =
      tokens ? fmt::format("{}", *tokens) : fmt::format("more than {}", limit.tokens - 1);
  throw ApiError(400,
                 fmt::format("{}: has {} tokens, {} {} including at least one token of output",
                             path, length, limit.name(), limit.tokens),
                 path, "context_length_exceeded");
}

}  // namespace

std::string read_salt(const Fields& fields) {
  const std::optional<std::string_view> salt = fields.text("cache_salt");
  if (salt && salt->empty()) {
    throw ApiError(400, "cache_salt: is empty, expected at least one character", "cache_salt");
  }
  if (salt && salt->starts_with('\n')) {
    throw ApiError(400, "cache_salt: begins with a line break", "cache_salt");
  }
  if (salt && salt->size() > kv::kSaltBytesMax) {
    throw ApiError(400,
                   fmt::format("cache_salt: has {} bytes, expected at most {}", salt->size(),
                               kv::kSaltBytesMax),
                   "cache_salt");
  }
  return std::string(salt.value_or(""));
}

void read_shared_fields(const Fields& fields, std::uint32_t sequences_max,
                        CompletionRequest& request, const OptionName* option_name) {
  fields.text("user");
  read_sampling(fields, sequences_max, option_name, request.engine.sampling);
  refuse_unsupported(fields, request.engine.sampling.n);
  if (const auto seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max())) {
    request.seed = engine::reportable_seed(static_cast<std::uint64_t>(*seed));
  }
  engine::StopParams& end = request.engine.end;
  assign(end.min_tokens, fields.integer("min_tokens", 0, kTokensMax));
  assign(end.ignore_eos, fields.boolean("ignore_eos"));
  if (const Json* const tokens = fields.array("stop_token_ids")) {
    end.stop_token_ids =
        read_tokens(*tokens, fields.path_of("stop_token_ids"), engine::kStopTokensMax);
  }
  assign(request.engine.priority, fields.integer("priority", std::numeric_limits<int>::min(),
                                                 std::numeric_limits<int>::max()));
  request.engine.cache_salt = read_salt(fields);
  request.engine.kv_policy = read_kv_policy(fields);
  if (const Json* const upto = fields.find("cache_public_upto")) {
    request.public_upto =
        read_upto(*upto, fields.path_of("cache_public_upto"), request.is_chat, false);
  }
  request.retain = read_retain(fields, request.is_chat);
  request.cache = read_cache_fields(fields);
  request.transfer = read_transfer(fields);
  if (const auto key = fields.text("prompt_cache_key")) set_session(*key, request);
  assign(request.engine.explain, fields.boolean("cache_explain"));
  read_output_options(fields, request.output);
}

void answer_nothing(CompletionRequest& request) {
  request.output.prompt_only = true;
  request.engine.end.max_tokens = 1;  // the engine's least, which is dropped
  request.engine.end.min_tokens = 0;
}

std::uint64_t counted_tokens_max(const ServedModel& model) {
  return std::max<std::uint64_t>(model.context_tokens(), 1 << 18);
}

void refuse_beyond(std::uint64_t most, const std::string& path, const ServedModel& model,
                   std::uint64_t tenant_tokens, std::optional<std::uint64_t> tokens) {
  const std::uint64_t context = model.context_tokens();
  if (most < context) {
    const bool is_of_tenant = tenant_tokens > 0 && tenant_tokens < context;
    refuse_long_prompt(path, {is_of_tenant ? tenant_tokens : context, is_of_tenant}, tokens);
  }
  throw ApiError(400, fmt::format("{}: has more than {} tokens", path, most), path,
                 "too_many_tokens");
}

void check_choices(const CompletionRequest& request, const ServedModel& model) {
  const std::uint32_t most =
      std::min(engine::kSequencesPerRequestMax, model.engine.limits().sequences_max);
  if (request.choices_per_prompt() <= most) return;
  throw ApiError(400, fmt::format("n: is {}, expected 1 to {}", request.choices_per_prompt(), most),
                 "n");
}

void check_lengths(const CompletionRequest& request, const ServedModel& model,
                   const std::string& prompt_field, const OutputLength& length,
                   std::uint64_t tenant_tokens) {
  const std::uint64_t of_model = model.context_tokens(request.engine);
  const bool is_of_tenant = tenant_tokens > 0 && tenant_tokens < of_model;
  const ContextLimit limit = {is_of_tenant ? tenant_tokens : of_model, is_of_tenant};
  const std::uint64_t context = limit.tokens;
  for (const Prompt& prompt : request.prompts) {
    const std::uint64_t tokens = prompt.tokens.size();
    if (tokens == 0) throw ApiError(400, prompt_field + ": has no tokens", prompt_field);
    if (tokens >= context) refuse_long_prompt(prompt_field, limit, tokens);
    if (length.tokens && *length.tokens > context - tokens) {
      throw ApiError(
          400,
          fmt::format("{}: {} and the prompt's {} tokens make {}, {} {}", length.field,
                      *length.tokens, tokens, *length.tokens + tokens, limit.name(), context),
          length.field, "context_length_exceeded");
    }
  }
}

}  // namespace pagoda::server
