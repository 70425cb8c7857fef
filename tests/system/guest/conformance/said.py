"""Tables of the suite server's answers, in the words that the suite expects."""

from typing import Any

Json = dict[str, Any]
SPEC = "io.modelcontextprotocol/"
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
INFO = {"name": "conformance", "version": "1"}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def embedded(uri: str, kind: str, words: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
}


def elicit(message: str, **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def sample(prompt: str) -> Json:
    messages = [{"role": "user", "content": text(prompt)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


STRING, ROOTS = {"type": "string"}, {"method": "roots/list", "params": {}}
CHOICES = [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]
OPTIONS = ["option1", "option2", "option3"]
# Requests to the agent while a tool runs, in the era where it may send them.
ASKS = {
    "test_elicitation_sep1034_defaults": elicit(
        "Defaults",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
    "test_elicitation_sep1330_enums": elicit(
        "Choices",
        untitledSingle={"type": "string", "enum": OPTIONS},
        titledSingle={"type": "string", "oneOf": CHOICES},
        legacyEnum={"type": "string", "enum": OPTIONS, "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        titledMulti={"type": "array", "items": {"anyOf": CHOICES}},
    ),
}
NAME = elicit("What is your name?", name=STRING)
COLOR = elicit("What is your favorite color?", color=STRING)
CONFIRM = elicit("Please confirm", ok={"type": "boolean"})
# Input requests before its result, in the other era: rounds of questions by their keys.
WANTS: dict[str, list[Json]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [
        {"capital_question": sample("What is the capital of France?")}
    ],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": [
        {"step1": NAME},
        {"step2": elicit("Which?", color=STRING)},
    ],
    "test_input_required_result_capabilities": [{"elicited": NAME, "sampled": sample("Say")}],
    "test_streaming_elicitation": [{"user_name": NAME}],
    "test_input_required_result_prompt": [{"user_context": elicit("Which?", context=STRING)}],
}
STATELESS = {"elicitation", "sampling", "list_roots", "capabilities", "prompt"}
ANSWERED = {
    "elicitation/create": "action",
    "sampling/createMessage": "content",
    "roots/list": "roots",
}
CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}
ARGUMENTS = {"test_sampling": ["prompt"], "test_elicitation": ["message"]}
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}
# Over HTTP only: a parameter that a header repeats, and a schema that must not be simplified.
MORE_TOOLS: dict[str, Json] = {
    "test_x_mcp_header": {
        "description": "test x mcp header",
        "inputSchema": {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        },
    },
    "json_schema_2020_12_tool": {
        "description": "json schema 2020 12 tool",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": STRING, "city": STRING},
                }
            },
            "properties": {
                "name": STRING,
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": STRING,
                "email": STRING,
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {
                "properties": {"contactMethod": {"const": "phone"}},
                "required": ["contactMethod"],
            },
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        },
    },
}
RESOURCES = {
    "test://static-text": {
        "mimeType": "text/plain", "text": "This is the content of the static text resource."
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}  # fmt: skip
TEMPLATE = "test://template/{id}/data"
CACHED = {
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
}


def tool(name: str) -> Json:
    names = ARGUMENTS.get(name, [])
    schema = {"type": "object", "properties": dict.fromkeys(names, STRING), "required": names}
    return {"name": name, "description": name.replace("_", " "), "inputSchema": schema}


def _prompt(name: str, names: list[str]) -> Json:
    arguments = [{"name": each, "description": each, "required": True} for each in names]
    return {"name": name, "description": name.replace("_", " "), "arguments": arguments}


def prompt(name: str, given: Json) -> list[Json]:
    """Return the messages of a prompt; nothing for an unknown one."""
    match name:
        case "test_simple_prompt":
            return [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            words = " ".join(f"{key}={value}" for key, value in given.items())
            return [text(f"Prompt with arguments: {words}")]
        case "test_prompt_with_embedded_resource":
            embed = embedded(given["resourceUri"], "text/plain", "Embedded resource content.")
            return [embed, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            return [text("With the context that was given.")]
        case _:
            return []


def _resource(uri: str) -> Json:
    kind = RESOURCES.get(uri, {}).get("mimeType", "application/json")
    return {"uri": uri, "name": uri, "description": uri, "mimeType": kind}


CAPABILITIES: Json = {
    "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "logging": {},
    "resources": {"subscribe": True}, "completions": {},
}  # fmt: skip
# Results that are the same each time.
IN_BOTH: dict[str, Json] = {
    "prompts/list": {"prompts": [_prompt(name, names) for name, names in PROMPTS.items()]},
    "resources/list": {"resources": [_resource(uri) for uri in RESOURCES]},
    "resources/templates/list": {
        "resourceTemplates": [{**_resource(TEMPLATE), "uriTemplate": TEMPLATE}]
    },
    "completion/complete": {
        "completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}
    },
}
IN_HANDSHAKE = {
    **IN_BOTH,
    "initialize": {
        "protocolVersion": HANDSHAKE, "serverInfo": INFO, "capabilities": CAPABILITIES
    },
    "ping": {},
    "logging/setLevel": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}  # fmt: skip
IN_MODERN = {
    **IN_BOTH,
    "server/discover": {"supportedVersions": [MODERN], "capabilities": CAPABILITIES},
}
