#include "loadgen/reply_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace pagoda::loadgen {
namespace {

using State = ReplyReader::State;

struct Case {
  std::string bytes;
  State state;
  int status;
  std::string body;
  bool keeps_alive;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", State::kDone, 200, "hello", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", State::kDone, 200, "", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", State::kDone, 204, "", true},
      {"HTTP/1.1 200 OK\r\nTRANSFER-encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n",
       State::kDone, 200, "hello!", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
       State::kDone, 200, "0123456789", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nConnection: close\r\n"
       "Content-Length: 2\r\n\r\nno",
       State::kDone, 503, "no", false},
      {"HTTP/1.0 200 OK\r\n\r\nuntil the end", State::kBody, 200, "until the end", false},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", State::kBody, 200, "hello", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", State::kBroken, 200, "",
       true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", State::kBroken, 200, "a",
       true},
      {"SSH-2.0-OpenSSH\r\n\r\n", State::kBroken, 0, "", true},
      {"HTTP/1.1 2x0 OK\r\n\r\n", State::kBroken, 0, "", true},
  };
  return kCases;
}

void expect_read(const std::vector<std::string_view>& pieces, const Case& expected) {
  ReplyReader reader;
  std::string body;
  for (const std::string_view piece : pieces) reader.put(piece, body);
  if (expected.state == State::kBroken && reader.state() == State::kBody) {
    // A chunk's end is looked at once its line is whole.
    reader.put("\n", body);
  }
  ASSERT_EQ(reader.state(), expected.state) << expected.bytes;
  EXPECT_EQ(body, expected.body) << expected.bytes;
  if (expected.status == 0) return;
  EXPECT_EQ(reader.status(), expected.status) << expected.bytes;
  if (expected.state == State::kDone) {
    EXPECT_EQ(reader.keeps_alive(), expected.keeps_alive) << expected.bytes;
  }
}

TEST(ReplyReaderTest, RepliesAreTheSameWhereverTheyAreCut) {
  for (const Case& expected : cases()) {
    const std::string_view bytes = expected.bytes;
    expect_read({bytes}, expected);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      expect_read({bytes.substr(0, cut), bytes.substr(cut)}, expected);
    }
    std::vector<std::string_view> single;
    for (std::size_t i = 0; i < bytes.size(); ++i) single.push_back(bytes.substr(i, 1));
    expect_read(single, expected);
  }
}

TEST(ReplyReaderTest, TheConnectionsEndEndsOnlyWhatHasNoOther) {
  for (const auto& [head, whole] : std::vector<std::pair<std::string, bool>>{
           {"HTTP/1.1 200 OK\r\n\r\nabc", true},
           {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false},
           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false},
           {"HTTP/1.1 200 OK\r\n", false},
           {"", false}}) {
    ReplyReader reader;
    std::string body;
    reader.put(head, body);
    reader.end();
    EXPECT_EQ(reader.state(), whole ? State::kDone : State::kBroken) << head;
    EXPECT_FALSE(whole && reader.keeps_alive());
  }
}

TEST(ReplyReaderTest, AHeaderWithoutAnEndIsBroken) {
  ReplyReader reader;
  std::string body;
  reader.put("HTTP/1.1 200 OK\r\n", body);
  for (int i = 0; i < 100 && reader.state() == State::kHead; ++i) {
    reader.put("X: " + std::string(1000, 'x') + "\r\n", body);
  }
  EXPECT_EQ(reader.state(), State::kBroken);
}

}  // namespace
}  // namespace pagoda::loadgen
