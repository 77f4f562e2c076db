#include "events/events_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pagoda::events {
namespace {

TEST(EventsConfig, HasVllmsDefaults) {
  const EventsConfig config = parse_events_config(R"({"enable_kv_cache_events": true})").value();
  EXPECT_TRUE(config.enabled);
  EXPECT_EQ(config.endpoint, "tcp://*:5557");
  EXPECT_EQ(config.replay_endpoint, "");
  EXPECT_EQ(config.buffer_steps, 10'000u);
  EXPECT_EQ(config.hwm, 100'000u);
  EXPECT_EQ(config.max_queue_size, 100'000u);
  EXPECT_EQ(config.topic, "");
  EXPECT_EQ(config.encoding, Encoding::kMaps);
}

TEST(EventsConfig, ReadsEveryField) {
  const EventsConfig config = parse_events_config(R"({
      "enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "ipc:///tmp/kv",
      "replay_endpoint": "tcp://*:1", "buffer_steps": 2, "hwm": 3, "max_queue_size": 4096,
      "topic": "kv@pod", "encoding": "array", "int_block_hashes": false, "incarnation": true,
      "private_token_ids": true})")
                                  .value();
  EXPECT_EQ(config.endpoint, "ipc:///tmp/kv");
  EXPECT_EQ(config.replay_endpoint, "tcp://*:1");
  EXPECT_EQ(config.buffer_steps, 2u);
  EXPECT_EQ(config.hwm, 3u);
  EXPECT_EQ(config.max_queue_size, 4096u);
  EXPECT_EQ(config.topic, "kv@pod");
  EXPECT_EQ(config.encoding, Encoding::kArrays);
  EXPECT_FALSE(config.int_block_hashes);
  EXPECT_TRUE(config.incarnation);
  EXPECT_TRUE(config.private_token_ids);
}

TEST(EventsConfig, IsOffUnlessAskedFor) {
  EXPECT_FALSE(parse_events_config("{}").value().enabled);
  EXPECT_FALSE(parse_events_config(R"({"publisher": "zmq"})").value().enabled);
  EXPECT_FALSE(parse_events_config(R"({"enable_kv_cache_events": true, "publisher": "null"})")
                   .value()
                   .enabled);
}

TEST(EventsConfig, NamesWhatIsWrong) {
  const auto message = [](std::string_view json) {
    const Result<EventsConfig> config = parse_events_config(json);
    return config.ok() ? std::string("fine") : config.error().message;
  };
  EXPECT_EQ(message(R"({"hwm": 0})"), "hwm: is 0, expected a number from 1 to 16777216");
  EXPECT_EQ(message(R"({"max_queue_size": 5})"),
            "max_queue_size: is 5, expected a number from 1024 to 16777216");
  EXPECT_EQ(message(R"({"buffer_steps": -1})"),
            "buffer_steps: is -1, expected a number from 1 to 1048576");
  EXPECT_EQ(message(R"({"topic": 7})"), "topic: is 7, expected a string");
  EXPECT_EQ(message(R"({"enable_kv_cache_events": 1})"),
            "enable_kv_cache_events: is 1, expected true or false");
  EXPECT_EQ(message(R"({"publisher": "nats"})"),
            "publisher: is \"nats\", expected \"zmq\" or \"null\"");
  for (const char* const field : {"endpoint", "replay_endpoint"}) {
    for (const char* const wrong :
         {"tcp://*:65536", "tcp://*:71093", "tcp://*:-1", "tcp://*:5557x", "tcp://*:", "tcp://*",
          "tcp://127.0.0.1:99999999999999999999", "tcp://[::1]", "tcp://", "tcp://*: 5557"}) {
      EXPECT_EQ(message(fmt::format(R"({{"{}": "{}"}})", field, wrong)),
                fmt::format("{}: is \"{}\", expected a port of 0 to 65535, or *, behind the last "
                            "colon",
                            field, wrong));
    }
    for (const char* const good :
         {"tcp://*:65535", "tcp://*:1", "tcp://*:*", "tcp://127.0.0.1:0", "tcp://[::1]:5557",
          "tcp://host:5557", "ipc:///tmp/kv", "inproc://kv"}) {
      EXPECT_EQ(message(fmt::format(R"({{"{}": "{}"}})", field, good)), "fine") << good;
    }
  }
  EXPECT_EQ(message(R"({"endpoints": []})"), "endpoints: there is no such field");
  for (const char* const json : {"", "[]", "true", "{"}) {
    EXPECT_NE(message(json).find("expected a JSON object"), std::string::npos) << json;
  }
}

}  // namespace
}  // namespace pagoda::events
