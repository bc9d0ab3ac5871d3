"""Reads alert rules of Prometheus or a dashboard of Grafana, checks their form, parses each
expression, and prints the metrics that they name, one a line."""

import json
import re
import sys

import promql_parser
import yaml

SEVERITIES = {"info", "warning", "critical"}
RULE = {"alert", "expr", "for", "labels", "annotations"}


def fail(reason):
    sys.exit(f"{sys.argv[1]}: {reason}")


def rules(text):
    document = yaml.safe_load(text)
    if set(document) != {"groups"}:
        fail(f"has {sorted(document)}")
    seen = set()
    for group in document["groups"]:
        if not set(group) <= {"name", "interval", "rules"}:
            fail(f"a group has {sorted(group)}")
        for rule in group["rules"]:
            name = rule.get("alert")
            if not set(rule) <= RULE or not re.fullmatch(r"Weft[A-Za-z]+", name or ""):
                fail(f"a rule has {rule}")
            if name in seen:
                fail(f"{name} occurs twice")
            seen.add(name)
            if rule.get("labels", {}).get("severity") not in SEVERITIES:
                fail(f"{name} has no severity")
            if set(rule.get("annotations", {})) != {"summary", "description"}:
                fail(f"{name} has no summary or no description")
            for text in rule["annotations"].values():
                for words in re.findall(r"\{\{(.*?)\}\}", text):
                    if not re.fullmatch(r" \$(labels\.\w+|value)( \| \w+)? ", words):
                        fail(f"{name}: {words}")
            if "for" in rule:
                promql_parser.parse_duration(rule["for"])
            yield name, rule["expr"]


def dashboard(text):
    document = json.loads(text)
    variables = {variable["name"] for variable in document["templating"]["list"]}
    panels = document["panels"]
    if len({panel["id"] for panel in panels}) != len(panels):
        fail("panels share an id")
    taken = set()
    for panel in panels:
        title, place = panel["title"], panel["gridPos"]
        if panel["type"] not in {"stat", "timeseries"} or not panel["description"]:
            fail(f"{title} has an unknown type or no description")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if (x, y) in taken or x >= 24:
                    fail(f"{title} overlaps another panel or leaves the page")
                taken.add((x, y))
        if not panel["fieldConfig"]["defaults"]["unit"]:
            fail(f"{title} has no unit")
        for target in panel["targets"]:
            if target["datasource"]["uid"] != "${datasource}":
                fail(f"{title} has another data source")
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            if not used <= variables:
                fail(f"{title} uses {used}")
            yield title, target["expr"].replace("$__rate_interval", "5m")
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            if variable["query"]["query"] != variable["definition"]:
                fail(f"{variable['name']} is defined twice")
            used = set(re.findall(r"\$(\w+)", variable["definition"]))
            if not used <= variables:
                fail(f"{variable['name']} uses {used}")
            selector = re.fullmatch(r"label_values\((.*), \w+\)", variable["definition"]).group(1)
            yield variable["name"], selector


class Names(list):
    """The metrics in an expression."""

    def walk(self, node):
        if isinstance(node, promql_parser.VectorSelector):
            self.append(node.name)
        for part in ("lhs", "rhs", "expr", "param", "vector_selector"):
            child = getattr(node, part, None)
            if child is not None:
                self.walk(child)
        for child in getattr(node, "args", None) or []:
            self.walk(child)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    is_dashboard = sys.argv[1].endswith(".json")
    names = Names()
    for name, expression in (dashboard if is_dashboard else rules)(text):
        try:
            parsed = promql_parser.parse(expression)
        except ValueError as error:
            fail(f"{name}: {error}: {expression}")
        before = len(names)
        names.walk(parsed)
        if len(names) == before:
            fail(f"{name} names no metric")
    print("\n".join(sorted(set(names))))


main()
