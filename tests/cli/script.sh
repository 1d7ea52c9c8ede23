# stagewright script: batch files of jobs on several nodes for Slurm, torchrun and Kubernetes. Those of Slurm run on two nodes of a real one, that of
# torchrun is started by its own lines, Kubernetes' objects are read by a YAML parser and checked field by field.
# shellcheck shell=bash
export HOME=$PWD/home XDG_CONFIG_HOME='' XDG_STATE_HOME=''
mkdir -p home
tiny=(-s 1f1b --model 'layers=4,hidden=16,heads=2,seq=8' --microbatch-size 1 -p 4 -m 4)
torch=("${tiny[@]}" --engine torch --steps 2 --warmup 1)

# what can't be
refused() { # refused MESSAGE OPTION…
    local why=$1
    shift
    run stagewright script "$@" -o none
    expect_code 2
    expect_err "$why"
    expect_no_file none
}
refused 'slurm, pbs.*kubernetes' nomad "${tiny[@]}"
refused "torchrun starts PyTorch's ranks" torchrun "${tiny[@]}"
refused "4 ranks can't be spread evenly over 3 nodes" slurm "${tiny[@]}" --nodes 3
refused 'a pod needs an image' kubernetes "${torch[@]}"
refused 'meet by MPI' kubernetes "${tiny[@]}" --container img --nodes 2
refused '--host: a script is started by you' slurm "${tiny[@]}" --host x
refused 'not for a script of torchrun' torchrun "${torch[@]}" --slurm nodes=2
refused '--launcher mpirun' slurm "${torch[@]}" --launcher mpirun
refused '--env: takes NAME=VALUE' slurm "${tiny[@]}" --env '1x=2'
refused 'takes mpirun, mpiexec, srun' slurm "${tiny[@]}" --launcher nothing
refused '--directive is not for a script of slurm' slurm "${tiny[@]}" --directive='-A x'
refused 'an option begins with a dash' pbs "${tiny[@]}" --directive 'A x'
refused "--launcher srun is Slurm's" lsf "${tiny[@]}" --launcher srun
refused 'not for a script of flux' flux "${tiny[@]}" --slurm nodes=2
run stagewright script slurm "${tiny[@]}" -o 'A Job'
expect_code 2
expect_err 'a to z, digits and dashes'
run stagewright script kubernetes "${torch[@]}" --container img -o "$(printf 'x%.0s' {1..64})"
expect_code 2
expect_err 'choose a short one'

# Slurm: a container of enroot and pyxis, GPUs, an interface, a rendezvous; values can't run anything
run stagewright script slurm "${torch[@]}" --backend cuda --nodes 2 --slurm time=1:00:00 --container nvcr.io/nvidia/pytorch:25.01-py3 \
    --interface ib0 --env 'NCCL_DEBUG=$(touch pwned)' -o big
expect_code 0
expect_out '^start:  sbatch .*/big/job.sh$'
expect_out '^fetch:  cd .*/big && stagewright import traces'
expect_that 'it is a shell script' sh -n big/job.sh
out=$(cat big/job.sh)
expect_out '^#SBATCH --nodes=2$'
expect_out '^#SBATCH --ntasks-per-node=1$'
expect_out '^#SBATCH --gpus-per-node=2$'
expect_out '^#SBATCH --time=1:00:00$'
expect_out '^export NCCL_SOCKET_IFNAME=ib0$'
expect_out '^export GLOO_SOCKET_IFNAME=ib0$'
expect_out "^export NCCL_DEBUG='\\\$\\(touch pwned\\)'$"
expect_out '^srun --ntasks=2 --nodes=2 --mpi=none .*--container-image=nvcr.io/nvidia/pytorch:25.01-py3 .*--container-mounts=[^ ]*/big:[^ ]*/big --container-workdir=[^ ]*/big python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id="\$SLURM_JOB_ID" --rdzv-endpoint="\$head:\$port" driver.py'
for file in driver.py job.json schedule.csv weights.safetensors; do expect_file big/$file; done
run stagewright script slurm "${torch[@]}" --container image.sif --launcher srun -o sif
expect_code 0
out=$(cat sif/job.sh)
expect_out '^srun --ntasks=4 --nodes=1 .* apptainer exec --bind [^ ]*/sif image.sif sh -c '
expect_no_out 'container-image'
run stagewright script slurm "${tiny[@]}" --launcher custom:'mpiexec.hydra -n {n} -ppn 2' --nodes 2 -o hydra
expect_code 0
expect_that 'the launcher is in it' grep -q '^mpiexec.hydra -n 4 -ppn 2 .*stagewright record ' hydra/job.sh
run stagewright script slurm -s 1f1b -p 2 -m 4 --engine torchtitan --config llama3:llama3_debugmodel --steps 8 --nodes 2 -o titan
expect_code 0
out=$(cat titan/job.sh)
expect_out '--nproc-per-node=1 .* -m torchtitan.train --module stagewright_job --config run >>log'
expect_out '^export BASE=llama3:llama3_debugmodel$'
expect_out 'import outputs/profile_traces/iteration_8'
expect_file titan/stagewright_job.py

