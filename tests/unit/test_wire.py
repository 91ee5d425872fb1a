"""Replies as the providers really send them, and what becomes of their tool calls."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import messages as lc
from langchain_core.load import dumpd
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk

from memorist.errors import MessageError
from memorist.records.message import Message
from memorist.records.wire import response_fields

BROKEN = '{"city": "Zürich", "days": '
UNICODE = '{"city":"Zürich 🏔","note":"晴れ"}'


def chat_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


CHAT: dict[str, Any] = json.loads(r"""
{"id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion",
 "created": 1741570283, "model": "gpt-4.1-2025-04-14", "choices": [{"index": 0,
   "message": {"role": "assistant", "content": null, "refusal": null, "annotations": [],
     "tool_calls": [
       {"id": "call_8mZ1", "type": "function", "function": {"name": "get_weather",
         "arguments": "{\"city\":\"Zürich 🏔\",\"note\":\"晴れ\"}"}},
       {"id": "call_T4xq", "type": "function", "function": {"name": "get_weather",
         "arguments": "{\"city\": \"Zürich\", \"days\": "}},
       {"id": "call_9kkP", "type": "function", "function": {"name": "now", "arguments": ""}}]},
   "logprobs": null, "finish_reason": "tool_calls"}],
 "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99},
 "service_tier": "default", "system_fingerprint": "fp_fc9f1d7035"}
