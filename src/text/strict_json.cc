#include "text/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "text/abbreviated.h"

namespace pagoda::text {
namespace {

using Json = nlohmann::ordered_json;

// An ordered object is a vector, whose own insertion looks for the key in all others.
using Members = Json::object_t::Container;

struct Refusal {
  std::string reason;
};

[[noreturn]] void refuse(std::string reason) { throw Refusal{std::move(reason)}; }

// By sorting: there is no hash for a client to find collisions of.
void check_keys_differ(const Members& members) {
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const auto& [key, value] : members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    refuse(fmt::format("the key \"{}\" comes twice in one object", abbreviated(*twice, 100)));
  }
}

// Builds the value while nlohmann's parser walks the text.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*digits*/) override {
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(Json::array()); }
  bool end_object() override {
    check_keys_differ(members(*open_.back()));
    return end_array();
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();  // "[json.exception.…] parse error at …: reason"
    const std::size_t reason = what.find("] ");
    refuse(fmt::format(
        "{} (byte {})",
        abbreviated(reason == std::string_view::npos ? what : what.substr(reason + 2), 300),
        position));
  }

 private:
  static Members& members(Json& object) {
    return static_cast<Members&>(object.get_ref<Json::object_t&>());
  }

  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }
  bool open(Json container) {
    if (open_.size() == kJsonDepthMax) {
      refuse(fmt::format("it is nested deeper than {} levels", kJsonDepthMax));
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  // Pointers stay good: a container grows only while no other is open within it.
  Json* place(Json value) {
    if (++values_ > kJsonValuesMax) {
      refuse(fmt::format("it holds more than {} values", kJsonValuesMax));
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& container = *open_.back();
    if (container.is_array()) {
      return &container.get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    return &members(container).emplace_back(std::move(key_), std::move(value)).second;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::size_t values_ = 0;
};

}  // namespace

Result<nlohmann::ordered_json> parse_strict_json(std::string_view text) {
  StrictBuilder builder;
  try {
    Json::sax_parse(text.begin(), text.end(), &builder);
  } catch (Refusal& refusal) {
    return Error{ErrorCode::kInvalidArgument, std::move(refusal.reason)};
  }
  return builder.take();
}

}  // namespace pagoda::text
