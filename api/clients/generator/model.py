"""The document as both clients need it: groups of operations, and the shapes that they use."""

import collections
from dataclasses import dataclass, field

from . import names

VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAGE_QUERY = {"cursor", "limit"}


@dataclass(frozen=True)
class Type:
    """`kind` is `ref`, `values`, `union`, `list`, `map`, or one of the words of `PLAIN`."""

    kind: str
    name: str = ""
    values: tuple[object, ...] = ()
    of: tuple["Type", ...] = ()


PLAIN = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "null": "null"}
ANY, NULL, BYTES = Type("any"), Type("null"), Type("bytes")


@dataclass
class Field:
    name: str
    type: Type
    is_required: bool
    text: str


@dataclass
class Shape:
    """An object with `fields`, or another name for the type `alias`."""

    name: str
    text: str
    fields: list[Field] = field(default_factory=list)
    alias: Type | None = None

    def types(self) -> list[Type]:
        return [self.alias] if self.alias else [field.type for field in self.fields]

    @property
    def is_optional(self) -> bool:
        return not self.alias and not any(field.is_required for field in self.fields)


@dataclass
class Operation:
    """`answer` is what it gives: `json`, `text`, `content` or `stream`; `sends` is the kind of its body: empty, `body` (a
    JSON object), `value` (other JSON), `content` or `file`. `items` is the type of the items of a list that has pages, which
    are in the key `items_key` of a page, or are the page where that is empty."""

    name: str
    verb: str
    path: str
    text: str
    parameters: list[str]
    query: Shape | None
    sends: str
    body: Type
    answer: str
    type: Type
    items: Type | None = None
    items_key: str = ""
    is_body_optional: bool = False

    def types(self) -> list[Type]:
        query = [Type("ref", self.query.name)] if self.query else []
        return [self.body, self.type, *query, *([self.items] if self.items else [])]


