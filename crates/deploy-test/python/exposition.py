"""Reads the text of /metrics from standard input with Prometheus's client library, and prints a
line for each family, with its type, and for each sample."""

import sys

from prometheus_client.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    if family.type in ("unknown", "untyped"):
        sys.exit(f"{family.name} has no type")
    if not family.documentation:
        sys.exit(f"{family.name} has no description")
    # The library removes the suffix from the names of counters.
    suffix = "_total" if family.type == "counter" else ""
    print("family", family.name + suffix, family.type)
    bounds = {}
    for sample in family.samples:
        print("sample", sample.name, float(sample.value))
        if sample.name == family.name + "_bucket":
            key = tuple(sorted(item for item in sample.labels.items() if item[0] != "le"))
            bounds.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
    for key, values in bounds.items():
        if values != sorted(values) or [count for _, count in values] != sorted(
            count for _, count in values
        ):
            sys.exit(f"{family.name} {key}: its buckets are not sorted: {values}")
        if values[-1][0] != float("inf"):
            sys.exit(f"{family.name} {key}: it has no bucket +Inf")
