# explore: each survey as text, JSON, CSV and SVG; what it is asked is refused in words where it can't be answered.
# shellcheck shell=bash
names=$(sed -n 's/^STAGEWRIGHT_SURVEY(\(.*\))$/\1/p' "$SOURCE/../../schedules/survey/surveys.def")
run stagewright explore
expect_code 0
expect_quiet_err
for name in $names; do expect_out "^$name +[a-z]"; done
expect_out '--ranks 8  --microbatches 32'
run stagewright explore --json
expect_json memory surveys 0 name
expect_json ranks surveys 0 fields 0 name
expect_json 1024 surveys 0 fields 0 most

declare -A small=(
    [memory]='--ranks 4 --microbatches 8'
    [line]='--ranks 4 --microbatches 8 --schedules 1f1b,zb-h1'
    [heat]='--ranks 4 --microbatches 8 --schedules 1f1b,zb-h1'
    [state]='--ranks 4 --microbatches 8 --schedules 1f1b,gpipe --replicas 4'
    [uneven]='--batch 6'
    [partial]='--replicas 4'
    [levels]='--ranks 4 --microbatches 8 --schedules 1f1b,zb-h1 --latency 0.25'
    [keeping]='--ranks 4 --microbatches 8 --schedules 1f1b,gpipe'
    [readiness]='--ranks 4 --microbatches 8 --seeds 5'
    [choose]='--cluster 8@a100 --model gpt3-1.3b --samples 16 --tried 2'
)
for name in $names; do
    expect_that "$name has a small question here" [ -n "${small[$name]:-}" ]
    # shellcheck disable=SC2086 # options
    run stagewright explore "$name" ${small[$name]} --svg "$name.svg" --log-level warning
    expect_code 0
    expect_quiet_err
    expect_out '^(Simulated|Computed)'
    expect_that "$name.svg is a picture" grep -q '^<svg xmlns' "$name.svg"
    expect_that "$name.svg ends" [ "$(tail -n 1 "$name.svg")" = '</svg>' ]
    expect_that "$name.svg needs no style sheet" bash -c "! grep -qE 'var\(--|class=' $name.svg"
    if command -v xmllint >/dev/null; then expect_that "$name.svg is XML" xmllint --noout "$name.svg"; fi
    # shellcheck disable=SC2086
    run stagewright explore "$name" ${small[$name]} --csv
    expect_code 0
    csv=$out
    # shellcheck disable=SC2086
    run stagewright explore "$name" ${small[$name]} --csv
    expect_same "$out" "$csv"
    # shellcheck disable=SC2086
    run stagewright explore "$name" ${small[$name]} --json
    expect_code 0
    expect_json "$name" survey
    expect_keys . survey question setup tables interrupted
done

# The same numbers as simulate and sweep have.
run stagewright explore memory --ranks 4 --microbatches 8 --csv
expect_out '^schedule,whole_step,bubble_fraction,bubble_rate_span,peak_activation,stages,frontier,note$'
expect_out '^1f1b,33,0.272727,0.272727,4,4,no,$'
expect_out '^zb-h1,27,0.111111,0.111111,4,4,no,$'
expect_out '^v-half,26.5,.*,3,8,yes,$'
expect_out '^gpipe,33,.*,8,4,no,$'
expect_out '^pipedream,.*,no,stale weights$'
run stagewright explore memory --ranks 4 --microbatches 8 --cap 6 --json
expect_json 6.0 question cap
expect_json 4 question ranks
expect_json schedule tables schedules columns 0 key
expect_json rank_share tables schedules columns 1 unit
expect_json 1 tables bounds rows 0 chunks
run stagewright explore memory --ranks 4 --microbatches 8 --cap 6
expect_out 'gpipe .*rank 0 holds 8.0, the cap is 6.0'
expect_out 'The work alone takes 24 units'
run stagewright explore line --ranks 4 --microbatches 8 --schedules 1f1b --across latency --csv
expect_out '^1f1b,0,33,'
run stagewright sweep -s 1f1b -p 4 -m 8 --comm 0.1
swept=$(awk -F, 'NR == 2 { print $(NF - 1) }' <<<"$out")
expect_that "sweep has a step time" [ -n "$swept" ]
run stagewright explore line --ranks 4 --microbatches 8 --schedules 1f1b --across latency --csv
expect_out "^1f1b,0.1,$swept,"
run stagewright explore uneven --batch 12 --csv
expect_out '^division,step_ns,rank,device,samples,microbatches,microbatch_size,'
expect_out '^Decoupled,[0-9]+,0,speed 3,6,1,6,0.5,0.5,'
# cost lines: the authors' example, a problem's file, recorded runs
run stagewright explore uneven --lines authors --csv
expect_out '^Decoupled,342296848,0,,13,1,13,'
expect_out '^Decoupled,342296848,1,,12,2,6,'
expect_out '^Even,958807270,3,,16,'
authors=$out
run stagewright explore uneven --lines "$ROOT/tests/data/planners/cephalo_authors.json" --csv
expect_same "$out" "$authors"
for size in 2 4; do
    run stagewright record -s bfs -p 1 --chunks 4 -m 1 --replicas 2 --shard weights --speed 2,1 --microbatch-size $size \
        --model layers=4,hidden=32,heads=2,seq=16,vocab=256 --rank-memory 64MB --steps 2 -o lines.stagewright
    expect_code 0
