# listen: what a client posts becomes the run that the same spans make as a file; what is wrong gets its code; slow
# clients, a full store and a kill lose nothing that was accepted.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo 'skipped: the client is a Python program'; exit 77; }
client() { python3 "$SOURCE/otlp_client.py" "$@"; }
mkdir files
client files files
for name in job.json job.jsonl job.otlp framed.otlp; do
    run stagewright import "files/$name" -o "$name.stagewright" --json
    expect_code 0
    expect_same "$(json runs 0 recognised)" 1f1b
    expect_same "$(json runs 0 events)" 84
    expect_same "$(json runs 0 messages)" 6
done
# By hand: of a step's 2 × 1425 µs, its passes leave 225 and 320 µs (tests/cli/otlp_client.py).
run stagewright report job.json.stagewright --json
expect_that 'the bubble by hand' python3 -c "import json, sys; sys.exit(abs(json.load(open('out.txt'))['bubble_fraction'] - 545 / 2850) > 1e-9)"
expect_same "$(json whole_step_ns)" 1500000

# start OPTIONS…: a listener in the background, its port in $port
start() {
    : >said.txt
    "$STAGEWRIGHT" listen --otlp 127.0.0.1:0 "$@" >listened.txt 2>said.txt </dev/null &
    listener=$!
    port=''
    for _ in $(seq 100); do
        port=$(sed -n 's#.*listening on http://127.0.0.1:\([0-9]*\)/v1/traces.*#\1#p' said.txt)
        [ -z "$port" ] || return 0
        sleep 0.1
    done
    expect_that 'it prints its port' false
}
# ended SIGNAL: stops the listener; its code is $rc
ended() {
    kill "-$1" "$listener"
    rc=0
    wait "$listener" || rc=$?
    out=$(cat listened.txt) err=$(cat said.txt) last="listen, ended by $1"
}
# everything but where it came from
report_of() { stagewright report "$1" --json | python3 -c 'import json, sys
answer = json.load(sys.stdin)
def without(value):
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k not in ("file", "name", "run", "note", "configuration", "source", "id")}
    return [without(v) for v in value] if isinstance(value, list) else value
print(json.dumps(without(answer), sort_keys=True, indent=1))'; }
expect_report() { # FILE: it says what that of the imported file says
    report_of "$1" >got.txt
    expect_that "the report of $1 is that of the file: $(diff expected.txt got.txt | head -5)" cmp -s expected.txt got.txt
}

report_of job.json.stagewright >expected.txt
for encoding in json protobuf; do
    start -o "$encoding.stagewright" --json
    expect_that "$encoding is accepted" client post "$port" "$encoding"
    ended INT
    expect_code 0
    cp listened.txt out.txt
    expect_same "$(json spans)" 84
    expect_same "$(json requests)" 6
    expect_same "$(json rejected_spans)" 0
    python3 "$SOURCE/json_keys.py" <out.txt >listen.keys
    expect_same "$(comm -23 "$SOURCE/../data/json_keys/listen.txt" listen.keys)" ''
    expect_same "$(json runs 0 ranks)" 2
    expect_report "$encoding.stagewright"
    expect_no_file "$encoding.stagewright.received.jsonl"
    expect_no_file "$encoding.stagewright.received.otlp"
done

# OpenTelemetry's own SDK exports the same job: STAGEWRIGHT_NODE_MODULES names the folder of `npm install @opentelemetry/api
# @opentelemetry/resources @opentelemetry/sdk-trace-node @opentelemetry/exporter-trace-otlp-proto @opentelemetry/exporter-trace-otlp-http`.
modules=${STAGEWRIGHT_NODE_MODULES:-}
for protocol in proto http; do
    if command -v node >/dev/null && [ -d "$modules/@opentelemetry/exporter-trace-otlp-$protocol" ]; then
        mkdir -p sdk
        ln -sfn "$modules" sdk/node_modules
        cp "$SOURCE/otlp_client.mjs" sdk/
        start -o "sdk_$protocol.stagewright" --json
        expect_that "the SDK exports by $protocol" node sdk/otlp_client.mjs "$port" files/job.json "$protocol"
        ended INT
        expect_code 0
        cp listened.txt out.txt
        expect_same "$(json spans)" 84
        expect_same "$(json rejected_spans)" 0
        expect_report "sdk_$protocol.stagewright"
    else
        echo "no SDK exports: STAGEWRIGHT_NODE_MODULES has no @opentelemetry/exporter-trace-otlp-$protocol"
    fi
done

# both encodings, and everything twice: a span is counted once
start -o both.stagewright
expect_that 'json' client post "$port" json
expect_that 'protobuf' client post "$port" protobuf
ended TERM
expect_code 0
expect_report "both.stagewright"
expect_file both.stagewright

# what is wrong, and what is slow
start -o hostile.stagewright
expect_that 'each refusal has its code' client hostile "$port"
expect_that 'slow clients end' client slow "$port"
expect_that 'it still serves' client post "$port" json
ended INT
expect_code 0
run stagewright report hostile.stagewright --json
expect_code 0

# a kill loses nothing; the same command goes on
start -o killed.stagewright
expect_that 'json' client one "$port" 0
expect_that 'json' client post "$port" json
for _ in $(seq 60); do
    [ -s killed.stagewright ] && break
    sleep 0.1
done
run stagewright runs killed.stagewright --json
expect_same "$(json runs 0 state)" receiving
run stagewright listen --otlp 127.0.0.1:0 -o killed.stagewright --for 0.2
expect_code 4
expect_err 'another program is recording into it'
ended KILL
run stagewright runs killed.stagewright --json
expect_code 0
expect_same "$(json runs 0 state)" interrupted
expect_file killed.stagewright.received.jsonl
run stagewright listen --otlp 127.0.0.1:0 -o killed.stagewright --for 0.5
expect_code 0
expect_err 'goes on behind [0-9]+ spans'
expect_report "killed.stagewright"
run stagewright runs killed.stagewright --json
expect_same "$(json runs 0 state)" complete
expect_no_file killed.stagewright.received.jsonl

# it ends by itself, full stores reject, and mistakes are said
start -o idle.stagewright --idle 1
client post "$port" protobuf
rc=0
wait "$listener" || rc=$?
err=$(cat said.txt) last='listen --idle'
expect_code 0
expect_err 'stored 84 spans in idle.stagewright'
start -o full.stagewright --max-size 4KiB
expect_that 'the first ones' client one "$port" 0
expect_that 'later ones are rejected' bash -c "! python3 '$SOURCE/otlp_client.py' post $port json"
ended INT
expect_code 0
run stagewright listen --otlp 127.0.0.1:0 -o none.stagewright --for 0.2
expect_code 3
expect_err 'no spans were received'
expect_no_file none.stagewright
run stagewright listen --otlp 127.0.0.1:0 -o idle.stagewright
expect_code 2
expect_err 'idle.stagewright exists already'
run stagewright listen --otlp 127.0.0.1:http -o new.stagewright
expect_code 2
run stagewright listen --otlp nowhere:1 -o new.stagewright
expect_code 2
expect_err "'nowhere' is not an address"
start -o one.stagewright
run stagewright listen --otlp "127.0.0.1:$port" -o second.stagewright
expect_code 4
expect_err "can't listen on 127.0.0.1:$port: "
ended INT
