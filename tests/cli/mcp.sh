# mcp: the protocol's messages, tools that answer as the verbs do, files outside the folders, what is refused in words.
# shellcheck shell=bash
export STAGEWRIGHT
quietly() { stagewright "$@" >/dev/null 2>&1; }
quietly simulate -s 1f1b -p 4 -m 8 -o demo.stagewright
quietly simulate -s zb-h1 -p 4 -m 8 -o demo.stagewright
# ask LINE…: the replies are the lines of $out
ask() {
    printf '%s\n' "$@" >ask.txt
    run bash -c '"$STAGEWRIGHT" mcp <ask.txt'
    expect_code 0
}
call() { # NAME ARGUMENTS
    ask "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"$1\",\"arguments\":$2}}"
}
ask '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    '{"jsonrpc":"2.0","id":"a","method":"tools/list"}' \
    '{"jsonrpc":"2.0","id":2,"method":"ping"}' \
    '{"jsonrpc":"2.0","id":3,"method":"nothing"}' \
    'not json' \
    '{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}' \
    '{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}'
expect_out '"id":0,"result":\{"protocolVersion":"2025-06-18"'
expect_out '"serverInfo":\{"name":"stagewright"'
expect_out '"id":"a","result":\{"tools":\[\{"name":"list_runs"'
expect_out '"id":2,"result":\{\}'
expect_out '"id":3,"error":\{"code":-32601'
expect_out '"id":null,"error":\{"code":-32700'
expect_out '"id":4,"result":\{"supportedVersions":\["2024-11-05".*"resultType":"complete"'
expect_out '"id":5,"error":\{"code":-32022'
expect_that 'a notification has no reply' [ "$(grep -c . <out.txt)" = 7 ]
expect_that 'nothing is written unless a folder for it is named' bash -c '! grep -q "\"name\":\"import\"" out.txt'

