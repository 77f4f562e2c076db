// Derives the texts around a call's name and arguments: those named in small letters in
//   H section_begin call_begin NAME name_end key_begin KEY key_end VALUE value_end call_end …
#include <algorithm>
#include <nlohmann/json.hpp>

#include "chat/derive.h"
#include "chat/json_stream.h"
#include "chat/literal.h"
#include "chat/literal_arguments.h"

namespace pagoda::chat {
namespace {

using text::ChatJson;

constexpr std::size_t kNowhere = std::string::npos;

// A call in a rendering: [begin, end) holds its name and arguments without markers.
struct CallSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::size_t end_of_json(std::string_view text, std::size_t begin) {
  JsonStream stream;
  std::string out;
  const std::size_t taken = stream.read(text.substr(begin), out);
  return stream.state() == JsonStream::State::kDone ? begin + taken : kNowhere;
}

// The outermost object of JSON that begins before `name` and ends behind `key`.
std::optional<CallSpan> object_around(std::string_view text, std::size_t name, std::size_t key) {
  std::optional<CallSpan> found;
  for (std::size_t at = name; at-- > 0;) {
    if (text[at] != '{') continue;
    const std::size_t end = end_of_json(text, at);
    if (end != kNowhere && end > key) found = CallSpan{at, end};
  }
  return found;
}

void read_keys(const ChatJson& object, std::string_view name, ToolCallForm& form) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (key == name) form.name_is_key = true;
    if (value == name) form.name_key = key;
    const bool holds = value.is_object() && value.contains(kProbeKeys[0]);
    const bool quotes =
        value.is_string() && value.get<std::string>().find(kProbeKeys[0]) != kNowhere;
    if ((holds || quotes) && key != name) form.arguments_key = key;
    const bool behind_arguments = object.contains(form.arguments_key);
    if (key == "id" && value == kProbeIds[0] && behind_arguments) form.id_is_last = true;
  }
}

class CallDeriver {
 public:
  explicit CallDeriver(const TemplateProbe& probe) : probe_(probe) {}

  std::optional<ToolCallForm> derive() {
    const auto one = tail({{0, probe_arguments(1)}});
    if (!one) return std::nullopt;
    const std::size_t name = one->find(kProbeNames[0]);
    const std::size_t key = one->find(kProbeKeys[0], name == kNowhere ? 0 : name);
    if (name == kNowhere || key == kNowhere) return std::nullopt;
    if (const auto object = object_around(*one, name, key)) {
      form_.syntax = CallSyntax::kJsonObject;
      const auto parsed =
          ChatJson::parse(one->substr(object->begin, object->end - object->begin), nullptr, false);
      read_keys(parsed, kProbeNames[0], form_);
    } else {
      form_.syntax = CallSyntax::kNamed;
      if (!find_arguments(*one, name, key)) return std::nullopt;
    }
    const auto two = tail({{0, probe_arguments(1)}, {1, probe_arguments(1)}});
    if (!find_markers(*one, two.value_or("")) || has_probe_id()) return std::nullopt;
    return form_;
  }

 private:
  std::optional<std::string> tail(std::vector<ProbeCall> calls, bool content = false) const {
    return probe_.tail({.content = content, .calls = std::move(calls)});
  }

  // An id that no slot explains is a literal of nobody's.
  bool has_probe_id() const {
    const std::string all = form_.section_begin + form_.call_begin + form_.name_end +
                            form_.arguments_begin + form_.call_end + form_.separator +
                            form_.section_end;
    return all.find(kProbeIds[0]) != kNowhere || all.find(kProbeIds[1]) != kNowhere;
  }

  // The text between two words, the second of which follows the first; nothing if one is missing.
  static std::optional<std::string> between(std::string_view text, std::string_view first,
                                            std::string_view second) {
    const std::size_t begin = text.find(first);
    if (begin == kNowhere) return std::nullopt;
    const std::size_t from = begin + first.size();
    const std::size_t end = text.find(second, from);
    if (end == kNowhere) return std::nullopt;
    return std::string(text.substr(from, end - from));
  }

