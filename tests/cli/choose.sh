# choose: ways to divide a model over a cluster, in text and JSON; what is pinned, what does not fit, constants fitted to measured steps.
# shellcheck shell=bash
run stagewright choose --top 3
expect_code 0
expect_out '108 of 948 ways fit 74.5 GiB'
expect_out '^t4 p16 v6 d1 b1 selective +13\.2 s .* interleaved-zb'
expect_out 'bubble \+'
run stagewright choose --top 2 --simulate 1 --json
expect_code 0
expect_json 948 candidates
expect_json 108 fitting
expect_json 2 rows
expect_json 4 rows 0 tensor
expect_json interleaved-zb rows 0 schedule
expect_json null rows 1 schedule
expect_json null fewer_devices
run stagewright choose --model layers=32,hidden=4096,heads=32 --cluster 16@h100 --samples 256 --pin t=2,recompute=full --top 4 --json
expect_code 0
for i in 0 1 2 3; do expect_json 2 rows $i tensor; expect_json full rows $i recompute; done

# the best way's pipeline, simulated by its own costs
run stagewright choose --top 1 -o costs.json
expect_code 0
expect_err 'simulate it: stagewright simulate -s interleaved-zb.* -p 16 -m 64 --chunks 6 --costs costs.json'
run stagewright simulate -s interleaved-zb -p 16 -m 64 --chunks 6 --costs costs.json --json
expect_code 0

# nothing fits: what is missing, and by how much
run stagewright choose --cluster 8@a100 --samples 8
expect_code 1
expect_err 'nothing fits 74.5 GiB: t1 p8 v1 d1 b1 full needs 369.0 GiB at least, 364.5 GiB of state'
# fewer devices are faster
run stagewright choose --model layers=16,hidden=256,heads=4,seq=128 --cluster 64@a100:between=1MB/s --top 1
expect_out '^fewer devices are faster: .* on (1 device|[248] devices) takes '

for wrong in '--cluster 64' '--cluster 64@b900' '--cluster 12@a100' '--model gpt9' '--model layers=3' '--pin t=x' '--pin q=1' '--samples 0' '--zero 4' '--model layers=7,hidden=64,heads=8 --samples 3'; do
    # shellcheck disable=SC2086
    run stagewright choose $wrong
    expect_code 2
done
expect_err 'no t, p, d and b divide 7 layers, 8 heads and 3 samples over 64 devices'

# constants: fitted to a table, kept, used, tested
{
    echo hidden,layers,heads,t,p,d,b,samples,ms
    for t in 1 2 4; do for p in 1 2; do for b in 1 2; do echo "4096,32,32,$t,$p,$((16 / t / p)),$b,64,$((900 * t + 40 * p + 10 * b))"; done; done; done
} >table.csv
run stagewright choose --cluster 16@a100 --calibrate table.csv -o ours.json --json
expect_code 0
expect_json 12 rows
expect_that 'constants are kept' grep -q '"optimizer_passes"' ours.json
error=$(json mean_error)
run stagewright choose --cluster 16@a100 --calibrate table.csv --constants ours.json --json
expect_same "$(json mean_error)" "$error"
run stagewright choose --constants ours.json --top 1
expect_code 0
echo 'hidden,layers' >table.csv
run stagewright choose --calibrate table.csv
expect_code 3
expect_err 'table.csv: no measured steps'
echo '{}' >ours.json
run stagewright choose --constants ours.json
expect_code 3
expect_err 'ours.json: efficiency: a number above 0 is expected'

# whose constants; a cluster's file, also one that other verbs print; its content goes round
run stagewright choose --top 1
expect_out '^constants of Megatron-DeepSpeed, fitted to steps on A100s'
run stagewright choose --cluster 16@h100 --model gpt3-13b --top 1 --json
expect_code 0
expect_that 'it is said whose constants' grep -q 'not of these devices' out.txt
python3 -c 'import json; json.dump(json.load(open("out.txt"))["cluster"], open("cluster.json", "w"))'
best=$(json rows 0 step_s)
run stagewright choose --cluster cluster.json --model gpt3-13b --top 1 --json
expect_same "$(json rows 0 step_s)" "$best"
echo '{"devices": [{"backend": "cuda", "name": "NVIDIA H100 80GB HBM3", "usable": true}]}' >host.json
run stagewright choose --cluster host.json:hosts=16:between=25GB/s --model gpt3-13b --top 1 --json
expect_code 0
expect_json 16 devices
expect_json 1 cluster hosts 0 devices
echo '{"hosts": [{"device": "h100", "count": -1}]}' >wrong.json
run stagewright choose --cluster wrong.json
expect_code 3
expect_err 'wrong.json: host 1: count is 1 to 100000, not -1'

