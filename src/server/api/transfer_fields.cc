#include "server/api/transfer_fields.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

constexpr std::size_t kHostBytesMax = 255;  // of a DNS name
constexpr std::size_t kNamesBytesMax = 1024;

std::string read_name(const Fields& fields, const char* name, std::size_t bytes_max) {
  const auto text = fields.text(name);
  if (text && text->size() > bytes_max) {
    throw ApiError(400, fields.path_of(name) + ": is too long", fields.path_of(name));
  }
  return std::string(text.value_or(""));
}

}  // namespace

TransferFields read_transfer(const Fields& fields) {
  TransferFields read;
  const Json* const params = fields.object("kv_transfer_params");
  if (params == nullptr) return read;
  const std::string path = fields.path_of("kv_transfer_params");
  const Fields given(*params, path);
  read.hands_over = given.boolean("do_remote_decode").value_or(false);
  read.takes_over = given.boolean("do_remote_prefill").value_or(false);
  if (read.hands_over && read.takes_over) {
    throw ApiError(400, path + ": is the first half of a request or the second, not both", path);
  }
  const std::string engine_id = read_name(given, "remote_engine_id", kNamesBytesMax);
  read_name(given, "remote_request_id", kNamesBytesMax);
  given.array("remote_block_ids");
  read.host = read_name(given, "remote_host", kHostBytesMax);
  read.port = static_cast<std::uint16_t>(given.integer("remote_port", 0, 65535).value_or(0));
  read.tokens_promised = static_cast<std::uint64_t>(
      given.integer("remote_num_tokens", 0, std::numeric_limits<std::int64_t>::max()).value_or(0));
  read.is_ours = engine_id.starts_with(kEngineIdPrefix);
  return read;
}

Json transfer_params(const engine::HandoverOutcome& outcome, const TransferSource& source,
                     const std::string& request_id) {
  const bool is_there = outcome.tokens > 0;
  const bool is_served = is_there && !source.host.empty();
  Json params = {{"do_remote_prefill", is_there},
                 {"do_remote_decode", false},
                 {"remote_engine_id", source.engine_id},
                 {"remote_request_id", request_id},
                 {"remote_block_ids", Json::array()},
                 {"remote_host", is_served ? Json(source.host) : Json(nullptr)},
                 {"remote_port", is_served ? Json(source.port) : Json(nullptr)},
                 {"remote_num_tokens", outcome.tokens},
                 {"tp_size", 1}};
  if (!outcome.missing.empty()) params["missing"] = outcome.missing;
  return params;
}

std::string_view name_of(TransferOutcome outcome) {
  constexpr std::array<std::string_view, kTransferOutcomes> kNames = {
      "handed_over",         "handed_over_in_part", "not_handed_over", "taken_over",
      "taken_over_in_part", "computed",            "foreign"};
  return kNames[static_cast<std::size_t>(outcome)];
}

TransferOutcome outcome_of(const TransferFields& asked, std::uint64_t tokens_found,
                           std::uint64_t tokens_whole) {
  if (!asked.is_ours) return TransferOutcome::kForeign;
  if (tokens_found >= std::min(asked.tokens_promised, tokens_whole)) {
    return asked.tokens_promised == 0 ? TransferOutcome::kComputed : TransferOutcome::kTakenOver;
  }
  return tokens_found > 0 ? TransferOutcome::kTakenOverInPart : TransferOutcome::kComputed;
}

TransferOutcome outcome_of(const engine::HandoverOutcome& outcome) {
  if (outcome.tokens == 0) return TransferOutcome::kNotHandedOver;
  return outcome.missing.empty() ? TransferOutcome::kHandedOver
                                 : TransferOutcome::kHandedOverInPart;
}

}  // namespace pagoda::server
