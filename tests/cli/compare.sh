# Two to four runs compared: one table, ledger, ladder, different setups; units are never mixed; what report and runs say of a run.
# shellcheck shell=bash
for name in 1f1b zb-h1 zb-h2 gpipe; do run stagewright simulate -s "$name" -o s.stagewright; done
run stagewright compare s.stagewright
expect_code 0
expect_out '^D  gpipe, 4 ranks × 8 microbatches'
expect_out '^C is 18.2 % faster'
expect_out '^A and D take the same time'
expect_out ' B − A +C − A +D − A$'
expect_out '^Step time +33 +27 +27 +33 +−6 +−6 +=$'
expect_out '^Return trip +6 +0 +−6$'
expect_out '^the backward is split into I and W +30 +−3 +4$'
expect_out '^deeper warm-up: 7 forwards on rank 0 before its first backward instead of 4 '
expect_no_out 'different setups'
run stagewright compare s.stagewright 1 2 --markdown
expect_code 0
expect_out '^\| Step time \| 33 \| 27 \| −6 \|$'
expect_out '^## Why$'
run stagewright report s.stagewright 2 --markdown
expect_code 0
expect_out '^# zb-h1$'
expect_out '^- Bubble ratio: \*\*11.1 %\*\*$'
run stagewright report s.stagewright 2 --markdown --json
expect_code 2
run stagewright compare s.stagewright 1f1b zb-h2 gpipe --json
expect_code 0
expect_keys . a b time_unit headline differences spread_ns within_spread metrics change ledger ladder no_ladder why ops more
expect_json zb-h2 b schedule
expect_json gpipe more 0 b schedule
expect_json 6.0 ledger a by_class return
expect_json -6.0 ledger delta_by_class return
expect_json 27.0 ladder 3 makespan
expect_json order ladder 3 kind
expect_json makespan metrics 0 key
expect_json rank_share metrics 0 unit
expect_json 33.0 metrics 0 a
run stagewright compare s.stagewright#1 s.stagewright#2 s.stagewright#3 s.stagewright#4
expect_code 0
run stagewright compare s.stagewright 1f1b zb-h1 zb-h2 gpipe 1f1b
expect_code 2
run stagewright compare s.stagewright 1 2 3 9
expect_code 2

# Rank shares against nanoseconds: shares, no sums over both.
run stagewright simulate -s 1f1b --costs analytic:gpt-1.5b@a100 -o n.stagewright
run stagewright compare s.stagewright#1 n.stagewright
expect_code 0
expect_out 'unit of time +units +nanoseconds'
expect_out 'different units'
expect_no_out '(where the time went|critical path by class|one change at a time|^Time )'
run stagewright compare s.stagewright#1 n.stagewright#1 --json
expect_json time_unit differences 0 key
for key in time_unit change ledger ladder; do expect_json null "$key"; done
expect_json null ops 0 start_delta
expect_json bubble_fraction metrics 0 key
expect_json ns b time_unit

# A different shape, latency, model and batch are shown.
run stagewright simulate -s 1f1b -m 16 --comm 0.5 -o s.stagewright
run stagewright compare s.stagewright 1 5
expect_out '^microbatches +8 +16$'
expect_out '^link latency +none +0.5 units$'
expect_out '^different setups: microbatches 8 against 16 and link latency none against 0.5 units$'
expect_out "B's placement and order: 16 microbatches instead of 8"
for batch in 1 2; do
    run stagewright record -s gpipe -p 2 -m 2 --model "layers=2,hidden=$((32 * batch)),heads=2,seq=16" --microbatch-size "$batch" --steps 2 \
        --warmup 1 --clock virtual -o r.stagewright
done
run stagewright compare r.stagewright
expect_code 0
expect_out '^model +layers=2,hidden=32.* layers=2,hidden=64'
expect_out '^microbatch size +1 +2$'
expect_out '^no difference is claimed with fewer than 4 measured steps per run: '
expect_out 'the noise is unknown, so no difference is claimed: each run needs 4 measured steps, and A has 2 and B has 2'
expect_no_out '(faster|slower)'
run stagewright runs r.stagewright
expect_out 'model +batch +link latency'
expect_out 'layers=2,hidden=64,heads=2.* +2 +none'
run stagewright runs r.stagewright --json
expect_json 2 runs 1 microbatch_size
run stagewright report r.stagewright
expect_out '^model layers=2,hidden=64.*; microbatch size 2; link latency none$'
expect_out 'step [23] of 3 \(median time\)'
run stagewright report r.stagewright --step 1
expect_out 'step 1 of 3$'
run stagewright report r.stagewright --json
expect_json 2 microbatch_size
expect_json 0 link_latency
run stagewright report s.stagewright 1 --json
expect_json null makespan_ns

