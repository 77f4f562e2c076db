#include "text/message_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja/text_builder.h"

namespace pagoda::text {
namespace {

using jinja::Dict;
using jinja::fail;
using jinja::Heap;
using jinja::TextBuilder;
using jinja::Value;

std::string part_type(const Value& part) {
  const Value* const type = part.is_dict() ? part.as_dict().find("type") : nullptr;
  return type != nullptr && type->is_text() ? fmt::format("parts of type '{}'", type->bytes())
                                            : "parts without a type";
}

std::string_view role_of(const Value& message) { return message.as_dict().find("role")->bytes(); }

bool is_system(const Value& message) {
  const std::string_view role = role_of(message);
  return role == "system" || role == "developer";
}

bool is_result(const Value& message) {
  const std::string_view role = role_of(message);
  return role == "tool" || role == "function";
}

bool has_words(const Value* value) {
  return value != nullptr && ((value->is_text() && !value->bytes().empty()) ||
                              (value->is_list() && !value->as_list().items.empty()));
}

class RoleFitter {
 public:
  RoleFitter(const TemplateTraits& traits, Heap& heap) : traits_(traits), heap_(heap) {}

  // Words that a template refuses beside thinking and calls are a message before them.
  std::vector<Value> split_words(const std::vector<Value>& messages) {
    std::vector<Value> fitted;
    for (const Value& message : messages) {
      Dict& fields = message.as_dict();
      const bool refused = has_words(fields.find("tool_calls")) &&
                           has_words(fields.find("thinking")) && has_words(fields.find("content"));
      if (refused) {
        const Value words = heap_.dict();
        set_field(words.as_dict(), "role", *fields.find("role"), heap_);
        set_field(words.as_dict(), "content", *fields.find("content"), heap_);
        set_field(fields, "content", heap_.text(std::string()), heap_);
        fitted.push_back(words);
      }
      fitted.push_back(message);
    }
    return fitted;
  }

  // Results become words of the user's, together with those of a user's message that follows.
  std::vector<Value> results_to_users(const std::vector<Value>& messages) {
    std::vector<Value> fitted;
    for (std::size_t i = 0; i < messages.size();) {
      std::size_t end = i;
      while (end < messages.size() && is_result(messages[end])) ++end;
      if (end == i) {
        fitted.push_back(messages[i++]);
        continue;
      }
      if (end < messages.size() && role_of(messages[end]) == "user") ++end;
      fitted.push_back(join("user", messages, i, end));
      i = end;
    }
    return fitted;
  }

  // The first system message holds those that follow it at once; later ones begin the next user's.
  std::vector<Value> join_systems(const std::vector<Value>& messages) {
    std::size_t leading = 0;
    while (leading < messages.size() && is_system(messages[leading])) ++leading;
    std::vector<Value> fitted;
    if (leading == 1) fitted.push_back(messages.front());
    if (leading > 1) fitted.push_back(join(role_of(messages.front()), messages, 0, leading));
    const std::vector<Value> rest(messages.begin() + static_cast<std::ptrdiff_t>(leading),
                                  messages.end());
    const bool any = std::any_of(rest.begin(), rest.end(), is_system);
    for (const Value& message : any ? fold_systems(rest) : rest) fitted.push_back(message);
    return fitted;
  }

  // Moves the text of system messages to the start of the following user message, or into a user
  // message of its own at the end. At least one message remains.
  std::vector<Value> fold_systems(const std::vector<Value>& messages) {
    std::vector<Value> folded;
    OriginText pending;
    const auto add = [&](const Value& content) {
      if (!pending.empty()) pending.append("\n\n", Origin{});
      if (content.is_text()) pending.append(content.as_text());
    };
    const auto set_user = [&](Dict& fields) {
      set_field(fields, "role", heap_.text("user"), heap_);
      TextBuilder content(heap_);
      content.append(std::exchange(pending, {}));
      set_content(fields, std::move(content).value());
    };
    for (std::size_t i = 0; i < messages.size(); ++i) {
      Dict& fields = messages[i].as_dict();
      const Value* const content = fields.find("content");
      if (is_system(messages[i])) {
        if (content != nullptr) add(joined_parts(*content, i, heap_));
        continue;
      }
      if (!pending.empty() && role_of(messages[i]) == "user" && content != nullptr) {
        add(joined_parts(*content, i, heap_));
        set_user(fields);
      }
      folded.push_back(messages[i]);
    }
    if (!pending.empty() && !folded.empty() && role_of(folded.back()) == "user") {
      // Roles alternate in many templates.
      const Value* const content = folded.back().as_dict().find("content");
      OriginText last = std::exchange(pending, {});
      if (content != nullptr) add(joined_parts(*content, messages.size() - 1, heap_));
      if (!pending.empty()) pending.append("\n\n", Origin{});
      pending.append(last);
      set_user(folded.back().as_dict());
      return folded;
    }
    if (!pending.empty() || folded.empty()) {
      const Value message = heap_.dict();
      set_user(message.as_dict());
      folded.push_back(message);
    }
    return folded;
  }

 private:
  // One message with the words of those in [begin, end).
  Value join(std::string_view role, const std::vector<Value>& messages, std::size_t begin,
             std::size_t end) {
    TextBuilder words(heap_);
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin) words.append("\n\n", Origin{});
      if (is_result(messages[i])) words.append(kResultHead, Origin{});
      const Value* const content = messages[i].as_dict().find("content");
      if (content == nullptr) continue;
      const Value text = joined_parts(*content, i, heap_);
      if (text.is_text()) words.append(text.as_text());
    }
    const Value joined = heap_.dict();
    set_field(joined.as_dict(), "role", heap_.text(std::string(role)), heap_);
    set_content(joined.as_dict(), std::move(words).value());
    return joined;
  }

  void set_content(Dict& fields, const Value& text) {
    if (traits_.text_content || !traits_.part_content) {
      return set_field(fields, "content", text, heap_);
    }
    const Value part = heap_.dict();
    set_field(part.as_dict(), "type", heap_.text("text"), heap_);
    set_field(part.as_dict(), "text", text, heap_);
    set_field(fields, "content", heap_.list({part}), heap_);
  }

  const TemplateTraits& traits_;
  Heap& heap_;
};

}  // namespace

void set_field(Dict& fields, std::string_view key, const Value& value, Heap& heap) {
  fields.set(heap.text(std::string(key)), value, heap);
}

Value joined_parts(const Value& content, std::size_t index, Heap& heap) {
  if (!content.is_list()) return content;
  TextBuilder joined(heap);
  bool first = true;
  for (const Value& part : content.as_list().items) {
    const Value* const text = part.is_dict() ? part.as_dict().find("text") : nullptr;
    if (text == nullptr || !text->is_text()) {
      fail(fmt::format("messages[{}]: the template takes text only, not {}", index,
                       part_type(part)));
    }
    if (!first) joined.append("\n", Origin{});
    joined.append(text->as_text());
    first = false;
  }
  return std::move(joined).value();
}

std::vector<Value> fit_roles(std::vector<Value> messages, const TemplateTraits& traits,
                             Heap& heap) {
  RoleFitter fitter(traits, heap);
  if (!traits.words_beside_thinking) messages = fitter.split_words(messages);
  if (!traits.tool_role && std::any_of(messages.begin(), messages.end(), is_result)) {
    messages = fitter.results_to_users(messages);
  }
  if (std::none_of(messages.begin(), messages.end(), is_system)) return messages;
  if (!traits.system_role) return fitter.fold_systems(messages);
  return traits.systems ? messages : fitter.join_systems(messages);
}

}  // namespace pagoda::text
