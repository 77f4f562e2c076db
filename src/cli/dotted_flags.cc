#include "cli/dotted_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace pagoda::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kJsonFlags = {
    "--speculative-config", "--kv-events-config", "--override-generation-config", "--hf-overrides",
    "--rope-scaling"};

// A field as it was typed.
struct TypedField {
  std::string flag;                       // ours, with dashes
  std::string path;                       // "rope_scaling.factor"
  std::optional<std::string> glued = {};  // the value behind '='
};

std::optional<TypedField> read_field(const std::string& word,
                                     const std::vector<std::string>& known) {
  const std::size_t equals = std::min(word.find('='), word.size());
  const std::size_t dot = word.find('.');
  if (dot >= equals || dot + 1 == equals) return std::nullopt;
  TypedField field = {.flag = word.substr(0, dot), .path = word.substr(dot + 1, equals - dot - 1)};
  std::replace(field.flag.begin(), field.flag.end(), '_', '-');
  if (std::ranges::find(kJsonFlags, field.flag) == kJsonFlags.end() ||
      std::ranges::find(known, field.flag) == known.end()) {
    return std::nullopt;
  }
  if (equals < word.size()) field.glued = word.substr(equals + 1);
  return field;
}

// Returns the value at a path of names; objects on the way are made.
Json& at_path(Json& json, std::string_view path) {
  Json* at = &json;
  while (true) {
    const std::size_t end = std::min(path.find('.'), path.size());
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[std::string(path.substr(0, end))];
    if (end == path.size()) return *at;
    path.remove_prefix(end + 1);
  }
}

Json value_of(std::string_view text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(text) : value;
}

// "method+": one more value of a list, or several with commas.
void append(Json& list, std::string_view values) {
  if (!list.is_array()) list = Json::array();
  while (true) {
    const std::size_t end = std::min(values.find(','), values.size());
    list.push_back(value_of(values.substr(0, end)));
    if (end == values.size()) return;
    values.remove_prefix(end + 1);
  }
}

void set_field(Json& json, std::string_view path, std::string_view value) {
  const bool is_list = path.ends_with('+');
  if (is_list) path.remove_suffix(1);
  Json& field = at_path(json, path);
  if (is_list) return append(field, value);
  field = value_of(value);
}

}  // namespace

std::vector<std::string> with_joined_fields(std::vector<std::string> words,
                                            const CommandLine::Place& place) {
  struct Joined {
    std::string flag;
    std::size_t at;  // the word of its first field
    Json value;
  };
  std::vector<Joined> joined;
  std::vector<bool> gone(words.size(), false);
  for (const std::size_t at : place.flags) {
    if (gone[at]) continue;  // the value of the one before
    const std::optional<TypedField> field = read_field(words[at], place.possible);
    const bool has_next = at + 1 < words.size() && !words[at + 1].starts_with("--");
    if (!field || (!field->glued && !has_next)) continue;
    const std::string value = field->glued ? *field->glued : words[at + 1];
    gone[at] = true;
    if (!field->glued) gone[at + 1] = true;
    auto of_flag = std::ranges::find(joined, field->flag, &Joined::flag);
    if (of_flag == joined.end()) of_flag = joined.insert(joined.end(), {field->flag, at, Json()});
    set_field(of_flag->value, field->path, value);
  }
  std::vector<std::string> made;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const auto first = std::ranges::find(joined, at, &Joined::at);
    if (first != joined.end()) {
      made.push_back(first->flag);
      made.push_back(first->value.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    if (!gone[at]) made.push_back(std::move(words[at]));
  }
  return made;
}

}  // namespace pagoda::cli
