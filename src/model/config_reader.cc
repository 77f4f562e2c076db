#include "model/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pagoda::model {

bool replaces_scaling(const gguf::Metadata& metadata) {
  const Result<bool> replaced = metadata.flag_or("pagoda.rope.replaced", false);
  return replaced.ok() && replaced.value();
}

std::string ConfigReader::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_, name);
}

Error ConfigReader::out_of_range(std::string_view name, std::string_view value,
                                 std::string_view range) const {
  return {ErrorCode::kOutOfRange,
          fmt::format("{}: {} is {}, expected {}", metadata_.source(), key(name), value, range)};
}

Status ConfigReader::require(std::string_view name) const {
  if (contains(name)) return ok_status();
  return Error{ErrorCode::kNotFound, fmt::format("{}: {} is missing, which '{}' files have",
                                                 metadata_.source(), key(name), architecture_)};
}

Result<std::uint32_t> ConfigReader::count(std::string_view name, std::uint64_t max) const {
  ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.unsigned_value(key(name)));
  return checked(name, value, max);
}

Result<std::uint32_t> ConfigReader::count_or(std::string_view name, std::uint64_t fallback,
                                             std::uint64_t max) const {
  ASSIGN_OR_RETURN(const std::uint64_t value, metadata_.unsigned_value_or(key(name), fallback));
  return checked(name, value, max);
}

Result<std::uint32_t> ConfigReader::rope_dims(std::string_view name, std::uint32_t head_dim) const {
  ASSIGN_OR_RETURN(const std::uint32_t dims, count_or(name, head_dim, head_dim));
  if (dims % 2 != 0) return out_of_range(name, fmt::format("{}", dims), "an even number");
  return dims;
}

Result<double> ConfigReader::positive_or(std::string_view name, double fallback) const {
  ASSIGN_OR_RETURN(const double value, metadata_.number_or(key(name), fallback));
  if (!(value > 0) || !std::isfinite(value)) {
    return out_of_range(name, fmt::format("{}", value), "a finite number above 0");
  }
  return value;
}

Result<float> ConfigReader::scale_or(std::string_view name, float fallback) const {
  ASSIGN_OR_RETURN(const double given, metadata_.number_or(key(name), 0));
  if (given == 0) return fallback;
  ASSIGN_OR_RETURN(const double scale, positive_or(name, 1.0));
  return static_cast<float>(scale);
}

Result<std::uint32_t> ConfigReader::count_for_all_layers(std::string_view name,
                                                         std::uint64_t fallback,
                                                         std::uint64_t max) const {
  const gguf::MetadataValue* const value = metadata_.find(key(name));
  if (value == nullptr || value->type != gguf::ValueType::kArray) {
    return count_or(name, fallback, max);
  }
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, metadata_.integers(key(name)));
  if (values.empty() || values.front() < 0) return out_of_range(name, "empty", "numbers above 0");
  if (std::any_of(values.begin(), values.end(),
                  [&](std::int64_t other) { return other != values.front(); })) {
    return differs_between_layers(name);
  }
  return checked(name, static_cast<std::uint64_t>(values.front()), max);
}

Error ConfigReader::differs_between_layers(std::string_view name) const {
  return {ErrorCode::kUnsupported,
          fmt::format("{}: {} differs between layers, which this version cannot run",
                      metadata_.source(), key(name))};
}

Result<std::vector<std::uint32_t>> ConfigReader::count_by_layer(std::string_view name,
                                                                std::uint64_t fallback,
                                                                std::uint64_t max,
                                                                std::uint32_t layers) const {
  const gguf::MetadataValue* const value = metadata_.find(key(name));
  if (value == nullptr || value->type != gguf::ValueType::kArray) {
    ASSIGN_OR_RETURN(const std::uint32_t count, count_or(name, fallback, max));
    return std::vector<std::uint32_t>(layers, count);
  }
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> values, metadata_.integers(key(name)));
  if (values.size() < layers) {
    return out_of_range(name, fmt::format("{} values", values.size()),
                        fmt::format("one for each of the {} layers", layers));
  }
  std::vector<std::uint32_t> counts;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    const auto given = static_cast<std::uint64_t>(std::max<std::int64_t>(values[layer], 0));
    ASSIGN_OR_RETURN(const std::uint32_t count, checked(name, given, max));
    counts.push_back(count);
  }
  return counts;
}

Result<std::uint32_t> ConfigReader::checked(std::string_view name, std::uint64_t value,
                                            std::uint64_t max) const {
  if (value < 1 || value > max) {
    return out_of_range(name, fmt::format("{}", value), fmt::format("1 to {}", max));
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace pagoda::model
