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

// An ordered object is a vector, whose own insertion compares the key with all others.
using Members = Json::object_t::Container;

// An upper bound of an allocation's overhead in bytes.
constexpr std::size_t kBlockBytes = 16;
// The parser keeps its current token as sent and as decoded, which may be all of the text; both
// buffers double, and the second becomes a value, counted then. So three times the text is enough.
constexpr std::size_t kParserCopies = 3;

struct Refusal {
  ErrorCode code;
  std::string reason;
  std::string deep_path = {};
};

[[noreturn]] void refuse(std::string reason) {
  throw Refusal{ErrorCode::kInvalidArgument, std::move(reason)};
}

std::size_t heap_bytes(const std::string& text) {
  const bool is_within = text.capacity() <= std::string().capacity();
  return is_within ? 0 : text.capacity() + 1 + kBlockBytes;
}

// Sorts the keys, because a client could find collisions of a hash.
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
  StrictBuilder(std::size_t text_bytes, MemoryAccount* account) : memory_(account) {
    take_bytes(kParserCopies * text_bytes);
  }

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*digits*/) override {
    return add(value);
  }
  bool string(string_t& value) override {
    take_bytes(sizeof(string_t) + kBlockBytes + heap_bytes(value));
    return add(std::move(value));
  }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override {
    take_bytes(sizeof(Json::object_t) + kBlockBytes);
    return open(Json::object());
  }
  bool start_array(std::size_t /*size*/) override {
    take_bytes(sizeof(Json::array_t) + kBlockBytes);
    return open(Json::array());
  }
  bool end_object() override {
    const Members& all = members(*open_.back());
    take_bytes(all.size() * sizeof(std::string_view) + kBlockBytes);
    check_keys_differ(all);
    return end_array();
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& value) override {
    take_bytes(heap_bytes(value));
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

  void take_bytes(std::size_t bytes) {
    if (!memory_.add(bytes)) {
      throw Refusal{ErrorCode::kExhausted, "there is no memory for so many values"};
    }
  }
  // A full vector doubles and holds the old elements beside the new ones meanwhile; the count keeps
  // both.
  template <class Vector>
  void take_place_in(const Vector& vector) {
    if (vector.size() < vector.capacity()) return;
    const std::size_t next = std::max<std::size_t>(1, 2 * vector.capacity());
    take_bytes(next * sizeof(typename Vector::value_type) + kBlockBytes);
  }

  template <class Value>
  bool add(Value&& value) {
    place(Json(std::forward<Value>(value)));
    return true;
  }
  bool open(Json container) {
    if (open_.size() == kJsonDepthMax) {
      const std::string path = open_path();
      throw Refusal{ErrorCode::kInvalidArgument,
                    fmt::format("{}: is nested deeper than {} levels", path, kJsonDepthMax), path};
    }
    open_.push_back(place(std::move(container)));
    return true;
  }

  // A value that is open within a container is its last one. There are more levels than are named.
  std::string open_path() const {
    constexpr std::size_t kLevelsNamed = 8;
    constexpr std::size_t kKeyBytesMax = 60;
    std::string path;
    for (std::size_t i = 0; i < kLevelsNamed; ++i) {
      if (open_[i]->is_array()) {
        path += fmt::format("[{}]", open_[i]->size() - 1);
      } else {
        path +=
            (path.empty() ? "" : ".") + abbreviated(members(*open_[i]).back().first, kKeyBytesMax);
      }
    }
    return path;
  }

  // Pointers stay valid, because a container grows only while no other is open within it.
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
      take_place_in(container.get_ref<Json::array_t&>());
      return &container.get_ref<Json::array_t&>().emplace_back(std::move(value));
    }
    take_place_in(members(container));
    return &members(container).emplace_back(std::move(key_), std::move(value)).second;
  }

  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::size_t values_ = 0;
  CountedBytes memory_;
};

}  // namespace

Result<nlohmann::ordered_json> parse_strict_json(std::string_view text, MemoryAccount* account,
                                                 std::string* deep_path) {
  try {
    StrictBuilder builder(text.size(), account);
    Json::sax_parse(text.begin(), text.end(), &builder);
    return builder.take();
  } catch (Refusal& refusal) {
    if (deep_path != nullptr && !refusal.deep_path.empty()) *deep_path = refusal.deep_path;
    return Error{refusal.code, std::move(refusal.reason)};
  }
}

// Recursion ends at kJsonDepthMax.
std::uint64_t json_bytes(const Json& value) {
  if (value.is_string()) {
    return sizeof(std::string) + kBlockBytes + heap_bytes(value.get_ref<const std::string&>());
  }
  std::uint64_t bytes = 0;
  if (value.is_array()) {
    const auto& elements = value.get_ref<const Json::array_t&>();
    bytes = sizeof(Json::array_t) + elements.capacity() * sizeof(Json) + 2 * kBlockBytes;
    for (const Json& element : elements) bytes += json_bytes(element);
  } else if (value.is_object()) {
    const Members& members = value.get_ref<const Json::object_t&>();
    bytes =
        sizeof(Json::object_t) + members.capacity() * sizeof(Members::value_type) + 2 * kBlockBytes;
    for (const auto& [key, member] : members) bytes += heap_bytes(key) + json_bytes(member);
  }
  return bytes;
}

}  // namespace pagoda::text
