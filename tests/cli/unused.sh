# An option or a key of a cost file that changes nothing is refused or said. Each is tried where it can't matter; the lists are complete.
# shellcheck shell=bash
costs=$SOURCE/../data/costs
stagewright simulate -s 1f1b -p 2 -m 4 --costs F=2,I=1,W=1 -o stored.stagewright >/dev/null 2>&1

# tried OPTION WORDS…: with the words it answers something else, or says or refuses by name
tried() {
    local option=$1 plain
    shift
    run stagewright "${base[@]}" --json
    plain=$(sed 's/"csv": *"[^"]*"//' <<<"$out")
    run stagewright "${base[@]}" "$@" --json
    expect_that "$option changes nothing and is not named" eval '[ "$out" != "$plain" ] || grep -qe "$option" err.txt out.txt'
    seen="$seen $option"
}
# complete VERB: every option of the verb was tried, but those of output
complete() {
    local option
    for option in $(stagewright "$1" --help | sed -n 's/^  \(-[a-z],\)\{0,1\}\(--[a-z-]*\).*/\2/p'); do
        case $option in --help | --json | --log-level | --progress | --stdin-control | --output) continue ;; esac
        expect_that "$1 $option is tried" eval '[[ " $seen " == *" $option "* ]]'
    done
}

seen=''
base=(simulate -s 1f1b -p 2 -m 4)
tried --schedule -s 1f1b,gpipe
tried --ranks -p 3
tried --microbatches -m 5
tried --chunks --chunks 3
tried --overlap --overlap serial
tried OPT --costs F=1,I=1,W=1,OPT=2
tried --costs --costs F=1,I=1,W=2
tried --costs-from --costs-from stored.stagewright#1
tried --input-share --input-share 0.3
tried --free-at-input --free-at-input 0.5
tried --keep --keep 0.125
tried --stage-layers --stage-layers 3,1
tried --layout --layout 'Ettt|tL'
tried --offload --offload all
tried --order --order hint
tried --fill --costs F=1,B=2,FACTOR_A=0.1,FACTOR_G=0.1,INVERT=0.4 --fill kfac
tried --copies --copies duplex=full
tried --perturb --perturb rank=1:2
tried --seed --seed 3
tried --recompute --recompute all
tried --hoist --hoist
tried --sends --sends rendezvous
tried --channels --channels 1
tried --lower --lower pytorch
tried --receives --receives blocking
tried --replicas --replicas 2
tried --shard --shard weights
tried --gather --gather batch
tried --reduce --reduce overlapped
tried --collectives --collectives tree
tried --replica-batch --replica-batch 4,4
tried --speed --speed 1,0.5
tried --cut --cut 0,1
tried --memory-limit --memory-limit 9
tried --what-if --what-if 'F*0.5'
tried --cluster --cluster 8@a100
base=(simulate -s 1f1b -p 1 -m 4)
tried --comm --comm 0.5
tried --link --link 5us
complete simulate
base=(simulate -s zb-h1 -p 2 -m 4)
tried B --costs F=1,I=1,W=1,B=3

seen=''
base=(plan -p 2 -m 4 --budget 0)
tried --ranks -p 3
tried --microbatches -m 5
tried --chunks --chunks 2
tried --costs --costs F=1,I=1,W=1,OPT=2
tried --costs-from --costs-from stored.stagewright#1
tried --comm --comm 0.5
tried --link --link 5us
tried --free-at-input --free-at-input 0.5
tried --keep --keep 0.125
tried --input-share --input-share 0.3
tried --stage-layers --stage-layers 2,2
tried --layout --layout 'Ett|ttL'
tried --perturb --perturb jitter=0.1
tried --replicas --replicas 2
tried --shard --shard weights
tried --gather --gather batch
tried --reduce --reduce overlapped
tried --collectives --collectives tree
tried --replica-batch --replica-batch 4,4
tried --speed --speed 1,0.5
tried --cut --cut 0,1
tried --memory-limit --memory-limit 9
tried --objective --objective span
tried --pareto --pareto 2
tried --partition --partition gpt-1.5b@a100
base=(plan -p 4 -m 8 --memory-limit 2)
tried --budget --budget 0
tried --seed --seed 3 # of a search that takes its turns from it
complete plan

seen=''
base=(sweep -s 1f1b -p 2 -m 4)
tried --schedule -s gpipe
tried --ranks -p 3
tried --microbatches -m 5
tried --chunks --chunks 3
tried --costs --costs F=1,I=1,W=1,OPT=2
tried --costs-from --costs-from stored.stagewright#1
tried --comm --comm 0.5
tried --recompute --recompute all
tried --perturb --perturb rank=1:2
tried --seed --seed 3
tried --replicas --replicas 2
tried --shard --shard weights
tried --gather --gather batch
tried --reduce --reduce overlapped
tried --collectives --collectives tree
tried --replica-batch --replica-batch 4,4
tried --speed --speed 1,0.5
tried --cut --cut 0,1
tried --link --link 5us,1GB/s
complete sweep