""")

RESPONSES: dict[str, Any] = json.loads(r"""
{"id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "object": "response",
 "created_at": 1741476542, "status": "completed", "error": null, "incomplete_details": null,
 "model": "gpt-5-2025-08-07", "output": [
   {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo"},
   {"id": "ws_1", "type": "web_search_call", "status": "completed",
    "action": {"type": "search", "query": "weather Zürich"}},
   {"id": "msg_67ccd2bf17f0", "type": "message", "status": "completed", "role": "assistant",
    "content": [{"type": "output_text", "text": "Let me ", "annotations": [
        {"type": "url_citation", "start_index": 0, "end_index": 6, "url": "https://example.org",
         "title": "Weather"}]},
      {"type": "output_text", "text": "look.", "annotations": [], "logprobs": []}]},
   {"id": "fc_67ccd2bf", "type": "function_call", "status": "completed", "call_id": "call_unLAR8",
    "name": "get_weather", "arguments": "{\"city\":\"Zürich 🏔\",\"note\":\"晴れ\"}"},
   {"id": "ctc_68", "type": "custom_tool_call", "status": "completed", "call_id": "call_aGiF",
    "name": "code_exec", "input": "print('hello')"},
   {"id": "cu_67cc", "type": "computer_call", "status": "completed", "call_id": "call_zw3",
    "action": {"type": "click", "button": "left", "x": 156, "y": 50}, "pending_safety_checks": []},
   {"id": "mcp_68", "type": "mcp_call", "name": "roll", "arguments": "{\"dice\":\"2d4\"}",
    "server_label": "dmcp", "output": "4", "error": null}],
 "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
 "usage": {"input_tokens": 328, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 52,
   "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 380}}
""")

ANTHROPIC: dict[str, Any] = json.loads(r"""
{"id": "msg_01Aq9w938a90dw8q", "type": "message", "role": "assistant",
 "model": "claude-sonnet-4-5-20250929", "content": [
   {"type": "thinking", "thinking": "Two cities.", "signature": "EqQBCgIYAhIM"},
   {"type": "redacted_thinking", "data": "EmwKAhgBEgy3"},
   {"type": "text", "text": "I'll check ", "citations": null},
   {"type": "text", "text": "both."},
   {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search",
    "input": {"query": "weather"}},
   {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []},
   {"type": "tool_use", "id": "toolu_01A09q90qw90lq917835lq9", "name": "get_weather",
    "input": {"city": "Zürich 🏔", "note": null}},
   {"type": "tool_use", "id": "toolu_01B", "name": "now", "input": {}}],
 "stop_reason": "tool_use", "stop_sequence": null,
 "usage": {"input_tokens": 2095, "output_tokens": 503}}
""")

GEMINI: dict[str, Any] = json.loads(r"""
{"candidates": [{"content": {"role": "model", "parts": [
     {"text": "Comparing the two.", "thought": true},
     {"text": "Checking "},
     {"text": "both."},
     {"functionCall": {"name": "get_weather", "args": {"cityName": "Zürich 🏔"}},
      "thoughtSignature": "CpYCAVSoXO4"},
     {"functionCall": {"name": "now"}},
     {"functionCall": {"id": "fn-7", "name": "now", "args": {}}}]},
   "finishReason": "STOP", "index": 0}],
 "usageMetadata": {"promptTokenCount": 60, "candidatesTokenCount": 18, "totalTokenCount": 78},
 "modelVersion": "gemini-2.5-flash", "responseId": "mAitaLmkHPPlz7IPvtfUqQ4"}
""")


def read(response: Any) -> Message:
    """Read the reply and prove that it was left as it was."""
    before = copy.deepcopy(response)
    message = Message.from_response_dict(response)
    assert response == before
    return message


def calls(message: Message) -> list[tuple[str, str, str]]:
    return [(call.call_id, call.name, call.arguments) for call in message.tool_calls]


def kept(message: Message) -> dict[str, Any]:
    assert message.structured_data is not None
    return message.structured_data


class Dumped:
    """An SDK object: all that matters of it is `model_dump`."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def model_dump(self) -> dict[str, Any]:
        return copy.deepcopy(self.data)


def test_chat_completion_gives_the_same_tool_calls_back_to_openai() -> None:
    sent = CHAT["choices"][0]["message"]
    wire = read(CHAT).to_wire()
    assert wire == {"role": "assistant", "content": None, "tool_calls": sent["tool_calls"]}
    assert [call.arguments for call in read(CHAT).tool_calls] == [UNICODE, BROKEN, ""]


def test_bare_chat_message_and_sdk_object_read_like_the_whole_completion() -> None:
    bare = CHAT["choices"][0]["message"]
    assert response_fields(bare) == response_fields(CHAT) == response_fields(Dumped(CHAT))
    # The completion's id is not the message's: compatible servers give one id many times.
    assert "message_id" not in response_fields(CHAT)


def test_a_refusal_is_the_content_where_there_is_no_other() -> None:
    message = read({"role": "assistant", "content": None, "refusal": "No."})
    assert (message.content, message.structured_data) == ("No.", {"refusal": "No."})
    content = [{"type": "refusal", "refusal": "No."}]
    message = read({"output": [{"type": "message", "role": "assistant", "content": content}]})
    assert message.content == "No."
    assert kept(message) == {"text_details": [{"refusal": "No."}]}


def test_a_legacy_function_call_becomes_a_tool_call() -> None:
    call = {"name": "get_weather", "arguments": BROKEN}
    message = read({"role": "assistant", "content": None, "function_call": call})
    assert calls(message) == [("call_0", "get_weather", BROKEN)]


def test_a_custom_tool_call_keeps_its_free_text() -> None:
    custom = {"name": "code_exec", "input": "print('ä')"}
    call = {"id": "call_c", "type": "custom", "custom": custom}
    message = read({"role": "assistant", "content": None, "tool_calls": [call]})
    assert calls(message) == [("call_c", "code_exec", "print('ä')")]
    assert message.tool_calls[0].type == "custom"


def test_what_a_provider_adds_to_a_call_or_a_message_is_kept() -> None:
    more = {"extra_content": {"google": {"thought_signature": "x"}}}
    sent = [chat_call("call_s", "now", "{}") | more]
    reply = {"role": "assistant", "content": "", "tool_calls": sent, "reasoning_content": "Hm."}
    assert kept(read(reply)) == {"reasoning_content": "Hm.", "call_details": {"call_s": more}}


def test_tool_and_developer_messages_of_openai_get_our_roles() -> None:
    answer = read({"role": "tool", "tool_call_id": "call_8mZ1", "content": "21°"})
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", "call_8mZ1", "21°")
    assert read({"role": "developer", "content": "Be brief."}).role == "system"
    legacy = read({"role": "function", "name": "now", "content": "12:00"})
    assert (legacy.role, legacy.name) == ("tool", "now")


def test_parts_that_are_not_text_stay_a_list() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    text = {"type": "text", "text": "What is this?"}
    assert read({"role": "user", "content": [text, image]}).content == [text, image]
    assert read({"role": "user", "content": [text, text]}).content == "What is this?" * 2


def test_responses_reply_keeps_both_ids_of_every_call_the_client_must_answer() -> None:
    message = read(RESPONSES)
    assert (message.role, message.content) == ("assistant", "Let me look.")
    assert message.message_id == "msg_67ccd2bf17f0"
    function, custom, computer = message.tool_calls
    assert (function.id, function.call_id) == ("fc_67ccd2bf", "call_unLAR8")
    assert (function.name, function.arguments) == ("get_weather", UNICODE)
    assert (custom.id, custom.call_id) == ("ctc_68", "call_aGiF")
    assert (custom.type, custom.arguments) == ("custom", "print('hello')")
    assert (computer.call_id, computer.name) == ("call_zw3", "computer")
    assert json.loads(computer.arguments)["action"]["x"] == 156


def test_responses_reply_keeps_reasoning_citations_and_calls_the_provider_ran() -> None:
    data = kept(read(RESPONSES))
    assert data["reasoning"] == RESPONSES["output"][:1]
    assert [item["type"] for item in data["server_items"]] == ["web_search_call", "mcp_call"]
    assert data["server_items"][1]["output"] == "4"
    assert data["text_details"][0]["annotations"][0]["type"] == "url_citation"
    assert data["call_details"] == {"call_zw3": {"type": "computer_call"}}


def test_a_call_that_the_reply_itself_answers_is_not_left_for_the_client() -> None:
    call = {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}}
    result = {"type": "shell_call_output", "id": "sho_1", "call_id": "call_1", "output": []}
    message = read({"object": "response", "output": [call, result]})
    assert not message.tool_calls
    assert kept(message) == {"server_items": [call, result]}


def test_single_items_of_responses_are_messages_too() -> None:
    assert calls(read(RESPONSES["output"][3])) == [("call_unLAR8", "get_weather", UNICODE)]
    assert read(RESPONSES["output"][2]).content == "Let me look."
    output = {"type": "function_call_output", "call_id": "call_unLAR8", "output": "21°"}
    answer = read(output)
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", "call_unLAR8", "21°")


def test_anthropic_reply_keeps_its_tool_calls_and_its_text() -> None:
    message = read(ANTHROPIC)
    assert (message.role, message.content) == ("assistant", "I'll check both.")
    assert message.message_id == "msg_01Aq9w938a90dw8q"
    city = '{"city":"Zürich 🏔","note":null}'
    assert calls(message) == [
        ("toolu_01A09q90qw90lq917835lq9", "get_weather", city),
        ("toolu_01B", "now", "{}"),
    ]


def test_anthropic_thinking_keeps_its_signature_and_server_tools_stay_the_servers() -> None:
    blocks = ANTHROPIC["content"]
    assert kept(read(ANTHROPIC)) == {"reasoning": blocks[:2], "server_items": blocks[4:6]}


def test_anthropic_bare_message_may_hold_sdk_blocks() -> None:
    bare = {"role": "assistant", "content": [Dumped(block) for block in ANTHROPIC["content"]]}
    whole = response_fields(ANTHROPIC)
    del whole["message_id"]
    assert response_fields(bare) == whole


def test_one_anthropic_tool_result_becomes_a_tool_message() -> None:
    texts = [{"type": "text", "text": "21"}, {"type": "text", "text": "°"}]
    result = {"type": "tool_result", "tool_use_id": "toolu_01B", "content": texts, "is_error": True}
    message = read({"role": "user", "content": [result]})
    assert (message.role, message.tool_call_id, message.content) == ("tool", "toolu_01B", "21°")
    assert kept(message) == {"is_error": True}


def test_several_anthropic_tool_results_stay_together_in_one_user_message() -> None:
    first = {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "21°"}
    second = {"type": "tool_result", "tool_use_id": "toolu_01B"}
    words = {"type": "text", "text": "Go on."}
    for content in ([first, second], [first, words]):
        message = read({"role": "user", "content": content})
        assert (message.role, message.content) == ("user", content)


def test_gemini_reply_keeps_its_calls_and_numbers_those_without_an_id() -> None:
    message = read(GEMINI)
    assert (message.role, message.content) == ("assistant", "Checking both.")
    assert calls(message) == [
        ("call_0", "get_weather", '{"cityName":"Zürich 🏔"}'),
        ("call_1", "now", "{}"),
        ("fn-7", "now", "{}"),
    ]
    assert kept(message) == {
        "reasoning": [{"text": "Comparing the two.", "thought": True, "type": "reasoning"}],
        "call_details": {"call_0": {"thought_signature": "CpYCAVSoXO4"}},
    }


def test_gemini_sdk_spelling_reads_like_the_rest_spelling() -> None:
    blob = {"inline_data": {"mime_type": "image/png", "data": b"\xfb\xff\x00"}}
    call = {"function_call": {"id": None, "name": "now", "args": {"zoneName": "CET"}}}
    sdk = {"role": "model", "parts": [{"text": "Look:", "thought": None}, blob, call]}
    rest_blob = {"inlineData": {"mimeType": "image/png", "data": "+/8A"}}
    rest_call = {"functionCall": {"name": "now", "args": {"zoneName": "CET"}}}
    rest = {"role": "model", "parts": [{"text": "Look:"}, rest_blob, rest_call]}
    assert response_fields(Dumped({"candidates": [{"content": sdk}]})) == response_fields(rest)
    message = read(rest)
    assert (message.content, message.images) == ("Look:", ("data:image/png;base64,+/8A",))
    assert calls(message) == [("call_0", "now", '{"zoneName":"CET"}')]


def test_a_gemini_function_response_becomes_a_tool_message() -> None:
    response = {"name": "get_weather", "response": {"result": "21°"}}
    message = read({"role": "user", "parts": [{"functionResponse": response}]})
    assert (message.role, message.name) == ("tool", "get_weather")
    assert message.content == {"result": "21°"}
    assert message.tool_call_id == "call_0"


def test_code_that_gemini_ran_itself_is_kept_apart() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
    message = read({"role": "model", "parts": [code, result, {"text": "It is 1."}]})
    assert message.content == "It is 1."
    first, second = kept(message)["server_items"]
    assert first["executable_code"]["code"] == "print(1)"
    assert second["code_execution_result"]["output"] == "1\n"


def test_a_gemini_candidate_without_content_is_an_empty_message() -> None:
    message = read({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]})
    assert (message.role, message.content, message.tool_calls) == ("assistant", None, ())


def langchain_forms(message: lc.BaseMessage) -> list[Any]:
    stored = json.loads(json.dumps(lc.message_to_dict(message)))
    return [message, message.model_dump(), stored, json.loads(json.dumps(dumpd(message)))]


def test_langchain_messages_get_our_roles_in_every_serialised_form() -> None:
    for message, role in (
        (lc.HumanMessage("hi"), "user"),
        (lc.AIMessage("hi"), "assistant"),
        (lc.AIMessageChunk(content="hi"), "assistant"),
        (lc.SystemMessage("hi"), "system"),
        (lc.ToolMessage("hi", tool_call_id="call_1"), "tool"),
        (lc.FunctionMessage(content="hi", name="now"), "tool"),
        (lc.ChatMessage(role="developer", content="hi"), "system"),
    ):
        for form in langchain_forms(message):
            found = read(form)
            assert (found.role, found.content, found.name) == (role, "hi", message.name)


def test_langchain_keeps_invalid_tool_calls_beside_the_valid_ones() -> None:
    good = tool_call(name="now", args={"zone": "CET"}, id="call_1")
    bad = invalid_tool_call(name="get_weather", args=BROKEN, id="call_2", error="not JSON")
    message = lc.AIMessage("", id="run--3e", tool_calls=[good], invalid_tool_calls=[bad])
    for form in langchain_forms(message):
        found = read(form)
        now, weather = calls(found)
        assert now == ("call_1", "now", '{"zone":"CET"}')
        assert weather == ("call_2", "get_weather", BROKEN)
        assert found.message_id == "run--3e"
        assert kept(found) == {"call_details": {"call_2": {"error": "not JSON"}}}


def test_langchain_prefers_the_strings_and_the_order_that_openai_sent() -> None:
    sent = CHAT["choices"][0]["message"]["tool_calls"]
    message = lc.AIMessage(content="", additional_kwargs={"tool_calls": sent, "memorist": {"x": 1}})
    assert len(message.tool_calls) == len(message.invalid_tool_calls) - 1 == 1  # it parted them
    for form in langchain_forms(message):
        assert read(form).to_wire()["tool_calls"] == sent
        assert read(form).structured_data is None


def test_langchain_stream_keeps_what_the_model_wrote_and_not_the_repaired_guess() -> None:
    chunk = tool_call_chunk(name="get_weather", args=BROKEN, id="call_1", index=0)
    message = lc.AIMessageChunk(content="", tool_call_chunks=[chunk])
    for form in langchain_forms(message):
        assert calls(read(form)) == [("call_1", "get_weather", BROKEN)]


def test_langchain_calls_told_in_content_and_beside_it_are_read_once() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}, "partial_json": "{"}
    call = tool_call(name="now", args={"zone": "CET"}, id="toolu_1")
    message = lc.AIMessage(content=[{"type": "text", "text": "Wait."}, block], tool_calls=[call])
    for form in langchain_forms(message):
        assert read(form).content == "Wait."
        assert calls(read(form)) == [("toolu_1", "now", '{"zone":"CET"}')]


