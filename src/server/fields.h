// Reads the members of a JSON object with their types and ranges. Errors carry the field's path:
// "messages[2].content[0].type". A member that is null counts as absent, as in OpenAI's API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "server/json.h"

namespace pagoda::server {

std::string element_path(std::string_view array, std::size_t index);

// Every function throws ApiError (400) for a wrong type or range.
class Fields {
 public:
  // `path` is empty for a body. The object must outlive the Fields.
  explicit Fields(const Json& object, std::string path = {});

  const Json* find(std::string_view name) const;  // nullptr when absent
  const Json& require(std::string_view name) const;
  std::string path_of(std::string_view name) const;

  std::optional<bool> boolean(std::string_view name) const;
  std::optional<double> number(std::string_view name, double low, double high) const;
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low,
                                      std::int64_t high) const;
  std::optional<std::string_view> text(std::string_view name) const;  // a view into the object
  std::string_view required_text(std::string_view name) const;
  const Json* array(std::string_view name) const;
  const Json* object(std::string_view name) const;

 private:
  const Json* object_;
  std::string path_;
};

[[noreturn]] void refuse_type(const std::string& path, const Json& value,
                              std::string_view expected);

double read_number(const Json& value, const std::string& path, double low, double high);
std::int64_t read_integer(const Json& value, const std::string& path, std::int64_t low,
                          std::int64_t high);
// Reads an array of at most `tokens_max` token ids.
std::vector<TokenId> read_tokens(const Json& array, const std::string& path,
                                 std::size_t tokens_max);

}  // namespace pagoda::server