class Api:
    """`groups` has the operations of each module, `modules` the shapes of each, and `shared` what several use."""

    def __init__(self, document: dict):
        self.shapes: dict[str, Shape] = {}
        self.groups: dict[str, list[Operation]] = collections.defaultdict(list)
        self.version: str = document["info"]["version"]
        for name, schema in document["components"]["schemas"].items():
            self._shape(names.shape(name), schema)
        routes = [
            (verb.upper(), path, route)
            for path, routes in document["paths"].items()
            if path.startswith("/api/") and not names.LEFT_OUT.match(path)
            for verb, route in routes.items()
        ]
        unknown = names.METHODS.keys() - {f"{verb} {path}" for verb, path, _ in routes}
        assert not unknown, f"no routes, but in METHODS of names.py: {unknown}"
        sizes = collections.Counter(path.split("/")[2] for _, path, _ in routes)
        for verb, path, route in routes:
            group = names.group_of(path, sizes)
            operation = self._operation(group, verb, path, route)
            same = [other.path for other in self.groups[group] if other.name == operation.name]
            assert not same, f"{verb} {path} and {same[0]} would both be {group}.{operation.name}: see METHODS in names.py"
            self.groups[group].append(operation)
        self.groups = dict(sorted(self.groups.items()))
        self._divide()

    def _divide(self) -> None:
        users: dict[str, set[str]] = collections.defaultdict(set)
        for group, operations in self.groups.items():
            found: set[str] = set()
            self._reach([type for operation in operations for type in operation.types()], found)
            for name in found:
                users[name].add(group)
        self.module_of = {name: min(groups) if len(groups) == 1 else "shared" for name, groups in users.items()}
        self.modules: dict[str, list[Shape]] = {module: [] for module in ["shared", *self.groups]}
        for name in sorted(self.module_of):
            self.modules[self.module_of[name]].append(self.shapes[name])

    def _reach(self, types: list[Type], found: set[str]) -> None:
        for type in types:
            if type.kind == "ref" and type.name not in found:
                found.add(type.name)
                self._reach(self.shapes[type.name].types(), found)
            self._reach(list(type.of), found)

    def _shape(self, name: str, schema: dict) -> Type:
        assert name not in self.shapes, f"two shapes are named {name}"
        shape = self.shapes[name] = Shape(name, " ".join(schema.get("description", "").split()))
        if "properties" in schema:
            required = schema.get("required", [])
            for key, value in schema["properties"].items():
                text = " ".join(value.get("description", "").split())
                shape.fields.append(Field(key, self._type(value, name + names.pascal(key)), key in required, text))
        else:
            shape.alias = self._type({**schema, "nullable": False}, name)
        return Type("ref", name)

    def _type(self, schema: dict, name: str) -> Type:
        """`name` is for a shape that has none of its own."""
        if isinstance(schema.get("type"), list):
            return union([self._type({**schema, "type": kind}, name) for kind in schema["type"]])
        if schema.get("nullable"):
            if "enum" in schema and schema["enum"] == [None]:
                return NULL
            return union([self._type({**schema, "nullable": False}, name), NULL])
        if "$ref" in schema:
            return Type("ref", names.shape(schema["$ref"].rsplit("/", 1)[1]))
        if "const" in schema:
            return Type("values", values=(schema["const"],))
        if "enum" in schema:
            return Type("values", values=tuple(value for value in schema["enum"] if value is not None))
        for word in ("allOf", "oneOf", "anyOf"):
            if word in schema:
                assert word != "allOf" or len(schema[word]) == 1, f"{name}: cannot merge schemas"
                return union([self._type(part, name + _variant(part, n)) for n, part in enumerate(schema[word], start=1)])
        if "properties" in schema:
            return self._shape(name, schema)
        kind = schema.get("type")
        if kind == "object":
            inner = schema.get("additionalProperties")
            return Type("map", of=(self._type(inner, name + "Value") if isinstance(inner, dict) else ANY,))
        if kind == "array":
            return Type("list", of=(self._type(schema.get("items", {}), name + "Item"),))
        return BYTES if schema.get("format") == "binary" else Type(PLAIN[kind]) if kind else ANY

    def _operation(self, group: str, verb: str, path: str, route: dict) -> Operation:
        name = names.method_of(group, verb, path, route["summary"])
        parameters = route.get("parameters", [])
        sends, body = self._body(route)
        answer, type = self._answer(route, names.pascal(f"{group}_{name}_answer"))
        operation = Operation(
            name,
            verb,
            path,
            f"{route['summary']} (`{verb} {path}`).",
            [parameter["name"] for parameter in parameters if parameter["in"] == "path"],
            self._query(names.pascal(f"{group}_{name}_query"), f"Parameters of `{verb} {path}`.", parameters),
            sends,
            body,
            answer,
            type,
        )
        operation.is_body_optional = sends == "body" and self.shapes[body.name].is_optional
        self._page(operation)
        return operation

    def _query(self, name: str, text: str, parameters: list[dict]) -> Shape | None:
        parameters = [parameter for parameter in parameters if parameter["in"] == "query"]
        if not parameters:
            return None
        if {parameter["name"] for parameter in parameters} == PAGE_QUERY:
            name, text = "PageQuery", "Which page of a list to get."
            # Some take numbers: a cursor is what the page before it gave.
            parameters = [{**p, "schema": {"type": "string"}} if p["name"] == "cursor" else p for p in parameters]
        if name not in self.shapes:
            shape = Shape(name, text)
            for parameter in parameters:
                type = without_null(self._type(parameter["schema"], name + names.pascal(parameter["name"])))
                text = " ".join(parameter.get("description", "").split())
                shape.fields.append(Field(parameter["name"], type, parameter["required"], text))
            self.shapes[name] = shape
        return self.shapes[name]

    def _body(self, route: dict) -> tuple[str, Type]:
        for kind, content in route.get("requestBody", {}).get("content", {}).items():
            if kind != "application/json":
                return ("file" if kind.startswith("multipart/") else "content"), BYTES
            type = self._type(content["schema"], "")
            shape = self.shapes.get(type.name)
            return ("body" if shape and not shape.alias else "value"), type
        return "", ANY

    def _answer(self, route: dict, name: str) -> tuple[str, Type]:
        types = []
        for status, response in route["responses"].items():
            if not status.startswith("2"):
                continue
            for kind, content in response.get("content", {}).items() or [("", {})]:
                if kind == "text/event-stream":
                    return "stream", self._type(content["schema"], name)
                if kind and kind != "application/json":
                    is_text = kind.startswith("text/") or kind in ("application/toml", "application/x-ndjson")
                    return ("text", Type("string")) if is_text else ("content", BYTES)
                types.append(self._type(content["schema"], name) if kind else NULL)
        return "json", union(types)

    def _page(self, operation: Operation) -> None:
        keys = {field.name for field in operation.query.fields} if operation.query else set()
        if "cursor" not in keys or operation.name.split("_")[0] not in ("list", "search", "browse"):
            return
        if operation.type.kind == "list":
            operation.items = operation.type.of[0]
            return
        lists = {f.name: f.type.of[0] for f in self.shapes[operation.type.name].fields if f.type.kind == "list"}
        last = [names.snake(word) for word in operation.path.split("/") if "{" not in word][-1]
        found = [key for key in (last, "items") if key in lists] or list(lists)
        assert len(found) == 1, f"{operation.path}: which of {found} are the items?"
        operation.items_key, operation.items = found[0], lists[found[0]]


def _variant(schema: dict, number: int) -> str:
    """What tells it from the others: a key that has one value, or its number."""
    words = [value["enum"][0] for value in schema.get("properties", {}).values() if len(value.get("enum", [])) == 1]
    return names.pascal(str(words[0])) if words else str(number)


def union(types: list[Type]) -> Type:
    """Of types, each once; values in one list."""
    flat: list[Type] = []
    for type in types:
        flat += type.of if type.kind == "union" else [type]
    values = tuple(value for type in flat if type.kind == "values" for value in type.values)
    others = [type for type in dict.fromkeys(flat) if type.kind != "values"]
    flat = ([Type("values", values=tuple(dict.fromkeys(values)))] if values else []) + others
    if ANY in flat:
        return ANY
    # Null comes last.
    flat.sort(key=lambda type: type == NULL)
    return flat[0] if len(flat) == 1 else Type("union", of=tuple(flat))



def without_null(type: Type) -> Type:
    return union([part for part in type.of if part != NULL]) if type.kind == "union" else type
