# Sourced by scripts that deal a GPU test program's tests to processes, one a core. They set `build` and `logs`.
shards=$(nproc)
failed=0

# run_shards SECONDS PROGRAM [FILTER]: sets `failed` to 1 where a process fails or is late.
run_shards() {
  local begun=$SECONDS bad=0 pids=()
  for ((shard = 0; shard < shards; shard++)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard timeout "$1" "$build/tests/$2" \
      --gtest_brief=1 --gtest_filter="${3:-*}" >"$logs/$2.$shard.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || bad=$((bad + 1)); done
  echo "$2: $((SECONDS - begun)) s, $bad of $shards processes failed"
  [ "$bad" -eq 0 ] || failed=1
}

# Names the tests that failed, and how often.
list_failures() {
  grep -hE "^\[  FAILED  \].*\(" "$logs"/*.log 2>/dev/null | sed 's/ (.*//' | sort | uniq -c | head -100
}
