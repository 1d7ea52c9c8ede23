#!/usr/bin/env python3
"""A job that speaks OpenTelemetry: two ranks of Megatron-LM's spans, written as files or posted to a server.

otlp_client.py files FOLDER                  the whole job as job.json, job.jsonl, job.otlp and framed.otlp
otlp_client.py post PORT json|protobuf       a request for each rank and step; gzip for every other one
otlp_client.py one PORT STEP                 one request, of rank 0's step
otlp_client.py hostile PORT                  requests that must be refused, and the codes they are refused with
otlp_client.py slow PORT                     clients that send a byte now and then, while a good one is served
"""
import gzip
import http.client
import json
import os
import socket
import struct
import sys
import time

EPOCH = 1786000000000000000  # ns
STEPS = 3
FORWARD, BACKWARD, P2P = "megatron.microbatch.forward", "megatron.microbatch.backward", "megatron.p2p."
# 1F1B of four microbatches by hand: forward 100, backward 200, a message 5 us.
RANKS = [
    [(FORWARD, 0, 100), (P2P + "send_forward", 100, 105), (FORWARD, 105, 205), (BACKWARD, 310, 510),
     (FORWARD, 510, 610), (BACKWARD, 615, 815), (FORWARD, 815, 915), (BACKWARD, 920, 1120),
     (P2P + "recv_backward", 1120, 1225), (BACKWARD, 1225, 1425)],
    [(P2P + "recv_forward", 0, 105), (FORWARD, 105, 205), (BACKWARD, 205, 310), (FORWARD, 310, 410),
     (BACKWARD, 410, 610), (FORWARD, 615, 715), (BACKWARD, 715, 915), (FORWARD, 920, 1020),
     (BACKWARD, 1020, 1220), (P2P + "send_backward", 1220, 1225)]]


def resource(rank):
    return [("service.name", "megatron"), ("service.instance.id", "bench-7-rank%d" % rank), ("dl.rank", rank),
            ("dl.world_size", 2), ("dl.pipeline_parallel.size", 2), ("host.name", "node-a")]


def spans(rank, step):
    """(name, start, end, attributes, id) in ns"""
    base = EPOCH + 1600000 * step
    found = [(name, start, end, []) for name, start, end in RANKS[rank]]
    found += [("megatron.grad_sync.finish", 1430, 1450, []), ("megatron.train.iteration.optimizer", 1450, 1500, []),
              ("megatron.train.iteration.forward_backward", 0, 1430, [("num_microbatches", 4)]),
              ("megatron.train.iteration", 0, 1500, [("megatron.iteration", 12 + step)])]
    return [(name, base + 1000 * start, base + 1000 * end, attributes, 1 + rank * 1000000 + step * 1000 + k)
            for k, (name, start, end, attributes) in enumerate(found)]