# torchrun: each node runs the same script with the first one's name
cat >python3 <<'FAKE'
#!/bin/sh
printf '%s\n' "$PWD" "$GLOO_SOCKET_IFNAME" "$@" >>"$CALLS"
FAKE
chmod +x python3
export CALLS=$PWD/calls
run stagewright script torchrun "${torch[@]}" --python "$PWD/python3" --nodes 2 --interface eth1 -o two
expect_code 0
run two/run.sh
expect_code 2
expect_err 'name the first node'
run two/run.sh node7 4711
expect_code 0
expect_same "$(tr '\n' ' ' <calls)" "$PWD/two eth1 -m torch.distributed.run --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-id=two --rdzv-endpoint=node7:4711 driver.py . "
run stagewright script torchrun -s 1f1b -p 2 -m 4 --engine torchtitan --config llama3:llama3_debugmodel --python "$PWD/python3" -o titan-run --json
expect_code 0
expect_json 1 nodes
rm calls
run titan-run/run.sh
expect_that 'it starts torchtitan' grep -q '^torchtitan.train$' calls
expect_that 'it meets itself' grep -q -- '--rdzv-endpoint=localhost:29500' calls

# PBS, LSF and Flux: the script as the queue would start it, on nodes that are all this one
if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ] && command -v mpirun >/dev/null; then
    mkdir -p queues
    printf 'localhost\n%.0s' 1 2 3 4 >nodes
    cat >queues/flux <<'FAKE'
#!/bin/sh
[ "$1 $2" = 'run --ntasks=4' ] || exit 9
[ "$3" = --nodes=2 ] || exit 9
shift 3
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
exec mpirun -q --oversubscribe $root -n 4 "$@"
FAKE
    chmod +x queues/flux
    run stagewright record "${tiny[@]}" --steps 3 --clock virtual -o threads.stagewright
    expect_code 0
    by_loss() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss'"; }
    for queue in pbs lsf flux; do
        run stagewright script $queue "${tiny[@]}" --steps 3 --clock virtual --nodes 2 --directive='-A project' --env UCX_NET_DEVICES=mlx5_0 -o "by-$queue"
        expect_code 0
        case $queue in pbs) expect_out '^start:  qsub .*/by-pbs/job.sh$' ;; lsf) expect_out '^start:  bsub < .*/by-lsf/job.sh$' ;; *) expect_out '^start:  flux batch .*' ;; esac
        expect_that 'it is a shell script' sh -n "by-$queue/job.sh"
        run env PATH="$PWD/queues:$PATH" PBS_NODEFILE="$PWD/nodes" LSB_DJOB_HOSTFILE="$PWD/nodes" sh "by-$queue/job.sh"
        expect_code 0
        run stagewright hosts fetch "by-$queue" -o "by-$queue.stagewright"
        expect_code 0
        expect_same "$(by_loss "by-$queue.stagewright")" "$(by_loss threads.stagewright)"
        run stagewright report "by-$queue.stagewright"
        expect_out 'network +.*UCX_NET_DEVICES=mlx5_0'
    done
    # at its time limit the queue ends the program first, and the script says how
    run stagewright script pbs "${tiny[@]}" --steps 100000 --nodes 1 -o long
    expect_code 0
    PBS_NODEFILE=$PWD/nodes setsid sh long/job.sh &
    job=$!
    for _ in $(seq 300); do
        [ ! -s long/steps.stream ] || break
        sleep 0.1
    done
    kill -TERM -- -$job
    wait $job || true
    expect_that 'it says how it ended' test -s long/ended.json
    run stagewright hosts fetch long -o long.stagewright
    expect_that 'its steps are kept' test -s long.stagewright
else
    echo "PBS, LSF and Flux: skipped, there is no mpirun"
fi
run stagewright script pbs "${torch[@]}" --backend cuda --nodes 2 --container image.sif -o pbs-torch
expect_code 0
out=$(cat pbs-torch/job.sh)
expect_out '^#PBS -l select=2:ncpus=2:mpiprocs=1:ngpus=2$'
expect_out '^mpirun .*-n 2 --hostfile "\$PBS_NODEFILE" .* apptainer exec --nv --bind [^ ]*/pbs-torch image.sif python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=2 '

