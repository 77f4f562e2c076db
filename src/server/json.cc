#include "server/json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "server/api_error.h"

namespace pagoda::server {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw ApiError(400, "the body is not acceptable JSON: " + what, {}, "invalid_json");
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
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (!open_.back().keys.insert(value).second) {
      refuse(fmt::format("the key \"{}\" comes twice in one object", value));
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();  // "[json.exception.…] parse error at …: reason"
    const std::size_t reason = what.find("] ");
    refuse(fmt::format("{} (byte {})",
                       reason == std::string_view::npos ? what : what.substr(reason + 2),
                       position));
  }

 private:
  struct Open {
    Json* value;
    std::set<std::string> keys;  // no hash: clients could choose keys that collide
  };

  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }
  bool open(Json container) {
    if (open_.size() == kJsonDepthMax) {
      refuse(fmt::format("it is nested deeper than {} levels", kJsonDepthMax));
    }
    open_.push_back({place(std::move(container)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
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
    Json& container = *open_.back().value;
    if (container.is_array()) {
      auto& elements = container.get_ref<Json::array_t&>();
      return &elements.emplace_back(std::move(value));
    }
    // An ordered object is a vector whose own insertion looks for the key in all others.
    auto& members = static_cast<Json::object_t::Container&>(container.get_ref<Json::object_t&>());
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }

  Json root_;
  std::vector<Open> open_;
  std::string key_;
  std::size_t values_ = 0;
};

}  // namespace

Json parse_json(std::string_view text) {
  StrictBuilder builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string dump_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace pagoda::server
