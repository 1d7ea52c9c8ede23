# What starts processes: mpirun, another program's words, jsrun (a script that hands over to mpirun stands in for it), srun of a real Slurm; containers of
# Apptainer on a host of a real sshd (a script stands in for it); the environment of ranks; sizes of jobs, and forgetting them by age and size.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home fake
tiny=(-s 1f1b --model 'layers=4,hidden=32,heads=2,seq=16' --microbatch-size 1 -p 2 -m 4 --clock virtual --steps 3)
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }
run stagewright record "${tiny[@]}" -o here.stagewright
expect_code 0

# options
for bad in 'mpi' 'srun:' 'custom:'; do
    run stagewright record "${tiny[@]}" --processes --launcher "$bad" -o none.stagewright
    expect_code 2
    expect_err '--launcher: takes mpirun, mpiexec'
done
run stagewright record "${tiny[@]}" --launcher srun -o none.stagewright
expect_code 2
expect_err 'add --processes'
run stagewright record "${tiny[@]}" --processes --launcher torchrun -o none.stagewright
expect_code 2
expect_err "a recording starts PyTorch's ranks itself"
run stagewright record "${tiny[@]}" --processes --launcher "custom:mpirun 'n" -o none.stagewright
expect_code 2
expect_err 'a quote is not closed'
run stagewright record "${tiny[@]}" --container x.sqsh --host nowhere -o none.stagewright
expect_code 2
expect_err "only Slurm's srun starts it"
run stagewright record "${tiny[@]}" --container x.sif -o none.stagewright
expect_code 2
expect_err "--container is for PyTorch's ranks, a host or Slurm's queue"
run stagewright record "${tiny[@]}" --env NCCL_DEBUG -o none.stagewright
expect_code 2
expect_err '--env: takes NAME=VALUE'

if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ] && command -v mpirun >/dev/null; then
    mpi=yes
    root=''
    [ "$(id -u)" != 0 ] || root=--allow-run-as-root
    run stagewright record "${tiny[@]}" --processes --launcher "custom:mpirun -q --oversubscribe $root -n {n}" --interface lo --env 'NCCL_DEBUG=A B' -o custom.stagewright
    expect_code 0
    expect_err "started as: [^ ]*mpirun -q --oversubscribe $root -n 2 "
    expect_same "$(losses custom.stagewright)" "$(losses here.stagewright)"
    run stagewright report custom.stagewright
    expect_out 'network +.*NCCL_DEBUG=A B'
    expect_out 'network +.*GLOO_SOCKET_IFNAME=lo'
    cat >fake/jsrun <<FAKE
#!/bin/sh
[ "\$1" = --np ] || exit 9
shift
exec mpirun -q --oversubscribe $root -n "\$@"
FAKE
    chmod +x fake/jsrun
    run env PATH="$PWD/fake:$PATH" "$STAGEWRIGHT" record "${tiny[@]}" --processes --launcher jsrun -o jsrun.stagewright
    expect_code 0
    expect_same "$(losses jsrun.stagewright)" "$(losses here.stagewright)"
    run stagewright record "${tiny[@]}" --processes --launcher jsrun -o none.stagewright
    expect_code 4
    expect_err 'jsrun, which is not on PATH'
    expect_err 'choose another --launcher'
fi

# MPICH's own starter, by name and as the mpirun that is first on PATH; Open MPI's module would see one process
if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpich.so" ] && command -v mpiexec.hydra >/dev/null; then
    mkdir mpich
    for name in mpirun mpiexec; do # it looks for its helper beside itself
        printf '#!/bin/sh\nexec mpiexec.hydra "$@"\n' >mpich/$name
        chmod +x mpich/$name
    done
    for launcher in mpirun mpiexec 'custom:mpiexec -n {n} -ppn 2'; do
        run env PATH="$PWD/mpich:$PATH" "$STAGEWRIGHT" record "${tiny[@]}" --processes --launcher "$launcher" -o mpich.stagewright
        expect_code 0
        expect_same "$(losses mpich.stagewright)" "$(losses here.stagewright)"
        mv mpich.stagewright last-mpich.stagewright
    done
    expect_that 'the run names it' grep -qa 'MPICH Version: [0-9]' last-mpich.stagewright
    run env PATH="$PWD/mpich:$PATH" "$STAGEWRIGHT" check -s 1f1b -p 2 -m 4 --processes 2
    expect_code 0
    if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ]; then
        run env PATH="$PWD/mpich:$PATH" STAGEWRIGHT_MPI_MODULE="$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" "$STAGEWRIGHT" record "${tiny[@]}" --processes -o none.stagewright
        expect_code 4
        expect_err '2 processes were started, and Open MPI .* sees 1: they were started by another MPI'
        expect_no_file none.stagewright
    fi
else
    echo "MPICH: skipped, there is no module for it or no mpiexec.hydra"
fi

# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
trap daemons_stop EXIT
if command -v ssh >/dev/null && daemons_fetch openssh-server libwrap0 >/dev/null && sshd_start >start.log 2>&1; then
    cat >fake/apptainer <<FAKE
