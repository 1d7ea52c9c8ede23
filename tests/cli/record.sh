# Record a tiny model, then every verb that reads the file.
# shellcheck shell=bash
tiny='--model layers=4,hidden=32,heads=2,seq=16 --microbatch-size 1 -p 2 -m 4'
# shellcheck disable=SC2086
run stagewright record -s gpipe,1f1b,zb-h1 $tiny --steps 3 --warmup 1 --clock virtual -o t.stagewright
expect_code 0
expect_out 'gpipe'
expect_out 'zb-h1'
expect_out 'virtual clock: projected for 2 devices'
expect_no_file t.stagewright-wal

run stagewright runs t.stagewright --json
expect_code 0
expect_json 3 runs
expect_json gpipe runs 0 schedule
expect_json complete runs 0 state
expect_json virtual runs 0 clock
expect_json 4 runs 0 steps
expect_json 1 runs 0 warmup_steps

run stagewright report t.stagewright zb-h1 --json
expect_code 0
expect_json measured provenance
expect_json ns time_unit
expect_json 4 loss
expect_json 4 step_time_ns
expect_json 2 peak_activation_bytes
expect_json 2 weight_bytes
expect_that "the bubble is a share" number_between "$(json bubble_fraction)" 0 0.95
sum=0
for cause in warmup drain dependency transfer peer_wait head_of_line memory order imbalance straggler microbatch recompute_wait reload_wait launch; do
    sum=$((sum + $(json idle_by_cause $cause)))
done
expect_same "$sum" "$(json idle)"
# the same seed and data: schedules agree on the loss of the first step
run stagewright report t.stagewright 1 --json
first=$(json loss 0)
run stagewright report t.stagewright 2 --json
expect_same "$(json loss 0)" "$first"
expect_that "bytes are tokens: about ln 256 at first" number_between "$first" 4.5 6.5

run stagewright report t.stagewright#2
expect_code 0
for part in timeline bubbles 'largest gaps' 'memory at its peak' 'communication' 'critical path'; do expect_out "$part"; done
expect_no_out $'\033'
run stagewright report t.stagewright 2 --step 99
expect_code 2
expect_err '99'
run stagewright report t.stagewright no-such-run
expect_code 2
expect_err 'no-such-run'

run stagewright compare t.stagewright gpipe zb-h1
expect_code 0
expect_out '^A  gpipe'
expect_out '^B  zb-h1'
expect_out 'why'
run stagewright compare t.stagewright#1 t.stagewright#3 --json
expect_code 0
expect_json 0 change unexplained_ns
expect_json gpipe a schedule

run stagewright export t.stagewright zb-h1 --format chrome -o z.json --verbose
expect_code 0
expect_err '[0-9]+ spans, [0-9]+ bubbles, [0-9]+ flows, [0-9]+ counter samples'
expect_that "Chrome JSON is JSON" json_of z.json traceEvents >/dev/null
run stagewright export t.stagewright 3 --format chrome -o z2.json --json
expect_code 0
spans=$(json counts spans) bubbles=$(json counts bubbles)
expect_that "as many complete events as spans and bubbles" [ "$(grep -oE '"ph": *"X"' z.json | wc -l)" = $((spans + bubbles)) ]
expect_that "the same run gives the same bytes" cmp -s z.json z2.json
run stagewright export t.stagewright 3 --format csv -o z.csv
expect_code 0
run stagewright validate z.csv
expect_code 0
expect_out 'this is zb-h1'
run stagewright export t.stagewright 3 --format spans -o spans.csv --json
expect_code 0
expect_same "$(json counts spans)" "$(($(wc -l <spans.csv) - 1))"
# a missing folder: the same answer whatever the format
for format in chrome csv spans $([ ! -x "${STAGEWRIGHT%/*}/stagewright-ui" ] || echo png svg pdf); do
    run stagewright export t.stagewright 3 --format $format -o no/such/folder/z.out
    expect_code 3
    expect_err 'no/such/folder/z.out'
done
# a file that is not a plain file is written to, not replaced
run stagewright export t.stagewright 3 --format csv -o /dev/stdout
expect_code 0
expect_same "$(cat z.csv)" "$out"
mkfifo pipe
cat pipe >through.csv &
run stagewright export t.stagewright 3 --format csv -o pipe
expect_code 0
wait
expect_that "the pipe is still one" [ -p pipe ]
expect_that "it passed on the schedule" cmp -s z.csv through.csv
ln -s z.csv link.csv
run stagewright export t.stagewright 1 --format csv -o link.csv
expect_code 0
expect_that "the link is still one" [ -L link.csv ]
run stagewright validate z.csv
expect_out 'this is gpipe'
expect_that "no half-written files" [ -z "$(find . -name '*.part-*')" ]