done
run stagewright explore uneven --lines lines.stagewright#1,lines.stagewright#2
expect_code 0
expect_out 'cost lines of the ranks of bfs v=4, bfs v=4 .2.: 2 ranks, 4 samples a step'
run stagewright explore uneven --lines lines.stagewright#2
expect_out 'of one size of microbatch, what a pass takes besides its samples is unknown'
run stagewright solve --lines lines.stagewright#1 --lines lines.stagewright#2 --save-problem lines.json --json
expect_code 0
expect_json cephalo program
run stagewright explore uneven --lines lines.json --csv
expect_out '^Decoupled,'
# more ranks than sixteen, and devices
run stagewright explore uneven --speeds 32x3,32x1 --memory 32x40,32x60 --batch 256 --csv
expect_out '^Decoupled,[0-9]+,63,speed 1,'
run stagewright explore uneven --speeds 2xa100,l4 --memory '' --csv
expect_out '^Even,[0-9]+,2,l4,8,'
# the layers of a table and of a run, as choose takes them
cp "$SOURCE/../fuzz/seeds/layers/table.json" layers.json
run stagewright choose --layers layers.json --cluster 8@a100 --samples 16 --simulate 0 --json
steps=$(python3 -c 'import json; print([round(r["step_s"] * 1e9) for r in json.load(open("out.txt"))["rows"]][:3])')
for option in layers layers-from; do
    run stagewright explore choose --$option layers.json --cluster 8@a100 --samples 16 --tried 0 --json
    expect_code 0
    expect_that 'the same steps as choose' python3 -c "import json; r = json.load(open('out.txt'))['tables']['ways']['rows']; assert [x['step_ns'] for x in r][:3] == $steps, r"
done
expect_out 'Layers: of layers.json: 4 layers, embedding and loss'
run stagewright record -s 1f1b -p 2 -m 2 --steps 2 --model layers=4,hidden=32,heads=2,seq=16,vocab=256 -o layered.stagewright
run stagewright explore choose --layers-from layered.stagewright#1 --cluster 4@a100 --samples 16 --tried 0
expect_code 0
expect_out 'Layers: measured in run 1f1b'
run stagewright explore partial --replicas 4 --csv
expect_out '^embedding,1,0,0.25$'
expect_out '^head,4,"0, 1, 2, 3",1$'
run stagewright explore partial --replicas 4
expect_out 'Mean backward: .*\(N\+1\)/\(2N\) = 5/8 = 62.5 %'
run stagewright explore state --ranks 3 --microbatches 8 --schedules chimera --json
expect_json null tables stages rows 0 step_ns

# Refused in words.
refused() { # refused PATTERN ARGUMENTS…
    local pattern=$1
    shift
    run stagewright explore "$@"
    expect_code 2
    expect_err "$pattern"
}
refused "no survey 'memry'" memry
expect_err "did you mean 'memory'"
refused '--ranks takes a whole number from 2 to 1024, not .1.' memory --ranks 1
refused "--speeds is not a field of 'memory'" memory --speeds 1,2
refused "--device takes one of .*not 'abacus'" state --device abacus
refused "1f1c" line --schedules 1f1c
refused "speeds: 'fast' is neither a speed nor a device" uneven --speeds 3,fast
refused 'memory: 2 sizes for 3 ranks' uneven --memory 40,48
refused '2 samples for 3 ranks' uneven --batch 2
refused 'lines: it is a problem of alpa_inter, not of cephalo' uneven --lines "$ROOT/tests/data/planners/alpa_m1.json"
refused '--batch does nothing beside --lines' uneven --lines authors --batch 32
refused "lines: 'lines.stagewright' does not name a run" uneven --lines lines.stagewright
refused 'lines: run 1f1b: a rank does not have the whole model' uneven --lines layered.stagewright#1
refused '--layers-from excludes --layers' choose --layers layers.json --layers-from layered.stagewright#1
refused 'layers.json: it has 4 layers of kind block, the model 40' choose --layers layers.json --sizes gpt3-13b
refused 'across and up are the same' heat --across cap --up cap
refused 'a survey is needed' --ranks 4
# The plot by the suffix: points, TikZ; another one is refused.
for form in csv tex; do
    run stagewright explore partial --replicas 4 --plot "p.$form" --log-level warning
    expect_code 0
    expect_file "p.$form"
done
expect_that 'points have a header and names' grep -qE '^Replicas that send gradients,,embedding,1' p.csv
expect_that 'TikZ is a picture' grep -q '^.begin{tikzpicture}' p.tex
run stagewright explore partial --replicas 4 --plot p.gif
expect_code 2
expect_err 'p.gif'
run stagewright explore memory --ranks 4 --microbatches 8 --svg nowhere/x.svg
expect_code 3
expect_err 'nowhere/x.svg'

# Interrupted: what was done is printed.
: >progress.txt
"$STAGEWRIGHT" explore line --ranks 64 --microbatches 1024 --progress jsonl --csv </dev/null >out.txt 2>progress.txt &
pid=$!
for ((i = 0; i < 600; ++i)); do
    [ "$(grep -c '"event":"progress"' progress.txt || true)" -lt 2 ] || break
    sleep 0.05
done
kill -s INT $pid
rc=0
wait $pid || rc=$?
out=$(cat out.txt) err=$(tail -n 3 progress.txt) last='explore, then INT'
expect_code 130
expect_err interrupted
expect_out '^schedule,microbatches,whole_step,'
expect_that "not all of them" [ "$(wc -l <out.txt)" -lt 81 ]

# what is kept: the same figures as simulate's
run stagewright explore keeping --ranks 4 --microbatches 8 --schedules 1f1b --input-grad 1 --weight-grad 1 --copy 0.4 --keep 0.1 --csv
expect_out '^1f1b,none,33,.*,4,4,'
expect_out '^1f1b,recompute,44,.*,1.3,4,'
expect_out '^1f1b,offload,33,.*,2,4,'
expect_out '^1f1b,both,44,.*,1.1,4,'
