# Traces of other tools as runs: recorded pipelines, GPU ranks, Nsight exports, CSV; rules, damage, what is refused.
# shellcheck shell=bash

# what was written for other tools comes back, or says where it does
stagewright simulate --schedule zb-h1 --comm 0.1 -o ours.stagewright >/dev/null 2>&1
stagewright export ours.stagewright -o ours.json >/dev/null 2>&1
run stagewright import ours.json --json
expect_code 0
expect_json zb-h1 runs 0 recognised
expect_json 96 runs 0 ops
expect_json 4 runs 0 ranks
expect_json 0 runs 0 notes
stagewright simulate --schedule dualpipe -p 4 -m 8 -o pairs.stagewright >/dev/null 2>&1
stagewright export pairs.stagewright -o pairs.json >/dev/null 2>&1
run stagewright import pairs.json --json
expect_json dualpipe runs 0 recognised
expect_json 0 runs 0 notes
stagewright export ours.stagewright -o ours.pftrace >/dev/null 2>&1
run stagewright import ours.pftrace --json
expect_code 0
expect_json perfetto runs 0 format
echo text >text.pftrace
run stagewright import text.pftrace
expect_code 3
expect_err 'not a Perfetto trace, although it is named as one'
echo report >report.nsys-rep
run stagewright import report.nsys-rep
expect_code 3
expect_err 'nsys export --type sqlite report.nsys-rep'
stagewright export ours.stagewright --format torchtitan -o titan >/dev/null 2>&1
run stagewright import titan
expect_code 0
expect_err '4 files have an unknown trace format: titan/README.md, titan/run.sh, titan/settings.toml, titan/stagewright_job.py'
printf '0F0,0B0\n1F0,1Q0\n' >wrong.csv
run stagewright import wrong.csv
expect_code 3
expect_err 'line 2, cell 2 .1Q0.'
mkfifo pipe
run stagewright import pipe
expect_code 3
expect_err 'write its contents to a file first'
mkdir many
for i in 1 2 3 4 5; do printf '0F0,0B0\n' >"many/order$i.csv"; done
run stagewright import many
expect_code 0
expect_out '5 runs: an order without times'
# a schedule holds all ranks: no number in its file's name is one, and each file keeps its own name
mkdir orders
for name in dualpipev_4rank_10mb dualpipev_4rank_8mb rank_3 my.order; do printf '0F0,0B0\n' >"orders/$name.csv"; done
run stagewright import orders
expect_code 0
for name in dualpipev_4rank_10mb dualpipev_4rank_8mb rank_3 my.order; do expect_out "^ +$name +csv"; done

# a trace of our own, of two ranks: labels of a user's, one step
for rank in 0 1; do
    {
        printf '{"schemaVersion":1,"distributedInfo":{"rank":%s,"world_size":2},"baseTimeNanoseconds":1700000000000000000,"traceEvents":[\n' $rank
        for i in 0 1; do
            printf '{"ph":"X","cat":"user_annotation","name":"fwd s%s m%s","pid":1,"tid":1,"ts":%s.5,"dur":80},\n' $rank $((i + 1)) $((rank * 100 + i * 100))
            printf '{"ph":"X","cat":"user_annotation","name":"bwd s%s m%s","pid":1,"tid":1,"ts":%s,"dur":90},\n' $rank $((i + 1)) $((500 - rank * 100 + i * 200))
        done
        printf '{"ph":"i","name":"end","ts":2000}]}\n'
    } >"own_rank$rank.json"