  bool find_arguments(const std::string& one, std::size_t name, std::size_t key) {
    const std::string_view text = one;
    const std::size_t name_end = name + std::string_view(kProbeNames[0]).size();
    const std::size_t key_end = key + std::string_view(kProbeKeys[0]).size();
    const std::size_t value = text.find(kProbeValues[0], key_end);
    if (value == kNowhere) return false;
    const std::string_view middle = text.substr(key_end, value - key_end);
    const std::size_t brace = text.find('{', name_end);
    if (brace != kNowhere && brace < key && end_of_json(text, brace) != kNowhere) {
      form_.arguments = ArgumentSyntax::kJson;
      form_.name_end = text.substr(name_end, brace - name_end);
      return true;
    }
    if (text[name_end] == '(' && middle.starts_with('=')) {
      form_.arguments = ArgumentSyntax::kKeywords;
      return true;
    }
    if (text[name_end] == '{' && middle.starts_with(':')) {
      form_.arguments = ArgumentSyntax::kQuoted;
      form_.quote = middle.substr(1);
      return !form_.quote.empty();
    }
    form_.arguments = ArgumentSyntax::kTagged;
    return find_tags();
  }

  bool find_tags() {
    const auto full = tail({{0, probe_arguments(2)}});
    const auto bare = tail({{0, ChatJson::object()}});
    if (!full || !bare) return false;
    const auto behind_name = between(*full, kProbeNames[0], kProbeKeys[0]);
    const auto behind_key = between(*full, kProbeKeys[0], kProbeValues[0]);
    const auto behind_value = between(*full, kProbeValues[0], kProbeKeys[1]);
    const std::size_t last = full->find(kProbeValues[1]);
    const std::size_t bare_name = bare->find(kProbeNames[0]);
    if (!behind_name || !behind_key || !behind_value || last == kNowhere || bare_name == kNowhere) {
      return false;
    }
    const std::string without = bare->substr(bare_name + std::string_view(kProbeNames[0]).size());
    const std::string behind_last = full->substr(last + std::string_view(kProbeValues[1]).size());
    const std::size_t shared = shared_prefix(*behind_name, without);
    form_.name_end = behind_name->substr(0, shared);
    TaggedArguments& tagged = form_.tagged;
    tagged.key_begin = behind_name->substr(shared);
    if (core(tagged.key_begin).empty()) return false;
    const std::string_view begin_core = core(tagged.key_begin);
    if (!core(*behind_value).ends_with(begin_core)) return false;
    std::string closing = behind_value->substr(0, behind_value->rfind(begin_core));
    const std::size_t own_key = closing.find(kProbeKeys[0]);
    if (own_key != kNowhere) {
      tagged.value_end_has_key = true;
      tagged.value_end = closing.substr(0, own_key);
      tagged.close_end = core(closing.substr(own_key + std::string_view(kProbeKeys[0]).size()));
    } else {
      tagged.value_end = closing.substr(0, shared_prefix(closing, behind_last));
    }
    if (core(tagged.value_end).empty()) return false;
    find_key_ends(*behind_key);
    find_null_end();
    find_text_quotes();
    return true;
  }

  // Some templates write the type of a value behind its key.
  void find_key_ends(const std::string& of_text) {
    struct Typed {
      ChatJson value;
      std::string_view begins;
      JsonKind kind;
    };
    const std::vector<Typed> kinds = {{7310, "7310", JsonKind::kNumber},
                                      {true, "true", JsonKind::kBoolean},
                                      {ChatJson::array({7310}), "[", JsonKind::kArray},
                                      {{{"inner", 7310}}, "{", JsonKind::kObject}};
    form_.tagged.key_ends = {{of_text, ArgumentType::kBySchema}};
    for (const Typed& kind : kinds) {
      const auto text = tail({{0, {{kProbeKeys[0], kind.value}}}});
      const auto end = text ? between(*text, kProbeKeys[0], kind.begins) : std::nullopt;
      if (end) add_json_end(*end, kind.kind);
    }
  }

  // An end that stands before values of several kinds is one of any.
  void add_json_end(const std::string& text, JsonKind kind) {
    std::vector<KeyEnd>& ends = form_.tagged.key_ends;
    const auto known =
        std::find_if(ends.begin(), ends.end(), [&](const KeyEnd& one) { return one.text == text; });
    if (known != ends.end()) {
      known->kind = JsonKind::kAny;
      return;
    }
    if (text.size() > 64) return;
    ends.front().type = ArgumentType::kString;
    ends.push_back({text, ArgumentType::kJson, kind});
  }

