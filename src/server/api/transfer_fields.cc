#include "server/api/transfer_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
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

constexpr std::int64_t kBootstrapPort = 8998;  // SGLang's default
constexpr std::size_t kBootstrapsMax = 4096;

// Calls `read_one` with a field's value and path, or with each of those of an array.
template <class ReadOne>
void read_each(const Fields& fields, const char* name, ReadOne&& read_one) {
  const Json* const value = fields.find(name);
  const std::string path = fields.path_of(name);
  if (value == nullptr) return;
  if (!value->is_array()) return read_one(*value, path);
  if (value->size() > kBootstrapsMax) throw ApiError(400, path + ": has too many elements", path);
  for (std::size_t i = 0; i < value->size(); ++i) read_one((*value)[i], element_path(path, i));
}

std::vector<kv::PageOrigin> read_bootstrap(const Fields& fields) {
  std::vector<std::string> hosts;
  std::vector<std::uint16_t> ports;
  read_each(fields, "bootstrap_host", [&](const Json& value, const std::string& path) {
    if (!value.is_string()) refuse_type(path, value, "a string");
    const std::string& host = value.get_ref<const std::string&>();
    if (host.size() > kHostBytesMax) throw ApiError(400, path + ": is too long", path);
    hosts.push_back(host);
  });
  read_each(fields, "bootstrap_port", [&](const Json& value, const std::string& path) {
    const std::int64_t port =
        value.is_null() ? kBootstrapPort : read_integer(value, path, 1, 65535);
    ports.push_back(static_cast<std::uint16_t>(port));
  });
  read_each(fields, "bootstrap_room", [&](const Json& value, const std::string& path) {
    if (!value.is_null()) read_integer(value, path, 0, std::numeric_limits<std::int64_t>::max());
  });
  std::vector<kv::PageOrigin> origins;
  if (ports.empty()) ports.push_back(static_cast<std::uint16_t>(kBootstrapPort));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    origins.push_back({hosts[i], ports[std::min(i, ports.size() - 1)], /*is_computing=*/true});
  }
  return origins;
}

}  // namespace

TransferFields read_transfer(const Fields& fields) {
  TransferFields read;
  read.bootstrap = read_bootstrap(fields);
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

kv::PageOrigin read_cache_source(std::string_view header) {
  constexpr const char* kHeader = "x-kv-cache-source-host-port";
  const ApiError wrong(400, std::string(kHeader) + ": is not HOST:PORT", kHeader);
  const std::size_t colon = header.rfind(':');
  if (colon == std::string_view::npos) throw wrong;
  std::string_view host = header.substr(0, colon);
  const std::string_view port = header.substr(colon + 1);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  kv::PageOrigin origin = {.host = std::string(host)};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), origin.port);
  const bool is_port = error == std::errc() && end == port.data() + port.size() && origin.port > 0;
  const bool is_host = !host.empty() && host.size() <= kHostBytesMax &&
                       (is_bracketed || host.find(':') == std::string_view::npos);
  if (!is_port || !is_host) throw wrong;
  return origin;
}

void settle_transfer(TransferFields& transfer, Disaggregation mode,
                     const std::function<bool(const std::string&)>& allows) {
  const bool has_params = transfer.hands_over || transfer.takes_over;
  if (transfer.takes_over && transfer.is_ours && !transfer.host.empty() && transfer.port != 0) {
    transfer.origins = {{.host = transfer.host, .port = transfer.port}};
  } else if (!transfer.bootstrap.empty() && !has_params && mode == Disaggregation::kPrefill) {
    transfer.hands_over = true;
  } else if (!transfer.bootstrap.empty() && !has_params && mode == Disaggregation::kDecode) {
    transfer.takes_over = transfer.is_ours = true;
    transfer.tokens_promised = std::numeric_limits<std::uint64_t>::max();
    transfer.origins = transfer.bootstrap;
  }
  if (!allows) return transfer.origins.clear();
  const auto is_foreign = [&](const kv::PageOrigin& origin) { return !allows(origin.host); };
  transfer.is_refused = std::any_of(transfer.origins.begin(), transfer.origins.end(), is_foreign);
  if (transfer.is_refused) transfer.origins.clear();
}

std::string_view name_of(Disaggregation mode) {
  return mode == Disaggregation::kPrefill  ? "prefill"
         : mode == Disaggregation::kDecode ? "decode"
                                           : "null";
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
  constexpr std::array<std::string_view, kTransferOutcomes> kNames = {"handed_over",
                                                                      "handed_over_in_part",
                                                                      "not_handed_over",
                                                                      "taken_over",
                                                                      "taken_over_in_part",
                                                                      "computed",
                                                                      "foreign",
                                                                      "refused"};
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