# embedding and head: not counted as published, tied or of their own; weights that replicas share
run stagewright choose --top 1 --simulate 0
expect_out 'embedding and head are not in the memory, as in the published formulas: tied or tied=no'
run stagewright choose --model gpt3-13b,tied --cluster 32@a100 --samples 256 --top 1 --simulate 1 --json
expect_code 0
expect_json gpt3-13b model
expect_out 'tied, 257.6 million parameters: counted once where both are on one rank'
expect_that 'they take memory' python3 -c 'import json; r = json.load(open("out.txt"))["rows"][0]; assert 0 < r["embedding_bytes"] < r["state_bytes"]'
run stagewright choose --model gpt3-13b,tied=no --cluster 8@l4 --samples 8 --pin p=1 --top 1
expect_code 1
expect_err 'of state, of it .* embedding and head, and'
run stagewright choose --model gpt3-13b,tied=maybe
expect_code 2
run stagewright choose --model gpt3-13b --cluster 32@a100 --samples 256 --zero 3 --pin t=1,p=1 --top 1 --simulate 1 --json
expect_code 0
expect_json 3 rows 0 zero
expect_that 'weights are gathered' python3 -c 'import json; r = json.load(open("out.txt"))["rows"][0]; assert r["gathered_bytes"] > 0 and r["parts_s"]["data"] > 0'

# layouts: written, changed, read; Megatron-LM's text
run stagewright choose --cluster 16@h100 --model gpt3-13b --samples 64 --pin p=4,t=2 --top 1 --save-layout layout.json
expect_code 0
expect_err 'Megatron-LM: --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4'
run stagewright choose --cluster 16@h100 --model gpt3-13b --samples 64 --layout layout.json --json -o stages.json
expect_code 0
expect_json 4 ranks
expect_that "a step is simulated" test "$(json step_s)" != null
run stagewright choose --cluster 16@h100 --model gpt3-13b --samples 64 --layout 'Et*16|(t*8|)*2t*8L' --pin p=4,t=2,d=2,b=1
expect_code 0
expect_out "Megatron-LM: --pipeline-model-parallel-layout 'Et\*16\|"
expect_out 'TorchTitan: these layers need module_fqns_per_model_part|TorchTitan: pipeline_parallel_layers_per_stage'
sed 's/"tensor": 2/"tensor": 3/' layout.json >wrong.json
run stagewright choose --cluster 16@h100 --model gpt3-13b --layout wrong.json
expect_code 3
expect_err 'wrong.json: stage 0: .* devices are not whole groups of 3'
run stagewright choose --cluster 16@h100 --model gpt3-6.7b --layout layout.json
expect_code 2
expect_err 'the layout has 40 layers, the model 32'

# stages that divide layers differently are resharded; hosts' cards are in the costs
python3 - <<'PYTHON'
import json
layout = json.load(open('layout.json'))
layout['stages'][1]['tensor'] = 4
json.dump(layout, open('mixed.json', 'w'))
PYTHON
run stagewright choose --cluster 16@h100 --model gpt3-13b --samples 64 --layout mixed.json --json -o mixed_costs.json
expect_code 0
expect_json 4 boundaries
expect_that 'equal stages are beside it' test "$(json equal_stages schedule)" != null
expect_that 'costs have the cards of hosts' grep -q '"cards"' mixed_costs.json

# Alpa's plan is a layout: timed beside equal stages, and simulated
run stagewright solve "$SOURCE/../data/planners/alpa_head_heavy.json" --save-layout alpa.json
expect_code 0
expect_err 'stagewright choose --layout alpa.json --model layers=5,hidden=…,heads=… --cluster 4@DEVICE:per-host=2'
run stagewright choose --layout alpa.json --model layers=5,hidden=1024,heads=16 --cluster 4@a100:per-host=2 -o alpa_costs.json
expect_code 0
expect_out '^ +2 +2 +1  2 to 3 +2 +1'
expect_out '^the best of equal stages, t[0-9]+ p[0-9]+ .*, with [a-z0-9-]+: .* a step'
expect_err "simulated only: t = 2 can't be trained here"
expect_err 'simulate it: stagewright simulate -s [a-z0-9-]+ -p 3 -m 32'
command=$(sed -n 's/^simulate it: stagewright //p' err.txt)
# shellcheck disable=SC2086
run stagewright $command
expect_code 0
run stagewright solve --example comet --plot comet.svg --save-layout none.json
expect_code 2
expect_err 'only plans of alpa_inter are layouts'