# Kubernetes: pods with an index and a headless Service
run stagewright script kubernetes "${torch[@]}" --backend cuda --nodes 2 --container 'img: "x"' --claim shared --env 'A=it is: #1' -o pods
expect_code 0
if python3=$(PATH=${PATH#"$PWD":} command -v python3) && "$python3" -c 'import yaml' 2>/dev/null; then
    cat >check.py <<'PYTHON'
import sys, yaml

class Strict(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)

service, job = yaml.load_all(open("pods/job.yaml"), Loader=Strict)
assert (service["apiVersion"], service["kind"]) == ("v1", "Service")
assert set(service["spec"]) == {"clusterIP", "publishNotReadyAddresses", "selector", "ports"}
assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"job-name": "pods"}
assert (job["apiVersion"], job["kind"], job["metadata"]) == ("batch/v1", "Job", {"name": "pods"})
spec = job["spec"]
assert set(spec) == {"completionMode", "completions", "parallelism", "backoffLimit", "template"}
assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
pod = spec["template"]["spec"]
assert set(pod) == {"subdomain", "restartPolicy", "containers", "volumes"}
assert pod["subdomain"] == service["metadata"]["name"] and pod["restartPolicy"] == "Never"
(container,) = pod["containers"]
assert container["image"] == 'img: "x"' and container["resources"] == {"limits": {"nvidia.com/gpu": 2}}
assert {"name": "A", "value": "it is: #1"} in container["env"] and all(isinstance(one["value"], str) for one in container["env"])
assert "--rdzv-endpoint=pods-0.pods:29500" in container["command"] and container["command"][-2:] == ["driver.py", "."]
assert container["ports"] == [{"containerPort": 29500}] == [{"containerPort": service["spec"]["ports"][0]["port"]}]
mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
assert mounts["job"] == container["workingDir"] == sys.argv[1] and set(mounts) == {volume["name"] for volume in pod["volumes"]}
assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "shared"}
PYTHON
    run "$python3" check.py "$PWD/pods"
    expect_code 0
else
    echo 'the fields of Kubernetes: skipped, there is no Python with yaml'
fi

# a recording of the own engine in a folder: started by its script, fetched by the folder
cp <(stagewright schedules 1f1b -p 4 -m 4 --csv) order.csv
own=(-s order.csv --model 'layers=4,hidden=16,heads=2,seq=8' --microbatch-size 1 --steps 3 --clock virtual)
run stagewright record "${own[@]}" -o here.stagewright
expect_code 0
losses() { stagewright sql "$1" "SELECT step, printf('%.17g', value) FROM metrics WHERE name='loss' AND run=${2:-1}"; }
run stagewright script kubernetes "${own[@]}" --container img -o pod-own
expect_code 0
expect_file pod-own/files/0/order.csv
run stagewright hosts fetch pod-own -o fetched.stagewright
expect_code 0
expect_out 'pod-own: queued, 0 of'
run stagewright hosts jobs
expect_out 'pod-own .* queued .*nobody has started .*pod-own/job.sh yet'
mkdir bin && ln -s "$STAGEWRIGHT" bin/stagewright
run env PATH="$PWD/bin:$PATH" sh pod-own/job.sh
expect_code 0
run stagewright hosts fetch "$PWD/pod-own/"
expect_code 0
expect_same "$(losses fetched.stagewright)" "$(losses here.stagewright)"
run stagewright hosts jobs --json
expect_json ended jobs 0 state
run stagewright hosts fetch "$PWD/nothing/here"
expect_code 3
expect_err 'there is no such folder'

# shellcheck source=../support/daemons.bash
source "$SOURCE/../support/daemons.bash"
trap daemons_stop EXIT
if ! why=$(daemons_fetch slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2) || ! slurm_start 2 >start.log 2>&1; then
    echo "skipped: a queue needs Slurm's daemons: ${why:-$(cat start.log)}"
    [ $failures -eq 0 ] || finish
    exit 77