# The same batch in one microbatch and in eight: the same samples, losses equal as far as sums allow. Another batch is other data, which is said.
for split in '1 8' '8 1' '4 1'; do
    read -r microbatches size <<<"$split"
    run stagewright record -s gpipe -p 2 -m "$microbatches" --microbatch-size "$size" --model layers=2,hidden=32,heads=2,seq=16 --steps 3 --clock virtual -o splits.stagewright
    expect_code 0
done
loss_of() { stagewright report "splits.stagewright#$1" --json >loss.json && json_of loss.json loss 0; }
expect_that "the same losses, $(loss_of 1) and $(loss_of 2)" awk -v a="$(loss_of 1)" -v b="$(loss_of 2)" 'BEGIN { exit !((a - b) * (a - b) < 1e-10 * a * a) }'
run stagewright compare splits.stagewright#1 splits.stagewright#2
expect_no_out 'the data differ'
run stagewright compare splits.stagewright#2 splits.stagewright#3
expect_out 'samples of a step \(the data differ\) +8 of seed 1 +4 of seed 1'

# Links to the step and to its largest gaps.
run stagewright report s.stagewright 1 --link --gaps 2
expect_code 0
expect_out '^stagewright:/.*/s.stagewright#run=1&step=1$'
expect_out '^stagewright:/.*/s.stagewright#run=1&step=1&range=[0-9]+-[0-9]+  rank [0-9] is idle: '
run stagewright report s.stagewright 1 --json
expect_json null link

# A verdict for CI: no alarm for the same training; a slow stage raises one, named in text, JUnit and JSON.
tiny=(-s 1f1b -p 2 -m 4 --model layers=4,hidden=32,heads=2,seq=16 --clock virtual)
run stagewright simulate -s 1f1b -p 4 -m 8 -o gate.stagewright
run stagewright simulate -s 1f1b -p 4 -m 8 --perturb rank=2:1.05 -o gate.stagewright
run stagewright compare gate.stagewright 1 1 --gate
expect_code 0
expect_out '^not worse: no figure is certainly more than 2.0 % above those before$'
run stagewright compare gate.stagewright 2 1f1b --gate
expect_code 2
expect_err '2 and 1f1b are both run 2: a name finds the newest of that schedule'
run stagewright compare gate.stagewright 1 2 --gate --junit verdict.xml
expect_code 1
expect_err 'is worse: Step time '
expect_out '^Work of stage 2 \(rank 2\): \+5.0 % \(forwards \+5.0 %, full backwards \+5.0 %\)$'
expect_that 'JUnit names the cause' grep -q 'Work of stage 2 (rank 2): +5.0 %' verdict.xml
run stagewright compare gate.stagewright 1 2 --gate --within 6
expect_code 0
run stagewright compare gate.stagewright 1 2 --gate --json
expect_code 1
expect_json ON gate worse
expect_json step_time_ns gate figures 0 key
expect_json worse gate figures 0 verdict
run stagewright compare gate.stagewright 1 2 --json
expect_json null gate
# Recorded in turn: the second stage recomputes, and is delayed by more than a busy machine varies (tst_gate has the
# rest).
cat >slow.csv <<'CSV'
0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3
1F0,1R0,1FILLER9000000,1B0,1F1,1R1,1FILLER9000000,1B1,1F2,1R2,1FILLER9000000,1B2,1F3,1B3
CSV
run stagewright record -s 1f1b,slow.csv "${tiny[@]:2}" --steps 32 -o judged.stagewright
run stagewright compare judged.stagewright 1 2 --gate
expect_code 1
expect_out '^Step time .* worse$'
expect_out '^Work of stage 1 \(rank 1\) '
expect_out 'shows from'
# One by one: how much such runs differ is unknown from two, and known from several.
for name in one other; do run stagewright record "${tiny[@]}" --steps 12 -o $name.stagewright; done
run stagewright compare one.stagewright other.stagewright --gate
expect_code 2
expect_err '1f1b and 1f1b were recorded one by one, and how much such runs differ is unknown from 2 of them'
expect_err 'record both in turn'
run stagewright compare one.stagewright other.stagewright one.stagewright other.stagewright judged.stagewright#1 --gate --new 2
expect_that 'a verdict of several runs' [ "$rc" -le 1 ]
expect_out '^verdict$'
expect_out '^Step time '
run stagewright compare one.stagewright other.stagewright --gate --new 2
expect_code 2
expect_err '--new 2: of 2 runs one at least is from before'
run stagewright record -s 1f1b,slow.csv "${tiny[@]:2}" --steps 3 -o few.stagewright
run stagewright compare few.stagewright 1 2 --gate
expect_code 2
expect_err '12 measured steps of each run are needed'
