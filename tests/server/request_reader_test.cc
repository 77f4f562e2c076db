// Bytes to requests: the same however they are cut, and never two ways to understand them.
#include "server/request_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pagoda::server {
namespace {

using State = RequestReader::State;

struct Outcome {
  State state;
  int status = 0;            // of kFailed
  HttpRequest request = {};  // of kDone
  std::size_t taken = 0;
};

// Reads bytes that arrive `piece` at a time.
Outcome read(const std::string& bytes, std::size_t piece, const ConnectionOptions& limits = {}) {
  RequestReader reader(limits);
  std::size_t taken = 0;
  std::size_t arrived = 0;
  const auto goes_on = [&] {
    return reader.state() == State::kHeader || reader.state() == State::kBody;
  };
  while (goes_on() && arrived < bytes.size()) {
    arrived = std::min(arrived + piece, bytes.size());
    taken += reader.put(std::string_view(bytes).substr(taken, arrived - taken));
  }
  if (goes_on()) reader.end();
  Outcome outcome = {reader.state()};
  outcome.taken = taken;
  if (reader.state() == State::kFailed) outcome.status = reader.error().status;
  if (reader.state() == State::kDone) outcome.request = reader.take();
  return outcome;
}

int refused_with(const std::string& bytes, const ConnectionOptions& limits = {}) {
  const Outcome whole = read(bytes, bytes.size(), limits);
  for (const std::size_t piece : {1, 2, 3, 7, 64}) {
    const Outcome cut = read(bytes, piece, limits);
    EXPECT_EQ(cut.state, whole.state) << piece << ": " << bytes;
    EXPECT_EQ(cut.status, whole.status) << piece << ": " << bytes;
  }
  return whole.status;
}

std::string post(const std::string& headers, const std::string& body) {
  return "POST /tokenize HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body;
}

TEST(RequestReader, ReadsTheSameHoweverBytesAreCut) {
  const std::string next = "GET /health HTTP/1.1\r\n";
  const std::vector<std::string> requests = {
      "GET /health HTTP/1.0\r\n\r\n",
      "GET /v1/models?x=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nOrigin: http://a\r\n"
      "X-Request-Id: 7\r\n\r\n",
      post("Content-Type: application/json\r\nContent-Length: 5\r\n", "hello"),
      post("Transfer-Encoding: chunked\r\n", "3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "0\r\nX-Trailer: 1\r\n\r\n")};
  for (const std::string& request : requests) {
    const Outcome whole = read(request + next, request.size() + next.size());
    ASSERT_EQ(whole.state, State::kDone) << request;
    EXPECT_EQ(whole.taken, request.size()) << request;
    for (std::size_t piece = 1; piece <= 40; ++piece) {
      const Outcome cut = read(request + next, piece);
      ASSERT_EQ(cut.state, State::kDone) << piece << ": " << request;
      EXPECT_EQ(cut.taken, request.size()) << piece << ": " << request;
      EXPECT_EQ(cut.request.method, whole.request.method);
      EXPECT_EQ(cut.request.path, whole.request.path);
      EXPECT_EQ(cut.request.body, whole.request.body);
    }
  }
  const Outcome second = read(requests[1], 5);
  EXPECT_EQ(second.request.path, "/v1/models");
  EXPECT_EQ(second.request.authorization, "Bearer k");
  EXPECT_EQ(second.request.origin, "http://a");
  EXPECT_EQ(second.request.id, "7");
  EXPECT_EQ(read(requests[3], 1).request.body, "hello");
}

TEST(RequestReader, RefusesWhatTwoReadersCouldUnderstandInTwoWays) {
  const std::vector<std::string> riddles = {
      post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
      post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
      post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"),
      post("Content-Length: 5, 6\r\n", "hello!"),
      post("Content-Length: +5\r\n", "hello"),
      post("Content-Length: 0x5\r\n", "hello"),
      post("Content-Length: 5 5\r\n", "hello"),
      post("Content-Length:\r\n", ""),
      post("Content-Length: 99999999999999999999\r\n", ""),
      post("Content-Length : 5\r\n", "hello"),
      post("Transfer-Encoding: gzip\r\n", "hello"),
      post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding:\r\n", ""),
      post("Transfer-Encoding: chunked\r\n", "0x3\r\nhel\r\n0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "-3\r\nhel\r\n0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\nhel\r\n0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "3\r\nhello\r\n0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "3\nhel\n0\n\n"),
      post("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 5\r\n\r\n"),
      "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post("X: a\r\n b\r\n", ""),
      post("X: a\r\n\tb\r\n", ""),
      "GET /health HTTP/1.1\r\n Host: x\r\n\r\n",
      "GET /health HTTP/1.1\nHost: x\n\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nX: a\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
      "GET /health HTTP/1.1\rHost: x\r\r",
      std::string("GET /health HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 41),
      "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
      "GET /health HTTP/1.1\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nNo colon\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n",
      "GET /health HTTP/2.0\r\nHost: x\r\n\r\n",
      "GET /health HTTP/1.2\r\nHost: x\r\n\r\n",
      "GET /health\r\n\r\n",
      "GET  /health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /he alth HTTP/1.1\r\nHost: x\r\n\r\n",
      "\r\n\r\n",
      "\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"};
  for (const std::string& riddle : riddles) EXPECT_EQ(refused_with(riddle), 400) << riddle;
}

TEST(RequestReader, HoldsHeaderAndBodyAgainstTheirLimits) {
  ConnectionOptions limits;
  limits.header_bytes_max = 300;
  limits.body_bytes_max = 10;
  const std::string header = "GET /x HTTP/1.1\r\nHost: x\r\nX: ";
  const auto of_size = [&](std::size_t size) {
    return header + std::string(size - header.size() - 4, 'a') + "\r\n\r\n";
  };
  EXPECT_EQ(read(of_size(300), 300, limits).state, State::kDone);
  EXPECT_EQ(refused_with(of_size(301), limits), 431);
  EXPECT_EQ(refused_with(header + std::string(1000, 'a'), limits), 431);
  EXPECT_EQ(read(post("Content-Length: 10\r\n", "0123456789"), 9, limits).state, State::kDone);
  EXPECT_EQ(refused_with(post("Content-Length: 11\r\n", "0123456789a"), limits), 413);
  EXPECT_EQ(
      refused_with(post("Transfer-Encoding: chunked\r\n", "8\r\n01234567\r\n3\r\nabc\r\n"), limits),
      413);
}

TEST(RequestReader, AChunksLineAndTrailersAreBounded) {
  const std::string chunked = post("Transfer-Encoding: chunked\r\n", "");
  EXPECT_EQ(refused_with(chunked + "1;" + std::string(5000, 'a')), 400);
  EXPECT_EQ(refused_with(chunked + "0\r\nX: " + std::string(5000, 'a')), 400);
}

TEST(RequestReader, TrailersChangeNothing) {
  const Outcome read_all =
      read(post("Transfer-Encoding: chunked\r\n",
                "0\r\nAuthorization: Bearer late\r\nX-Request-Id: late\r\n\r\n"),
           9);
  ASSERT_EQ(read_all.state, State::kDone);
  EXPECT_EQ(read_all.request.authorization, "");
  EXPECT_NE(read_all.request.id, "late");
}

TEST(RequestReader, AnIdIsTakenWhereItCanStandInAHeaderAndALog) {
  const auto id_of = [](const std::string& given) {
    return read("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + given + "\r\n\r\n", 1000)
        .request.id;
  };
  EXPECT_EQ(id_of("abc-123"), "abc-123");
  EXPECT_EQ(id_of(std::string(128, 'a')), std::string(128, 'a'));
  for (const std::string& bad :
       {std::string(), std::string(129, 'a'), std::string("a b"), std::string("\xc3\xa9")}) {
    EXPECT_EQ(id_of(bad).size(), 16u) << bad;
    EXPECT_NE(id_of(bad), id_of(bad));
  }
}

TEST(RequestReader, WhatEndsEarlyIsToldSo) {
  const std::string whole = post("Content-Length: 5\r\n", "hello");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const ConnectionOptions limits;
    RequestReader reader(limits);
    reader.put(whole.substr(0, bytes));
    reader.end();
    ASSERT_EQ(reader.state(), State::kFailed) << bytes;
    EXPECT_EQ(reader.error().code, "incomplete_request") << bytes;
  }
}

}  // namespace
}  // namespace pagoda::server