# a cluster's links and cards in a simulation: slow cards between hosts make it longer; costs have times, ranks a device each
on() { run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-6.2b@a100 --json "$@"; }
on --cluster 4@a100
expect_code 0
near=$(json makespan)
on --cluster 4@a100:per-host=2:between=1GB/s
expect_err 'links of 4 × NVIDIA A100 .*, 2 a host: constants of Megatron-DeepSpeed'
expect_that 'slow cards are counted' python3 -c 'import sys; assert float(sys.argv[2]) > 1.02 * float(sys.argv[1])' "$near" "$(json makespan)"
run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-6.2b@a100 --cluster 4@a100:per-host=2 -o cluster.stagewright
expect_code 0
run stagewright sql cluster.stagewright "SELECT count(*) > 0 AS cards FROM spans WHERE lane = 'card out'"
expect_out '^1$|^ *1 *$'
on --cluster 2@a100
expect_code 2
expect_err '4 ranks on 2 devices'
on --cluster 4@a100 --link 5us
expect_code 2
run stagewright simulate -s 1f1b -p 4 -m 8 --cluster 4@a100
expect_code 2
expect_err '--cluster gives times, but the costs are in units'

# constants of one's own machine from its runs; what is not 1F1B's step is left out
record_lesson() { stagewright record -s "$1" -p 2 -m 4 --model layers=4,hidden=64,heads=4,seq=32 --steps 4 -o runs.stagewright; }
for schedule in 1f1b gpipe zb-h1; do record_lesson $schedule >/dev/null 2>&1; done
echo '{"hosts":[{"devices":2,"title":"here","flops":1e11,"memory_bytes":4e9,"memory_bytes_per_second":2e10,"link_bytes_per_second":1e10}]}' >here.json
run stagewright choose --calibrate runs.stagewright --cluster here.json --json
expect_code 0
expect_json 2 fitted
expect_json 2 rows
expect_err 'left out: run .*its schedule is zb-h1'
run stagewright explore levels --measured runs.stagewright --json
expect_code 0
expect_json 2 question ranks
expect_json 4 question microbatches
expect_out 'from the measured steps on average'

# ranks on a cluster: simulated with its cards, emulated in training, kept with the run; what can't be is refused
run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-1.5b@a100 --cluster 4@a100:per-host=2:between=100MB/s -o here.stagewright --json
expect_code 0
slow=$(json makespan_ns)
run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-1.5b@a100 --cluster 4@a100:per-host=2 --json
expect_that 'slow cards take longer' test "$slow" -gt "$(json makespan_ns)"
run stagewright simulate -s 1f1b -p 4 -m 8 --costs analytic:gpt-1.5b@a100 --cluster cluster.json
expect_code 0
expect_err 'links of 16 × NVIDIA H100'
expect_that 'the run keeps its cluster' grep -aq '4@a100:per-host=2:between=100MB/s' here.stagewright
tiny=(-s 1f1b -p 2 -m 4 --model layers=2,hidden=32,heads=2,seq=16 --microbatch-size 1)
run stagewright record "${tiny[@]}" --steps 2 --cluster 2@a100:per-host=1 -o emulated.stagewright
expect_code 0
expect_err 'emulated, and messages do not wait'
run stagewright report emulated.stagewright
expect_out 'emulated links 0→1'
run stagewright check "${tiny[@]}" --steps 2 --cluster 2@a100
expect_code 0
refused() { # REASON WORDS…
    local why=$1
    shift
    run stagewright "$@"
    expect_code 2
    expect_err "$why"
}
refused 'costs are in units' simulate --cluster 4@a100
refused '4 ranks on 2 devices' simulate -p 4 --costs analytic:gpt-1.5b@a100 --cluster 2@a100
refused '--link' simulate --costs analytic:gpt-1.5b@a100 --cluster 4@a100 --link 5us
refused "can't be combined with --comm" simulate --costs analytic:gpt-1.5b@a100 --cluster 4@a100 --comm 1
run stagewright simulate --costs analytic:gpt-1.5b@a100 --cluster absent.json
expect_code 3
expect_err 'absent.json'
run stagewright explore choose --cluster cluster.json --model gpt3-13b --samples 64 --tried 0
expect_code 0
expect_out 'on 16 × NVIDIA H100'

