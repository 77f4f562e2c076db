// Builds a chat's messages from the turns of an API that writes conversations as blocks or items.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/translated_chat.h"
#include "server/json.h"

namespace pagoda::server {

class ChatHistory {
 public:
  explicit ChatHistory(TranslationMemory& memory) : memory_(memory) {}

  // Opens a message that comes from `path`; with `joins` the last one goes on where it has this
  // role.
  void open(std::string_view role, bool joins, const std::string& path);
  // These add to the message that is open.
  void add_text(Json text);
  void add_reasoning(std::string_view text);
  void add_call(std::string_view id, std::string_view name, Json arguments,
                const std::string& path);
  // Adds the result of the call with this id, which comes from `path`, as a message of its own;
  // `content` is a string or an array of text parts. Throws ApiError, which names `id_path`, where
  // no call has the id.
  void add_result(std::string_view id, const std::string& id_path, Json content,
                  const std::string& path);
  // Copies the mark that `block` carries (cache_marks.h) to what was added last.
  void mark(const Json& block);

  // The last message is an assistant's that has nothing but reasoning.
  bool has_only_reasoning() const;
  std::string_view last_role() const;
  bool last_has_calls() const;

  // Returns the messages.
  Json take();
  // Where they are from.
  std::vector<MessagePlace> take_places() { return std::move(places_); }

 private:
  TranslationMemory& memory_;
  Json messages_ = Json::array();  // every content is an array of parts until take()
  std::vector<MessagePlace> places_;
  std::set<std::string, std::less<>> calls_;
};

}  // namespace pagoda::server
