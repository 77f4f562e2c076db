// Expected bytes are the examples and tables of the MessagePack specification; the decoder is
// nlohmann's.
#include "events/msgpack_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace pagoda::events {
namespace {

using Json = nlohmann::json;

template <class Write>
std::string written(Write&& write) {
  MsgpackWriter writer;
  write(writer);
  return writer.take();
}

TEST(MsgpackWriter, WritesTheSpecificationsExample) {
  // The example is {"compact": true, "schema": 0}.
  const std::string bytes = written([](MsgpackWriter& writer) {
    writer.map(2);
    writer.text("compact");
    writer.boolean(true);
    writer.text("schema");
    writer.number(std::uint64_t{0});
  });
  EXPECT_EQ(bytes, std::string("\x82\xa7"
                               "compact\xc3\xa6schema\x00",
                               18));
}

TEST(MsgpackWriter, TakesTheShortestFormOfANumber) {
  const std::vector<std::pair<std::uint64_t, std::size_t>> sizes = {
      {0, 1},          {127, 1},
      {128, 2},        {255, 2},
      {256, 3},        {65'535, 3},
      {65'536, 5},     {UINT32_MAX, 5},
      {UINT64_MAX, 9}, {std::uint64_t{UINT32_MAX} + 1, 9}};
  for (const auto& [value, size] : sizes) {
    const std::string bytes =
        written([number = value](MsgpackWriter& writer) { writer.number(number); });
    EXPECT_EQ(bytes.size(), size) << value;
    EXPECT_EQ(Json::from_msgpack(bytes).get<std::uint64_t>(), value);
  }
}

TEST(MsgpackWriter, WritesAnyLengthAsItIsRead) {
  for (const std::size_t length : {0, 15, 16, 31, 32, 255, 256, 65'535, 65'536}) {
    const std::string text(length, 'x');
    EXPECT_EQ(Json::from_msgpack(written([&](MsgpackWriter& w) { w.text(text); })), text);
    const std::vector<std::byte> bytes(length, std::byte{7});
    const Json binary = Json::from_msgpack(written([&](MsgpackWriter& w) { w.bytes(bytes); }));
    EXPECT_EQ(binary.get_binary().size(), length);
    const Json array = Json::from_msgpack(written([&](MsgpackWriter& w) {
      w.array(length);
      for (std::size_t i = 0; i < length; ++i) w.nil();
    }));
    EXPECT_EQ(array.size(), length);
  }
}

TEST(MsgpackWriter, WritesTimesInFullPrecision) {
  const std::string bytes = written([](MsgpackWriter& writer) { writer.number(0.5); });
  EXPECT_EQ(bytes, std::string("\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", 9));
}

}  // namespace
}  // namespace pagoda::events