fi
node=$(hostname -s)
wait_job() { # until no job is in the queue
    for ((i = 0; i < 600; ++i)); do [ -n "$(squeue -h -t PENDING,RUNNING,COMPLETING -o %i)" ] || return 0; sleep 0.1; done
    return 1
}
# the own engine: one process with threads, and two processes by MPI
run stagewright script slurm "${own[@]}" -o slurm-own
expect_code 0
run sbatch --parsable slurm-own/job.sh
expect_code 0
number=$out
run stagewright hosts attach slurm-own/ -o slurm.stagewright
expect_code 0
expect_same "$(losses slurm.stagewright)" "$(losses here.stagewright)"
run stagewright hosts jobs --json
expect_json "$number" jobs 0 slurm_job
if [ -f "$(dirname "$STAGEWRIGHT")/libstagewright_mpi.so" ]; then
    run stagewright script slurm "${own[@]}" --processes --ranks-per-process 2 --slurm overcommit --env NCCL_DEBUG=WARN -o slurm-mpi
    expect_code 0
    run sbatch slurm-mpi/job.sh
    run stagewright hosts attach slurm-mpi/ -o mpi.stagewright
    expect_code 0
    expect_same "$(losses mpi.stagewright)" "$(losses here.stagewright)"
    run stagewright report mpi.stagewright
    expect_out 'processes +2 on '
    expect_out 'network +.*NCCL_DEBUG=WARN'
    # on both nodes by mpirun: Slurm's PMIx and Open MPI's shared memory can't serve two nodes that are one computer
    run stagewright script slurm "${own[@]}" --processes --nodes 2 --launcher mpirun --env OMPI_MCA_btl=tcp,self -o two-nodes
    expect_code 0
    expect_that 'two nodes' grep -q '^#SBATCH --ntasks-per-node=2$' two-nodes/job.sh
    run sbatch two-nodes/job.sh
    run stagewright hosts attach two-nodes/ -o nodes-mpi.stagewright
    expect_code 0
    expect_that 'on two nodes' eval 'scontrol show job "$(cat two-nodes/slurm)" | grep -q NumNodes=2'
    expect_same "$(losses nodes-mpi.stagewright)" "$(losses here.stagewright)"
    expect_that 'no escapes in the log' eval '! grep -q "$(printf "\\033")" two-nodes/log'
fi

# PyTorch's ranks on both nodes: they meet at the first one by its name. A script stands in for the interpreter and meets the others itself.
if [ -n "${python3:-}" ]; then
    cat >meets.py <<'PYTHON'
import os, socket, sys, time

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        others = sorted(server.accept()[0].recv(100).decode() for _ in range(ranks - 1))
    print("met " + " ".join(others), flush=True)
else:
    for _ in range(300):
        try:
            with socket.create_connection(place, 5) as to:
                to.sendall(f"{rank}@{os.environ['SLURMD_NODENAME']}:{os.environ['LOCAL_RANK']}/{os.environ['LOCAL_WORLD_SIZE']}".encode())
            break
        except OSError:
            time.sleep(0.1)
    else:
        sys.exit("nobody there")
PYTHON
    printf '#!/bin/sh\nexec %s %s/meets.py\n' "$python3" "$PWD" >python3
    run stagewright script slurm "${torch[@]}" --python "$PWD/python3" --nodes 2 --launcher srun -o ranks
    expect_code 0
    run sbatch ranks/job.sh
    expect_code 0
    expect_that 'it ends' wait_job
    expect_same "$(cat ranks/log)" "met 1@$node:1/2 2@$node-2:0/2 3@$node-2:1/2"
fi

# with a real PyTorch, whose gloo connects the nodes; its traces come back as a run with the same losses
if [ -n "${STAGEWRIGHT_TEST_TORCH_PYTHON:-}" ]; then
    python=$STAGEWRIGHT_TEST_TORCH_PYTHON
elif [ -n "${STAGEWRIGHT_TEST_TORCH_ROOT:-}" ]; then
    python=$(realpath "$SOURCE/../support/torch_root_python.sh")
else
    python=''
    echo 'with PyTorch: skipped (neither STAGEWRIGHT_TEST_TORCH_ROOT nor STAGEWRIGHT_TEST_TORCH_PYTHON is set)'
fi
if [ -n "$python" ]; then
    run stagewright script slurm "${torch[@]}" --python "$python" --nodes 2 --launcher srun -o real
    expect_code 0
    run sbatch real/job.sh
    expect_that 'it ends' wait_job
    expect_same "$(ls real/traces | wc -l | tr -d ' ')" 4
    (cd real && "$STAGEWRIGHT" import traces -o ../real.stagewright) >out.txt 2>err.txt && rc=0 || rc=$?
    out='' err=$(cat err.txt) last='import traces'
    expect_code 0
    run stagewright runs real.stagewright
    expect_out '1f1b'
    run stagewright record "${torch[@]}" --python "$python" --slurm nodes=2 -o nodes.stagewright
    expect_code 0
    run stagewright report nodes.stagewright
    expect_out 'network +interface '
fi
