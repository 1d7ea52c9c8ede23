# Schedules with faults: the first one explained, all on request, the cycle of a deadlock.
# shellcheck shell=bash
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' >good.csv
run stagewright validate good.csv
expect_code 0
expect_out 'good.csv: valid; 2 ranks, 2 stages, 2 microbatches, 8 ops'
run stagewright validate good.csv --json
expect_code 0
expect_json ON valid
expect_json 0 faults

printf '0F0,0F1,0B0,0B1\n1F0,1B1,1F1,1B0\n' >order.csv
run stagewright validate order.csv
expect_code 1
expect_out 'rank 1, op 2 \(1B1\)'
run stagewright validate order.csv --json
expect_code 1
expect_json OFF valid
expect_json 1 faults 0 rank
expect_json 1B1 faults 0 op

printf '0F0,0F0,0B0\n1F0,1B0\n' >double.csv
run stagewright validate double.csv --all
expect_code 1
expect_out '0F0'
expect_out 'remove one of the two'
run stagewright validate double.csv --json
expect_json 'remove one of the two' faults 0 remedy

# each rank alone is in order, but they wait for each other
printf '0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n' >deadlock.csv
run stagewright validate deadlock.csv
expect_code 1
expect_out 'wait for each other'
expect_out 'rank 0.*waits for'
expect_out 'rank 1.*waits for'
run stagewright validate deadlock.csv --json
expect_that "the cycle is there" [ "$(json cycle)" -ge 2 ]
run stagewright simulate -s deadlock.csv --json
expect_code 1
expect_json ON hung
expect_that "the cycle is there" [ "$(json cycle)" -ge 2 ]
run stagewright record -s deadlock.csv -o x.stagewright
expect_code 1
expect_no_file x.stagewright

printf '0F0,0Q0\n' >junk.csv
run stagewright validate junk.csv
expect_that "an unknown cell is not a valid schedule" [ "$rc" = 1 -o "$rc" = 3 ]
expect_err '0Q0'
printf '0F0junk,0B0\n' >trail.csv
run stagewright validate trail.csv
expect_that "trailing characters are refused" [ "$rc" = 1 -o "$rc" = 3 ]
head -c 2000 /dev/urandom >noise.csv
run stagewright validate noise.csv
expect_that "noise is refused" [ "$rc" = 1 -o "$rc" = 3 ]
: >empty.csv
run stagewright validate empty.csv
expect_that "an empty file is refused" [ "$rc" = 1 -o "$rc" = 3 ]
run stagewright validate .
expect_code 3

# sends and receives: the result of a rule completes with buffers, and maybe not without
stagewright schedules 1f1b -p 4 -m 8 --csv >a.csv
run stagewright validate a.csv --sends buffered --lower just-in-time
expect_code 0
run stagewright validate a.csv --sends rendezvous
expect_code 1
expect_out 'so rank 2 waits for itself'
expect_out 'ranks 0, 1 wait for the cycle'
expect_out 'it works if sends are buffered'
expect_out 'a way out, checked: on odd ranks, each receive directly after a send'
expect_out 'and 17 more moves'
expect_out 'rank 2 ─► rank 3 ─► rank 2'
run stagewright validate a.csv --sends rendezvous --json
expect_code 1
expect_json ON hung
expect_json 2 cycle 0 rank
expect_json 2SEND_F1 cycle 0 op
expect_json 3 cycle 1 rank
expect_json 0 victims 0
expect_json 1 victims 1
expect_json ON works_if_buffered
expect_json ON grouping_works
expect_json just-in-time lowering
for rule in rank-parity grouped pytorch; do
    run stagewright validate a.csv --sends rendezvous --lower $rule
    expect_code 0
done
run stagewright validate a.csv --lower late
expect_code 2
expect_err 'rank-parity'
run stagewright simulate -s 1f1b -p 2 -m 4 --sends rendezvous --json
expect_code 1
expect_json ON hung
expect_json 0 cycle 0 rank
expect_json 1 cycle 1 rank
run stagewright simulate -s 1f1b -p 2 -m 4 --sends rendezvous --lower grouped --comm 0.5 --json
expect_code 0
expect_json OFF hung
expect_json rendezvous sends

# a lowered file is exported, read again and checked as it is
stagewright simulate -s 1f1b -p 2 -m 2 -o runs.stagewright
run stagewright export runs.stagewright --format csv --lower pytorch -o low.csv
expect_code 0
expect_same "$(head -n 1 low.csv)" 0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
run stagewright validate low.csv --pytorch
expect_code 0
expect_out 'this is 1f1b'

# a file that never ends or is not text is refused at once
run stagewright validate /dev/zero
expect_code 3
expect_err '/dev/zero is not text: byte 0'
printf '0F0,0B0\n\0\n' >zero.csv
run stagewright validate zero.csv
expect_code 3
expect_err 'zero.csv is not text: byte 8'

# of very many faults the first ones are described, the rest counted
{ printf '0F0,0B0'; printf ',0F0%.0s' $(seq 120000); echo; } >many.csv
run stagewright validate many.csv
expect_code 1
expect_out '119999 more: --all shows 99999 of them'
run stagewright validate many.csv --json
expect_json 20000 more_faults