  // The word may be the type that stands before the value, too.
  void find_null_end() {
    if (form_.tagged.key_ends.size() == 1) return;
    const auto text = tail({{0, {{kProbeKeys[0], nullptr}}}});
    const std::size_t key = text ? text->find(kProbeKeys[0]) : kNowhere;
    if (key == kNowhere) return;
    const std::size_t from = key + std::string_view(kProbeKeys[0]).size();
    const std::size_t closes = text->find(core(form_.tagged.value_end), from);
    const std::size_t value = closes == kNowhere ? kNowhere : text->rfind("null", closes);
    if (value == kNowhere || value < from) return;
    add_json_end(text->substr(from, value - from), JsonKind::kNull);
  }

  // Some templates write texts that look like tags between quotes of their own.
  void find_text_quotes() {
    TaggedArguments& tagged = form_.tagged;
    const std::string value = std::string(kProbeValues[0]) + "<\n" + kProbeValues[1];
    const auto text = tail({{0, {{kProbeKeys[0], value}}}});
    const auto before = text ? between(*text, kProbeKeys[0], value) : std::nullopt;
    const std::string& end = tagged.key_ends.front().text;
    if (!before || before->size() <= end.size() || !before->starts_with(end)) return;
    const std::string_view rest = std::string_view(*text).substr(text->find(value) + value.size());
    const std::size_t closes = rest.find(tagged.value_end);
    if (closes == 0 || closes == kNowhere) return;
    tagged.text_begin = before->substr(end.size());
    tagged.text_end = rest.substr(0, closes);
  }

  // Where the call numbered `name` is in a rendering, from byte `from` on.
  std::optional<CallSpan> find_call(std::string_view text, int name, std::size_t from) const {
    const std::size_t at = text.find(kProbeNames[name], from);
    if (at == kNowhere) return std::nullopt;
    const std::size_t behind = at + std::string_view(kProbeNames[name]).size();
    const std::size_t key = text.find(kProbeKeys[0], at);
    const std::size_t value = text.find(kProbeValues[0], at);
    if (key == kNowhere || value == kNowhere) return std::nullopt;
    if (form_.syntax == CallSyntax::kJsonObject) {
      const auto object = object_around(text.substr(from), at - from, key - from);
      if (!object) return std::nullopt;
      return CallSpan{from + object->begin, from + object->end};
    }
    std::size_t end = kNowhere;
    switch (form_.arguments) {
      case ArgumentSyntax::kJson:
        end = end_of_json(text, text.find('{', behind));
        break;
      case ArgumentSyntax::kTagged:
        end = value + std::string_view(kProbeValues[0]).size() + form_.tagged.value_end.size();
        if (form_.tagged.value_end_has_key) {
          end += std::string_view(kProbeKeys[0]).size() + form_.tagged.close_end.size();
        }
        end = std::min(end, text.size());
        break;
      default: {
        LiteralScanner scanner(form_.quote);
        const auto bytes = scanner.find_end(text.substr(behind));
        if (bytes) end = behind + *bytes;
        break;
      }
    }
    if (end == kNowhere) return std::nullopt;
    return CallSpan{at, end};
  }