def test_langchain_tool_message_keeps_status_and_artifact() -> None:
    message = lc.ToolMessage("no", tool_call_id="call_2", status="error", artifact={"n": 3})
    for form in langchain_forms(message):
        found = read(form)
        assert (found.role, found.tool_call_id) == ("tool", "call_2")
        assert kept(found) == {"status": "error", "artifact": {"n": 3}}


@pytest.mark.parametrize(
    "response",
    [
        {"secret": 1, "other": 2},
        {"lc": 1, "type": "constructor", "id": ["a", "PromptTemplate"], "kwargs": {}},
        {"choices": []},
        {"candidates": []},
        {"choices": [{"index": 0, "delta": {"content": "secret"}}]},
        {"role": "assistant", "content": ["secret", 5]},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": ["secret"], "name": "f"}]},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "secret"}]},
        "secret",
    ],
)
def test_an_unknown_shape_is_refused_without_repeating_its_content(response: Any) -> None:
    with pytest.raises(MessageError) as caught:
        Message.from_response_dict(response)
    assert "secret" not in str(caught.value)
    assert str(caught.value).startswith(("response", "tool_calls"))


@pytest.mark.parametrize(
    "response",
    [
        {"error": {"message": "secret", "type": "invalid_request_error", "code": None}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "secret"}},
        {"error": {"code": 429, "message": "secret", "status": "RESOURCE_EXHAUSTED"}},
        RESPONSES | {"status": "failed", "error": {"code": "server_error", "message": "secret"}},
    ],
)
def test_an_error_of_the_provider_is_called_by_its_name(response: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match="provider returned an error") as caught:
        response_fields(response)
    assert "secret" not in str(caught.value)