# a line is a rank, and ranks are bounded
{ echo 0F0; printf '0F1\n%.0s' $(seq 70000); echo 0B0; } >lines.csv
run stagewright validate lines.csv
expect_code 3
expect_err 'line 65537.*more than 65536 lines'

# From stdin, and from the library by name.
out=$(stagewright validate - <good.csv) && rc=0 || rc=$?
last='validate -' err=''
expect_code 0
expect_out '^-: valid; 2 ranks, 2 stages, 2 microbatches, 8 ops'
out=$(stagewright validate - <deadlock.csv) && rc=0 || rc=$?
expect_code 1
err=$(printf '0X0\n' | stagewright validate - 2>&1) && rc=0 || rc=$?
expect_code 3
expect_err 'stdin'
run stagewright validate zb-h1 -p 2 -m 4
expect_code 0
expect_out 'zb-h1: valid; 2 ranks, 2 stages, 4 microbatches'
run stagewright validate 1f1b -p 2 -m 4 --sends rendezvous
expect_code 1
expect_out 'wait for each other'
run stagewright validate zb-h9
expect_code 2
expect_err 'zb-h1'
run stagewright validate nobody.csv
expect_code 3

# lists as other programs write them
data=$SOURCE/../data/schedule_csv
run stagewright simulate -s "$data/spreadsheet.csv" --json
expect_code 0
expect_json 9.0 makespan
expect_json 2 ranks
run stagewright validate "$data/gathered_at_end.csv"
expect_code 0
run stagewright validate "$data/gathered_at_end.csv" --sends rendezvous
expect_code 1
expect_out '0SEND_F1 → 1RECV_F1 → 1SEND_F0 → 2RECV_F0'
expect_out '^a way out, checked: '
expect_that "more than one way out" [ "$(grep -c '^another way out, checked: ' <<<"$out")" -ge 2 ]
run stagewright validate "$data/deferred_receives.csv" --sends rendezvous --json
expect_code 1
expect_that "more than one order" [ "$(json other_ways)" -ge 2 ]
run stagewright validate "$data/batches.csv" --pytorch
expect_code 0
expect_out 'this is interleaved-1f1b'
run stagewright check -s "$data/gathers_lowered.csv" --replicas 2 --shard weights
expect_code 0
expect_out 'gathers_lowered.csv +p=2 m=4 v=2 r=2 +weights .* pass$'
run stagewright check -s "$data/gathered_at_end.csv" --replicas 2 --shard weights
expect_code 0
run stagewright check -s "$data/batches.csv" --replicas 2 --shard weights --sends rendezvous
expect_code 0
run stagewright check -s interleaved-1f1b -p 2 -m 4 --lower batched --sends rendezvous
expect_code 0
run stagewright validate "$data/groups_of_six.csv"
expect_out 'this is interleaved-1f1b:group=6'
run stagewright simulate -s interleaved-1f1b:group=7 -p 4 -m 11 --json
expect_json 37.5 makespan
run stagewright simulate -s interleaved-1f1b:group=2 -p 4 -m 11
expect_code 2
expect_err 'groups of 2 of 11 microbatches on 4 ranks: deadlock of [0-9] ranks: rank [0-9] is at op .* waits for'
run stagewright simulate -s interleaved-1f1b -p 4 -m 11
expect_code 2
expect_err 'give the size of the groups, group=6'
run stagewright validate "$data/skip.csv" --all
expect_code 1
expect_out 'a skip connection: .*stages form a chain'
expect_no_out 'remove one'
printf '0F0,0F1\n1F0,1F1\n' >forward.csv
run stagewright validate forward.csv --all
expect_code 1
expect_out 'forwards only'
expect_no_out 'add [01]B'
printf '0F0,0B0\n,\n2F0,2B0\n' >gap.csv
run stagewright validate gap.csv
expect_code 1
expect_out 'stage 1 is in no row: the row of its rank is missing'
run stagewright validate "$data/offload.csv"
expect_code 0
printf '0F0,0OFFLOAD0,0F1,0B0,0B1\n' >lost.csv
run stagewright validate lost.csv
expect_code 1
expect_out 'an offload without the reload'
expect_out 'add 0RELOAD0 to rank 0, before the backward'
run stagewright schedules interleaved-1f1b -p 4 -m 8
expect_out 'batched +ends'

# shared state: no stage is left out, and the schedule keeps its name
stagewright simulate -s 1f1b -p 2 -m 2 --replicas 2 --shard weights --costs analytic:gpt-6.2b@a100:b=1 -o shared.stagewright >/dev/null
run stagewright export shared.stagewright --format csv -o shared.csv
expect_code 0
run stagewright validate shared.csv
expect_code 0
expect_out 'this is 1f1b'
sed 's/,1REDUCE_GRAD//' shared.csv >unreduced.csv
run stagewright validate unreduced.csv
expect_code 1
expect_out 'the gradients of stage 1 are never reduced on rank 1, but those of stage 0 are'
run stagewright simulate -s unreduced.csv --replicas 2 --shard weights
expect_code 1
sed 's/1UNSHARD,//; s/1RESHARD,//' shared.csv >ungathered.csv
run stagewright validate ungathered.csv
expect_code 1
expect_out 'the weights of stage 1 are never gathered on rank 1, but those of stage 0 are'
