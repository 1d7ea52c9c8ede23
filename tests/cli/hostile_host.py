#!/usr/bin/env python3
# What a host may send that wants to harm: in place of ssh (STAGEWRIGHT_SSH), it greets with STAGEWRIGHT's version as $VERSION and sends what $SENDS names.
import json, os, struct, sys, zlib

MESSAGE, EVENTS = 1, 4
DEEP = 200_000


def frame(kind, payload, offset=0):
    head = b"\x01SWFR\x02" + struct.pack("<HQI", kind, offset, len(payload))
    sys.stdout.buffer.write(head + struct.pack("<I", zlib.crc32(head + payload)) + payload)
    sys.stdout.buffer.flush()


def message(value):
    frame(MESSAGE, value if isinstance(value, bytes) else json.dumps(value).encode())


def nested(opening, closing, inside=b""):
    return opening * DEEP + inside + closing * DEEP


ENDED = {"status": "ended", "exit_code": 0, "all": True}
LIST, OBJECT = nested(b"[", b"]"), nested(b'{"a":', b"}", b"1")
MESSAGES = {
    "all-text": {"status": "running", "words": "x", "all": "yes"},
    "all-list": {"status": "running", "all": [True]},
    "status-number": {"status": 7, "all": True},
    "code-text": {"status": "ended", "exit_code": "0", "all": True},
    "error-text": {"error": "no"},
    "error-wrong": {"error": {"message": 1, "code": "x", "remedy": []}},
    "message-deep": b'{"status":' + LIST + b"}",
    "message-deep-object": b'{"words":' + OBJECT + b',"status":"running"}',
    "message-list": [1, 2],
    "message-text": b"not JSON",
}
EVENT_LINES = {
    "event-deep": b'{"event":"foo","a":' + LIST + b"}",
    "event-what-deep": b'{"event":"progress","total":1,"what":' + LIST + b"}",
    "event-run-deep": b'{"event":"done","run":' + OBJECT + b"}",
    "event-types": b'{"event":"progress","total":"x","done":[],"what":3,"run":{},"runs":"x","file":7,"loss":null}\n{"event":[]}\n{"event":"error","message":{}}\n[]\nnull\n"event"',
    "event-numbers": b'{"event":"progress","what":"step","total":18446744073709551615,"done":-9223372036854775808,"run":18446744073709551615,"loss":1e999}',
}

message({"hello": "stagewright", "protocol": 2, "version": os.environ["VERSION"]})
sys.stdin.buffer.read(1)  # the request
sends = os.environ["SENDS"]
if sends in MESSAGES:
    message(MESSAGES[sends])
else:
    frame(EVENTS, EVENT_LINES[sends] + b"\n")
message(ENDED)