  bool find_markers(const std::string& one, const std::string& two) {
    const auto call = find_call(one, 0, 0);
    const auto content = probe_.tail({.content = true});
    const auto generation = probe_.generation_tail();
    if (!call || !content || !generation) return false;
    const std::size_t content_at = content->find(kProbeContent);
    if (content_at == kNowhere) return false;
    const std::string_view text = one;
    std::string_view pre = text.substr(0, call->begin);
    const std::string_view post = text.substr(call->end);
    pre.remove_prefix(std::max(shared_prefix(pre, content->substr(0, content_at)),
                               shared_prefix(pre, *generation)));
    std::string turn_end = content->substr(content_at + std::string_view(kProbeContent).size());
    const std::string content_end = find_content_end(turn_end);
    turn_end.erase(0, content_end.size());
    if (!content_end.empty() && pre.starts_with(content_end)) pre.remove_prefix(content_end.size());
    if (core(turn_end).empty()) turn_end = probe_.late_end(post);

    const auto first = find_call(two, 0, 0);
    const auto second = first ? find_call(two, 1, first->end) : std::nullopt;
    std::string rest(post);
    if (first && second) {
      const std::string gap = two.substr(first->end, second->begin - first->end);
      form_.call_end = gap.substr(0, shared_prefix(post, gap));
      std::string more = gap.substr(form_.call_end.size());
      form_.call_begin = more.substr(more.size() - shared_suffix(pre, more));
      if (core(form_.call_begin).empty()) form_.call_begin.clear();
      if (core(form_.call_end).empty()) form_.call_end.clear();
      form_.separator = gap.substr(form_.call_end.size());
      form_.separator.resize(form_.separator.size() - form_.call_begin.size());
      form_.section_begin = pre.substr(0, pre.size() - form_.call_begin.size());
      rest = post.substr(form_.call_end.size());
      form_.section_end = without_turn_end(rest, turn_end);
      find_slot(two, *first, *second);
    } else {
      form_.call_begin = pre;
      form_.call_end = without_turn_end(rest, turn_end);
    }
    find_before();
    return true;
  }

  // Returns the text that closes the content both where calls follow it and where the turn ends.
  std::string find_content_end(const std::string& turn_end) const {
    const auto beside = tail({{0, probe_arguments(1)}}, true);
    const std::size_t at = beside ? beside->find(kProbeContent) : kNowhere;
    if (at == kNowhere || at > beside->find(kProbeNames[0])) return {};
    const std::string behind = beside->substr(at + std::string_view(kProbeContent).size());
    const std::string shared = turn_end.substr(0, shared_prefix(turn_end, behind));
    return core(shared).empty() || shared == turn_end ? std::string() : shared;
  }

  static std::string without_turn_end(std::string text, const std::string& turn_end) {
    const std::string_view end = core(turn_end);
    const std::size_t at = end.empty() ? kNowhere : text.find(end);
    if (at != kNowhere) return text.substr(0, at);
    return text.substr(0, text.size() - shared_suffix(text, turn_end));
  }

  // An id or a number behind the name differs between two calls.
  void find_slot(std::string_view two, const CallSpan& first, const CallSpan& second) {
    if (form_.syntax != CallSyntax::kNamed || form_.name_end.empty()) return;
    const auto middle = [&](const CallSpan& call, int name) {
      const std::size_t from = call.begin + std::string_view(kProbeNames[name]).size();
      return std::string(two.substr(from, form_.name_end.size()));
    };
    const std::string a = middle(first, 0);
    const std::string b = middle(second, 1);
    if (a == b || a.size() != b.size()) return;
    const std::size_t id = a.find(kProbeIds[0]);
    std::size_t begin = 0;
    std::size_t end = a.size();
    if (id != kNowhere) {
      begin = id;
      end = id + std::string_view(kProbeIds[0]).size();
      form_.slot_is_id = true;
    } else {
      while (a[begin] == b[begin]) ++begin;
      while (a[end - 1] == b[end - 1]) --end;
    }
    form_.has_slot = true;
    form_.arguments_begin = a.substr(end);
    form_.name_end = a.substr(0, begin);
  }

  // The white space between content and calls belongs to the calls.
  void find_before() {
    const auto beside = tail({{0, probe_arguments(1)}}, true);
    const std::size_t content = beside ? beside->find(kProbeContent) : kNowhere;
    std::string& first = form_.section_begin.empty() ? form_.call_begin : form_.section_begin;
    form_.before = head_space(first);
    const std::string marker(core(first));
    if (content != kNowhere && !marker.empty()) {
      const std::size_t from = content + std::string_view(kProbeContent).size();
      const std::size_t at = beside->find(marker, from);
      if (at != kNowhere) form_.before = tail_space(beside->substr(from, at - from));
      if (at != kNowhere && core(beside->substr(from, at - from)).empty()) {
        form_.before = beside->substr(from, at - from);
      }
    }
    first.erase(0, head_space(first).size());
  }

  const TemplateProbe& probe_;
  ToolCallForm form_;
};

}  // namespace

std::optional<ToolCallForm> derive_calls(const TemplateProbe& probe) {
  return CallDeriver(probe).derive();
}

}  // namespace pagoda::chat