done
run stagewright import own_rank0.json own_rank1.json
expect_code 0
expect_out 'no ops'
expect_out 'the ranges are bwd s0 m1 .4., fwd s0 m1 .4.'
# Without ops stages and microbatches are unknown, not 0.
run stagewright import own_rank0.json own_rank1.json -o unnamed.stagewright
expect_out 'no ops'
run stagewright runs unnamed.stagewright
expect_out ' 2 × – '
run stagewright runs unnamed.stagewright --json
expect_out '"stages": null'
expect_out '"microbatches": null'
run stagewright report unnamed.stagewright --json
expect_out '"stages": null'
expect_json 'no range of the trace is recognised as an op: name them in rules (import --rules)' unknown microbatches
run stagewright import own_rank0.json own_rank1.json --suggest-rules draft.rules
expect_code 0
expect_out 'F +fwd s.stage. m.microbatch-1. +4 +2 +fwd s0 m1'
expect_out 'It gives gpipe on 2 ranks: 2 stages, 2 microbatches, 1 step; every range has its counterpart'
run stagewright import own_rank0.json own_rank1.json --rules draft.rules --json
expect_code 0
expect_json gpipe runs 0 recognised
run stagewright import ours.json --suggest-rules draft.rules
expect_code 2
expect_err 'its ops are named by PyTorch.s PP: labels already'
run stagewright import own_rank0.json --suggest-rules no/such/folder/draft.rules
expect_code 3
printf '\200\004\225' >snapshot.pickle
run stagewright import snapshot.pickle
expect_code 3
expect_err 'pickle, which is not loaded'
expect_err 'json.dump'
printf '# ours\nF fwd s{stage} m{microbatch-1}\nB bwd s{stage} m{microbatch-1}\n' >names.txt
run stagewright import 'own_rank*.json' --rules names.txt -o own.stagewright --json
expect_code 0
expect_json 1 runs 0 run
expect_json own runs 0 name
expect_json 2 runs 0 ranks
expect_json 8 runs 0 ops
expect_json gpipe runs 0 recognised
expect_json 'the rule file' runs 0 labels
expect_json 0 runs 0 damaged_events
run stagewright report own.stagewright --residuals
expect_code 0
expect_out 'predicted against measured'
run stagewright compare own.stagewright 1 --plan
expect_code 0
expect_out 'own as planned'
expect_out 'the first op that deviates'
run stagewright compare own.stagewright 1 --plan --json
expect_keys . headline first_deviation
run stagewright compare own.stagewright 1 1 --plan
expect_code 2
printf 'F fwd {stge}\n' >bad.txt
run stagewright import own_rank0.json --rules bad.txt
expect_code 2
expect_err 'bad.txt: line 1: .*stge'

# gzip, a file cut off, an event in pieces: the rest is there, with a warning
gzip -k own_rank0.json
head -c 300 own_rank1.json >cut_rank1.json
sed 's/"fwd s0 m2"/"fwd s0 m2/' own_rank0.json >torn_rank0.json
run stagewright import own_rank0.json.gz cut_rank1.json torn_rank0.json --rules names.txt --json
expect_code 0
expect_json 4 runs 1 ops
expect_out 'the file is cut off after'
expect_out '1 of [0-9]* events is damaged and was skipped'

# our own traces come back with their order and their messages
run stagewright simulate -s 1f1b -p 2 -m 4 --lower pytorch -o sent.stagewright
expect_code 0
run stagewright export sent.stagewright 1 --format kineto -o sent
expect_code 0
run stagewright import sent --json
expect_code 0
expect_json 1f1b runs 0 recognised
expect_json 16 runs 0 ops
expect_json 8 runs 0 messages
expect_json 0 runs 0 unpaired_messages
expect_json 32 runs 0 spans
# where only arrivals are known, too: the other end is written with them
run stagewright simulate -s 1f1b -p 2 -m 4 --comm 0.25 -o arrivals.stagewright
expect_code 0
run stagewright export arrivals.stagewright 1 --format kineto -o arrivals
expect_code 0
run stagewright import arrivals --json
expect_code 0
expect_json 1f1b runs 0 recognised
expect_json 8 runs 0 messages
expect_json 0 runs 0 unpaired_messages

# Nsight Systems, one file per node
data=$SOURCE/../data/traces
run stagewright import "$data/nsight_node0.sqlite" "$data/nsight_node1.sqlite" --json
expect_code 0
expect_json nsight_node runs 0 name
expect_json 4 runs 0 ranks
expect_json 6 runs 0 collectives
run stagewright import own_rank0.json "$data/zbv_rank1.json" --one-job --json
expect_code 0
expect_json 2 runs 0 ranks

# refused with a sentence
printf 'hello\n' >text.txt
printf '{"a":1}\n' >object.json
printf '' >empty.json
for file in text.txt object.json empty.json missing.json own.stagewright .; do
    run stagewright import $file -o never.stagewright
    [ $file = . ] || expect_code 3
    [ $file = . ] || expect_err 'file|there'
done
run stagewright import own_rank0.json text.txt --rules names.txt
expect_code 0
expect_err 'text.txt: unknown trace format'
expect_that 'other files in a folder do no harm' [ -s never.stagewright ]

shared=${STAGEWRIGHT_SHARED:-$SOURCE/../../../shared}/fixtures
if [ -d "$shared/kineto" ]; then
    run stagewright import "$shared/kineto/torch26_gloo_pp4" -o t.stagewright --json
    expect_code 0
    expect_json 1f1b runs 0 recognised
    expect_json gpipe runs 1 recognised
    expect_json interleaved-1f1b runs 2 recognised
    run stagewright export t.stagewright 3 -o i.csv
    run stagewright diff i.csv "$shared/torch_csv/Interleaved1F1B_p4_m8_v2.csv"
    expect_code 0
    run stagewright import "$shared/nsys_sqlite/mock.sqlite" --json
    expect_code 0
    expect_json 3 runs 0 kernels
else
    echo "skipped: the recorded traces are not there ($shared)"
fi