def test_a_reply_nested_without_end_is_refused() -> None:
    response: dict[str, Any] = {"role": "user"}
    response["content"] = [response]
    with pytest.raises(MessageError, match="nested"):
        response_fields(response)


# Properties

Sent = list[tuple[str, str, dict[str, Any]]]
TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,20}", fullmatch=True)
JSON: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON = st.one_of(JSON, st.lists(JSON, max_size=3), st.dictionaries(TEXT, JSON, max_size=3))
ARGUMENTS = st.dictionaries(TEXT, st.integers() | TEXT | st.none() | st.lists(TEXT), max_size=4)
CALLS = st.lists(
    st.tuples(NAMES, NAMES, ARGUMENTS), min_size=1, max_size=5, unique_by=lambda call: call[0]
)


def in_chat(sent: Sent) -> Any:
    made = [chat_call(i, name, json.dumps(args)) for i, name, args in sent]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": made}}]}


def in_responses(sent: Sent) -> Any:
    made = [{"call_id": i, "name": name, "arguments": json.dumps(args)} for i, name, args in sent]
    return {"output": [{"id": "fc_1", "type": "function_call", **call} for call in made]}


def in_anthropic(sent: Sent) -> Any:
    made = [{"type": "tool_use", "id": i, "name": name, "input": args} for i, name, args in sent]
    return {"role": "assistant", "content": made}