# 2 stages × 4 microbatches × (F, I, W) × 4 steps of zb-h1
run stagewright sql t.stagewright "SELECT count(*) FROM spans WHERE run = 3 AND kind IN ('F', 'I', 'W')" --csv
expect_code 0
expect_same "$(tail -n 1 out.txt)" 96
run stagewright sql t.stagewright 'SELECT kind, count(*) AS n FROM spans GROUP BY kind ORDER BY kind' --json
expect_code 0
expect_json kind columns 0
run stagewright sql t.stagewright 'SELECT nonsense FROM nowhere'
expect_that "a bad query is wrong usage" [ "$rc" = 2 ]
expect_err 'nowhere'
run stagewright sql t.stagewright 'DELETE FROM runs'
expect_that "nothing is written" [ "$rc" != 0 ]

# the loop: change the order by hand, run it again, compare
stagewright schedules 1f1b -p 2 -m 4 --csv | sed 's/^0F0,0F1,0B0,/0F0,0F1,0F2,0B0,/; s/,0F2,0B1,/,0B1,/' >eager.csv
# shellcheck disable=SC2086
run stagewright record -s eager.csv $tiny --steps 2 --clock virtual -o t.stagewright --json
expect_code 0
expect_json 4 runs 0 run
expect_json null comparison
expect_json eager.csv runs 0 schedule
run stagewright compare t.stagewright 1f1b eager.csv
expect_code 0

# keeping house
run stagewright runs t.stagewright --rename 4 'my order' --note 1 'the slow one'
expect_code 0
expect_out 'my order'
expect_out 'the slow one'
run stagewright report t.stagewright 'my order' --json
expect_json 4 run
run stagewright runs t.stagewright --delete 1 --compact --json
expect_code 0
expect_json 3 runs
cp t.stagewright other.stagewright
run stagewright runs t.stagewright --merge other.stagewright --json
expect_code 0
expect_json 6 runs
run stagewright simulate -s zb-h1 -p 2 -m 4 --costs-from t.stagewright#3 --json
expect_code 0
expect_json ns time_unit

# costs fitted from a run repeat it: on the virtual clock a step is its ops placed by their dependencies
stagewright record -s 1f1b,zb-h1,interleaved-1f1b --chunks 2 --model layers=4,hidden=64,heads=2,seq=64 --microbatch-size 2 -p 2 -m 4 --steps 4 --clock virtual \
    -o fit.stagewright >/dev/null 2>&1
for name in 1f1b zb-h1 interleaved-1f1b; do
    run stagewright report fit.stagewright $name --json
    expect_code 0
    measured=$(json makespan_ns)
    run stagewright simulate -s $name --chunks 2 -p 2 -m 4 --costs-from fit.stagewright#$name --json
    expect_code 0
    expect_json ns time_unit
    expect_that "$name: simulated in $(json makespan_ns) ns, measured $measured" \
        number_between "$(json makespan_ns)" $((measured * 4 / 5)) $((measured * 6 / 5))
done

# progress for other programs: a handshake, runs, steps, done; all lines are objects
# shellcheck disable=SC2086
run stagewright record -s 1f1b,zb-h1 $tiny --steps 2 --warmup 0 --clock virtual --progress jsonl -o p.stagewright
expect_code 0
head -n 1 err.txt >line.json
expect_same "$(json_of line.json event)" hello
expect_same "$(json_of line.json protocol)" 1
expect_same "$(json_of line.json verb)" record
expect_same "$(grep -c '"event":"run"' err.txt)" 2
expect_same "$(grep -c '"event":"progress"' err.txt)" 4
tail -n 1 err.txt >line.json
expect_same "$(json_of line.json event)" done
expect_same "$(json_of line.json runs)" 2
expect_same "$(grep -cv '^{.*}$' err.txt)" 0

# shellcheck disable=SC2086
run stagewright record -s no-such-schedule $tiny --progress jsonl -o p.stagewright
expect_code 2
expect_err '"event":"error","code":2'
expect_same "$(grep -cv '^{.*}$' err.txt)" 0

# wall clock, links, sgd, stage layers, a text of one's own
for ((i = 0; i < 100; ++i)); do echo 'to be or not to be, that is the question'; done >text.txt
# shellcheck disable=SC2086
run stagewright record -s 1f1b $tiny --steps 2 --clock wall --link 200us,1GB/s --optimizer sgd --lr 0.1 --stage-layers 3,1 --data text.txt -o w.stagewright --json
expect_code 0
expect_json wall runs 0 clock
expect_that "messages take time" [ "$(json runs 0 overlap comm_time)" -gt 0 ]
# shellcheck disable=SC2086
run stagewright record -s 1f1b $tiny --steps 2 --clock virtual --comm 0.5 -o w.stagewright
expect_code 0
expect_err 'forward time'
run stagewright devices --json
expect_code 0
expect_json cpu devices 0 backend
expect_json ON devices 0 usable

