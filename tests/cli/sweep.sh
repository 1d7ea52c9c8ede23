# sweep: a grid as CSV and JSON, in the order of the options, with reasons where a point can't be simulated.
# shellcheck shell=bash
run stagewright sweep -s 1f1b,zb-h1 -p 2,4 -m 4-8/4 --comm 0,0.5 --log-level error
expect_code 0
expect_same "$(wc -l <<<"$out")" 17
expect_out '^schedule,ranks,microbatches,chunks,stages,costs,comm,time_unit,makespan,span,bubble_fraction,bubble_rate_span,peak_activation,whole_step,error$'
expect_out '^1f1b,4,8,auto,4,"F=1,I=1,W=1",0,rank_share,33,33,0.272727,'
expect_out '^1f1b,4,8,auto,4,"F=1,I=1,W=1",0.5,rank_share,41,'
expect_out '^zb-h1,4,8,auto,4,"F=1,I=1,W=1",0,rank_share,27,27,0.111111,0.111111,4,27,$'
expect_same "$(sed -n 2p <<<"$out" | cut -d, -f1-3)" 1f1b,2,4
first=$out
run stagewright sweep -s 1f1b,zb-h1 -p 2,4 -m 4-8/4 --comm 0,0.5 --log-level error
expect_same "$out" "$first"

run stagewright sweep -s interleaved-1f1b -p 4 -m 6,8 --chunks 2 --json
expect_code 0
expect_json 28.5 rows 1 makespan
expect_json null rows 1 error

run stagewright sweep -s gpipe -p 2 -m 4 --costs F=1,I=1,W=1 --costs F=2,I=1,W=1 -o grid.csv
expect_code 0
expect_err '2 rows written'
expect_that "the file has its rows" [ "$(wc -l <grid.csv)" -eq 3 ]

run stagewright sweep -s 1f1b -p 8 -m 24 --costs analytic:gpt-1.5b@a100 --json
expect_code 0
expect_json ns rows 0 time_unit
run stagewright sweep -s 1f1b -p 64 -m 8 --costs analytic:gpt-1.5b@a100
expect_code 2
expect_err 'none of 1 point can be simulated'
run stagewright sweep -s 1f1b -p 2-
expect_code 2
run stagewright sweep -s nobody
expect_code 2

# Schedules generated for costs are generated for each point's; a latency counts in forwards.
run stagewright sweep -s v-half,zb-auto -p 4 -m 8 --comm 0.5 --json
swept=$(json rows 0 makespan)
run stagewright simulate -s v-half -p 4 -m 8 --comm 0.5 --json
expect_same "$(json makespan)" "$swept"
run stagewright simulate -s 1f1b -p 2 -m 1 --costs F=2,I=2,W=2 --comm 0.5 --json
expect_json 14.0 makespan

# Options that a schedule does not use are noted, and it is simulated once.
run stagewright sweep -s 1f1b,interleaved-1f1b -p 4 -m 8 --chunks 2,4
expect_code 0
expect_err '1f1b has its own number of stages per rank, 1: --chunks 2,4 is not used'
expect_same "$(grep -c '^1f1b,4,8,1,4,' <<<"$out")" 1
expect_same "$(grep -c '^interleaved-1f1b,4,8,' <<<"$out")" 2
run stagewright sweep -s 1f1b -p 4 -m 8
expect_quiet_err
cat >v.block <<'END'
block v-half devices=2 interval=6
0: F0=0 F1=5 I1=8 I0=13
1: F0=2 F1=3 I1=10 I0=11
END
run stagewright sweep -s v.block,1f1b -p 2 -m 4,8
expect_code 0
expect_out '^v.block,2,4,auto,4,'
expect_out '^v.block,2,8,auto,4,'
run stagewright sweep -s v.block -p 4 -m 4
expect_code 0
expect_err 'v.block has its own number of ranks, 2: --ranks 4 is not used'
run stagewright simulate -s v.block -m 8 --json
swept=$(json makespan)
run stagewright sweep -s v.block -m 8 --json
expect_json "$swept" rows 0 makespan
run stagewright export --help
run stagewright simulate -s gpipe -p 2 -m 4 -o g.stagewright
run stagewright export g.stagewright gpipe --format csv -o g.csv
run stagewright sweep -s ./g.csv --comm 0,1
expect_code 0
expect_same "$(grep -c '^./g.csv,2,4,' <<<"$out")" 2
run stagewright sweep -s nowhere.block
expect_code 3

# Interrupted: the finished rows are written.
: >progress.txt
"$STAGEWRIGHT" sweep -s 1f1b,gpipe -p 64 -m 512-4096/8 --progress jsonl -o part.csv </dev/null >out.txt 2>progress.txt &
pid=$!
for ((i = 0; i < 600; ++i)); do
    [ "$(grep -c '"event":"progress"' progress.txt || true)" -lt 2 ] || break
    sleep 0.05
done
kill -s INT $pid
rc=0
wait $pid || rc=$?
out=$(cat out.txt) err=$(tail -n 3 progress.txt) last='sweep, then INT'
expect_code 130
expect_err 'interrupted after [0-9]+ of 898 points'
expect_that "rows are written" [ "$(wc -l <part.csv)" -ge 2 ]
expect_that "not all of them" [ "$(wc -l <part.csv)" -lt 899 ]
expect_that "each is whole" awk -F, 'NR > 1 && $9 == "" { exit 1 }' part.csv
