#include "server/api/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>

#include "server/api/chat_prompt.h"
#include "server/api/completion_fields.h"
#include "server/api/kv_policy_fields.h"
#include "server/api_error.h"
#include "server/json_string.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kInputsMax = 2048;       // OpenAI's limit
constexpr std::uint64_t kNumberBytesMax = 16;  // of JSON
constexpr std::array<std::string_view, 3> kEmbeddingFields = {"encoding_format", "input",
                                                              "pooling"};

[[noreturn]] void refuse_value(const Fields& fields, const char* name, std::string_view expected) {
  const std::string path = fields.path_of(name);
  throw ApiError(400,
                 fmt::format("{}: is {}, expected {}", path,
                             dump_json(*fields.find(name)).substr(0, 64), expected),
                 path);
}

engine::Pooling read_pooling(const Fields& fields) {
  const std::string_view pooling = fields.text("pooling").value_or("last");
  if (pooling == "last") return engine::Pooling::kLast;
  if (pooling == "mean") return engine::Pooling::kMean;
  refuse_value(fields, "pooling", "\"last\" or \"mean\"");
}

bool read_base64(const Fields& fields) {
  const std::string_view format = fields.text("encoding_format").value_or("float");
  if (format == "base64") return true;
  if (format == "float") return false;
  refuse_value(fields, "encoding_format", "\"float\" or \"base64\"");
}

// In double and in one order, so that equal hidden states give equal vectors.
std::vector<float> unit_vector(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * double{value};
  const double length = std::sqrt(squares);
  std::vector<float> unit(values.begin(), values.end());
  if (length == 0) return unit;
  for (float& value : unit) value = static_cast<float>(double{value} / length);
  return unit;
}

// The members of a reply that say what was left out of texts; empty where nothing was.
std::string truncated_member(const CompletionRequest& request) {
  Json all = Json::array();
  bool is_any = false;
  for (const Prompt& prompt : request.prompts) {
    is_any = is_any || prompt.truncated.has_value();
    all.push_back(prompt.truncated ? truncation_json(*prompt.truncated) : Json(nullptr));
  }
  if (!is_any) return {};
  return fmt::format(",\"truncated\":true,\"prompt_truncated\":{}",
                     dump_json(all.size() == 1 ? all.front() : all));
}

}  // namespace

CompletionRequest read_embedding_request(const Json& body, const ServedModel& model,
                                         const ReadingTerms& terms) {
  const Fields fields(body);
  if (fields.find("dimensions") != nullptr) {
    throw ApiError(400, "dimensions: is not supported: vectors have the model's own width",
                   "dimensions", "unsupported_parameter");
  }
  if (model.engine.limits().hidden_width == 0) {
    throw ApiError(400,
                   "embeddings are not computed on this device; the server option device=cpu "
                   "computes them",
                   {}, "unsupported_device");
  }
  CompletionRequest request;
  request.ignored = ignored_fields(body, kEmbeddingFields);
  read_shared_fields(fields, 1, request, terms.option_name);
  judge_kv_policy(fields, model, request);
  if (request.output.stream) {
    throw ApiError(400, "stream: embeddings come in whole replies only", "stream");
  }
  request.embedding = EmbeddingOptions{.as_base64 = read_base64(fields)};
  request.engine.pooling = read_pooling(fields);
  const Json& input = fields.require("input");
  if (input.is_array() && input.size() > kInputsMax && !input.front().is_number()) {
    throw ApiError(
        400, fmt::format("input: has {} texts, expected at most {}", input.size(), kInputsMax),
        "input");
  }
  std::optional<std::uint64_t> tokens_kept;
  if (const auto last = read_last_tokens(fields)) {
    // A vector takes the place of the least output.
    tokens_kept = tokens_to_keep(*last, terms.context_of(model, request.engine), {1u, {}});
  }
  read_prompts(fields, "input", model, terms, request, tokens_kept);
  check_lengths(request, model, "input", {}, terms.context_tokens);
  request.memory_bytes +=
      request.prompts.size() * model.engine.limits().hidden_width * kNumberBytesMax;
  answer_nothing(request);
  return request;
}

std::string base64_of(std::span<const float> values) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  bytes.reserve(4 * values.size());
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

bool is_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

std::string embeddings_json(std::span<const std::span<const float>> vectors,
                            const CompletionRequest& request, std::string_view model,
                            const Usage& usage) {
  std::string body = "{\"object\":\"list\",\"data\":[";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::vector<float> vector = unit_vector(vectors[i]);
    body += fmt::format(
        "{}{{\"object\":\"embedding\",\"index\":{},\"embedding\":", i == 0 ? "" : ",", i);
    if (request.embedding->as_base64) {
      body += '"' + base64_of(vector) + '"';
    } else {
      // The fewest digits that give the same number back.
      body += '[';
      for (std::size_t k = 0; k < vector.size(); ++k) {
        if (k > 0) body += ',';
        fmt::format_to(std::back_inserter(body), "{}", vector[k]);
      }
      body += ']';
    }
    body += '}';
  }
  body += "],\"model\":";
  append_json_string(model, body);
  const bool is_mean = request.engine.pooling == engine::Pooling::kMean;
  Json counts = usage.to_json();
  counts.erase("completion_tokens");
  body += fmt::format(",\"pooling\":{{\"type\":\"{}\",\"computes_whole_prompt\":{}}},\"usage\":{}",
                      is_mean ? "mean" : "last", is_mean, dump_json(counts));
  body += truncated_member(request);
  return body + "}";
}

}  // namespace pagoda::server