def in_gemini(sent: Sent) -> Any:
    made = [{"functionCall": {"id": i, "name": name, "args": args}} for i, name, args in sent]
    return {"candidates": [{"content": {"role": "model", "parts": made}}]}


def in_langchain(sent: Sent) -> Any:
    made = [tool_call(name=name, args=args, id=i) for i, name, args in sent]
    return lc.AIMessage(content="", tool_calls=made)


@pytest.mark.parametrize("render", [in_chat, in_responses, in_anthropic, in_gemini, in_langchain])
@given(sent=CALLS)
def test_names_ids_and_arguments_survive_every_provider(render: Any, sent: Sent) -> None:
    message = Message.from_response_dict(render(sent))
    assert [(c, name, json.loads(args)) for c, name, args in calls(message)] == sent
    wire = [(call["id"], call["function"]["name"]) for call in message.to_wire()["tool_calls"]]
    assert wire == [(call_id, name) for call_id, name, _ in sent]


@given(call_id=NAMES, name=NAMES, arguments=TEXT)
def test_any_argument_string_survives_whether_json_or_not(
    call_id: str, name: str, arguments: str
) -> None:
    sent = [chat_call(call_id, name, arguments)]
    chat = {"role": "assistant", "content": None, "tool_calls": sent}
    langchain = {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": sent}}
    for reply in (chat, langchain):
        assert Message.from_response_dict(reply).to_wire()["tool_calls"] == sent


@given(data=st.data(), whole=st.sampled_from([CHAT, RESPONSES, ANTHROPIC, GEMINI]))
def test_a_damaged_reply_gives_a_message_or_a_message_error(data: Any, whole: Any) -> None:
    damaged = copy.deepcopy(whole)
    place = damaged
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JSON)
    with contextlib.suppress(MessageError):
        Message.from_response_dict(damaged)