#!/bin/sh
echo "\$@" >>$PWD/apptainer.calls
[ "\$1" = exec ] || exit 9
while [ "\$2" = --bind ]; do shift 2; done
shift 2
IN_CONTAINER=yes exec "\$@"
FAKE
    chmod +x fake/apptainer
    setup="export PATH='$PWD/fake:$PATH:$(dirname "$STAGEWRIGHT")' STAGEWRIGHT_PRODUCTS=table"
    run stagewright hosts add box test --scratch "$PWD/scratch" --setup "$setup"
    run stagewright record "${tiny[@]}" --host box --container image.sif --env UCX_NET_DEVICES=mlx5_0 -o box.stagewright
    expect_code 0
    expect_same "$(losses box.stagewright)" "$(losses here.stagewright)"
    expect_that 'the image and the folders' grep -qE "^exec --bind $PWD/scratch/box-[^ ]* .*image.sif [^ ]*stagewright record" apptainer.calls
    run stagewright report box.stagewright
    expect_out 'network +UCX_NET_DEVICES=mlx5_0'
    # each step is there once when the job has ended: the run file there goes
    first=$(stagewright hosts jobs | awk 'NR == 2 { print $1 }')
    expect_file "scratch/$first/steps.stream"
    expect_no_file "scratch/$first/run.stagewright"

    # sizes, and forgetting: by age, then the oldest beyond a size
    run stagewright record "${tiny[@]}" --host box -o box.stagewright
    run stagewright hosts jobs --ask --json
    expect_code 0
    there=$(json jobs 0 bytes_there) here=$(json jobs 0 bytes_here)
    expect_that "sizes: $there, $here" number_between "$there" 1000 10000000
    expect_that "sizes: $there, $here" number_between "$here" 1000 10000000
    expect_same "$there" "$(find "scratch/$(json jobs 0 job)" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')"
    newest=$(json jobs 0 job)
    run stagewright hosts jobs
    expect_out ' 4/4 +[0-9.]+ [KM]iB +[0-9.]+ [KM]iB '
    run stagewright hosts forget
    expect_code 2
    expect_err '--older-than AGE or --keep-size SIZE'
    run stagewright hosts forget --older-than 3
    expect_code 2
    expect_err 'hours, days or weeks'
    run stagewright hosts jobs --older-than 3d
    expect_code 2
    run stagewright hosts forget --older-than 1d
    expect_code 0
    expect_out '^0 jobs forgotten'
    run stagewright hosts forget --keep-size "$((there + here + 100))B" --json
    expect_code 0
    expect_json "$first" forgotten 0
    expect_no_file "scratch/$first"
    run stagewright hosts jobs --json
    expect_json "$newest" jobs 0 job
    run stagewright hosts forget --older-than 0h
    expect_out '^1 job forgotten, [0-9.]+ [KM]iB freed'
    expect_same "$(find scratch -mindepth 1)" ''
    run stagewright runs box.stagewright --json
    expect_json 2 runs 1 run
else
    echo 'containers on a host, sizes: skipped, there is no sshd'
fi

if [ -n "${mpi:-}" ] && daemons_fetch slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2 >/dev/null && slurm_start >start.log 2>&1; then
    run stagewright record "${tiny[@]}" --processes --launcher srun --srun overcommit -o srun.stagewright
    expect_code 0
    expect_err 'started as: [^ ]*srun --ntasks=2 --mpi=pmix .*--overcommit'
    expect_same "$(losses srun.stagewright)" "$(losses here.stagewright)"
    run stagewright record "${tiny[@]}" --processes --launcher mpirun --slurm ntasks=2 --slurm overcommit -o queued.stagewright
    expect_code 0
    expect_same "$(losses queued.stagewright)" "$(losses here.stagewright)"
    run stagewright record "${tiny[@]}" --processes --launcher srun:pmi2 --slurm ntasks=2 --container image:1 --script-only
    expect_code 0
    expect_out '^srun --ntasks=2 --mpi=pmi2 .*--container-image=image:1 --container-mounts='
    # the C library of the nodes counts, not only that of the login node
    if [ -n "${SSHD_PID:-}" ]; then
        run stagewright hosts add box test --scratch "$PWD/scratch" --folder "$PWD/there" --setup "export PATH='$PATH'"
        run stagewright hosts install box
        expect_code 0
        expect_that 'a node answers' eval '! grep -q "no node answers" <<<"$err"'
        expect_err "asking a node of box's cluster for its C library"
        mv fake/apptainer fake/srun
        printf '#!/bin/sh\necho "ldd (GNU libc) 2.17"\n' >fake/srun
        run stagewright hosts add box test --scratch "$PWD/scratch" --folder "$PWD/other" --setup "export PATH='$PWD/fake:$PATH'"
        run stagewright hosts install box
        expect_code 4
        expect_err 'the C library 2.17 of its nodes is older than'
        rm fake/srun
    fi
else
    echo 'srun: skipped, there is no Slurm or no MPI'
fi
