#include "chat/nested_arguments.h"

#include <algorithm>
#include <vector>

#include "chat/json_stream.h"
#include "chat/literal.h"

namespace pagoda::chat {
namespace {

constexpr int kNestingMax = 64;
constexpr std::string_view kItem = "item";

struct Tag {
  std::string_view name;
  std::string_view value;
};

// The tags that the value consists of; nothing where there is other text between them, or one is
// not closed.
std::optional<std::vector<Tag>> split_tags(const TaggedArguments& form, std::string_view value) {
  const std::string_view open_end = core(form.key_ends.front().text);
  std::vector<Tag> tags;
  for (value = core(value); !value.empty(); value = core(value)) {
    if (!value.starts_with(form.key_begin) || value.starts_with(form.value_end)) return {};
    value.remove_prefix(form.key_begin.size());
    const std::size_t name_end = value.find(open_end);
    if (name_end == std::string_view::npos) return {};
    const std::string_view name = value.substr(0, name_end);
    value.remove_prefix(name_end + open_end.size());
    const auto end = NestedScanner(form).find_end(value, 0);
    const std::string closing = form.value_end + std::string(name) + form.close_end;
    if (!end || !value.substr(*end).starts_with(closing)) return {};
    tags.push_back({name, value.substr(0, *end)});
    value.remove_prefix(*end + closing.size());
  }
  return tags;
}

std::string value_json(const TaggedArguments& form, std::string_view value,
                       const ArgumentShape& shape, int depth);

std::string join_tags(const TaggedArguments& form, const std::vector<Tag>& tags,
                      const ArgumentShape& shape, int depth) {
  const bool all_items =
      std::all_of(tags.begin(), tags.end(), [](const Tag& tag) { return tag.name == kItem; });
  const bool is_array = all_items && (shape.is_array || !shape.is_object);
  static const ArgumentShape kAny;
  std::string json;
  for (const Tag& tag : tags) {
    const auto member = shape.members.find(tag.name);
    const ArgumentShape& inner = is_array ? (shape.items.empty() ? kAny : shape.items.front())
                                          : (member == shape.members.end() ? kAny : member->second);
    json += json.empty() ? "" : ", ";
    if (!is_array) json += '"' + json_escaped(tag.name) + "\": ";
    json += value_json(form, tag.value, inner, depth);
  }
  return is_array ? "[" + json + "]" : "{" + json + "}";
}

std::optional<std::string> tags_json(const TaggedArguments& form, std::string_view value,
                                     const ArgumentShape& shape, int depth) {
  const bool is_text =
      shape.type == ArgumentType::kString || shape.type == ArgumentType::kNullableString;
  if (is_text || depth == kNestingMax) return {};
  const bool is_one = shape.is_array != shape.is_object;
  if (core(value).empty()) {
    if (!is_one) return {};
    return shape.is_array ? "[]" : "{}";
  }
  const auto tags = split_tags(form, value);
  if (!tags) return {};
  return join_tags(form, *tags, shape, depth + 1);
}

std::string value_json(const TaggedArguments& form, std::string_view value,
                       const ArgumentShape& shape, int depth) {
  const auto nested = tags_json(form, value, shape, depth);
  return nested ? *nested : tagged_value_json(shape.type, value);
}

}  // namespace

std::optional<std::size_t> NestedScanner::find_end(std::string_view text, std::size_t from) {
  at_ = std::max(at_, from);
  while (true) {
    const std::size_t tag = text.find(form_->key_begin, at_);
    if (tag == std::string_view::npos) {
      const std::size_t held = std::min(form_->key_begin.size(), text.size());
      at_ = std::max(at_, text.size() - held);
      return {};
    }
    at_ = tag;
    if (match_start(text.substr(tag), form_->value_end) == LiteralMatch::kPartial) return {};
    const bool closes = text.substr(tag).starts_with(form_->value_end);
    if (closes && open_ == 0) return tag;
    open_ = closes ? open_ - 1 : open_ + 1;
    at_ = tag + form_->key_begin.size();
  }
}

std::string tagged_value_json(ArgumentType type, std::string_view value) {
  if (type == ArgumentType::kNullableString && core(value) == "null") return "null";
  if (type == ArgumentType::kBySchema || type == ArgumentType::kJson) {
    JsonStream stream;
    std::string json;
    const std::size_t taken = stream.read(core(value), json);
    const bool whole = taken == core(value).size();
    json += stream.finish();
    if (whole && stream.state() == JsonStream::State::kDone) return json;
  }
  return '"' + json_escaped(value) + '"';
}

std::optional<std::string> nested_value_json(const TaggedArguments& form, std::string_view value,
                                             const ArgumentShape& shape) {
  return tags_json(form, value, shape, 0);
}

}  // namespace pagoda::chat
