#include "text/message_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
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

// The text under a name; empty where there is none.
std::string_view text_of(const Value& value, std::string_view name) {
  const Value* const text = value.as_dict().find(name);
  return text != nullptr && text->is_text() ? text->bytes() : std::string_view();
}

bool has_calls(const Value& message) { return has_words(message.as_dict().find("tool_calls")); }

constexpr std::array kReasoningNames = {"reasoning_content", "thinking", "reasoning"};

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

  // An assistant's message that says nothing goes.
  static void drop_empty_answers(std::vector<Value>& messages, bool continues) {
    const Value* const last = continues ? &messages.back() : nullptr;
    std::erase_if(messages, [&](const Value& message) {
      const Dict& fields = message.as_dict();
      return &message != last && role_of(message) == "assistant" && !has_calls(message) &&
             !has_words(fields.find("content")) && !has_words(fields.find(kReasoningNames.front()));
    });
  }

  // A message with several calls becomes one for each, with its result behind it; other results
  // come behind the last.
  std::vector<Value> split_calls(const std::vector<Value>& messages) {
    std::vector<Value> fitted;
    for (std::size_t i = 0; i < messages.size();) {
      std::size_t end = i + 1;
      if (has_calls(messages[i])) {
        while (end < messages.size() && is_result(messages[end])) ++end;
        add_single_calls(messages[i], std::span(messages).subspan(i + 1, end - i - 1), fitted);
      } else {
        fitted.push_back(messages[i]);
      }
      i = end;
    }
    return fitted;
  }

  // Users' messages in a row become one, and so do answers up to one that calls.
  std::vector<Value> join_repeated(const std::vector<Value>& messages) {
    std::vector<Value> fitted;
    for (std::size_t i = 0; i < messages.size();) {
      const std::string_view role = role_of(messages[i]);
      std::size_t end = i + 1;
      if (role == "user" || role == "assistant") {
        while (end < messages.size() && role_of(messages[end]) == role &&
               !has_calls(messages[end - 1])) {
          ++end;
        }
      }
      fitted.push_back(end == i + 1 ? messages[i] : join_turn(messages, i, end));
      i = end;
    }
    return fitted;
  }

  // Users' words behind a result become its end.
  std::vector<Value> join_words_to_results(const std::vector<Value>& messages) {
    std::vector<Value> fitted;
    for (std::size_t i = 0; i < messages.size();) {
      std::size_t end = i + 1;
      if (is_result(messages[i])) {
        while (end < messages.size() && role_of(messages[end]) == "user") ++end;
      }
      fitted.push_back(messages[i]);
      if (end > i + 1) {
        fitted.back() = heap_.copy(messages[i].as_dict());
        set_content(fitted.back().as_dict(),
                    joined_words(std::span(messages).subspan(i, end - i), i));
      }
      i = end;
    }
    return fitted;
  }

  // System messages begin the last user's message, as those templates write them that show them
  // where a user's message stands last.
  std::vector<Value> fold_into_last_user(std::vector<Value> messages) {
    const auto user = std::find_if(messages.rbegin(), messages.rend(),
                                   [](const Value& message) { return role_of(message) == "user"; });
    if (user != messages.rend()) {
      std::stable_partition(messages.begin(), std::prev(user.base()),
                            [](const Value& message) { return !is_system(message); });
    }
    return fold_systems(messages);
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
  void add_single_calls(const Value& message, std::span<const Value> results,
                        std::vector<Value>& fitted) {
    std::map<std::string_view, std::size_t> by_id;
    for (std::size_t i = 0; i < results.size(); ++i) {
      by_id.try_emplace(text_of(results[i], "tool_call_id"), i);
    }
    std::vector<bool> is_placed(results.size());
    const std::vector<Value> calls = message.as_dict().find("tool_calls")->as_list().items;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Value single = i == 0 ? heap_.copy(message.as_dict()) : heap_.dict();
      Dict& fields = single.as_dict();
      if (i > 0) {
        set_field(fields, "role", *message.as_dict().find("role"), heap_);
        set_field(fields, "content",
                  traits_.null_content ? Value::none() : heap_.text(std::string()), heap_);
      }
      set_field(fields, "tool_calls", heap_.list({calls[i]}), heap_);
      fitted.push_back(single);
      const std::string_view id = text_of(calls[i], "id");
      const auto own = id.empty() ? by_id.end() : by_id.find(id);
      if (own == by_id.end() || is_placed[own->second]) continue;
      fitted.push_back(results[own->second]);
      is_placed[own->second] = true;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!is_placed[i]) fitted.push_back(results[i]);
    }
  }

  // The words of messages, of which a fault names the first by its `index`.
  Value joined_words(std::span<const Value> messages, std::size_t index) {
    TextBuilder words(heap_);
    for (const Value& message : messages) {
      const Value* const content = message.as_dict().find("content");
      if (!has_words(content)) continue;
      const Value text = joined_parts(*content, index++, heap_);
      if (!text.is_text()) continue;
      if (words.size() > 0) words.append("\n\n", Origin{});
      words.append(text.as_text());
    }
    return std::move(words).value();
  }

  // The last of the messages in [begin, end), with the words and the reasoning of all.
  Value join_turn(const std::vector<Value>& messages, std::size_t begin, std::size_t end) {
    const std::vector<Value> all(messages.begin() + static_cast<std::ptrdiff_t>(begin),
                                 messages.begin() + static_cast<std::ptrdiff_t>(end));
    const Value joined = heap_.copy(all.back().as_dict());
    set_content(joined.as_dict(), joined_words(all, begin));
    for (const char* const name : kReasoningNames) {
      TextBuilder reasoning(heap_);
      for (const Value& message : all) {
        const Value* const text = message.as_dict().find(name);
        if (text == nullptr || !text->is_text()) continue;
        if (reasoning.size() > 0) reasoning.append("\n\n", Origin{});
        reasoning.append(text->as_text());
      }
      if (reasoning.size() > 0) {
        set_field(joined.as_dict(), name, std::move(reasoning).value(), heap_);
      }
    }
    return joined;
  }

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
                             bool continues, Heap& heap) {
  RoleFitter fitter(traits, heap);
  if (!traits.empty_answers) RoleFitter::drop_empty_answers(messages, continues);
  if (!traits.words_beside_thinking) messages = fitter.split_words(messages);
  if (!traits.several_calls) messages = fitter.split_calls(messages);
  if (!traits.tool_role && std::any_of(messages.begin(), messages.end(), is_result)) {
    messages = fitter.results_to_users(messages);
  }
  if (std::any_of(messages.begin(), messages.end(), is_system)) {
    if (!traits.system_role) {
      messages = fitter.fold_systems(messages);
    } else if (!traits.systems) {
      messages = fitter.join_systems(messages);
    }
  }
  if (!traits.repeated_roles) messages = fitter.join_repeated(messages);
  if (!traits.user_behind_result) messages = fitter.join_words_to_results(messages);
  if (!traits.system_above_results && role_of(messages.back()) != "user") {
    messages = fitter.fold_into_last_user(std::move(messages));
  }
  return messages;
}

}  // namespace pagoda::text
