#!/usr/bin/env python3
"""The tables of docs/notes/policies.md from what `pagoda replay ... --json` says.

    build/pagoda replay TRACE... --json | bench/policy_tables.py
"""

import json
import os
import sys


def rate(value):
    return f"{value:.4f}".lstrip("0")


def main():
    results = json.load(sys.stdin)["results"]
    traces = list(dict.fromkeys(result["trace"] for result in results))
    policies = list(dict.fromkeys(result["policy"] for result in results))
    capacities = list(dict.fromkeys(result["capacity"] for result in results))
    for kind in ("blocks_hit_rate", "tokens_hit_rate"):
        rates = {(r["trace"], r["policy"], r["capacity"]): r[kind] for r in results}
        print(f"| {kind.split('_')[0]} | policy | {' | '.join(capacities)} |")
        print("|---" * (len(capacities) + 2) + "|")
        for trace in traces:
            name = os.path.basename(trace).split(".")[0]
            for policy in policies:
                cells = [rate(rates[trace, policy, capacity]) for capacity in capacities]
                print(f"| {name} | {policy} | {' | '.join(cells)} |")
                name = ""
        print()


if __name__ == "__main__":
    main()