# sends without buffers: an order predicted to hang hangs, is stopped and explained; other rules complete
small='--model layers=4,hidden=32,heads=2,seq=16 --microbatch-size 1'
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 4 -m 8 $small --steps 2 --sends rendezvous --timeout 1 -o hung.stagewright
expect_code 1
expect_err 'no progress for 1 s: rank 2 waits to send the activations of 2F1 to rank 3; rank 3 waits to send the gradient of 3B0 to rank 2'
expect_out 'ranks 0, 1 wait for the cycle'
expect_out 'rank 2 ─► rank 3 ─► rank 2'
expect_no_file hung.stagewright
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 4 -m 8 $small --steps 2 --sends rendezvous --timeout 1 -o hung.stagewright --json
expect_code 1
expect_json ON runs 0 hung
expect_json 2 runs 0 cycle 0 rank
expect_json 2SEND_F1 runs 0 cycle 0 op
expect_json 3 runs 0 cycle 1 rank
expect_json 1 runs 0 victims 1
stagewright schedules 1f1b -p 4 -m 8 --csv >hung.csv
run stagewright validate hung.csv --sends rendezvous --json
expect_json 2SEND_F1 cycle 0 op
# shellcheck disable=SC2086
run stagewright record -s gpipe,1f1b -p 4 -m 8 $small --warmup 0 --steps 2 --sends rendezvous --timeout 1 -o kept.stagewright --json
expect_code 1
expect_json OFF runs 0 hung
expect_json gpipe runs 0 schedule
expect_json ON runs 1 hung
run stagewright report kept.stagewright 1 --json
expect_code 0
expect_json 1 loss
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 4 -m 8 $small --steps 2 --sends rendezvous --channels 1 --lower grouped --timeout 20 --comm 0.5 -o ends.stagewright --json
expect_code 0
expect_json OFF runs 0 hung
expect_json 3 runs 0 loss

# a limit on memory is checked before training starts
# shellcheck disable=SC2086
run stagewright record -s gpipe -p 4 -m 8 $small --memory-limit 4 -o limited.stagewright
expect_code 1
expect_err 'gpipe: rank 0, op 5 \(0F4\): it would hold 5 of activations, the limit is 4'
expect_no_file limited.stagewright
# shellcheck disable=SC2086
run stagewright record -s gpipe -p 4 -m 8 $small --memory-limit 60% -o limited.stagewright
expect_code 1
expect_err 'gpipe: rank 3, op 5 \(3F4\): it would hold'
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 4 -m 8 $small --steps 1 --memory-limit 60% -o limited.stagewright
expect_code 0
# shellcheck disable=SC2086
run stagewright record -s 1f1b -p 4 -m 8 $small --steps 1 --memory-limit 1KiB -o limited.stagewright
expect_code 1
expect_err 'the limit is 1.00 KiB'
run stagewright record -s 1f1b --memory-limit lots
expect_code 2

# a larger vocabulary makes the last stage heavier
run stagewright record -s 1f1b -p 2 -m 2 --steps 1 --model layers=4,hidden=32,heads=2,seq=16,vocab=2048 -o vocabulary.stagewright --json
expect_code 0
run stagewright record -s 1f1b --model vocab=61
expect_code 2
expect_err 'tokens are bytes'

# the speed of products, measured once for the model: in the run's report and in the list of devices, against the machine's best
measured() { env -u STAGEWRIGHT_PRODUCTS XDG_CACHE_HOME="$PWD/cache" "$STAGEWRIGHT" "$@"; }
mkdir cache
run measured devices
expect_no_out 'products_best'
run measured record -s gpipe -p 2 -m 2 --model layers=2,hidden=32,heads=2,seq=16 --steps 2 -o speed.stagewright
expect_code 0
if [ -s cache/stagewright/products ]; then # else there is one library only, and nothing to measure
    run measured report speed.stagewright
    expect_out "BLAS +(openblas|onednn): [0-9]+ GFLOP/s a core with this model, [0-9.]+ % of the machine's best; ops reach [0-9]+ GFLOP/s"
    run measured devices
    expect_out 'products_best: measured: .* GFLOP/s a core \(hidden 32, 64 tokens\)'
fi
# a folder for a job is made, with those above it
run stagewright record -s 1f1b --model layers=2,hidden=32,heads=2,seq=16 --microbatch-size 1 -p 2 -m 2 --clock virtual --steps 2 --job new/job --progress jsonl -o job.stagewright
expect_code 0
expect_file new/job/steps.stream
expect_file new/job/events.jsonl
: >taken
run stagewright record -s 1f1b -p 2 -m 2 --steps 2 --job taken/job -o never.stagewright
expect_code 3
expect_err 'job taken/job: Not a directory'
expect_no_file never.stagewright
