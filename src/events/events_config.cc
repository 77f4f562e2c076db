#include "events/events_config.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace pagoda::events {
namespace {

using Json = nlohmann::json;

Error wrong(const std::string& field, const Json& value, std::string_view expected) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{}: is {}, expected {}", field, value.dump(), expected)};
}

Status read_flag(const std::string& field, const Json& value, bool& flag) {
  if (!value.is_boolean()) return wrong(field, value, "true or false");
  flag = value.get<bool>();
  return ok_status();
}

Status read_text(const std::string& field, const Json& value, std::string& text) {
  if (!value.is_string()) return wrong(field, value, "a string");
  text = value.get<std::string>();
  return ok_status();
}

// ZeroMQ reads a port as far as it is a number and cuts it to 16 bits: 65536 + 22 would be 22.
Status read_endpoint(const std::string& field, const Json& value, std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  RETURN_IF_ERROR(read_text(field, value, endpoint));
  if (!endpoint.starts_with(kTcp)) return ok_status();
  const std::string_view address = std::string_view(endpoint).substr(kTcp.size());
  const std::size_t colon = address.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
  if (port == "*") return ok_status();
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error == std::errc() && end == port.data() + port.size()) return ok_status();
  return wrong(field, value, "a port of 0 to 65535, or *, behind the last colon");
}

// ZeroMQ takes 0 for "no limit"; nothing here is unlimited.
template <class Number>
Status read_number(const std::string& field, const Json& value, std::uint64_t least,
                   std::uint64_t most, Number& number) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= least &&
                    value.get<std::uint64_t>() <= most;
  if (!fits) return wrong(field, value, fmt::format("a number from {} to {}", least, most));
  number = value.get<Number>();
  return ok_status();
}

Status read_publisher(const std::string& field, const Json& value, bool& publishes) {
  if (value != "zmq" && value != "null") return wrong(field, value, "\"zmq\" or \"null\"");
  publishes = value == "zmq";
  return ok_status();
}

Status read_encoding(const std::string& field, const Json& value, Encoding& encoding) {
  if (value != "map" && value != "array") return wrong(field, value, "\"map\" or \"array\"");
  encoding = value == "map" ? Encoding::kMaps : Encoding::kArrays;
  return ok_status();
}

Status read_field(const std::string& field, const Json& value, EventsConfig& config,
                  bool& publishes) {
  if (field == "enable_kv_cache_events") return read_flag(field, value, config.enabled);
  if (field == "publisher") return read_publisher(field, value, publishes);
  if (field == "endpoint") return read_endpoint(field, value, config.endpoint);
  if (field == "replay_endpoint" && value.is_null()) return ok_status();
  if (field == "replay_endpoint") return read_endpoint(field, value, config.replay_endpoint);
  if (field == "buffer_steps") return read_number(field, value, 1, 1u << 20, config.buffer_steps);
  if (field == "hwm") return read_number(field, value, 1, 1u << 24, config.hwm);
  if (field == "max_queue_size") {
    return read_number(field, value, 1024, 1u << 24, config.max_queue_size);
  }
  if (field == "topic") return read_text(field, value, config.topic);
  if (field == "encoding") return read_encoding(field, value, config.encoding);
  if (field == "int_block_hashes") return read_flag(field, value, config.int_block_hashes);
  if (field == "incarnation") return read_flag(field, value, config.incarnation);
  if (field == "private_token_ids") return read_flag(field, value, config.private_token_ids);
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}: there is no such field", field)};
}

}  // namespace

Result<EventsConfig> parse_events_config(std::string_view json) {
  const Json fields = Json::parse(json, nullptr, false);
  if (!fields.is_object()) {
    return Error{ErrorCode::kInvalidArgument,
                 "expected a JSON object such as {\"enable_kv_cache_events\": true}"};
  }
  EventsConfig config;
  bool publishes = true;
  for (const auto& [field, value] : fields.items()) {
    RETURN_IF_ERROR(read_field(field, value, config, publishes));
  }
  config.enabled = config.enabled && publishes;
  return config;
}

}  // namespace pagoda::events