# a tool's answer is the verb's
text() { python3 -c 'import json,sys
r = json.loads(sys.stdin.readline())["result"]
print(r["content"][0]["text"])' <out.txt; }
if command -v python3 >/dev/null; then
    call report '{"file":"demo.stagewright","run":"zb-h1"}'
    said=$(text | python3 -c 'import json,sys; print(json.load(sys.stdin)["bubble_fraction"])')
    run stagewright report demo.stagewright zb-h1 --json
    expect_same "$said" "$(json bubble_fraction)"
    call sql '{"file":"demo.stagewright","query":"SELECT count(*) AS n FROM spans WHERE run = 1"}'
    expect_that 'the count of spans' bash -c "grep -q 64 out.txt"
    call explain_gaps '{"file":"demo.stagewright","run":"1f1b","count":2}'
    expect_that 'only what explains' bash -c '! grep -q peak_activation out.txt'
    expect_that 'short enough for an assistant' [ "$(text | wc -c)" -le 12100 ]
    call report '{"file":"demo.stagewright","table":"all"}'
    expect_that 'cut where it is long' [ "$(text | wc -c)" -le 12100 ]
fi
call list_runs '{"file":"demo.stagewright"}'
expect_out 'zb-h1'
call compare '{"a":"demo.stagewright","run_a":"1f1b","b":"demo.stagewright","run_b":"zb-h1"}'
expect_out 'jsonrpc'
call what_if '{"file":"demo.stagewright","run":"1f1b","changes":["F*0.5"]}'
expect_out 'what_if'
call simulate '{"schedule":"zb-h1","ranks":4,"microbatches":8}'
expect_out 'bubble_fraction'
call draw '{"schedule":"gpipe","ranks":2,"microbatches":4}'
expect_out 'rank 1'
call plan '{"ranks":2,"microbatches":4,"memory_limit":"2"}'
expect_out 'bound'
call schedules '{"name":"1f1b"}'
expect_out 'PipeDream'

# refused in words, as a failure of the tool
call report '{"file":"/etc/passwd"}'
expect_out 'isError'
expect_out "no file '/etc/passwd' in the folders"
call report '{"file":"../../../../etc/passwd"}'
expect_out 'isError'
call report '{"file":"demo.stagewright","run":"nothing"}'
expect_out 'isError'
call report '{}'
expect_out 'report needs file'
call simulate '{"ranks":"four"}'
expect_out 'ranks of simulate is integer, not string'
call simulate '{"rank":4}'
expect_out "simulate takes no 'rank'"
call sql '{"file":"demo.stagewright","query":"DROP TABLE runs"}'
expect_out 'isError'
call nothing '{}'
expect_out '"code":-32602'
call import '{"file":"demo.stagewright","name":"x"}'
expect_out '"code":-32602'
ln -s /etc/passwd link.stagewright
call list_runs '{"file":"link.stagewright"}'
expect_out 'isError'

# with a folder to write to
mkdir written
cp "$ROOT/tests/data/traces/gpu_rank4.json" .
echo '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"import","arguments":{"file":"gpu_rank4.json","name":"job.stagewright"}}}' >ask.txt
run bash -c '"$STAGEWRIGHT" mcp --write written <ask.txt'
expect_code 0
expect_that 'it is imported' [ -s written/job.stagewright ]
sed -i 's/job.stagewright/..\/job.stagewright/' ask.txt
run bash -c '"$STAGEWRIGHT" mcp --write written <ask.txt'
expect_out 'is not the name of a file'
run stagewright mcp --folder nowhere
expect_code 3
expect_err 'there is no folder nowhere'

# The protocol's own client asks what engineers ask over a dozen traces (mcp_questions.txt), and its inspector lists and
# calls: STAGEWRIGHT_NODE_MODULES names the folder of `npm install @modelcontextprotocol/sdk @modelcontextprotocol/inspector`.
modules=${STAGEWRIGHT_NODE_MODULES:-}
if command -v node >/dev/null && [ -d "$modules/@modelcontextprotocol/sdk" ]; then
    traces=$ROOT/tests/data/traces
    quietly simulate -s gpipe -p 4 -m 8 -o demo.stagewright
    quietly simulate -s 1f1b -p 4 -m 8 --perturb rank=2:1.25 -o slow.stagewright
    quietly record -s 1f1b,zb-h1 -p 2 -m 4 --model layers=4,hidden=64,heads=2,seq=64 --steps 5 -o job.stagewright
    quietly import "$traces"/gpu_rank{4,6}.json -o gpu.stagewright
    quietly import "$traces/nsight.sqlite" -o nsight.stagewright
    quietly import "$traces/nsight_messages.sqlite" -o messages.stagewright
    quietly import "$traces"/nsight_node{0,1}.sqlite -o node.stagewright
    quietly import "$traces"/zbv_rank{0,1}.json -o zbv.stagewright
    quietly import "$traces/old_rank0.json" -o old.stagewright
    quietly import "$ROOT"/tests/data/fuzz_seeds/json/records_rank{0,1}.json -o records.stagewright
    quietly import "$ROOT/tests/data/fuzz_seeds/json/xla.json" -o xla.stagewright
    quietly import "$ROOT/tests/fuzz/seeds/otlp/job.json" -o otlp.stagewright
    quietly import "$ROOT/tests/fuzz/seeds/perfetto/wrapping0.pftrace" -o perfetto.stagewright
    cp "$traces/old_rank0.json" trace.json
    ln -s /etc away
    mkdir -p asks
    ln -sfn "$modules" asks/node_modules
    cp "$SOURCE/mcp_client.mjs" asks/
    run node asks/mcp_client.mjs "$STAGEWRIGHT" "$PWD" "$SOURCE/mcp_questions.txt" 40
    expect_code 0
    expect_out '^asked [0-9]+ questions'
    echo "$out" | tail -1
    # and over recorded jobs of others
    shared=${STAGEWRIGHT_SHARED:-$SOURCE/../../../shared}/fixtures
    if [ -d "$shared/kineto" ]; then
        mkdir shared
        quietly import "$shared/kineto/dlrm_8rank" -o shared/dlrm.stagewright
        for order in 1F1B GPipe Interleaved1F1B; do
            quietly import "$shared/kineto/torch26_gloo_pp4/${order}_rank"{0,1,2,3}.json.gz -o "shared/$order.stagewright"
        done
        quietly import "$shared/kineto/torch26_gloo_pp4/1F1B_rank1.json.gz" -o shared/alone.stagewright
        for name in mfu_2gpu_before mfu_2gpu_after mock; do
            quietly import "$shared/nsys_sqlite/$name.sqlite" -o "shared/$name.stagewright"
        done
        quietly import "$shared/torch_csv/upstream/pytorch_dualpipev_4rank_10mb.csv" -o shared/dualpipev.stagewright
        quietly import "$shared/torch_csv/upstream/torchtitan_custom_schedule.csv" -o shared/torchtitan.stagewright
        run node asks/mcp_client.mjs "$STAGEWRIGHT" "$PWD/shared" "$SOURCE/mcp_shared_questions.txt" 25
        expect_code 0
        expect_out '^asked [0-9]+ questions'
        echo "$out" | tail -1
    else
        echo "no questions on recorded jobs of others: the shared traces are not here"
    fi
    inspector=$modules/.bin/mcp-inspector
    if [ -x "$inspector" ]; then
        run "$inspector" --cli "$STAGEWRIGHT" mcp --method tools/list
        expect_code 0
        expect_out '"name": "explain_gaps"'
        run "$inspector" --cli "$STAGEWRIGHT" mcp --method tools/call --tool-name report --tool-arg file=demo.stagewright --tool-arg run=zb-h1
        expect_code 0
        expect_out 'bubble_fraction'
        run "$inspector" --cli "$STAGEWRIGHT" mcp --method tools/call --tool-name report --tool-arg file=/etc/passwd
        expect_out '"isError": true'
    else
        echo "not asked by the inspector: STAGEWRIGHT_NODE_MODULES has no @modelcontextprotocol/inspector"
    fi
else
    echo "the protocol's client is not here: STAGEWRIGHT_NODE_MODULES has no @modelcontextprotocol/sdk"
fi
