#include "net/sse_parser.h"

#include <gtest/gtest.h>

namespace pagoda::net {
namespace {

using Events = std::vector<std::string>;

// All events of a stream that comes in pieces of `size` bytes.
Events in_pieces(std::string_view stream, std::size_t size) {
  SseParser lines;
  Events events;
  for (std::size_t at = 0; at < stream.size(); at += size) {
    for (std::string& event : lines.push(stream.substr(at, size))) events.push_back(event);
  }
  return events;
}

TEST(SseParser, AreTheSameHoweverTheBytesAreCut) {
  const std::string stream =
      ": a comment\n\ndata: {\"a\": 1}\n\nevent: x\r\ndata:no blank\r\n\r\ndata: one\ndata: two\n\n"
      "data:\n\ndata: not ended";
  const Events expected = {"{\"a\": 1}", "no blank", "one\ntwo", ""};
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    EXPECT_EQ(in_pieces(stream, size), expected) << size;
  }
}

}  // namespace
}  // namespace pagoda::net
