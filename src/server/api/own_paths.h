// Where the parts of a translated chat stand in the body that its client sent, so that errors name
// them there: "messages[4].tool_calls[0].function.arguments" may be "input[7].arguments".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::server {

struct MessagePlace {
  std::string path;                     // "messages[2]", "input[5]", "system"
  std::vector<std::string> calls = {};  // of its tool calls
  std::string last = {};                // of the last that was joined to it; empty: none was
};

struct OwnPaths {
  std::vector<MessagePlace> messages = {};   // of the chat's messages; those behind keep their name
  std::vector<std::size_t> tools = {};       // the index of each of the chat's tools
  std::string_view arguments = "arguments";  // the member of a call
  std::string_view schema = "parameters";    // the member of a tool

  // Returns the text with every path of the chat replaced.
  std::string rename(std::string_view text) const;
  // Returns the index of a path of a message in the list of its API: 2 of "input[2].output";
  // nothing where it stands in none.
  static std::optional<std::uint32_t> list_index(std::string_view path);
  // The memory that the paths of messages take, at most.
  std::uint64_t bytes() const;
  // Returns where a message of the chat begins and where it ends.
  std::string first_of(std::size_t message) const;
  std::string last_of(std::size_t message) const;

 private:
  std::string rename_message(std::size_t index, std::string_view& rest) const;
  std::string rename_tool(std::size_t index, std::string_view& rest) const;
};

}  // namespace pagoda::server
