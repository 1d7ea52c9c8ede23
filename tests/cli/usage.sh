# Wrong usage: exit code 2; the message names the option, says what is accepted, and the nearest name.
# shellcheck shell=bash
run stagewright
expect_code 2
expect_err 'a verb is needed'
run stagewright simulat
expect_code 2
expect_err "there is no verb 'simulat'"
expect_err "did you mean 'simulate'"
run stagewright simulate --rank 4
expect_code 2
expect_err "no option --rank"
expect_err 'did you mean --ranks'
run stagewright simulate --ranks four
expect_code 2
expect_err '--ranks.*whole number from 1 to 4096.*four'
run stagewright simulate --ranks 0
expect_code 2
expect_err '--ranks.*whole number from 1'
run stagewright simulate --ranks
expect_code 2
expect_err '--ranks'
run stagewright simulate --schedule 1f1c
expect_code 2
expect_err '1f1c'
expect_err '1f1b'
run stagewright simulate --schedule 1f1b:f=2
expect_code 2
expect_err 'has no parameters'
run stagewright simulate -s interleaved-1f1b -p 4 -m 9
expect_code 2
expect_err '9'
run stagewright simulate --costs F=1,X=2
expect_code 2
expect_err "--costs.*'X'"
run stagewright simulate --costs F=1,I=one
expect_code 2
expect_err "--costs.*'I=one'"
run stagewright simulate --link 50us,10GB/s
expect_code 2
expect_err -- '--link'
expect_err -- '--comm'
run stagewright simulate --comm 1 --link 50us
expect_code 2
run stagewright simulate --chunks none
expect_code 2
expect_err '--chunks.*auto'
run stagewright record --clock sundial
expect_code 2
expect_err '--clock.*auto, wall and virtual.*sundial'
run stagewright record --clock wal
expect_code 2
expect_err 'did you mean wall'
run stagewright record --model layers=0 -o x.stagewright
expect_code 2
expect_err '--model.*layers'
expect_no_file x.stagewright
run stagewright record --model depth=4 -o x.stagewright
expect_code 2
expect_err 'depth'
run stagewright record --link 50parsecs -o x.stagewright
expect_code 2
expect_err -- '--link.*50parsecs'
run stagewright record --backend abacus -o x.stagewright
expect_that "an unknown backend is usage or not available" [ "$rc" = 2 -o "$rc" = 4 ]
expect_err 'abacus'
expect_no_file x.stagewright
run stagewright report
expect_code 2
expect_err 'FILE'
run stagewright validate a.csv b.csv
expect_code 2
expect_err "'b.csv'"
run stagewright export x.stagewright --format gif -o x
expect_code 2
expect_err '--format.*chrome.*gif'
run stagewright compare x.stagewright a
expect_code 2
run stagewright simulate --ranks four --json
expect_code 2
expect_json 2 error code
expect_that "the error has a message" [ -n "$(json error message)" ]
# a missing file is unreadable, not wrong usage
run stagewright validate nowhere.csv
expect_code 3
expect_err 'nowhere.csv'
run stagewright record --data nowhere.txt -o x.stagewright
expect_code 3
expect_err 'nowhere.txt'
expect_no_file x.stagewright
# log levels
run stagewright simulate -s gpipe --chunks 2
expect_code 0
expect_err 'chunks'
run stagewright simulate -s gpipe --chunks 2 --log-level error
expect_code 0
expect_quiet_err

# Options without effect are noted, not dropped silently.
run stagewright simulate --hoist --keep 0.2 --receives posted
expect_code 0
expect_err '--hoist is not used.*--recompute'
expect_err '--keep is not used: 1f1b is the same without it'
expect_err '--receives is not used'
printf '0F0,0B0\n1F0,1B0\n' >own.csv
run stagewright simulate -s own.csv -p 4 -m 8 --chunks 2
expect_code 0
expect_err 'own.csv has its own shape: --ranks, --microbatches, --chunks not used'
run stagewright simulate -s own.csv
expect_that 'only options that were given are named' bash -c '! grep -q "own shape" err.txt'
run stagewright simulate --lower grouped -o lowered.stagewright
run stagewright export lowered.stagewright 1 --format csv -o lowered.csv
run stagewright simulate -s lowered.csv --lower pytorch
expect_code 0
expect_err 'already has its sends and receives: --lower is not used'

# An option of two names is refused by the one that was typed, and by an engine under either.
for option in --blas --products; do
    run stagewright record "$option" foo
    expect_code 2
    expect_err "^stagewright: $option: takes one of openblas and onednn, not 'foo'"
    run stagewright record --engine torch "$option" openblas
    expect_code 2
    expect_err "can't honour --blas"
done

# An order that waits for itself is drawn by every verb.
printf '0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n' >circle.csv
run stagewright record -s circle.csv --steps 1 -o circle.stagewright
expect_code 1
expect_out 'the cycle: 0B0 → 1B0 → 1F1 → 0F1 → 0B0'
expect_no_file circle.stagewright