# layers as a run measured them: what is measured and what is not; other models are refused
run stagewright choose --layers-from runs.stagewright#1 --cluster here.json:hosts=2 --samples 16 --top 2 --json
expect_code 0
expect_json 'your model' model
expect_out 'measured in run 1f1b .*4 layers, embedding and loss'
expect_out '; bytes kept [0-9.]+×; analytic'
run stagewright choose --layers-from runs.stagewright#1 --model layers=8,hidden=64,heads=4,seq=32,vocab=256 --cluster 2@a100 --samples 8 --top 1
expect_code 0
expect_out 'layers 4 to 7 count as the mean; analytic: all-reduces'
refused 'its layers have hidden=64,heads=4,seq=32,vocab=256, the model hidden=5120' choose --layers-from runs.stagewright#1 --model gpt3-13b
run stagewright choose --layers-from here.stagewright#1
expect_code 2
expect_err '--layers-from: run .*model is unknown|the model is unknown|its model is unknown'
refused '--calibrate excludes --layers-from' choose --layers-from runs.stagewright#1 --calibrate table.csv

# layers of a table: figures at some microbatches and tensor degrees; what is wrong in it, with its place
cp "$SOURCE/../fuzz/seeds/layers/table.json" layers.json
run stagewright choose --layers layers.json --cluster here.json:hosts=2 --samples 16 --top 2 --simulate 2 --json
expect_code 0
expect_out 'of layers.json: 4 layers, embedding and loss, at b2 t1, b1 t1, b2 t2; F, I, W of a layer'
expect_out 'bytes kept .*; weights .*; analytic: all-reduces, messages, gradients, optimizer'
run stagewright choose --layers layers.json --model gpt3-13b
expect_code 2
expect_err 'layers.json: it has 4 layers of kind block, the model 40'
sed 's/"model": "[^"]*", //' layers.json >nameless.json
run stagewright choose --layers nameless.json
expect_code 2
expect_err 'nameless.json: it does not say its model'
sed 's/"recompute": "full"/"recompute": "all"/' layers.json >wrong.json
run stagewright choose --layers wrong.json
expect_code 3
expect_err "wrong.json: layer 1, at 3: recompute is none, selective or full, not 'all'"
run stagewright choose --layers none.json
expect_code 3
refused '--layers excludes --layers-from' choose --layers layers.json --layers-from runs.stagewright#1
run stagewright plan --partition layers.json -p 2 -m 4 --budget 0.2 --json
expect_code 0

# what replicas share and sequence parallelism free; keys of own models; what can be trained is trained, the rest says why
run stagewright choose --zero any --top 1 --json
expect_code 0
expect_json 50 simulated
expect_that 'free sharing is not slower' python3 -c 'import json; assert json.load(open("out.txt"))["rows"][0]["step_s"] <= 13.2'
expect_json "t = 4 can't be trained here" why_not_trained
run stagewright choose --zero any --pin sp=no,t=4 --top 3 --json
expect_that 'sequences are not cut' python3 -c 'import json; assert not any(r["sequence_parallel"] for r in json.load(open("out.txt"))["rows"])'
run stagewright choose --model layers=32,hidden=4096,heads=32,kv=8,ffn=14336,seq=4096 --cluster 16@h100 --top 1 --json
expect_code 0
refused 'heads=4 is not a multiple of kv=3' choose --model layers=4,hidden=64,heads=4,kv=3
refused "'sp=maybe' can't be pinned" choose --pin sp=maybe
run stagewright choose --model layers=4,hidden=64,heads=4,seq=32,vocab=256 --cluster 4@a100 --samples 16 --pin p=2,t=1,v=1,d=2,b=2,recompute=full --json
expect_code 0
read -ra training <<<"$(json train)"
run "${training[@]}" --steps 2 -o trained.stagewright
expect_code 0

# a layout of one's own divisions is trained as it is
cat >own.json <<'JSON'
{"ranks": 2, "microbatches": 4, "samples": 1, "stages": [
 {"layers": 1, "devices": [0], "recompute": "none"}, {"layers": 3, "devices": [1], "recompute": ["full", "full", "none"]}]}
JSON
run stagewright choose --layout own.json --model layers=4,hidden=32,heads=2,seq=16,vocab=256 --cluster 2@a100 --json
expect_code 0
read -ra training <<<"$(json train)"
expect_that 'layers, stages and recomputation are in it' grep -q -- '--recompute 1 --recompute-layers 1-2 --stage-layers 1,3 --microbatch-size 1' out.txt
run "${training[@]}" --steps 2 -o own.stagewright
expect_code 0

# a file that isn't there is named once
run stagewright choose --calibrate no.csv
expect_code 3
expect_err "^stagewright: no\.csv can't be opened"