# keys of cost files where they can't matter: none of them is left unsaid
cost_file() { # KEY:VALUE…
    printf '{"format": "stagewright-costs", "version": 2, "source": "uniform", "origin": "by hand", "duration_ns": {"F": [1000, 1000], "B": [2000, 2000]}, "stage_bytes": [{"activation": 4}, {"activation": 4}]%s}' "${1:+, $1}" >keys.json
}
keys=' format version source origin time_unit_ns memory_unit_bytes duration_ns stage_bytes '
unused() { # KEY VALUE NAMED
    cost_file "\"$1\": $2"
    run stagewright simulate -s 1f1b -p 2 -m 4 --costs keys.json
    expect_that "$1 is named" grep -qE "$3" err.txt
    keys="$keys$1 "
}
unused duration_on_rank '[{"kind": "OPT", "stage": 0, "rank": 0, "duration_ns": 5}]' 'duration_on_rank\[0\] is not used'
unused collectives '"beside"' 'collectives is not used'
unused sharding '"weights"' 'sharding is not used|sharding'
unused bucket_bytes 5 'bucket_bytes is not used'
unused replicas 2 'replicas'
unused link '{"latency_ns": 0, "bytes_per_second": 1e9}' 'link is not used'
unused link_overrides '[{"from": 3, "to": 4, "latency_ns": 5, "bytes_per_second": 0}]' 'link_overrides\[0\] is not used'
unused cards '{"hosts": [0, 0], "per_host": 1, "latency_ns": 0, "bytes_per_second": 25e9, "duplex": "full"}' 'cards is not used'
unused slice_lengths '[1, 2]' 'slice_lengths is not used'
unused launch_ns '[0, 0, 7]' 'launch_ns is not used'
unused jitter_seed 5 'jitter_seed is not used'
unused pairs '[{"kinds": ["F", "B"], "stages": [0, 1], "duration_ns": 2500}]' 'pairs\[0\] is not used'
unused microbatches '[{"kind": "F", "stage": 0, "duration_ns": [null, null, null, null, 9]}]' 'microbatches\[0\] is not used'
unused microbatches '[{"kind": "I", "stage": 0, "duration_ns": [9]}]' 'microbatches\[0\] is not used|kind'
unused microbatches '[{"kind": "F", "stage": 0, "duration_ns": [9, null, null, null, 9]}]' 'microbatches\[0\].duration_ns\[4\] is not used'
unused layers '[{"part": "block", "duration_ns": {"F": 7, "B": 14}, "bytes": {}}]' 'layers is not used'
unused microbatch_sizes '[1, 2]' 'microbatch_sizes of 2 replicas'
cost_file '"jitter": 0.1'
run stagewright simulate -s 1f1b -p 2 -m 4 --costs keys.json
expect_quiet_err
keys="${keys}jitter "
for key in $(sed -n '/^## Cost file/,/^## /p' "$SOURCE/../../docs/formats.md" | sed -n 's/^| \(`[a-z_`, ]*`\) |.*/\1/p' | tr -d '`,'); do
    expect_that "the key $key is tried" eval '[[ "$keys" == *" $key "* ]]'
done
sed 's/"activation": 4/"activation": 4, "workspace": 3/g' keys.json >bytes.json
run stagewright simulate -s 1f1b -p 2 -m 4 --costs bytes.json
expect_err 'stage_bytes.workspace is not used: 1f1b is the same without it'
printf '{"format": "stagewright-costs", "version": 2, "duration_ns": {"F": [1000, 1000], "B": [2000, 2000], "R": [1000, 1000], "OPT": [5, 5]}}' >kinds.json
run stagewright simulate -s 1f1b -p 2 -m 4 --costs kinds.json
expect_err 'duration_ns.OPT and duration_ns.R are not used: 1f1b is the same without them'
run stagewright simulate -s 1f1b -p 2 -m 4 --costs kinds.json --memory-limit 5B
expect_code 2
expect_err 'these costs have no sizes of activations'

# a list that recomputes uses it
run stagewright simulate -s "$costs/recomputed.csv" --keep 0.125 --json
expect_code 0
expect_json 34.0 makespan
expect_json 3.0 peak_activation 0
expect_json 2.0 peak_activation 1
expect_json 1.0 peak_activation 2
expect_that 'keep is used' eval '! grep -q "not used" err.txt'

