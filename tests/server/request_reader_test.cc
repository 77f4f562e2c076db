// Bytes to requests: the result does not depend on how they are cut, and ambiguous requests are
// refused.
#include "server/request_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/request_target.h"

namespace pagoda::server {
namespace {

using State = RequestReader::State;

struct Outcome {
  State state;
  int status = 0;            // valid in kFailed
  HttpRequest request = {};  // valid in kDone
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

TEST(RequestReader, HeadersThatRequestsAreReadByAreKept) {
  const Outcome read_all =
      read(post("X-Session-Id: s1\r\nanthropic-version: 2023-06-01\r\nContent-Length: 1\r\n", "x"),
           1000);
  ASSERT_EQ(read_all.state, State::kDone);
  EXPECT_EQ(read_all.request.session, "s1");
  EXPECT_EQ(read_all.request.anthropic_version, "2023-06-01");
}

// Old browsers, and pages that hide their origin, send no Origin with a form.
TEST(RequestReader, APageOfAnotherSiteThatPostsHidesItsOrigin) {
  const auto origin = [](const std::string& method, const std::string& headers) {
    return read(method + " / HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n", 4096).request.origin;
  };
  for (const char* const site : {"cross-site", "same-site", "Same-Origin", "?"}) {
    const std::string header = fmt::format("Sec-Fetch-Site: {}\r\n", site);
    EXPECT_EQ(origin("POST", header), "null") << site;
    EXPECT_EQ(origin("DELETE", header), "null") << site;
    EXPECT_EQ(origin("GET", header), "") << "a link leads here";
    EXPECT_EQ(origin("HEAD", header), "") << site;
    EXPECT_EQ(origin("POST", header + "Origin: http://a\r\n"), "http://a") << site;
  }
  EXPECT_EQ(origin("POST", "Sec-Fetch-Site: same-origin\r\n"), "");
  EXPECT_EQ(origin("POST", "Sec-Fetch-Site: none\r\n"), "");
  EXPECT_EQ(origin("POST", ""), "");
}

// Anthropic's clients send their key so.
TEST(RequestReader, ARequestThatAProxyForwardsIsKnown) {
  EXPECT_FALSE(read(post("", ""), 7).request.is_forwarded);
  for (const char* const header :
       {"X-Forwarded-For: 10.0.0.9", "x-forwarded-for: 127.0.0.1", "Forwarded: for=10.0.0.9",
        "X-Real-IP: 10.0.0.9", "X-Forwarded-Host: a", "Via: 1.1 proxy", "X-Forwarded-For:"}) {
    const Outcome outcome = read(post(std::string(header) + "\r\n", ""), 7);
    EXPECT_EQ(outcome.state, State::kDone) << header;
    EXPECT_TRUE(outcome.request.is_forwarded) << header;
  }
}

TEST(RequestReader, AKeyComesInEitherOfTwoHeaders) {
  const auto authorization = [](const std::string& headers) {
    return read("GET / HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n", 4096).request.authorization;
  };
  EXPECT_EQ(authorization("x-api-key: k\r\n"), "Bearer k");
  EXPECT_EQ(authorization("X-Api-Key: k\r\nAuthorization: Bearer a\r\n"), "Bearer a");
  EXPECT_EQ(authorization("X-Api-Key:\r\n"), "Bearer ");
  EXPECT_EQ(refused_with("GET / HTTP/1.1\r\nHost: x\r\nX-Api-Key: k\r\nx-api-key: l\r\n\r\n"), 400);
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
  const std::vector<std::string> ambiguous = {
      post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
      post("Content-Length: 5, 5, 6\r\n", "hello!"),
      post("Content-Length: 5,,5\r\n", "hello"),
      post("Content-Length: 5\r\nContent-Length: 5, 6\r\n", "hello!"),
      post("Content-Length: 5\r\nContent-Length: \r\n", "hello"),
      post("Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
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
      post("Transfer-Encoding: chunked\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n"),
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
      "\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
      "\rGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
      " \r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
      "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET ftp://x/health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http:///health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://a@x/health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://x:y/health HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET http://x/health HTTP/1.1\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: a@b\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: [::1\r\n\r\n",
      "GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"};
  for (const std::string& request : ambiguous) EXPECT_EQ(refused_with(request), 400) << request;
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

TEST(RequestReader, LengthsThatAgreeAreOne) {
  const std::string next = "GET /health HTTP/1.1\r\n";
  for (const char* const lengths :
       {"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n",
        "Content-Length: 5\r\nX: y\r\nContent-Length: 5 , 5\r\n"}) {
    const std::string request = post(lengths, "hello");
    for (const std::size_t piece : {1, 7, 1000}) {
      const Outcome done = read(request + next, piece);
      ASSERT_EQ(done.state, State::kDone) << lengths;
      EXPECT_EQ(done.request.body, "hello");
      EXPECT_EQ(done.taken, request.size());
    }
  }
}

TEST(RequestReader, EmptyLinesBeforeARequestAreNoPartOfIt) {
  const std::string request = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::size_t lines : {1, 2, 50}) {
    std::string before;
    for (std::size_t i = 0; i < lines; ++i) before += "\r\n";
    for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
      const Outcome done = read(before + request, piece);
      ASSERT_EQ(done.state, State::kDone) << lines << " " << piece;
      EXPECT_EQ(done.request.path, "/health");
      EXPECT_EQ(done.taken, before.size() + request.size());
    }
  }
  ConnectionOptions limits;
  limits.header_bytes_max = 300;
  std::string endless;
  while (endless.size() < 1000) endless += "\r\n";
  EXPECT_EQ(refused_with(endless, limits), 431);
}

TEST(RequestReader, NothingButEmptyLinesIsNoBeginning) {
  for (const auto& [bytes, begun] : std::vector<std::pair<std::string, bool>>{{"", false},
                                                                              {"\r", false},
                                                                              {"\r\n", false},
                                                                              {"\r\n\r\n\r", false},
                                                                              {"\n", true},
                                                                              {"\r\nG", true},
                                                                              {"GET", true}}) {
    const ConnectionOptions limits;
    RequestReader reader(limits);
    for (std::size_t taken = 0, i = 1; i <= bytes.size(); ++i) {
      if (reader.state() == State::kHeader) {
        taken += reader.put(std::string_view(bytes).substr(taken, i - taken));
      }
    }
    EXPECT_EQ(reader.has_begun(), begun) << bytes;
  }
}

TEST(RequestReader, ATargetMayBeAUrlWhoseHostIsTheRequests) {
  struct Case {
    const char* line;
    const char* path;
    const char* host;
  };
  for (const Case& each : std::vector<Case>{
           {"GET http://a.example:8000/v1/models?x=1 HTTP/1.1", "/v1/models", "a.example:8000"},
           {"GET HTTPS://[::1]/health HTTP/1.1", "/health", "[::1]"},
           {"GET http://a.example HTTP/1.1", "/", "a.example"},
           {"GET http://a.example?q=/x HTTP/1.1", "/", "a.example"},
           {"OPTIONS * HTTP/1.1", "*", "other"},
           {"GET //a.example/x HTTP/1.1", "//a.example/x", "other"},
           {"GET /http://a.example/ HTTP/1.1", "/http://a.example/", "other"}}) {
    const Outcome done = read(std::string(each.line) + "\r\nHost: other\r\n\r\n", 5);
    ASSERT_EQ(done.state, State::kDone) << each.line;
    EXPECT_EQ(done.request.path, each.path) << each.line;
    EXPECT_EQ(done.request.host, each.host) << each.line;
  }
  EXPECT_EQ(read("GET /health HTTP/1.0\r\n\r\n", 5).request.host, std::nullopt);
  EXPECT_EQ(read("GET /health HTTP/1.1\r\nHost:\r\n\r\n", 5).request.host, "");
}

TEST(RequestReader, OnlyWhatIsKnownMayBeExpected) {
  const auto expects = [](const std::string& version, const std::string& lines) {
    const ConnectionOptions limits;
    RequestReader reader(limits);
    reader.put("POST /tokenize HTTP/" + version + "\r\nHost: x\r\nContent-Length: 5\r\n" + lines +
               "\r\n");
    if (reader.state() == State::kFailed) return reader.error().status;
    return reader.expects_continue() ? 100 : 0;
  };
  EXPECT_EQ(expects("1.1", ""), 0);
  EXPECT_EQ(expects("1.1", "Expect:\r\n"), 0);
  for (const char* const value : {"100-continue", "100-Continue", " 100-continue ",
                                  "100-continue, 100-continue", ",100-continue,"}) {
    EXPECT_EQ(expects("1.1", std::string("Expect:") + value + "\r\n"), 100) << value;
  }
  EXPECT_EQ(expects("1.1", "Expect: 100-continue\r\nExpect: 100-continue\r\n"), 100);
  for (const char* const value : {"200-ok", "100-continue, 200-ok", "100-continued", "x;y=z"}) {
    EXPECT_EQ(expects("1.1", std::string("Expect: ") + value + "\r\n"), 417) << value;
    EXPECT_EQ(expects("1.0", std::string("Expect: ") + value + "\r\n"), 0) << value;
  }
  EXPECT_EQ(expects("1.1", "Expect: 100-continue\r\nExpect: 200-ok\r\n"), 417);
  EXPECT_EQ(expects("1.0", "Expect: 100-continue\r\n"), 0) << "such a client expects nothing";
}

TEST(RequestReader, WhatIsRefusedHasAnIdToo) {
  const std::string mine = "X-Request-Id: mine\r\n";
  for (const auto& [bytes, id] : std::vector<std::pair<std::string, std::string>>{
           {post(mine + "Content-Length: 5\r\nContent-Length: 6\r\n", ""), ""},
           {post(mine + "Content-Length: 5\r\n", "hell"), "mine"},
           {post(mine + "Content-Type: a\r\nContent-Type: b\r\n", ""), "mine"},
           {post(mine + "Expect: more\r\n", ""), "mine"},
           {post(mine + "Content-Length: 99999999999\r\n", ""), "mine"},
           {"nonsense\r\n\r\n", ""},
           {"GET /he", ""}}) {
    for (const bool late : {false, true}) {
      const ConnectionOptions limits;
      RequestReader reader(limits);
      reader.put(bytes);
      late ? reader.give_up() : reader.end();
      ASSERT_EQ(reader.state(), State::kFailed) << bytes;
      EXPECT_EQ(reader.head().id.size(), id.empty() ? 16u : id.size()) << bytes;
      if (!id.empty()) {
        EXPECT_EQ(reader.head().id, id) << bytes;
      }
    }
  }
}

TEST(RequestTarget, AQueryIsNoPartOfThePath) {
  const auto read = [](const char* text) { return read_target("POST", text).value(); };
  EXPECT_EQ(read("/reset").query, "");
  EXPECT_EQ(read("/reset?").path, "/reset");
  for (const char* const target : {"/reset?a=1&b=2?", "http://host:1/reset?a=1&b=2?"}) {
    EXPECT_EQ(read(target).path, "/reset") << target;
    EXPECT_EQ(read(target).query, "a=1&b=2?") << target;
  }
  EXPECT_EQ(read("http://host?a=1").path, "/");
  EXPECT_EQ(read("http://host?a=1").query, "a=1");
}

TEST(RequestTarget, ParametersOfAQueryAreFoundByTheirWholeName) {
  EXPECT_EQ(query_value("a=1&b=2&b=3", "b"), "3");
  EXPECT_EQ(query_value("a%5Fb=%74rue", "a_b"), "true");
  EXPECT_EQ(query_value("a=%zz", "a"), "%zz");
  EXPECT_EQ(query_value("a=1=2", "a"), "1=2");
  EXPECT_EQ(query_value("ab=1&&a", "a"), "");
  EXPECT_EQ(query_value("ab=1", "a"), std::nullopt);
  EXPECT_EQ(query_value("ab=1", "b"), std::nullopt);
  EXPECT_EQ(query_value("", "a"), std::nullopt);
}

TEST(RequestTarget, PercentSignsStandForBytes) {
  EXPECT_EQ(percent_decoded("org%2Fmodel"), "org/model");
  EXPECT_EQ(percent_decoded("org%2fmodel/%e4%BD%a0"), "org/model/\xe4\xbd\xa0");
  EXPECT_EQ(percent_decoded("a+b%25%00"), std::string("a+b%\0", 5));
  EXPECT_EQ(percent_decoded(""), "");
  for (const char* const wrong : {"%", "a%2", "%zz", "%2g", "% 2", "%+2", "%-1"}) {
    EXPECT_EQ(percent_decoded(wrong), std::nullopt) << wrong;
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
