# Every key of the JSON of reports and comparisons is at its place with its types: tests/data/json_keys has them.
# shellcheck shell=bash
command -v python3 >/dev/null || { echo 'skipped: no python3'; exit 77; }
runs=$SOURCE/../data/runs
traces=$SOURCE/../data/traces
stored=$SOURCE/../data/json_keys
cp "$runs"/version6.stagewright "$runs"/shards.stagewright "$runs"/cuda/zb-h1-queues.stagewright .
quietly() { stagewright "$@" >/dev/null 2>&1; }
quietly simulate -s 1f1b -p 4 -m 8 -o version6.stagewright
quietly simulate -s zb-h1 -p 2 -m 4 --costs analytic:gpt-1.5b@a100 --comm 0.1 -o ns.stagewright
quietly simulate -s 1f1b -p 2 -m 4 --costs analytic:gpt-1.5b@a100 --comm 0.2 -o ns.stagewright
quietly import "$traces"/gpu_rank4.json -o gpu.stagewright

# keys NAME COMMAND…: the paths of its JSON are those of NAME.txt; with KEYS_TO=FOLDER they are written there instead
keys() {
    local name=$1
    shift
    run stagewright "$@" --json
    python3 "$SOURCE/json_keys.py" <out.txt >"$name.keys"
    if [ -n "${KEYS_TO:-}" ]; then
        cp "$name.keys" "$KEYS_TO/$name.txt"
    else
        expect_same "$(comm -23 "$stored/$name.txt" "$name.keys")" '' # none of the stored lines is absent
    fi
}
keys report_units report version6.stagewright 1 --gaps 4 --residuals --slack --table all --what-if 'F*0.5' --what-if 'B*0.5'
keys report_units2 report version6.stagewright 2 --table all --what-if 'F*0.5' --require 'bubble_fraction<=1'
keys report_shards report shards.stagewright --table all --residuals --kernels
keys report_gpu report zb-h1-queues.stagewright --gaps 3 --residuals --slack --kernels --table all
keys report_trace report gpu.stagewright --kernels --table all
keys simulate simulate -s zb-h1 -p 4 -m 8 --comm 0.5 --what-if 'F*0.5' --what-if 'B*0.5'
keys simulate_ns simulate -s 1f1b -p 2 -m 4 --costs analytic:gpt-1.5b@a100
keys simulate_shared simulate -s 1f1b -p 2 -m 4 --replicas 2 --shard weights --costs analytic:gpt-1.5b@a100
keys simulate_hung simulate -s 1f1b --comm 0.3 --sends rendezvous
keys compare_units compare version6.stagewright 1 2
keys compare_ns compare ns.stagewright 1 2
keys compare_mixed compare version6.stagewright#1 shards.stagewright ns.stagewright#1
keys compare_gpu compare zb-h1-queues.stagewright zb-h1-queues.stagewright
keys compare_plan compare zb-h1-queues.stagewright --plan
keys compare_gate compare ns.stagewright 1 2 --gate
keys explore explore heat --ranks 4 --microbatches 8
quietly import "$traces"/reported/graph_level.sqlite -o devices.stagewright
quietly import "$traces"/gpu_rank6.json -o devices.stagewright
keys report_devices report devices.stagewright 1 --kernels --table all
keys compare_devices compare devices.stagewright#1 devices.stagewright#1
keys runs runs zb-h1-queues.stagewright
