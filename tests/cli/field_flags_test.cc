#include "cli/field_flags.h"

#include <gtest/gtest.h>

namespace pagoda::cli {
namespace {

TEST(FieldFlags, AFieldBecomesItsFlag) {
  EXPECT_EQ(with_flags("`block_size`: is 8, but"), "--block-size: is 8, but");
  EXPECT_EQ(with_flags("KV is off: `kv_cache_memory_bytes`: 1 MiB hold no block"),
            "KV is off: --kv-cache-memory-bytes: 1 MiB hold no block");
  EXPECT_EQ(with_flags("`ssl_certfile` and `ssl_keyfile`: expected both"),
            "--ssl-certfile and --ssl-keyfile: expected both");
  EXPECT_EQ(with_flags("give one with `served_model`"), "give one with --served-model");
}

TEST(FieldFlags, AValueFollowsItsFlag) {
  EXPECT_EQ(with_flags("no such heads: use `device=cpu`"), "no such heads: use --device cpu");
  EXPECT_EQ(with_flags("`depths=5` and `new_tokens=4` make 9 tokens"),
            "--depths 5 and --new-tokens 4 make 9 tokens");
  EXPECT_EQ(with_flags("KV on disk: /a/kv; `kv_disk=off` for none"),
            "KV on disk: /a/kv; --kv-disk off for none");
  EXPECT_EQ(with_flags("`kv_disk=/a b=c_d`"), "--kv-disk /a b=c_d");
}

TEST(FieldFlags, RepliesOfAServerNameAFlagAndItsValue) {
  EXPECT_EQ(flag_of("kv_events_config", ""), "--kv-events-config");
  EXPECT_EQ(flag_of("allowed_hosts", "my_server"), "--allowed-hosts my_server");
}

TEST(FieldFlags, WordsWithoutBackticksStay) {
  for (const char* const message :
       {"", "the device is lost", "kv_disk: no such file", "weights: no such file",
        "block_size: is 8", "models/block_size=3: no such file", "tokenizer.chat_template: 3",
        "prompt: has no tokens", "url: \"block_size\" names no host", "--block-size: is 8"}) {
    EXPECT_EQ(with_flags(message), message);
  }
}

TEST(FieldFlags, AFileMayHaveTheNameOfAField) {
  EXPECT_EQ(with_flags("`api_keys`: others may read the keys in kv_disk; chmod 600 it"),
            "--api-keys: others may read the keys in kv_disk; chmod 600 it");
  EXPECT_EQ(with_flags("`file` weights: cannot be read"), "--file weights: cannot be read");
}

TEST(FieldFlags, BackticksOfOtherTextStay) {
  for (const char* const message :
       {"`", "``", "a lone ` stays", "block_size`", "`block_size", "`Block_size`", "`block-size`",
        "`block size`", "`_size`", "`8_bits`", "`device=`", "`=cpu`", "`block_size\n`",
        "`block\n_size`", "`device=cpu\nerror: other`", "`device=\x1b[2J`", "`pagoda replay`"}) {
    EXPECT_EQ(with_flags(message), message);
  }
}

TEST(FieldFlags, AFieldBehindALoneBacktickIsFound) {
  EXPECT_EQ(with_flags("HTTP 500: it's ` there; give `served_model`"),
            "HTTP 500: it's ` there; give --served-model");
  EXPECT_EQ(with_flags("```block_size```"), "``--block-size``");
}

}  // namespace
}  // namespace pagoda::cli