# validate: a file has its own shape, a library schedule no dialect, and a single rank sends nothing
stagewright schedules 1f1b -p 2 -m 4 --csv >own.csv
named() { # OPTION WORDS…
    local option=$1
    shift
    run stagewright validate "$@"
    expect_code 0
    expect_that "validate $option is named" grep -qe "$option.* not used" err.txt
}
named --ranks own.csv -p 3
named --microbatches own.csv -m 5
named --chunks own.csv --chunks 2
named --overlap own.csv --overlap serial
named --overlap 1f1b --overlap serial
named --dialect 1f1b --dialect old
named --lower 1f1b -p 1 --lower pytorch
named --sends 1f1b -p 1 --sends rendezvous
named --channels 1f1b -p 1 --channels 1
named --receives 1f1b --receives posted
named --receives 1f1b -p 1 --receives blocking

# record and check train: what nothing there has a use for is said once, or refused before anything is trained
small=(--model layers=4,hidden=16,heads=2,seq=8 --microbatch-size 2)
said() { # OPTION WORDS…: of record and check
    local option=$1
    shift
    run stagewright "$@"
    expect_code 0
    expect_that "$1 $option is named once" eval '[ "$(grep -ce "$option.* not used" err.txt)" = 1 ]'
}
refused() { # OPTION WORDS…
    local option=$1
    shift
    run stagewright "$@"
    expect_code 2
    expect_err "$option"
}
alone=(record -s 1f1b,gpipe -p 1 -m 2 "${small[@]}" --steps 1)
said --link "${alone[@]}" --link 5us -o alone.stagewright
said --comm "${alone[@]}" --comm 1 -o alone.stagewright
said --sends "${alone[@]}" --sends rendezvous -o alone.stagewright
said --channels "${alone[@]}" --channels 1 -o alone.stagewright
said --lower "${alone[@]}" --lower pytorch -o alone.stagewright
two=(record -s 1f1b -p 2 -m 2 "${small[@]}" --steps 1)
said --recompute-layers "${two[@]}" --recompute-layers 1 -o two.stagewright
said --keep-warmup "${two[@]}" --warmup 0 --keep-warmup -o two.stagewright
said --no-trace "${two[@]}" --no-trace -o two.stagewright
said --ranks-per-process "${two[@]}" --ranks-per-process 2 -o two.stagewright
said --receives "${two[@]}" --receives posted -o two.stagewright
said --copies "${two[@]}" --copies 1GB/s -o two.stagewright
said --host-memory "${two[@]}" --host-memory 1MB -o two.stagewright
said --keep-checkpoints "${two[@]}" --keep 3 -o two.stagewright
said --checkpoint-every "${two[@]}" --checkpoint-every 9 -o two.stagewright
refused --sharing "${two[@]}" --sharing queues -o none.stagewright
refused --transport "${two[@]}" --transport nccl -o none.stagewright
refused --reduce "${two[@]}" --reduce overlapped -o none.stagewright
expect_that 'nothing was recorded' eval '[ ! -e none.stagewright ]'
run stagewright "${two[@]}" --recompute all --recompute-layers 1 -o two.stagewright
expect_that 'layers are used' eval '! grep -q "not used" err.txt'
one=(check -s 1f1b -p 1 -m 2 --backend cpu)
said --link "${one[@]}" --link 5us
said --sends "${one[@]}" --sends rendezvous
said --recompute-layers "${one[@]}" --recompute-layers 1
refused --sharing "${one[@]}" --sharing queues
refused --transport "${one[@]}" --transport copies
refused --reduce "${one[@]}" --reduce late

# export, compare, report
refused --step export two.stagewright --format chrome --step 1 -o out.json
expect_that 'nothing was written' eval '[ ! -e out.json ]'
refused --step export two.stagewright --format csv --step 1 -o out.csv
run stagewright export two.stagewright --step 1 -o out.html
expect_code 0
said --ops compare two.stagewright 1 2 --ops 3 --json
refused --within compare two.stagewright 1 2 --within 3
refused --junit compare two.stagewright 1 2 --junit verdict.xml
refused --new compare two.stagewright 1 2 --new 1
refused --gate compare two.stagewright 1 --plan --gate

# listen
refused --otlp listen --otlp 127.0.0.1:none -o heard.stagewright
refused --max-size listen --otlp 127.0.0.1:0 -o heard.stagewright --max-size much
run stagewright listen --otlp 127.0.0.1:0 -o heard.stagewright --rules absent.txt
expect_code 3
expect_err absent.txt
expect_that 'nothing was written' eval '[ ! -e heard.stagewright ]'
