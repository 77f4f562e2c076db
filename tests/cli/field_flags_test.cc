#include "cli/field_flags.h"

#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

TEST(FieldFlags, AFieldBecomesItsFlag) {
  EXPECT_EQ(with_flags("block_size: is 8, but"), "--block-size: is 8, but");
  EXPECT_EQ(with_flags("KV is off: kv_cache_memory_bytes: 1 MiB hold no block"),
            "KV is off: --kv-cache-memory-bytes: 1 MiB hold no block");
  EXPECT_EQ(with_flags("the model has no chat template; give the server option chat_template, or"),
            "the model has no chat template; give the server option --chat-template, or");
}

TEST(FieldFlags, APlainWordIsAFieldBeforeItsValueAndAtTheBeginning) {
  EXPECT_EQ(with_flags("type: Q4_0 has blocks of 32"), "--type: Q4_0 has blocks of 32");
  EXPECT_EQ(with_flags("depths=5 and new_tokens=4 make 9 tokens"),
            "--depths 5 and --new-tokens 4 make 9 tokens");
  EXPECT_EQ(with_flags("output_tokens: \"x\" is no number"), "--output-tokens: \"x\" is no number");
  EXPECT_EQ(with_flags("bench: file: cannot be read"), "bench: file: cannot be read");
}

TEST(FieldFlags, AValueFollowsItsFlag) {
  EXPECT_EQ(with_flags("no such heads: use device=cpu"), "no such heads: use --device cpu");
  EXPECT_EQ(with_flags("option allowed_hosts=a.example allows"),
            "option --allowed-hosts a.example allows");
  EXPECT_EQ(with_flags("KV on disk: /a/kv; kv_disk=off for none"),
            "KV on disk: /a/kv; --kv-disk off for none");
}

TEST(FieldFlags, OtherWordsStay) {
  for (const char* const message :
       {"", "the device is lost", "models/block_size: no such file", "tokenizer.chat_template: 3",
        "my_block_size: 3", "prompt: has no tokens", "keys:3: word 2: output_tokens takes 1 to 9",
        "api_keys:3: word 2", "trace: no such file", "block_sizes", "--block-size: is 8"}) {
    EXPECT_EQ(with_flags(message), message);
  }
}

}  // namespace
}  // namespace pagoda::cli