def json_attributes(attributes):
    return [{"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
            for key, value in attributes]


def as_json(parts):
    return {"resourceSpans": [
        {"resource": {"attributes": json_attributes(resource(rank))},
         "scopeSpans": [{"scope": {"name": "nemo.lens"}, "spans": [
             {"traceId": "%032x" % (rank + 1), "spanId": "%016x" % number, "kind": 1, "name": name,
              "startTimeUnixNano": str(start), "endTimeUnixNano": str(end), "attributes": json_attributes(attributes)}
             for name, start, end, attributes, number in found]}]} for rank, found in parts]}


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def proto_attributes(number, attributes):
    return b"".join(field(number, field(1, key.encode()) + field(2, (varint(3 << 3) + varint(value)) if isinstance(
        value, int) else field(1, value.encode()))) for key, value in attributes)


def as_protobuf(parts):
    out = b""
    for rank, found in parts:
        scope = field(1, field(1, b"nemo.lens"))
        for name, start, end, attributes, number in found:
            scope += field(2, field(1, struct.pack(">QQ", 0, rank + 1)) + field(2, struct.pack(">Q", number)) +
                           field(5, name.encode()) + varint(6 << 3) + varint(1) +
                           varint(7 << 3 | 1) + struct.pack("<Q", start) +
                           varint(8 << 3 | 1) + struct.pack("<Q", end) + proto_attributes(9, attributes))
        out += field(1, field(1, proto_attributes(1, resource(rank))) + field(2, scope))
    return out


def post(port, body, headers, path="/v1/traces", method="POST"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def expect(what, answer, status):
    if answer.status != status:
        sys.exit("%s: %d instead of %d" % (what, answer.status, status))


def write(folder):
    everything = [(rank, [span for step in range(STEPS) for span in spans(rank, step)]) for rank in (0, 1)]
    def save(name, content):
        with open(os.path.join(folder, name), "wb") as to:
            to.write(content)
    save("job.json", json.dumps(as_json(everything)).encode())
    lines = [json.dumps(as_json([(rank, spans(rank, step))])) for step in range(STEPS) for rank in (0, 1)]
    save("job.jsonl", ("\n".join(lines) + "\n").encode())
    save("job.otlp", as_protobuf(everything))
    requests = [as_protobuf([(rank, spans(rank, step))]) for step in range(STEPS) for rank in (0, 1)]
    save("framed.otlp", b"".join(struct.pack(">I", len(one)) + one for one in requests))


def request_of(encoding, parts):
    if encoding == "json":
        return json.dumps(as_json(parts)).encode(), "application/json"
    return as_protobuf(parts), "application/x-protobuf"


def send(port, encoding, step, rank, zipped):
    body, kind = request_of(encoding, [(rank, spans(rank, step))])
    headers = {"Content-Type": kind}
    if zipped:
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    answer, content = post(port, body, headers)
    expect("a request", answer, 200)
    if answer.getheader("Content-Type") != kind:
        sys.exit("the answer's type is %s" % answer.getheader("Content-Type"))
    if content not in (b"", b"{}"):
        sys.exit("not all was accepted: %r" % content)


def hostile(port):
    good, kind = request_of("json", [(0, spans(0, 0))])
    wire = as_protobuf([(0, spans(0, 0))])
    cases = [
        ("no JSON", b"{nope", {"Content-Type": kind}, 400),
        ("cut JSON", good[:200], {"Content-Type": kind}, 400),
        ("other JSON", b'"text"', {"Content-Type": kind}, 400),
        ("cut protobuf", wire[:-5], {"Content-Type": "application/x-protobuf"}, 400),
        ("noise", b"\xff\xfe\xfd" * 50, {"Content-Type": "application/x-protobuf"}, 400),
        ("no gzip", good, {"Content-Type": kind, "Content-Encoding": "gzip"}, 400),
        ("cut gzip", gzip.compress(good)[:-9], {"Content-Type": kind, "Content-Encoding": "gzip"}, 400),
        ("other type", good, {"Content-Type": "text/plain"}, 415),
        ("no type", good, {}, 415),
        ("other packing", good, {"Content-Type": kind, "Content-Encoding": "br"}, 415),
        ("too large", b" " * (17 << 20), {"Content-Type": kind}, 413),
        ("large when unpacked", gzip.compress(b" " * (80 << 20)), {"Content-Type": kind, "Content-Encoding": "gzip"}, 413),
    ]
    for what, body, headers, status in cases:
        try:
            answer, content = post(port, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            if status == 413:
                continue  # it did not read to the end
            raise
        expect(what, answer, status)
        if not content:
            sys.exit("%s: the answer does not say why" % what)
    for what, path, method, status in [("wrong path", "/v1/metrics", "POST", 404), ("root", "/", "GET", 404),
                                       ("wrong method", "/v1/traces", "GET", 405),
                                       ("wrong method", "/v1/traces", "PUT", 405)]:
        answer, _ = post(port, good, {"Content-Type": kind}, path, method)
        expect(what, answer, status)
    bad, _ = request_of("json", [(0, [("", EPOCH, EPOCH + 1, [], 77)] + spans(0, 90)[:1])])
    answer, content = post(port, bad, {"Content-Type": kind})
    expect("a nameless span", answer, 200)
    if json.loads(content)["partialSuccess"]["rejectedSpans"] != "1":
        sys.exit("a nameless span is not said: %r" % content)
    raw = socket.create_connection(("127.0.0.1", port))
    raw.sendall(b"\x16\x03\x01 other words\r\n\r\n")
    raw.settimeout(10)
    raw.recv(100)
    raw.close()


def slow(port):
    lazy = []
    for _ in range(20):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 1000\r\n\r\n{")
        lazy.append(one)
    start = time.time()
    send(port, "json", 91, 0, False)
    if time.time() - start > 5:
        sys.exit("a good client waited for slow ones")
    # A byte a second does not keep a connection for ever.
    ended = 0
    for _ in range(40):
        time.sleep(1)
        ended = 0
        for one in lazy:
            try:
                one.sendall(b" ")
                one.setblocking(False)
                if one.recv(1000) in (b"",):
                    ended += 1
            except BlockingIOError:
                pass
            except OSError:
                ended += 1
            finally:
                one.setblocking(True)
        if ended == len(lazy):
            return
    sys.exit("%d of %d slow clients are still served" % (len(lazy) - ended, len(lazy)))


def main():
    what = sys.argv[1]
    if what == "files":
        write(sys.argv[2])
    elif what == "post":
        count = 0
        for step in range(STEPS):
            for rank in (0, 1):
                send(int(sys.argv[2]), sys.argv[3], step, rank, count % 2 == 1)
                count += 1
    elif what == "one":
        send(int(sys.argv[2]), "protobuf", int(sys.argv[3]), 0, False)
    elif what == "hostile":
        hostile(int(sys.argv[2]))
    elif what == "slow":
        slow(int(sys.argv[2]))


main()
